//! Selectors and signs of operands of video instructions: `-%r1.b0`, `%r2.h10`.
//!
//! They are read from the text, because the operands that later stages receive cannot contain them; the meanings are
//! stored separately.

use ptx_backend::input::{self, Selector, SrcId};
use ptx_isa::Mod;
use ptx_syntax::ast::literal::WARP_SIZE;

use super::operands::{OPERAND_CLASS, is_sum};
use super::{Context, Statement};
use crate::diagnostic::{Diagnostic, Findings};

/// A register as written.
struct Part<'t> {
    negated: bool,
    selector: Option<&'t str>,
}

pub(super) fn check(ctx: &Context<'_>, statement: &Statement<'_>, out: &mut Findings) {
    let mnemonic = statement.form.mnemonic();
    if !mnemonic.starts_with('v') || mnemonic == "vote" || statement.rows.is_none() {
        return;
    }
    let parts: Vec<Part<'_>> = statement.ranges.iter().map(|&range| read(ctx.slice(range))).collect();
    let lanes = match mnemonic.as_bytes().last() {
        Some(b'2') => Some(('h', 2)),
        Some(b'4') => Some(('b', 4)),
        _ => None,
    };
    let mut report = |i: usize, message: String| {
        let range = statement.ranges.get(i).copied().unwrap_or(statement.name);
        out.push(Diagnostic::new(&OPERAND_CLASS, range, message));
    };
    for (i, part) in parts.iter().enumerate() {
        let Some(selector) = part.selector else { continue };
        let fits = match (i, lanes) {
            (0, None) => mnemonic != "vmad" && one(selector),
            (0, Some((letter, count))) => mask(selector, letter, count),
            (1 | 2, None) => one(selector),
            (1 | 2, Some((letter, count))) => picks(selector, letter, count),
            _ => false,
        };
        if !fits {
            report(i, format!("selector `.{selector}` is not allowed here"));
        }
    }
    if lanes.is_none() && parts.first().is_some_and(|d| d.selector.is_some()) {
        let second = [Mod::Add, Mod::Min, Mod::Max].iter().any(|&m| statement.opcode.has(m));
        if second {
            report(0, "the destination cannot have a selector when a secondary operation is used".to_owned());
        } else if parts.len() < 4 {
            report(0, "a destination selector requires a third source for the remaining bits".to_owned());
        }
    }
    for (i, (operand, &range)) in statement.operands.iter().zip(statement.ranges).enumerate() {
        let names = matches!(operand, Some(input::Operand::Reg(_) | input::Operand::Symbol(..)));
        // The third source is read like the operands of other instructions.
        if names && is_sum(ctx.slice(range)) && (i < 3 || lanes.is_some()) {
            report(i, "a name with an offset is not allowed here".to_owned());
        }
    }
    signs(statement, &parts, lanes.is_some(), &mut report);
}

fn signs(statement: &Statement<'_>, parts: &[Part<'_>], lanes: bool, report: &mut impl FnMut(usize, String)) {
    let negated = |i: usize| parts.get(i).is_some_and(|part| part.negated);
    let product = negated(1) != negated(2);
    let multiplies = statement.form.mnemonic() == "vmad";
    let wrong = match () {
        () if negated(0) => Some(0),
        () if lanes => (1..4).find(|&i| negated(i)),
        () if multiplies && !statement.opcode.has(Mod::Po) => (product && negated(3)).then_some(3),
        () if product => Some(if negated(1) { 1 } else { 2 }),
        () => negated(3).then_some(3),
    };
    if let Some(i) = wrong {
        report(i, "this operand cannot be negated".to_owned());
    }
}

fn read(text: &str) -> Part<'_> {
    let rest = text.strip_prefix('-').map(str::trim_start);
    let name = rest.unwrap_or(text);
    let register = name.starts_with(|c: char| c == '%' || c == '_' || c == '$' || c.is_ascii_alphabetic())
        && name != WARP_SIZE;
    let selector = name.split_once('.').map(|(_, selector)| selector.trim()).filter(|_| register);
    Part { negated: rest.is_some() && register, selector }
}

/// The part of its register that an operand selects, if it is not the unchanged whole register.
pub(crate) fn part(src: SrcId, operand: u8, text: &str) -> Option<input::Part> {
    let Part { negated, selector } = read(text);
    let selector = selector.and_then(|text| {
        let bits = match text.as_bytes().first()? {
            b'b' => 8,
            b'h' => 16,
            _ => return None,
        };
        let (mut lanes, count) = ([0; 4], text.len() - 1);
        for (lane, digit) in lanes.iter_mut().zip(text[1..].bytes()) {
            *lane = digit.wrapping_sub(b'0');
        }
        (count <= lanes.len()).then_some(Selector { bits, count: count as u8, lanes })
    });
    (negated || selector.is_some()).then_some(input::Part { src, operand, negated, selector })
}

/// Whether a selector names one byte or one half.
fn one(selector: &str) -> bool {
    matches!(selector, "b0" | "b1" | "b2" | "b3" | "h0" | "h1")
}

/// Whether a selector names the lanes to write: their numbers in descending order.
fn mask(selector: &str, letter: char, count: u8) -> bool {
    let Some(digits) = selector.strip_prefix(letter) else { return false };
    let digits = digits.as_bytes();
    !digits.is_empty()
        && digits.iter().all(|digit| (b'0'..b'0' + count).contains(digit))
        && digits.windows(2).all(|pair| pair[0] > pair[1])
}

/// Whether a selector names the source of each lane: the lanes of the first and the second source are numbered
/// consecutively.
fn picks(selector: &str, letter: char, count: u8) -> bool {
    let Some(digits) = selector.strip_prefix(letter) else { return false };
    digits.len() == usize::from(count)
        && digits.bytes().all(|digit| (b'0'..b'0' + 2 * count).contains(&digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        assert!(one("b3") && !one("b4") && !one("h2"));
        assert!(mask("h10", 'h', 2) && !mask("h01", 'h', 2) && !mask("b0", 'h', 2));
        assert!(mask("b210", 'b', 4) && !mask("b4", 'b', 4));
        assert!(picks("b7654", 'b', 4) && !picks("b8000", 'b', 4) && !picks("h1", 'h', 2));
    }

    #[test]
    fn operands_as_written() {
        let negated = read("- %r1.b0");
        assert!(negated.negated && negated.selector == Some("b0"));
        assert!(!read("-5").negated && read("-5").selector.is_none());
        let selector = Selector { bits: 16, count: 2, lanes: [3, 2, 0, 0] };
        let whole = input::Part { src: SrcId(4), operand: 1, negated: false, selector: Some(selector) };
        assert_eq!((part(SrcId(4), 1, "%r2.h32"), part(SrcId(4), 1, "%r2")), (Some(whole), None));
    }
}
