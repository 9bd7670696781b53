use super::{Lowering, Result};
use crate::input::Instr;

impl<'a> Lowering<'a> {
    pub(super) fn half_arithmetic(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn half_sign(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn half_minimum(&mut self, instr: &'a Instr) -> Result<()> {
        self.unsupported(instr, "not lowered")
    }
    pub(super) fn compare_half(
        &mut self,
        instr: &'a Instr,
        _ty: ptx_isa::ScalarType,
        _cmp: Option<crate::ori::op::FCmp>,
        _ftz: bool,
        _bool_: crate::ori::op::Bool,
        _with: crate::ori::ir::Src,
    ) -> Result<crate::ori::ir::Src> {
        self.unsupported(instr, "half precision")
    }
}
