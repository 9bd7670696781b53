//! The operands of the instruction that is being typed.

use ptx_isa::{Form, Operand, Presence, forms_of};
use text_size::{TextRange, TextSize};

use crate::db::{Database, SourceFile};
use crate::ide::SignatureHelp;
use crate::ide::operands;
use crate::locate::spot;

/// The operands of the instruction around an offset, and which one the offset is in.
pub fn signature_help(db: &Database, file: SourceFile, offset: TextSize) -> Option<SignatureHelp> {
    let spot = spot(db, file, offset)?;
    let text = spot.item.text(db);
    let before = &text[..usize::from(spot.offset)];
    let statement = statement_before(before);
    let (name, rest) = statement.split_once(|c: char| c.is_ascii_whitespace())?;
    let mut words = name.split('.');
    let mnemonic = words.next()?;
    let suffixes: Vec<&str> = words.collect();
    let resolved = ptx_isa::resolve(mnemonic, &suffixes);
    let form = match &resolved {
        Ok(opcode) => ptx_isa::form(opcode.form),
        Err(error) => ptx_isa::form(error.form().or_else(|| forms_of(mnemonic).first().copied())?),
    };
    let (label, parameters) = label(name, form);
    let active = commas(rest) as u32;
    let active = ((active as usize) < parameters.len()).then_some(active);
    // The page of the instruction would hide the text; hovers show it.
    let operand = resolved.ok().zip(active).and_then(|(opcode, active)| {
        let name = form.operands[active as usize].name;
        let expected = ptx_isa::signature(&opcode).operands;
        expected
            .iter()
            .find(|operand| operand.name == name)
            .map(|operand| operands::list(&opcode, std::slice::from_ref(operand)) + "\n")
    });
    Some(SignatureHelp { label, documentation: operand.unwrap_or_default(), parameters, active })
}

/// The commas between the operands in a text.
fn commas(operands: &str) -> usize {
    let (count, _) = operands.bytes().fold((0, 0usize), |(count, depth), byte| match byte {
        b'(' | b'[' | b'{' => (count, depth + 1),
        b')' | b']' | b'}' => (count, depth.saturating_sub(1)),
        b',' if depth == 0 => (count + 1, depth),
        _ => (count, depth),
    });
    count
}

/// Where the statement or block before the last statement of a text ends.
fn end_of_last(text: &str) -> usize {
    let mut end = text.len();
    while let Some(at) = text[..end].rfind([';', '}']) {
        // A vector has neither statements nor labels in its braces.
        let open = text[..at].rfind('{').filter(|&open| !text[open..at].contains([';', '}', ':']));
        match open {
            Some(open) if text[at..].starts_with('}') && !text[open + 1..at].trim().is_empty() => end = open,
            _ => return at + 1,
        }
    }
    0
}

/// The text of the statement that ends at the end of `before`, without guard.
pub(super) fn statement_before(before: &str) -> &str {
    let mut statement = before[end_of_last(before)..].trim_start();
    // The block's own brace, comments and labels in front.
    loop {
        let rest = if let Some(rest) = statement.strip_prefix("//") {
            rest.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(rest) = statement.strip_prefix("/*") {
            rest.split_once("*/").map_or("", |(_, rest)| rest)
        } else if let Some(rest) = statement.strip_prefix('@') {
            rest.split_once(|c: char| c.is_ascii_whitespace()).map_or("", |(_, rest)| rest)
        } else if let Some((label, rest)) = statement.split_once(':')
            && !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"_$%".contains(&b))
            && !rest.starts_with(':')
        {
            rest
        } else if let Some(rest) = statement.strip_prefix('{') {
            rest
        } else if let Some((head, rest)) = statement.split_once("{\n")
            && !head.contains(',')
        {
            rest
        } else {
            return statement;
        };
        statement = rest.trim_start();
    }
}

fn label(name: &str, form: &Form) -> (String, Vec<std::ops::Range<u32>>) {
    let mut label = format!("{name} ");
    let mut parameters = Vec::new();
    for (i, operand) in form.operands.iter().enumerate() {
        if i > 0 {
            label.push_str(", ");
        }
        let start = label.len() as u32;
        label.push_str(&spelled(operand));
        parameters.push(start..label.len() as u32);
    }
    (label, parameters)
}

pub(super) fn spelled(operand: &Operand) -> String {
    match operand.presence {
        Presence::Always => operand.name.to_owned(),
        _ => format!("{}?", operand.name),
    }
}

/// The word that ends at an offset.
pub(super) fn word_before(text: &str, offset: TextSize) -> TextRange {
    let before = &text[..usize::from(offset)];
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | ':');
    let length = before.chars().rev().take_while(|&c| is_word(c)).map(char::len_utf8).sum::<usize>();
    TextRange::new(offset - TextSize::new(length as u32), offset)
}
