//! An instruction: a form with a value for each field, and its control word.

use crate::expand::table;
use crate::model::{Field, FieldSpec, Form, FormId, ones};

/// Scheduling of an instruction, bits 105 to 125 of the word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// Cycles until the warp may issue its next instruction, 0 to 15.
    pub stall: u8,
    /// The scheduler may turn to another warp. In the word this is bit 109 when clear.
    pub yield_: bool,
    /// Scoreboard released when the result is written. There are six; that a seventh can be named does not mean
    /// that it exists.
    pub write_sb: Option<u8>,
    /// Scoreboard released when the sources have been read.
    pub read_sb: Option<u8>,
    /// Scoreboards that must be free before issue, one bit each.
    pub wait: u8,
    /// Operand caches kept for the next instruction: bit 0 for slot A, 1 for B, 2 for C.
    pub reuse: u8,
}

/// Lowest bit of the control word.
const CONTROL_LOW: u8 = 105;
/// Bits 105 to 124; nothing is known to use bit 125.
const CONTROL_BITS: u8 = 20;
/// The value of a scoreboard field that names none.
const NO_SCOREBOARD: u8 = 7;

impl Control {
    /// The bits of a word that hold the control word.
    pub const MASK: u128 = ones(CONTROL_BITS) << CONTROL_LOW;

    /// The word's bits, in place; `None` where a value is out of range.
    pub fn to_bits(self) -> Option<u128> {
        let scoreboard = |sb: Option<u8>| sb.unwrap_or(NO_SCOREBOARD);
        let named = |sb: Option<u8>| sb.is_none_or(|sb| sb < NO_SCOREBOARD);
        let in_range = self.stall < 16
            && named(self.write_sb)
            && named(self.read_sb)
            && self.wait < 64
            && self.reuse < 8;
        let bits = u32::from(self.stall)
            | u32::from(!self.yield_) << 4
            | u32::from(scoreboard(self.write_sb)) << 5
            | u32::from(scoreboard(self.read_sb)) << 8
            | u32::from(self.wait) << 11
            | u32::from(self.reuse) << 17;
        in_range.then_some(u128::from(bits) << CONTROL_LOW)
    }

    /// Reads the control word.
    pub fn from_bits(word: u128) -> Control {
        let bits = (word >> CONTROL_LOW & ones(CONTROL_BITS)) as u32;
        let scoreboard = |at: u32| {
            let sb = (bits >> at & 7) as u8;
            (sb != NO_SCOREBOARD).then_some(sb)
        };
        Control {
            stall: (bits & 15) as u8,
            yield_: bits >> 4 & 1 == 0,
            write_sb: scoreboard(5),
            read_sb: scoreboard(8),
            wait: (bits >> 11 & 63) as u8,
            reuse: (bits >> 17 & 7) as u8,
        }
    }
}

impl Default for Control {
    /// One cycle, no scoreboards.
    fn default() -> Control {
        Control { stall: 1, yield_: false, write_sb: None, read_sb: None, wait: 0, reuse: 0 }
    }
}

/// One machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    pub form: FormId,
    pub control: Control,
    /// The word without its control bits.
    word: u128,
    /// A field that was given a value it cannot hold; encoding reports it.
    rejected: Option<Field>,
}

impl Inst {
    /// Every field neutral: RZ, PT, 0.
    pub fn new(form: FormId) -> Inst {
        Inst { form, control: Control::default(), word: table().form(form).neutral, rejected: None }
    }

    pub(crate) fn from_word(form: FormId, control: Control, word: u128) -> Inst {
        Inst { form, control, word, rejected: None }
    }

    pub(crate) fn word(&self) -> u128 {
        self.word
    }

    /// The bits that are not as the form has them, of those that no form of the opcode gives a meaning.
    pub fn stray(&self) -> u128 {
        let form = self.form();
        (self.word ^ form.fixed) & form.fixed_mask
    }

    /// The field whose last value did not fit.
    pub fn rejected(&self) -> Option<Field> {
        self.rejected
    }

    pub fn form(&self) -> &'static Form {
        table().form(self.form)
    }

    pub fn has(&self, field: Field) -> bool {
        self.form().spec(field).is_some()
    }

    /// The field's value; signed values are sign-extended, and a choice is an index into its texts.
    pub fn get(&self, field: Field) -> Option<u64> {
        self.form().spec(field).map(|spec| self.get_spec(spec))
    }

    pub(crate) fn get_spec(&self, spec: &FieldSpec) -> u64 {
        spec.from_raw(spec.extract(self.word))
    }

    pub(crate) fn raw(&self, spec: &FieldSpec) -> u64 {
        spec.extract(self.word)
    }

    /// Sets a field. A value that does not fit, or a field that the form lacks, makes encoding fail.
    pub fn set(&mut self, field: Field, value: u64) -> &mut Inst {
        match self.form().spec(field) {
            Some(spec) => self.set_spec(spec, value),
            None => {
                debug_assert!(false, "{} {} has no {field:?}", self.form().mnemonic, self.form().shape);
                self.rejected = Some(field);
            }
        }
        self
    }

    pub(crate) fn set_spec(&mut self, spec: &FieldSpec, value: u64) {
        match spec.to_raw(value) {
            Some(raw) => self.word = spec.insert(self.word, raw),
            None => self.rejected = Some(spec.field),
        }
    }

    /// Sets a choice field by its text, as `set_text(Field::Cmp, ".GE")`. An unknown text makes encoding fail.
    pub fn set_text(&mut self, field: Field, text: &str) -> &mut Inst {
        match self.choice(field, text) {
            Some(value) => self.set(field, value),
            None => {
                self.rejected = Some(field);
                self
            }
        }
    }

    /// The value of a choice field that prints as the text.
    pub fn choice(&self, field: Field, text: &str) -> Option<u64> {
        let texts = self.form().spec(field)?.texts();
        texts.iter().position(|&t| t == text).map(|i| i as u64)
    }

    /// The text of a choice field's value.
    pub fn text(&self, field: Field) -> Option<&'static str> {
        let spec = self.form().spec(field)?;
        spec.texts().get(self.raw(spec) as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_round_trips() {
        let control =
            Control { stall: 11, yield_: false, write_sb: Some(2), read_sb: None, wait: 0b101, reuse: 3 };
        assert_eq!(Control::from_bits(control.to_bits().unwrap()), control);
        assert_eq!(Control { stall: 16, ..control }.to_bits(), None);
        assert_eq!(Control { write_sb: Some(7), ..control }.to_bits(), None);
    }

    #[test]
    fn a_rejected_value_is_reported_when_encoding() {
        use crate::{EncodeError, Sm, encode, lookup};
        let mut inst = Inst::new(lookup(Sm(80), "IADD3", "rrr").unwrap());
        inst.set(Field::Rd, 256);
        assert_eq!(encode(Sm(80), &inst), Err(EncodeError::Value(Field::Rd)));
    }
}
