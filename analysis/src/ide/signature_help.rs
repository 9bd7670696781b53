//! The operands of the instruction that is being typed.

use ptx_backend::input::Param;
use ptx_isa::{Class, Operand, Presence, forms_of};
use text_size::{TextRange, TextSize};

use crate::db::{Database, SourceFile};
use crate::ide::SignatureHelp;
use crate::ide::completion::argument;
use crate::ide::operands;
use crate::locate::spot;
use crate::module::module;

/// The operands of the instruction around an offset, and the index of the current one. In the arguments of a call,
/// these are the parameters of the function.
pub fn signature_help(db: &Database, file: SourceFile, offset: TextSize) -> Option<SignatureHelp> {
    let spot = spot(db, file, offset)?;
    let text = spot.item.text(db);
    let before = &text[..usize::from(spot.offset)];
    let statement = statement_before(before);
    let (name, rest) = statement.split_once(|c: char| c.is_ascii_whitespace())?;
    let mut words = name.split('.');
    let mnemonic = words.next()?;
    let suffixes: Vec<&str> = words.collect();
    if mnemonic == "call"
        && let Some(help) = of_callee(db, file, name, rest)
    {
        return Some(help);
    }
    let active = commas(rest);
    let Ok(opcode) = ptx_isa::resolve(mnemonic, &suffixes) else {
        let error = ptx_isa::resolve(mnemonic, &suffixes).err()?;
        let form = ptx_isa::form(error.form().or_else(|| forms_of(mnemonic).first().copied())?);
        let (label, parameters) = label(name, form.operands.iter().map(spelled));
        let active = (active < parameters.len()).then_some(active as u32);
        return Some(SignatureHelp { label, documentation: String::new(), parameters, active });
    };
    let expected = ptx_isa::signature(&opcode).operands;
    let (label, parameters) = label(name, expected.iter().map(operands::spelled));
    // The page of the instruction would hide the text; hovers show it.
    let operand =
        expected.get(active).map(|operand| operands::list(&opcode, std::slice::from_ref(operand)) + "\n");
    let active = operand.is_some().then_some(active as u32);
    Some(SignatureHelp { label, documentation: operand.unwrap_or_default(), parameters, active })
}

/// The signature of the function whose arguments are at the end of `rest`, the text after `call`.
fn of_callee(db: &Database, file: SourceFile, name: &str, rest: &str) -> Option<SignatureHelp> {
    let (callee, argument) = argument(rest)?;
    let functions = &module(db, file).env.functions;
    let function = functions.iter().find(|function| function.name == callee)?;
    let list = |all: &[Param]| -> Vec<String> { all.iter().map(spelled_parameter).collect() };
    let mut label = format!("{name} ");
    if !function.returns.is_empty() {
        label += &format!("({}), ", list(&function.returns).join(", "));
    }
    label += &format!("{callee}, (");
    let mut parameters = Vec::new();
    for (i, parameter) in list(&function.params).iter().enumerate() {
        label.push_str(if i > 0 { ", " } else { "" });
        let start = label.len() as u32;
        label.push_str(parameter);
        parameters.push(start..label.len() as u32);
    }
    label.push(')');
    let active = (argument < parameters.len()).then_some(argument as u32);
    Some(SignatureHelp { label, documentation: String::new(), parameters, active })
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

/// The end of the statement or block before the last statement of a text.
fn end_of_last(text: &str) -> usize {
    let mut end = text.len();
    while let Some(at) = text[..end].rfind([';', '}']) {
        if let Some(start) = comment_around(text, at) {
            end = start;
            continue;
        }
        // The braces of a vector contain neither statements nor labels.
        let open = text[..at].rfind('{').filter(|&open| !text[open..at].contains([';', '}', ':']));
        match open {
            Some(open) if text[at..].starts_with('}') && !text[open + 1..at].trim().is_empty() => end = open,
            _ => return at + 1,
        }
    }
    0
}

/// The start of the comment around a position.
fn comment_around(text: &str, at: usize) -> Option<usize> {
    let line = text[..at].rfind('\n').map_or(0, |before| before + 1);
    if let Some(start) = text[line..at].find("//") {
        return Some(line + start);
    }
    let rest = &text[at..];
    let end = rest.find("*/")?;
    if rest[..end].contains("/*") { None } else { text[..at].rfind("/*") }
}

/// The text of the statement at the end of `before`, without its guard.
pub(super) fn statement_before(before: &str) -> &str {
    let mut statement = before[end_of_last(before)..].trim_start();
    // Skip the brace of the block, comments and labels.
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
        } else if let Some((head, rest)) = statement.split_once('{')
            && (head.contains(".entry") || head.contains(".func"))
        {
            rest
        } else {
            return statement;
        };
        statement = rest.trim_start();
    }
}

fn label(name: &str, operands: impl Iterator<Item = String>) -> (String, Vec<std::ops::Range<u32>>) {
    let mut label = format!("{name} ");
    let mut parameters = Vec::new();
    for (i, operand) in operands.enumerate() {
        if i > 0 {
            label.push_str(", ");
        }
        let start = label.len() as u32;
        label.push_str(&operand);
        parameters.push(start..label.len() as u32);
    }
    (label, parameters)
}

pub(super) fn spelled(operand: &Operand) -> String {
    let is_address = operand.documented() == Class::ADDRESS;
    let name = if is_address { format!("[{}]", operand.name) } else { operand.name.to_owned() };
    match operand.presence {
        Presence::Always => name,
        _ => format!("{name}?"),
    }
}

/// `.f32 x`, `.b8 s[16]`
fn spelled_parameter(parameter: &Param) -> String {
    let element = parameter.ty.bytes();
    let dimension = match parameter.size {
        size if size == element => String::new(),
        size => format!("[{}]", size / element.max(1)),
    };
    format!(".{} {}{dimension}", parameter.ty.text(), parameter.name)
}

/// The word that ends at an offset.
pub(super) fn word_before(text: &str, offset: TextSize) -> TextRange {
    let before = &text[..usize::from(offset)];
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | ':');
    let length = before.chars().rev().take_while(|&c| is_word(c)).map(char::len_utf8).sum::<usize>();
    TextRange::new(offset - TextSize::new(length as u32), offset)
}
