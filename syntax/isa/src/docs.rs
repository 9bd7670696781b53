//! The manual pages of `docs/`, one per mnemonic.

macro_rules! pages {
    ($($mnemonic:literal,)*) => {
        /// Mnemonics with a page, sorted.
        pub const DOCUMENTED: &[&str] = &[$($mnemonic),*];

        const PAGES: &[&str] = &[$(include_str!(concat!("../docs/", $mnemonic, ".md"))),*];
    };
}

#[rustfmt::skip]
pages! {
    "abs", "activemask", "add", "addc", "alloca", "and", "applypriority", "atom", "bar", "barrier", "bfe", "bfi",
    "bfind", "bmsk", "bra", "brev", "brkpt", "brx", "call", "clusterlaunchcontrol", "clz", "cnot", "copysign",
    "cos", "cp", "createpolicy", "cvt", "cvta", "discard", "div", "dp2a", "dp4a", "elect", "ex2", "exit", "fence",
    "fma", "fns", "getctarank", "griddepcontrol", "isspacep", "istypep", "ld", "ldmatrix", "ldu", "lg2", "lop3",
    "mad", "mad24", "madc", "mapa", "match", "max", "mbarrier", "membar", "min", "mma", "mov", "movmatrix", "mul",
    "mul24", "multimem", "nanosleep", "neg", "not", "or", "pmevent", "popc", "prefetch", "prefetchu", "prmt",
    "rcp", "red", "redux", "rem", "ret", "rsqrt", "sad", "selp", "set", "setmaxnreg", "setp", "shf", "shfl", "shl",
    "shr", "sin", "slct", "sqrt", "st", "stackrestore", "stacksave", "stmatrix", "sub", "subc", "suld", "suq",
    "sured", "sust", "szext", "tanh", "tcgen05", "tensormap", "testp", "tex", "tld4", "trap", "txq", "vabsdiff",
    "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad", "vmax", "vmax2", "vmax4",
    "vmin", "vmin2", "vmin4", "vote", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2", "vsub4", "wgmma",
    "wmma", "xor",
}

/// The page of a mnemonic, in Markdown: syntax lines, what it does, what it needs.
pub fn doc(mnemonic: &str) -> Option<&'static str> {
    DOCUMENTED.binary_search(&mnemonic).ok().map(|i| PAGES[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mod, Suffix, is_mnemonic};

    #[test]
    fn pages_begin_with_their_mnemonic_and_have_syntax_and_text() {
        assert!(DOCUMENTED.is_sorted());
        for mnemonic in DOCUMENTED {
            let page = doc(mnemonic).unwrap();
            assert!(is_mnemonic(mnemonic));
            assert!(page.starts_with(&format!("# {mnemonic}\n\n    ")), "{mnemonic}");
            assert!(page.lines().any(|line| line.starts_with(char::is_uppercase)), "{mnemonic}");
            assert!(page.len() < 4000, "{mnemonic}: hover text is short");
        }
        assert_eq!(DOCUMENTED, crate::mnemonics(), "every mnemonic has a page");
        assert_eq!(doc("nothing"), None);
    }

    /// A modifier in a syntax line that is a plain name is one of the language.
    #[test]
    fn syntax_lines_use_modifiers_of_the_language() {
        const METAVARIABLES: &[&str] = &[
            "rnd",
            "type",
            "atype",
            "btype",
            "ctype",
            "dtype",
            "stype",
            "cmp",
            "bool",
            "op",
            "op2",
            "mode",
            "space",
            "ss",
            "cop",
            "vec",
            "scope",
            "sem",
            "size",
            "geom",
            "clamp",
            "query",
            "comp",
            "shape",
            "primary",
            "secondary",
            "dim",
            "dst",
            "src",
            "completion",
            "field",
            "sel",
            "level::eviction_priority",
            "level::cache_hint",
            "level::prefetch_size",
            "mask",
            "layout",
            "alayout",
            "blayout",
            "num",
            "multicast",
            "fmt",
            "kind",
            "cta_group",
            "scale",
        ];
        for mnemonic in DOCUMENTED {
            for line in doc(mnemonic).unwrap().lines().filter(|line| line.starts_with("    ")) {
                let name = line.trim().trim_start_matches("@p ").split([' ', ';']).next().unwrap();
                let words = name.split(['.', '{', '}', '|']).skip(1).filter(|word| !word.is_empty());
                for word in words.filter(|word| !word.starts_with("::") && !METAVARIABLES.contains(word)) {
                    let of_shared = matches!(word, "evict_normal" | "evict_last");
                    assert!(of_shared || Suffix::parse(word).is_some(), "{mnemonic}: {word}");
                }
            }
        }
        assert!(Mod::parse("rnd").is_none());
    }
}
