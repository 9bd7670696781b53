use super::{Lowering, Result};
use crate::input::Instr;

impl<'a> Lowering<'a> {
    pub(super) fn shuffle(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn barrier(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn warp_barrier(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn vote(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn matching(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn active_mask(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn reduce(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn elect(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
}
