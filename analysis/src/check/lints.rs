//! The list of all lints, and the findings of the walk itself: unknown names and instructions.

use text_size::TextRange;

use crate::declare_lint;
use crate::diagnostic::{Diagnostic, Lint, Severity};
use crate::syntax_errors;

declare_lint! {
    /// The file contains bytes that are not valid UTF-8.
    pub INVALID_UTF8 = "E0008" "invalid-utf8", Error, since "0.1.0"
}

declare_lint! {
    /// A register is used but not declared.
    pub UNDEFINED_REGISTER = "E0202" "undefined-register", Error, since "0.1.0"
}
declare_lint! {
    /// A branch target is not defined in this scope.
    pub UNDEFINED_LABEL = "E0203" "undefined-label", Error, since "0.1.0"
}
declare_lint! {
    /// A name is used but not declared.
    pub UNDEFINED_SYMBOL = "E0204" "undefined-symbol", Error, since "0.1.0"
}
declare_lint! {
    /// The target of a call is missing or cannot be called.
    pub CALL_TARGET = "E0208" "call-target", Error, since "0.1.0"
}

declare_lint! {
    /// The instruction does not exist.
    pub UNKNOWN_INSTRUCTION = "E0210" "unknown-instruction", Error, since "0.1.0"
}
declare_lint! {
    /// The instruction does not take this modifier or type.
    pub BAD_MODIFIER = "E0211" "bad-modifier", Error, since "0.1.0"
}
declare_lint! {
    /// The instruction lacks a required modifier or type.
    pub MISSING_MODIFIER = "E0212" "missing-modifier", Error, since "0.1.0"
}
declare_lint! {
    /// An operand must be a predicate.
    pub PREDICATE = "E0305" "predicate", Error, since "0.1.0"
}
declare_lint! {
    /// An address operand is invalid.
    pub ADDRESS = "E0306" "bad-address", Error, since "0.1.0"
}
declare_lint! {
    /// The instruction is not checked because it is not in the instruction table yet.
    pub NOT_CHECKED = "I0601" "not-checked", Information, since "0.1.0"
}
declare_lint! {
    /// The compiler does not support this construct yet, so the function has no machine code.
    pub NOT_COMPILED = "I0602" "not-compiled", Information, since "0.1.0"
}
declare_lint! {
    /// The function exceeds a hardware limit.
    pub HARDWARE_LIMIT = "E0603" "hardware-limit", Error, since "0.1.0"
}
declare_lint! {
    /// The compiler failed because of an internal defect.
    pub INTERNAL = "W0604" "internal", Warning, since "0.1.0"
}
declare_lint! {
    /// The compiler waits for `wgmma` products before this statement, because it accesses their registers.
    pub PRODUCT_WAIT = "I0605" "product-wait", Information, since "0.1.0"
}

