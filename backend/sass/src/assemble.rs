//! Assembles the lines of a listing, including the fields that the text of an instruction does not show.
//!
//! The control word may precede a line, and the values of hidden fields may follow it in braces:
//!
//! ```text
//! B--2---:R-:W0:-:S04  LDG.E R5, [R2.64] {UrDesc=0x6}
//! ```

use crate::control::Control;
use crate::decode::decode_tolerant;
use crate::inst::Inst;
use crate::model::{Field, Sm};
use crate::parse::{ParseError, parse};
use crate::print::print_to;
use crate::window::{Line, hides_descriptor, set_descriptors};
use std::fmt::Write;

/// Assembles lines. Each is an address and a text; the address 0 also stands for "unknown".
///
/// The lines may belong to several functions in a row, and lines may be missing. Hidden values that a line does not
/// give are inferred from the other lines.
pub fn assemble<'a>(sm: Sm, lines: impl Iterator<Item = (u64, &'a str)>) -> Vec<Result<Inst, ParseError>> {
    let mut read: Vec<Line> = lines.map(|(address, text)| line(sm, address, text)).collect();
    set_descriptors(sm, &mut read);
    read.into_iter().map(|line| line.inst).collect()
}

fn line(sm: Sm, address: u64, line: &str) -> Line {
    let mut told = false;
    Line { address, inst: instruction(sm, address, line, &mut told), told }
}

/// The instruction of a line. Sets `told` if the line gives the register of the window's descriptor.
fn instruction(sm: Sm, address: u64, line: &str, told: &mut bool) -> Result<Inst, ParseError> {
    let (control, text_at) = control_prefix(line)?;
    let (text_end, hidden) = hidden_suffix(line);
    let text = line.get(text_at..text_end).unwrap_or_default();
    let shifted = |error: ParseError| ParseError { column: error.column + text_at, ..error };
    let mut inst = parse(sm, text, address).map_err(shifted)?;
    if let Some(control) = control {
        inst.control = Control { reuse: inst.control.reuse, ..control };
    }
    for (column, name, value) in hidden {
        set_hidden(sm, &mut inst, name, value)
            .map_err(|message| ParseError { column, message: message.to_owned() })?;
        *told |= name == WORD || name == "UrDesc";
    }
    Ok(inst)
}

/// The control word before a line, and the offset at which the text begins.
fn control_prefix(line: &str) -> Result<(Option<Control>, usize), ParseError> {
    let at = line.len() - line.trim_start().len();
    let text = line.as_bytes();
    // A mnemonic has no colon.
    if text.get(at) != Some(&b'B') || text.get(at + 7) != Some(&b':') {
        return Ok((None, at));
    }
    match Control::parse(&line[at..]) {
        Ok(control) => Ok((Some(control), at + Control::TEXT_LEN)),
        Err(wrong) => Err(ParseError {
            column: at + wrong,
            message: "expected a control word like B--2---:R-:W0:-:S04".to_owned(),
        }),
    }
}

/// The offset at which the text ends, and the column, name and value of each hidden field after it.
fn hidden_suffix(line: &str) -> (usize, Vec<(usize, &str, &str)>) {
    let Some(open) = line.rfind('{') else { return (line.len(), Vec::new()) };
    let Some((inside, _)) = line[open + 1..].split_once('}') else { return (line.len(), Vec::new()) };
    // Braces without `=` are an operand, a set of scoreboards.
    if !inside.contains('=') {
        return (line.len(), Vec::new());
    }
    let mut at = open + 1;
    let mut hidden = Vec::new();
    for part in inside.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        hidden.push((at, name.trim(), value.trim()));
        at += part.len() + 1;
    }
    (open, hidden)
}

