//! Declares registers as a range instead of a list, and as a list instead of a range.

use std::collections::BTreeSet;

use ptx_syntax::{SyntaxKind, SyntaxNode};
use text_size::TextRange;

use super::{Change, Cursor};
use crate::diagnostic::TextEdit;
use crate::ide::ActionKind;
use crate::ide::navigation::{Names, declared_in, in_module};
use crate::items::parse;
use crate::scope::{DeclId, DeclKind, split_number};
use crate::source_map::Usage;

/// The maximum number of registers in a list.
const LISTED: usize = 32;

pub(super) fn actions(cursor: &Cursor<'_>, selected: TextRange) -> Vec<Change> {
    let (map, text) = (cursor.map(), cursor.text());
    // Parsing a long function takes longer than looking at the line.
    let start = text[..cursor.offset.into()].rfind([';', '{', '}']).map_or(0, |at| at + 1);
    if !text[start..].trim_start().starts_with(".reg") {
        return Vec::new();
    }
    let root = parse(cursor.db, cursor.item).syntax();
    let contains =
        |node: &SyntaxNode| node.kind() == SyntaxKind::VARIABLE && node.text_range().contains_range(selected);
    let Some(node) = root.descendants().find(contains) else { return Vec::new() };
    let own: Vec<DeclId> = (0..)
        .zip(&map.declarations)
        .filter(|(_, declared)| {
            !declared.range.is_empty() && node.text_range().contains_range(declared.range)
        })
        .map(|(id, _)| DeclId(id))
        .collect();
    let found = [to_range(cursor, &own), to_list(cursor, &own)];
    found.into_iter().flatten().collect()
}

/// `%r1, %r2, %r5` becomes `%r<6>`, if the additional registers have names that the function and the module lack.
fn to_range(cursor: &Cursor<'_>, own: &[DeclId]) -> Option<Change> {
    let (map, text) = (cursor.map(), cursor.text());
    let declared = || own.iter().map(|id| &map.declarations[id.0 as usize]);
    let (first, last) = (declared().next()?, declared().next_back()?);
    let (prefix, _) = split_number(&text[first.range])?;
    let mut numbers = BTreeSet::new();
    for one in declared() {
        let (same, number) = split_number(&text[one.range])?;
        let is_plain = matches!(one.kind, DeclKind::Register { count: None, lanes: 1, .. });
        let is_canonical = text[one.range] == format!("{prefix}{number}");
        if !is_plain || same != prefix || !is_canonical || !numbers.insert(number) {
            return None;
        }
    }
    let count = numbers.last()?.checked_add(1)?;
    if numbers.len() < 2 || count as usize > 2 * numbers.len() + 8 {
        return None;
    }
    let new = Names { name: prefix, count: Some(count) };
    let is_free = declared_in(cursor.db, cursor.item, new, own).is_none()
        && in_module(cursor.db, cursor.file, new).is_none();
    let range = TextRange::new(first.range.start(), last.range.end());
    is_free.then(|| Change {
        title: format!("Change the list to the range `{prefix}<{count}>`"),
        kind: ActionKind::Rewrite,
        edits: vec![TextEdit::new(range, format!("{prefix}<{count}>"))],
    })
}

/// `%r<6>` becomes a list of its registers that the function mentions.
fn to_list(cursor: &Cursor<'_>, own: &[DeclId]) -> Option<Change> {
    let (map, text) = (cursor.map(), cursor.text());
    // The one under the cursor, or the only one.
    let ranged = |id: &&DeclId| {
        matches!(map.declarations[id.0 as usize].kind, DeclKind::Register { count: Some(_), .. })
    };
    let mut ranges = own.iter().filter(ranged);
    let (Some(&id), None) = (ranges.next(), ranges.next()) else { return None };
    let declared = &map.declarations[id.0 as usize];
    let mut numbers = BTreeSet::new();
    for occurrence in map.occurrences.iter().filter(|o| o.access != Usage::Declaration) {
        if map.declaration_of(occurrence.entity) == Some(id) {
            let name = &text[occurrence.range];
            let digits = name.strip_prefix(&text[declared.range])?;
            let number: u32 = digits.parse().ok()?;
            // The list declares the names as they are written.
            if number.to_string() != digits {
                return None;
            }
            numbers.insert(number);
        }
    }
    if numbers.is_empty() || numbers.len() > LISTED {
        return None;
    }
    let name = &text[declared.range];
    let after = &text[declared.range.end().into()..];
    let length = after.find('>')? + 1;
    let range =
        TextRange::at(declared.range.start(), declared.range.len() + text_size::TextSize::new(length as u32));
    let list: Vec<String> = numbers.iter().map(|number| format!("{name}{number}")).collect();
    let new = list.join(", ");
    Some(Change {
        title: format!("Change the range to the list `{new}`"),
        kind: ActionKind::Rewrite,
        edits: vec![TextEdit::new(range, new)],
    })
}
