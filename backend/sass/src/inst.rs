//! An instruction: a form with a value for each field, and the control word.

use crate::control::Control;
use crate::expand::table;
use crate::model::{Field, FieldSpec, Form, FormId};

/// One machine instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Inst {
    pub form: FormId,
    pub control: Control,
    /// The word without its control bits.
    word: u128,
    /// A field that was set to a value it cannot hold. Encoding reports it.
    rejected: Option<Field>,
}

impl Inst {
    /// An instruction with every field at its neutral value: RZ, PT, 0.
    pub fn new(form: FormId) -> Inst {
        Inst { form, control: Control::default(), word: table().form(form).neutral, rejected: None }
    }

    pub(crate) fn from_word(form: FormId, control: Control, word: u128) -> Inst {
        Inst { form, control, word, rejected: None }
    }

    pub(crate) fn word(&self) -> u128 {
        self.word
    }

    /// The set bits that have no meaning in any form of the opcode: those that differ from the form's fixed bits, and
    /// those of fields that only later generations have.
    pub fn stray(&self) -> u128 {
        let form = self.form();
        let later =
            form.fields.iter().filter(|spec| spec.came_later()).fold(0, |bits, spec| bits | spec.mask());
        (self.word ^ form.fixed) & form.fixed_mask | self.word & later
    }

    /// The field whose value did not fit.
    pub fn rejected(&self) -> Option<Field> {
        self.rejected
    }

    pub fn form(&self) -> &'static Form {
        table().form(self.form)
    }

    pub fn has(&self, field: Field) -> bool {
        self.form().spec(field).is_some()
    }

    /// The value of a field. Signed values are sign-extended; the value of a choice is an index into its texts.
    pub fn get(&self, field: Field) -> Option<u64> {
        self.form().spec(field).map(|spec| self.get_spec(spec))
    }

    pub(crate) fn get_spec(&self, spec: &FieldSpec) -> u64 {
        spec.from_raw(spec.extract(self.word))
    }

    pub(crate) fn raw(&self, spec: &FieldSpec) -> u64 {
        spec.extract(self.word)
    }

    /// Sets a field. If the form lacks the field or the value does not fit, encoding will fail.
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

    /// Sets a choice field by its text, for example `set_text(Field::Cmp, ".GE")`. With an unknown text, encoding will
    /// fail.
    pub fn set_text(&mut self, field: Field, text: &str) -> &mut Inst {
        match self.choice(field, text) {
            Some(value) => self.set(field, value),
            None => {
                self.rejected = Some(field);
                self
            }
        }
    }

    /// The value of a choice field that prints as `text`.
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
    fn a_rejected_value_is_reported_when_encoding() {
        use crate::{EncodeError, Sm, encode, lookup};
        let mut inst = Inst::new(lookup(Sm(80), "IADD3", "rrr").unwrap());
        inst.set(Field::Rd, 256);
        assert_eq!(encode(Sm(80), &inst), Err(EncodeError::Value(Field::Rd)));
    }
}