/// Every lint, by code.
pub static LINTS: &[&Lint] = &[
    &syntax_errors::BAD_CHARACTER,
    &syntax_errors::UNTERMINATED,
    &syntax_errors::BAD_NUMBER,
    &syntax_errors::UNEXPECTED,
    &syntax_errors::MISSING_SEMICOLON,
    &syntax_errors::UNBALANCED,
    &syntax_errors::LIMIT,
    &INVALID_UTF8,
    &crate::declaration::BAD_DECLARATION,
    &crate::declaration::BAD_SIZE,
    &crate::declaration::BAD_CONSTANT,
    &crate::module::MISSING_VERSION,
    &crate::initializer::INITIAL_VALUE,
    &crate::initializer::TOO_MANY_VALUES,
    &crate::module::MISSING_TARGET,
    &crate::declaration::CONFLICTING_DIRECTIVES,
    &super::declarations::MISPLACED,
    &super::declarations::BAD_PARAMETER,
    &super::declarations::REMOVED_FORM,
    &super::pragmas::BAD_PRAGMA,
    &super::debug::BAD_DEBUG_DATA,
    &crate::externals::SEPARATE_COMPILATION,
    &crate::module::REDEFINITION,
    &crate::module::PROTOTYPE_MISMATCH,
    &crate::module::BAD_ALIAS,
    &crate::module::UNDEFINED_FUNCTION,
    &CALL_TARGET,
    &super::textures::TEXTURE_MODE,
    &UNDEFINED_REGISTER,
    &UNDEFINED_LABEL,
    &UNDEFINED_SYMBOL,
    &UNKNOWN_INSTRUCTION,
    &BAD_MODIFIER,
    &MISSING_MODIFIER,
    &super::operands::OPERAND_COUNT,
    &super::operands::OPERAND_CLASS,
    &super::types::OPERAND_TYPE,
    &super::immediates::CONSTANT_TYPE,
    &super::immediates::CONSTANT_RANGE,
    &super::vectors::VECTOR_SIZE,
    &super::spaces::STATE_SPACE,
    &PREDICATE,
    &ADDRESS,
    &crate::module::VERSION_GATE,
    &super::gates::TARGET_GATE,
    &crate::module::UNKNOWN_TARGET,
    &crate::module::ADDRESS_SIZE,
    &crate::module::ARCHITECTURE,
    &super::unused::UNUSED_LABEL,
    &super::unused::UNUSED_REGISTER,
    &super::directives::IGNORED_DIRECTIVE,
    &super::pragmas::UNKNOWN_PRAGMA,
    &super::warp_sync::NO_SYNC,
    &super::unreachable::UNREACHABLE_CODE,
    &super::unassigned::UNASSIGNED_READ,
    &super::divergence::PARTIAL_WARP,
    &super::divergence::MEMBER_MASK,
    &super::memory::MISALIGNED,
    &super::memory::INDEXED_LOCAL,
    &super::asynchronous::UNAWAITED_COPY,
    &super::asynchronous::BARRIER_OBJECT,
    &super::asynchronous::IGNORED_WAIT,
    &super::asynchronous::PROXY_FENCE,
    &super::asynchronous::PRODUCT_ORDER,
    &super::divergence::VARYING_BRANCH,
    &super::memory::OUT_OF_BOUNDS,
    &super::unassigned::MAYBE_UNASSIGNED,
    &super::slow_forms::SLOW_FORM,
    &super::unused::UNREAD_REGISTER,
    &crate::module::TARGET_NAME,
    &super::suppressions::BAD_SUPPRESSION,
    &super::ignored::IGNORED_MODIFIER,
    &crate::externals::IGNORED_EXTERN,
    &NOT_CHECKED,
    &NOT_COMPILED,
    &HARDWARE_LIMIT,
    &INTERNAL,
    &PRODUCT_WAIT,
];

/// Finds a lint by its code or name.
pub fn lint(name: &str) -> Option<&'static Lint> {
    LINTS.iter().copied().find(|lint| lint.code == name || lint.name == name)
}

/// The lint whose code or name is nearest to an unknown one.
pub fn near(name: &str) -> Option<&'static str> {
    let names = LINTS.iter().flat_map(|known| [known.name, known.code]);
    ptx_isa::suggestions(name, names).into_iter().next()
}

/// Reads the level of a lint in a setting: a code or name, and `allow`, `info`, `warning` or `error`.
///
/// # Errors
/// There is no such lint or level, or the lint is an error, which has no lower level.
pub fn setting(name: &str, level: &str) -> Result<(&'static Lint, Severity), String> {
    let Some(lint) = lint(name) else {
        return Err(match near(name) {
            Some(near) => format!("unknown lint `{name}`; did you mean `{near}`?"),
            None => format!("unknown lint `{name}`"),
        });
    };
    let level = Severity::parse(level).ok_or("expected \"allow\", \"info\", \"warning\" or \"error\"")?;
    if lint.is_error() && level < Severity::Error {
        let message = format!(
            "`{name}` is an error and cannot be set to `{}`; only warnings and hints (W…, I…) can",
            level.text()
        );
        return Err(if lint == &crate::externals::SEPARATE_COMPILATION {
            message + "; to check part of a program, use `--compile-only` or `compile-only = true`"
        } else {
            message
        });
    }
    Ok((lint, level))
}

