//! Word to instruction.

use crate::expand::table;
use crate::inst::{Control, Inst};
use crate::model::{Form, Sm};

/// The instruction that a word encodes, or `None` where no form of the generation matches.
///
/// Exact: what this returns encodes to the same word.
pub fn decode(sm: Sm, word: u128) -> Option<Inst> {
    let control = Control::from_bits(word)?;
    let rest = word & !Control::MASK;
    let form = table().forms_of_opcode(word).find(|&id| {
        let form = table().form(id);
        form.holds_for(sm) && matches(form, rest)
    })?;
    Some(Inst::from_word(form, control, rest))
}

/// The fixed bits are as the form says, and every choice exists.
pub(crate) fn matches(form: &Form, word: u128) -> bool {
    word & form.fixed_mask == form.fixed && form.fields.iter().all(|spec| spec.allows(spec.extract(word)))
}
