use super::{Lowering, Result};
use crate::input::Instr;

impl<'a> Lowering<'a> {
    pub(super) fn divide_integer(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn divide_float(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn round_float(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn divide_double(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
}
