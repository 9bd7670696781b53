use super::{Lowering, Result};
use crate::input::Instr;

impl<'a> Lowering<'a> {
    pub(super) fn convert(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn convert_pair(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
}
