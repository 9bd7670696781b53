//! Replaces a register that holds a constant by the constant, and a constant by a register that holds it.

use ptx_backend::input::SrcId;
use ptx_isa::{Class, ExpectedType, Role, ScalarType, TypeKind, Values};
use ptx_syntax::ast::literal;
use ptx_syntax::{SyntaxKind, SyntaxNode};
use text_size::TextRange;

use super::{Change, Cursor, Statement};
use crate::diagnostic::TextEdit;
use crate::ide::ActionKind;
use crate::scope::Entity;
use crate::source_map::{Occurrence, Usage};
use crate::text::{counted, with_line};

/// The maximum number of uses that are replaced.
const MOST: usize = 256;

/// Removes `mov.u32 %r1, 16;` and writes `16` in place of `%r1`, if nothing else writes `%r1` and all uses accept a
/// constant of its type.
pub(super) fn inline(cursor: &Cursor<'_>, src: SrcId, statement: &Statement) -> Option<Change> {
    let (map, text) = (cursor.map(), cursor.text());
    if statement.mnemonic(text) != "mov" || statement.guard().is_some() {
        return None;
    }
    let mut operands = statement.operands();
    let (Some(register), Some(value), None) = (operands.next(), operands.next(), operands.next()) else {
        return None;
    };
    let constant = Constant::of(&text[value.text_range()], value.kind())?;
    let is_result = |o: &&Occurrence| o.range == register.text_range() && o.access == Usage::Write;
    let entity = map.occurrences.iter().find(is_result)?.entity;
    let Entity::Register(id) = entity else { return None };
    let known = map.registers.get(id.0 as usize)?;
    let is_own = map.declarations.get(known.declaration.0 as usize).is_some_and(|d| !d.range.is_empty());
    let uses: Vec<&Occurrence> = map
        .occurrences
        .iter()
        .filter(|o| o.entity == entity && o.access != Usage::Declaration && o.range != register.text_range())
        .collect();
    if !is_own || uses.is_empty() || uses.len() > MOST {
        return None;
    }
    let mut edits = vec![TextEdit::new(with_line(text, statement.range), "")];
    for found in &uses {
        if found.access != Usage::Read {
            return None;
        }
        let place = map.statement_at(found.range.start()).filter(|&place| place != src)?;
        let (_, row) = cursor.statement(place)?.row(text, found.range)?;
        let accepts = row.role == Role::Source
            && row.documented().intersects(Class::IMMEDIATE)
            && row.values == Values::Any
            && row.gated.is_none();
        let ExpectedType::Typed(ty) = row.ty else { return None };
        let fits = accepts && ty.bits() == known.ty.bits();
        edits.push(TextEdit::new(found.range, constant.written(ty).filter(|_| fits)?));
    }
    let title =
        format!("Inline the constant `{}` ({})", &text[value.text_range()], counted(uses.len(), "use"));
    Some(Change { title, kind: ActionKind::Inline, edits })
}

/// Writes `%constant` in place of the constant at the cursor, after `mov.u32 %constant, 16;`.
pub(super) fn extract(cursor: &Cursor<'_>, statement: &Statement) -> Option<Change> {
    let text = cursor.text();
    let is_here = |node: &SyntaxNode| {
        matches!(node.kind(), SyntaxKind::LITERAL | SyntaxKind::PREFIX_EXPR | SyntaxKind::PAREN_EXPR)
            && node.text_range().contains_inclusive(cursor.offset)
    };
    let place = statement.operands().find(is_here)?.text_range();
    // In a `mov` the constant already has a register.
    if statement.mnemonic(text) == "mov" {
        return None;
    }
    let (_, row) = statement.row(text, place)?;
    let ExpectedType::Typed(ty) = row.ty else { return None };
    let is_plain = row.role == Role::Source
        && row.documented().intersects(Class::REGISTER)
        && row.values == Values::Any
        && row.gated.is_none()
        && matches!(ty.bits(), 16 | 32 | 64)
        && matches!(ty, ScalarType::F32 | ScalarType::F64)
            != matches!(ty.kind(), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed);
    if !is_plain {
        return None;
    }
    let names = std::iter::once("%constant".to_owned()).chain((2..).map(|count| format!("%constant{count}")));
    let module = cursor.file.text(cursor.db);
    let name = names.take(MOST).find(|name| !module.contains(name.as_str()))?;
    let (start, ty) = (statement.range.start(), ty.text());
    let before = &text[..start.into()];
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    // After a label or another statement of the line, the new statements are on that line as well.
    let end = match line.trim_matches([' ', '\t']).is_empty() {
        true => format!("\n{line}"),
        false => " ".to_owned(),
    };
    let value = &text[place];
    let moved = format!(".reg .{ty} {name};{end}mov.{ty} {name}, {value};{end}");
    let edits = vec![TextEdit::new(TextRange::empty(start), moved), TextEdit::new(place, name)];
    Some(Change { title: format!("Extract the constant `{value}`"), kind: ActionKind::Extract, edits })
}

enum Constant<'t> {
    /// The bits, and the text if it is a hexadecimal number.
    Integer(u64, Option<&'t str>),
    Float(&'t str),
}

impl<'t> Constant<'t> {
    fn of(text: &'t str, kind: SyntaxKind) -> Option<Self> {
        let (number, is_negative) = match (kind, text.strip_prefix('-')) {
            (SyntaxKind::LITERAL, _) => (text, false),
            (SyntaxKind::PREFIX_EXPR, Some(number)) => (number.trim_start(), true),
            _ => return None,
        };
        if let Ok(integer) = literal::integer(number) {
            let value = if is_negative { integer.value.wrapping_neg() } else { integer.value };
            let is_hexadecimal = !is_negative && number.starts_with("0x");
            return Some(Self::Integer(value, is_hexadecimal.then_some(text)));
        }
        let bits = ["0f", "0F", "0d", "0D"].iter().any(|prefix| number.starts_with(prefix));
        (bits && !is_negative).then_some(Self::Float(text))
    }

    /// The constant in an operand of a type: a number in the type's range, so that no assembler has to truncate it.
    fn written(&self, ty: ScalarType) -> Option<String> {
        match (self, ty.kind()) {
            (Self::Float(text), TypeKind::Float) => {
                let is_double = text.starts_with(['0']) && text[1..].starts_with(['d', 'D']);
                (ty == if is_double { ScalarType::F64 } else { ScalarType::F32 }).then(|| (*text).to_owned())
            }
            (Self::Integer(value, text), TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) => {
                let bits = ty.bits();
                if !matches!(bits, 16 | 32 | 64) {
                    return None;
                }
                let own = value & (u64::MAX >> (64 - bits));
                let is_high = own >> (bits - 1) == 1;
                Some(match text {
                    Some(text) if own == *value && !is_high => (*text).to_owned(),
                    _ if is_high && ty.kind() == TypeKind::Signed => {
                        format!("-{}", (u64::MAX >> (64 - bits)) - own + 1)
                    }
                    _ if is_high => format!("0x{own:X}"),
                    _ => own.to_string(),
                })
            }
            _ => None,
        }
    }
}
