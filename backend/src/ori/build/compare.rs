//! Comparisons: `setp` and `set` of every type.

use super::integer::sign_of;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{Bool, FCmp, ICmp, Op};
use ptx_isa::{Mod, ScalarType, TypeKind};

/// The comparison of integers and of floats that a modifier names, and whether it states that integers are unsigned.
type Name = (Option<ICmp>, Option<FCmp>, bool);

const COMPARISONS: [(Mod, Name); 18] = [
    (Mod::Eq, (Some(ICmp::Eq), Some(FCmp::Eq), false)),
    (Mod::Ne, (Some(ICmp::Ne), Some(FCmp::Ne), false)),
    (Mod::Lt, (Some(ICmp::Lt), Some(FCmp::Lt), false)),
    (Mod::Le, (Some(ICmp::Le), Some(FCmp::Le), false)),
    (Mod::Gt, (Some(ICmp::Gt), Some(FCmp::Gt), false)),
    (Mod::Ge, (Some(ICmp::Ge), Some(FCmp::Ge), false)),
    (Mod::Lo, (Some(ICmp::Lt), None, true)),
    (Mod::Ls, (Some(ICmp::Le), None, true)),
    (Mod::Hi, (Some(ICmp::Gt), None, true)),
    (Mod::Hs, (Some(ICmp::Ge), None, true)),
    (Mod::Equ, (None, Some(FCmp::Equ), false)),
    (Mod::Neu, (None, Some(FCmp::Neu), false)),
    (Mod::Ltu, (None, Some(FCmp::Ltu), false)),
    (Mod::Leu, (None, Some(FCmp::Leu), false)),
    (Mod::Gtu, (None, Some(FCmp::Gtu), false)),
    (Mod::Geu, (None, Some(FCmp::Geu), false)),
    (Mod::Num, (None, Some(FCmp::Num), false)),
    (Mod::IsNan, (None, Some(FCmp::Nan), false)),
];

/// A comparison in the form of one machine instruction.
#[derive(Clone, Copy)]
struct Comparison {
    ty: ScalarType,
    integer: Option<ICmp>,
    float: Option<FCmp>,
    unsigned: bool,
    bool_: Bool,
}

impl Comparison {
    fn inverse(self) -> Comparison {
        Comparison { integer: self.integer.map(ICmp::inverse), float: self.float.map(FCmp::inverse), ..self }
    }
}

impl<'a> Lowering<'a> {
    fn comparison(&self, instr: &Statement<'_>, ty: ScalarType) -> Result<Comparison> {
        let Some((integer, float, unsigned)) = instr.take(&COMPARISONS) else {
            return self.malformed("a comparison without an operator");
        };
        let bools = [(Mod::And, Bool::And), (Mod::Or, Bool::Or), (Mod::Xor, Bool::Xor)];
        let bool_ = instr.take(&bools).unwrap_or(Bool::And);
        Ok(Comparison { ty, integer, float, unsigned: unsigned || !ty.is_signed(), bool_ })
    }

    /// Compares operands 1 and 2, combined with `with`.
    fn compare_operands(&mut self, instr: &Statement<'a>, c: Comparison, with: Src) -> Result<Src> {
        match (c.ty, c.ty.kind()) {
            (ScalarType::F32, _) => {
                let Some(cmp) = c.float else {
                    return self.unsupported(instr, "an unsigned comparison of floats");
                };
                let (a, b) = (self.source(instr, 1, c.ty)?, self.source(instr, 2, c.ty)?);
                Ok(self.pred(Op::Fsetp { cmp, ftz: instr.has(Mod::Ftz), bool_: c.bool_ }, &[a, b, with]))
            }
            (ScalarType::F64, _) => {
                let Some(cmp) = c.float else {
                    return self.unsupported(instr, "an unsigned comparison of floats");
                };
                let (a, b) = (self.source_double(instr, 1)?, self.source_double(instr, 2)?);
                Ok(self.pred(Op::Dsetp { cmp, bool_: c.bool_ }, &[a, b, with]))
            }
            (_, TypeKind::Bits | TypeKind::Unsigned | TypeKind::Signed) => {
                let Some(cmp) = c.integer else { return self.unsupported(instr, "an unordered comparison") };
                if c.ty.bits() == 64 {
                    let (a, b) = (self.source_pair(instr, 1, c.ty)?, self.source_pair(instr, 2, c.ty)?);
                    return Ok(self.compare_pair_with(cmp, !c.unsigned, a, b, c.bool_, with));
                }
                let (a, b) = (self.source_extended(instr, 1, c.ty)?, self.source_extended(instr, 2, c.ty)?);
                let op = Op::Isetp { cmp, sign: sign_of(!c.unsigned), bool_: c.bool_, ex: false };
                Ok(self.pred(op, &[a, b, with]))
            }
            _ => Ok(self.compare_halves(instr, c.ty, c.float, c.bool_, with)?[0]),
        }
    }

    /// `setp`.
    pub(super) fn set_predicate(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let comparison = self.comparison(instr, ty)?;
        let with = match instr.operand(3) {
            Some(operand) => self.read(operand, ScalarType::Pred)?,
            None if comparison.bool_ == Bool::And => Src::TRUE,
            None => return self.malformed("a combination without a predicate"),
        };
        match self.operand(instr, 0)? {
            Operand::Pair(pair) if ty.kind() == TypeKind::Packed => {
                let [low, high] = self.compare_halves(instr, ty, comparison.float, comparison.bool_, with)?;
                self.write(&pair.0, low)?;
                self.write(&pair.1, high)
            }
            Operand::Pair(pair) => {
                let first = self.compare_operands(instr, comparison, with)?;
                let second = self.compare_operands(instr, comparison.inverse(), with)?;
                self.write(&pair.0, first)?;
                self.write(&pair.1, second)
            }
            dst => {
                let result = self.compare_operands(instr, comparison, with)?;
                self.write(dst, result)
            }
        }
    }

    /// `set`: all ones or 1 if the comparison is true.
    pub(super) fn set_register(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (to, from) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let comparison = self.comparison(instr, from)?;
        let with = match instr.operand(3) {
            Some(operand) => self.read(operand, ScalarType::Pred)?,
            None => Src::TRUE,
        };
        let yes = match to {
            ScalarType::U32 | ScalarType::S32 => Src::imm(!0),
            ScalarType::U16 | ScalarType::S16 => Src::imm(0xffff),
            ScalarType::F32 => Src::imm(1f32.to_bits()),
            ScalarType::F16 | ScalarType::F16x2 => Src::imm(0x3c00),
            ScalarType::Bf16 | ScalarType::Bf16x2 => Src::imm(0x3f80),
            _ => return self.unsupported(instr, &format!("the result type `.{}`", to.text())),
        };
        if from.kind() == TypeKind::Packed {
            let one = to.kind() == TypeKind::Packed;
            let c = comparison;
            let result = self.set_halves(instr, from, c.float, c.bool_, with, one)?;
            return self.result(instr, result);
        }
        let holds = self.compare_operands(instr, comparison, with)?;
        let result = self.select(holds, yes, Src::ZERO, 1);
        self.result(instr, result)
    }
}
