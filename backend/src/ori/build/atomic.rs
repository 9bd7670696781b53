use super::{Lowering, Result};
use crate::input::Instr;

impl<'a> Lowering<'a> {
    pub(super) fn atomic(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
}