/// The kind of name that is expected where an undefined name appears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    Register,
    Label,
    Symbol,
}

/// The lint for an undefined name of this kind.
pub(crate) fn lint_of(expected: Expected) -> &'static Lint {
    match expected {
        Expected::Register => &UNDEFINED_REGISTER,
        Expected::Label => &UNDEFINED_LABEL,
        Expected::Symbol => &UNDEFINED_SYMBOL,
    }
}

/// Reports an undeclared name, with the most similar name that could appear there.
pub fn undefined(
    name: &str,
    range: TextRange,
    expected: Expected,
    visible: impl Iterator<Item = String>,
) -> Diagnostic {
    let what = match expected {
        Expected::Register => "register",
        Expected::Label => "label",
        Expected::Symbol => "name",
    };
    let diagnostic =
        Diagnostic::new(lint_of(expected), range, format!("{what} `{name}` is not declared in this scope"))
            .rule();
    match nearest(name, visible) {
        Some(near) => diagnostic.fix(format!("change to `{near}`"), range, near),
        None => diagnostic,
    }
}

/// The name most similar to `name`: of the same or almost the same length, with at most one in four characters
/// different. The `%` of a register does not count.
fn nearest(name: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let length = name.trim_start_matches('%').len();
    let limit = (1 + length / 5).min(length.saturating_sub(1));
    candidates
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= limit && candidate != name)
        .map(|candidate| (difference(name, &candidate), candidate))
        .filter(|&(difference, _)| difference <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of characters between the common start and the common end. Two letters in the wrong order count as one.
fn difference(a: &str, b: &str) -> usize {
    let start = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - start;
    let end = a.bytes().rev().zip(b.bytes().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a.as_bytes()[start..a.len() - end], &b.as_bytes()[start..b.len() - end]);
    match (a, b) {
        (&[x, y], &[v, w]) if (x, y) == (w, v) && x.is_ascii_alphabetic() && y.is_ascii_alphabetic() => 1,
        _ => a.len().max(b.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_or_grouped_and_distinct() {
        let mut codes: Vec<&str> = LINTS.iter().map(|lint| lint.code).collect();
        let mut names: Vec<&str> = LINTS.iter().map(|lint| lint.name).collect();
        codes.sort_unstable();
        names.sort_unstable();
        assert!(codes.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn codes_tell_errors_from_the_rest() {
        for lint in LINTS {
            assert_eq!(lint.is_error(), lint.code.starts_with('E'), "{}", lint.code);
        }
    }

    #[test]
    fn errors_stay_errors() {
        assert_eq!(
            setting("unused-label", "error"),
            Ok((&super::super::unused::UNUSED_LABEL, Severity::Error))
        );
        assert_eq!(setting("W0501", "off").map(|(_, level)| level), Ok(Severity::Allow));
        assert_eq!(setting("E0303", "error").map(|(_, level)| level), Ok(Severity::Error));
        let refused = |name, level| setting(name, level).unwrap_err();
        assert!(
            refused("E0303", "warning").starts_with("`E0303` is an error and cannot be set to `warning`")
        );
        assert!(refused("separate-compilation", "allow").ends_with("`compile-only = true`"));
        assert_eq!(
            refused("unused-lable", "allow"),
            "unknown lint `unused-lable`; did you mean `unused-label`?"
        );
        assert_eq!(refused("W0501", "loud"), "expected \"allow\", \"info\", \"warning\" or \"error\"");
    }

    #[test]
    fn pages_begin_with_code_and_name() {
        for lint in LINTS {
            let title = lint.page.lines().next().unwrap_or_default();
            assert_eq!(title, format!("# {} {}", lint.code, lint.name));
        }
    }
}
