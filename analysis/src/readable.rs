//! Demangles names that a C++ compiler generated.

use std::fmt;

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// The longest name that is demangled, and the longest demangled name that is shown whole. A short name can stand for
/// one of gigabytes.
const LONGEST: usize = 4096;
const SHOWN: usize = 500;

/// The demangled name without parameter types: `gemm<128, 64>`. `None` if the name is not a mangled C++ name.
pub fn readable(name: &str) -> Option<String> {
    demangled(name, DemangleOptions::new().no_params().no_return_type())
}

/// The demangled name with parameter types: `void gemm<128, 64>(float*)`.
pub(crate) fn readable_in_full(name: &str) -> Option<String> {
    demangled(name, DemangleOptions::new())
}

fn demangled(name: &str, options: DemangleOptions) -> Option<String> {
    if !name.starts_with("_Z") || name.len() > LONGEST {
        return None;
    }
    let symbol = BorrowedSymbol::new(name.as_bytes()).ok()?;
    let mut out = Bounded(String::new());
    let whole = symbol.structured_demangle(&mut out, &options.hide_expression_literal_types());
    let mut text = out.0;
    if whole.is_err() {
        if text.len() < SHOWN {
            return None;
        }
        text.truncate(text.floor_char_boundary(SHOWN));
        text.push('…');
    }
    Some(text)
}

/// A string that rejects text beyond [`SHOWN`] bytes.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        if self.0.len() > SHOWN { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions() {
        let name = "_Z5hgemmILi128ELi128ELi32EEvPKfS1_Pfi";
        assert_eq!(readable(name).as_deref(), Some("hgemm<128, 128, 32>"));
        assert_eq!(
            readable_in_full(name).as_deref(),
            Some("void hgemm<128, 128, 32>(float const*, float const*, float*, int)")
        );
        assert_eq!(
            readable("_ZN3cub6detail11EmptyKernelIvEEvv").as_deref(),
            Some("cub::detail::EmptyKernel<void>")
        );
        for name in ["saxpy", "_Z", "_Zz", "_", "", "_Z5hgemmI"] {
            assert_eq!(readable(name), None, "{name}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let name = format!("_Z1fI{}EvT_", "i".repeat(600));
        let text = readable(&name).unwrap();
        assert!(text.starts_with("f<int, int, ") && text.ends_with('…') && text.len() <= SHOWN + 3, "{text}");
        // Each name in the list stands for two copies of the previous one.
        let doubled = (0..30)
            .map(|i| format!("1aIS{}_S{0}_E", ["", "0", "1", "2", "3", "4", "5", "6", "7", "8"][i % 10]));
        let name = format!("_Z1f1aIiE{}", doubled.collect::<String>());
        assert!(readable_in_full(&name).is_none_or(|text| text.len() <= SHOWN + 3));
    }
}