fn set_hidden(sm: Sm, inst: &mut Inst, name: &str, value: &str) -> Result<(), &'static str> {
    let digits = value.strip_prefix("0x").ok_or("expected NAME=0xVALUE here")?;
    let value = u128::from_str_radix(digits, 16).map_err(|_| "expected NAME=0xVALUE here")?;
    if name == WORD {
        let control = inst.control;
        *inst = decode_tolerant(sm, value).ok_or("the word is not an instruction")?;
        inst.control = control;
        return Ok(());
    }
    let value = u64::try_from(value).map_err(|_| "the value does not fit into its field")?;
    if name == REUSE {
        inst.control.reuse = (value & 7) as u8;
        return Ok(());
    }
    let field = inst.form().fields.iter().map(|spec| spec.field).find(|field| format!("{field:?}") == name);
    inst.set(field.ok_or("the instruction has no such field")?, value);
    if inst.rejected().is_some() { Err("the value does not fit into its field") } else { Ok(()) }
}

/// Names in braces that are not fields: the bits of operand caches, and all bits except the control word.
const REUSE: &str = "reuse";
const WORD: &str = "word";

/// Appends a line with all hidden values. [`assemble`] reads the line back as the same instruction.
pub fn print_exact(out: &mut String, sm: Sm, inst: &Inst, address: u64) {
    let _ = write!(out, "{}  ", inst.control);
    let start = out.len();
    print_to(out, sm, inst, address);
    let parsed = parse(sm, &out[start..], address).ok();
    let Some(parsed) = parsed.filter(|parsed| parsed.form == inst.form && inst.stray() == 0) else {
        let _ = write!(out, " {{{WORD}={:#x}}}", inst.word());
        return;
    };
    let mut separator = " {";
    let mut hide = |out: &mut String, name: std::fmt::Arguments<'_>, value: u64| {
        let _ = write!(out, "{separator}{name}={value:#x}");
        separator = ",";
    };
    for spec in &inst.form().fields {
        let value = inst.get_spec(spec);
        // Always written, so that other lines cannot change it.
        let descriptor = spec.field == Field::UrDesc && hides_descriptor(sm, inst);
        if parsed.get_spec(spec) != value || descriptor {
            hide(out, format_args!("{:?}", spec.field), value);
        }
    }
    if parsed.control.reuse != inst.control.reuse {
        hide(out, format_args!("{REUSE}"), inst.control.reuse.into());
    }
    if separator == "," {
        out.push('}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    fn one(sm: Sm, address: u64, text: &str) -> Result<Inst, ParseError> {
        assemble(sm, [(address, text)].into_iter()).remove(0)
    }

    #[test]
    fn exact_lines_read_back() {
        // A descriptor, a NaN, operand caches of a warp that may yield, and a bit without a meaning.
        let words = [
            0x000ea2000c1e19000000000602057981,
            0x000fe200048000007fb0000007077808,
            0x080fe200048000000000000009008207,
            0x000fe208048000000000000009008207,
        ];
        for word in words {
            for word in [word, word & !(1 << 109)] {
                let inst = decode_tolerant(Sm(80), word).unwrap();
                let mut line = String::new();
                print_exact(&mut line, Sm(80), &inst, 0x40);
                let read = one(Sm(80), 0x40, &line);
                assert_eq!(read.map(|inst| encode(Sm(80), &inst)), Ok(Ok(word)), "{line}");
            }
        }
        let inst = decode(Sm(80), 0x000ea2000c1e19000000000602057981).unwrap();
        let mut line = String::new();
        print_exact(&mut line, Sm(80), &inst, 0);
        assert_eq!(line, "B------:R-:W2:-:S01  LDG.E R5, [R2.64] {UrDesc=0x6}");
    }

    #[test]
    fn errors_name_their_column() {
        let error = |text| one(Sm(80), 0, text).unwrap_err().to_string();
        assert_eq!(error("  MOV R1, R999"), "column 11: register number out of range");
        assert_eq!(
            error("B9-----:R-:W-:-:S01 MOV R1, R2"),
            "column 2: expected a control word like B--2---:R-:W0:-:S04"
        );
        assert_eq!(error("MOV R1, R2 {Foo=0x1}"), "column 13: the instruction has no such field");
    }
}
