//! Lines of a listing to instructions: what one line alone does not tell.
//!
//! A line may have the control word in front, and behind it the values of fields that the text does not show:
//!
//! ```text
//! B--2---:R-:W0:-:S04  LDG.E R5, [R2.64] {UrDesc=0x6}
//! ```

use crate::control::Control;
use crate::decode::decode_tolerant;
use crate::inst::Inst;
use crate::model::{Field, Sm};
use crate::parse::{ParseError, USUAL_DESCRIPTOR, parse_with};
use crate::print::{INST_BYTES, SHOWN_DESCRIPTOR_SM, print_to};
use std::fmt::Write;

/// Assembles lines in their order.
///
/// Before sm_90 the text of a global access does not tell the register of the window's descriptor. In lines that
/// follow each other without a gap, it is the register that was last loaded with it; elsewhere UR4.
#[derive(Clone, Debug)]
pub struct Assembler {
    sm: Sm,
    /// The address after the last line's.
    next: Option<u64>,
    descriptor: u64,
}

/// Where the window's descriptor lies in constant bank 0, before sm_90.
const DESCRIPTOR_OFFSET: u64 = 0x118;

impl Assembler {
    pub fn new(sm: Sm) -> Assembler {
        Assembler { sm, next: None, descriptor: USUAL_DESCRIPTOR }
    }

    /// The instruction of a line, which is at an address.
    pub fn line(&mut self, address: u64, line: &str) -> Result<Inst, ParseError> {
        if self.next != Some(address) {
            self.descriptor = USUAL_DESCRIPTOR;
        }
        self.next = address.checked_add(INST_BYTES);
        let (control, text_at) = control_prefix(line)?;
        let (text_end, hidden) = hidden_suffix(line);
        let text = line.get(text_at..text_end).unwrap_or_default();
        let shifted = |error: ParseError| ParseError { column: error.column + text_at, ..error };
        let mut inst = parse_with(self.sm, text, address, self.descriptor).map_err(shifted)?;
        if let Some(control) = control {
            inst.control = Control { reuse: inst.control.reuse, ..control };
        }
        for (column, name, value) in hidden {
            set_hidden(self.sm, &mut inst, name, value)
                .map_err(|message| ParseError { column, message: message.to_owned() })?;
        }
        self.note_descriptor(&inst);
        Ok(inst)
    }

    fn note_descriptor(&mut self, inst: &Inst) {
        let loads = self.sm.0 < SHOWN_DESCRIPTOR_SM
            && inst.form().mnemonic == "ULDC"
            && inst.text(Field::Size) == Some(".64")
            && inst.get(Field::CBank) == Some(0)
            && inst.get(Field::COffset) == Some(DESCRIPTOR_OFFSET);
        if let (true, Some(register)) = (loads, inst.get(Field::URd)) {
            self.descriptor = register;
        }
    }
}

/// The control word in front of a line, and where the text begins.
fn control_prefix(line: &str) -> Result<(Option<Control>, usize), ParseError> {
    let at = line.len() - line.trim_start().len();
    let text = line.as_bytes();
    // No mnemonic has a colon.
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

/// Where the text ends, and column, name and value of what is set behind it.
fn hidden_suffix(line: &str) -> (usize, Vec<(usize, &str, &str)>) {
    let Some(open) = line.rfind('{') else { return (line.len(), Vec::new()) };
    let Some((inside, _)) = line[open + 1..].split_once('}') else { return (line.len(), Vec::new()) };
    // A set of scoreboards is an operand.
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
        *inst = decode_tolerant(sm, value).ok_or("the word is no instruction")?;
        inst.control = control;
        return Ok(());
    }
    let value = u64::try_from(value).map_err(|_| "the value does not fit its field")?;
    if name == REUSE {
        inst.control.reuse = (value & 7) as u8;
        return Ok(());
    }
    let field = inst.form().fields.iter().map(|spec| spec.field).find(|field| format!("{field:?}") == name);
    inst.set(field.ok_or("the instruction has no such field")?, value);
    if inst.rejected().is_some() { Err("the value does not fit its field") } else { Ok(()) }
}

/// What stands in braces beside fields: the bits of operand caches, and all bits but the control word.
const REUSE: &str = "reuse";
const WORD: &str = "word";

/// Appends the line that [`Assembler::line`] reads back as the same instruction, whatever the text does not tell.
pub fn print_exact(out: &mut String, sm: Sm, inst: &Inst, address: u64) {
    let _ = write!(out, "{}  ", inst.control);
    let start = out.len();
    print_to(out, sm, inst, address);
    // Another register than the instruction has, so that it is always told.
    let descriptor = match inst.get(Field::UrDesc) {
        Some(USUAL_DESCRIPTOR) => USUAL_DESCRIPTOR + 2,
        _ => USUAL_DESCRIPTOR,
    };
    let parsed = parse_with(sm, &out[start..], address, descriptor).ok();
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
        if parsed.get_spec(spec) != value {
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

    #[test]
    fn the_descriptor_is_the_pair_that_was_loaded_with_it() {
        let mut assembler = Assembler::new(Sm(80));
        let mut descriptor = |address, text| assembler.line(address, text).unwrap().get(Field::UrDesc);
        assert_eq!(descriptor(0, "LDG.E R5, [R2.64]"), Some(4));
        descriptor(0, "ULDC.64 UR6, c[0x0][0x118] ;");
        assert_eq!(descriptor(0x10, "LDG.E R5, [R2.64] ;"), Some(6));
        assert_eq!(descriptor(0x30, "LDG.E R5, [R2.64]"), Some(4));
    }

    #[test]
    fn exact_lines_read_back() {
        // A descriptor, a NaN, operand caches of a warp that may yield, a bit without a meaning.
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
                let read = Assembler::new(Sm(80)).line(0x40, &line);
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
        let error = |text| Assembler::new(Sm(80)).line(0, text).unwrap_err().to_string();
        assert_eq!(error("  MOV R1, R999"), "column 11: there is no register of this number");
        assert_eq!(
            error("B9-----:R-:W-:-:S01 MOV R1, R2"),
            "column 2: expected a control word like B--2---:R-:W0:-:S04"
        );
        assert_eq!(error("MOV R1, R2 {Foo=0x1}"), "column 13: the instruction has no such field");
    }
}
