//! `.pragma`: the known strings, their positions and their arguments.

use ptx_isa::{PRAGMAS, PragmaArgument as Argument};
use ptx_syntax::SyntaxKind;
use ptx_syntax::flat::Node;
use text_size::TextRange;

use super::Gates;
use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Findings};

declare_lint! {
    /// A pragma has an invalid argument or is in the wrong place.
    pub(crate) BAD_PRAGMA = "E0113" "bad-pragma", Error, since "0.1.0"
}

declare_lint! {
    /// The pragma is unknown and is ignored.
    pub(crate) UNKNOWN_PRAGMA = "W0504" "unknown-pragma", Warning, since "0.1.0"
}

/// The position of a pragma.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Site {
    Module,
    /// Between the header of a kernel and its body.
    Kernel,
    KernelBody,
    FunctionBody,
}

impl Site {
    const fn is_body(self) -> bool {
        matches!(self, Self::KernelBody | Self::FunctionBody)
    }
}

/// Checks the strings of a `PRAGMA`.
pub(crate) fn check(node: Node<'_>, site: Site, gates: &Gates, text: &str, out: &mut Findings) {
    for range in node.tokens(SyntaxKind::STRING) {
        if let Some(content) = text[range][1..].strip_suffix('"') {
            string(content, range, site, gates, out);
        }
    }
}

fn string(content: &str, range: TextRange, site: Site, gates: &Gates, out: &mut Findings) {
    // Only in functions may there be blanks around the words.
    let words = content.trim_start();
    let (name, argument) = match words.split_once(' ') {
        _ if site == Site::Module => (content, ""),
        Some((name, argument)) => (name, argument.trim_start()),
        None => (words, ""),
    };
    if name == "abi_param_reg" {
        // It is not documented, and rejected in bodies.
        if site == Site::KernelBody {
            out.push(Diagnostic::new(&BAD_PRAGMA, range, format!("pragma `{name}` must precede the body")));
        }
        return;
    }
    let known = PRAGMAS.iter().find(|pragma| pragma.name == name);
    let Some(pragma) = known.filter(|p| argument.is_empty() || !matches!(p.argument, Argument::None)) else {
        if site == Site::Module {
            let message = format!("`{content}` is not a module-scope pragma");
            out.push(
                Diagnostic::new(&BAD_PRAGMA, range, message)
                    .note("the only module-scope pragma is \"nounroll\""),
            );
        } else {
            let message = format!("unknown pragma `{content}`");
            out.push(Diagnostic::new(&UNKNOWN_PRAGMA, range, message));
        }
        return;
    };
    let wrong = match pragma.argument {
        _ if pragma.of_statements && !site.is_body() => Some(format!(
            "pragma `{name}` must be inside a function body, before the statement that it applies to"
        )),
        Argument::None => None,
        Argument::Ignored if site == Site::FunctionBody => {
            Some(format!("pragma `{name}` applies only to kernels, not to device functions"))
        }
        Argument::Ignored => None,
        Argument::Count if digits(argument).is_some_and(|digits| digits.bytes().any(|b| b != b'0')) => None,
        Argument::Count => Some(format!("pragma `{name}` takes a positive integer{}", found(argument))),
        // ptxas does not check the statements of a device function that is not compiled separately.
        Argument::Mask if site == Site::FunctionBody || !gates.is_compiled() => None,
        Argument::Mask if digits(argument).is_some() => None,
        Argument::Mask => Some(format!("pragma `{name}` takes a byte mask{}", found(argument))),
    };
    // Another version or target would not help in the wrong place.
    out.extend(match wrong {
        Some(message) => Some(Diagnostic::new(&BAD_PRAGMA, range, message)),
        None => gates.check(&pragma.gate, name, range, ""),
    });
}

/// `, found …`; empty without an argument.
fn found(argument: &str) -> String {
    if argument.is_empty() { String::new() } else { format!(", found `{argument}`") }
}

/// The digits of an integer in C syntax, of any size.
fn digits(text: &str) -> Option<&str> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&text[2..], 16),
        [b'0', _, ..] => (&text[1..], 8),
        _ => (text, 10),
    };
    (!digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base))).then_some(digits)
}
