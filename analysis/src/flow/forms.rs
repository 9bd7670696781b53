//! Which kinds of instructions a body has at all.

use ptx_backend::input::Stmt;
use ptx_isa::FormId;

use super::instructions;

/// A set of rows of the instruction table.
#[derive(Clone, Debug)]
pub struct Forms([u64; FormId::ALL.len().div_ceil(64)]);

impl Forms {
    pub(super) fn new(body: &[Stmt]) -> Self {
        let mut words = [0; _];
        for instr in instructions(body) {
            let form = instr.opcode.form as usize;
            words[form / 64] |= 1 << (form % 64);
        }
        Self(words)
    }

    /// Whether one of them is what is asked for.
    pub fn any(&self, is_asked_for: impl Fn(FormId) -> bool) -> bool {
        let mut all = FormId::ALL.iter().enumerate();
        all.any(|(form, &id)| self.0[form / 64] >> (form % 64) & 1 != 0 && is_asked_for(id))
    }
}
