//! Writes a number in its other notation: decimal or hexadecimal.

use ptx_isa::{ExpectedType, ScalarType};
use ptx_syntax::SyntaxKind;
use ptx_syntax::ast::literal;
use text_size::TextRange;

use super::{Change, Cursor, Statement};
use crate::diagnostic::TextEdit;
use crate::ide::ActionKind;

pub(super) fn change(cursor: &Cursor<'_>, statement: &Statement) -> Option<Change> {
    let text = cursor.text();
    let literal = statement.node.descendants().find(|node| {
        node.kind() == SyntaxKind::LITERAL && node.text_range().contains_inclusive(cursor.offset)
    })?;
    let range = literal.text_range();
    // A hexadecimal float contains its sign.
    let signed = literal.parent().filter(|parent| parent.kind() == SyntaxKind::PREFIX_EXPR);
    let (range, new) = match literal.first_token()?.kind() {
        SyntaxKind::INT => (range, integer(&text[range])?),
        SyntaxKind::FLOAT => {
            let range = signed.map_or(range, |signed| signed.text_range());
            (range, float(statement, text, range)?)
        }
        _ => return None,
    };
    let title = format!("Change to `{new}`");
    Some(Change { title, kind: ActionKind::Rewrite, edits: vec![TextEdit::new(range, new)] })
}

fn integer(text: &str) -> Option<String> {
    let value = literal::integer(text).ok()?.value;
    // Larger numbers and those with a suffix are unsigned, which depends on the notation.
    if i64::try_from(value).is_err() || text.ends_with(['U', 'u']) {
        return None;
    }
    let is_decimal = text == "0" || !text.starts_with('0');
    Some(if is_decimal { format!("0x{value:X}") } else { value.to_string() })
}

fn float(statement: &Statement, text: &str, range: TextRange) -> Option<String> {
    let found = &text[range];
    let digits = |prefix: [&str; 2]| prefix.iter().find_map(|prefix| found.strip_prefix(prefix));
    if let Some(digits) = digits(["0f", "0F"]) {
        return short(f32::from_bits(u32::from_str_radix(digits, 16).ok()?));
    }
    if let Some(digits) = digits(["0d", "0D"]) {
        return long(f64::from_bits(u64::from_str_radix(digits, 16).ok()?));
    }
    let value: f64 = found.parse().ok()?;
    match statement.row(text, range)?.1.ty {
        ExpectedType::Typed(ScalarType::F32) => Some(format!("0f{:08X}", (value as f32).to_bits())),
        ExpectedType::Typed(ScalarType::F64) => Some(format!("0d{:016X}", value.to_bits())),
        _ => None,
    }
}

/// A float in decimal. Assemblers read decimal numbers as doubles and round them to floats.
fn short(value: f32) -> Option<String> {
    let text = format!("{value:?}");
    let again = text.parse::<f64>().ok()? as f32;
    (value.is_finite() && again.to_bits() == value.to_bits()).then_some(text)
}

fn long(value: f64) -> Option<String> {
    value.is_finite().then(|| format!("{value:?}"))
}
