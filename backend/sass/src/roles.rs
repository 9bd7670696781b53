//! What an instruction reads and writes, as its form's operands tell.

use crate::inst::Inst;
use crate::model::*;

/// Registers that an instruction uses as one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegUse {
    pub file: RegFile,
    /// The first register.
    pub index: u8,
    /// How many, from the first on.
    pub count: u8,
    pub role: Role,
}

impl Inst {
    /// Registers read, guard included. RZ, PT and URZ are never listed.
    pub fn reads(&self, sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        self.uses(sm).filter(|used| used.role != Role::Dst)
    }

    /// Registers written.
    pub fn writes(&self, sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        self.uses(sm).filter(|used| used.role == Role::Dst)
    }

    fn uses(&self, _sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        let form = self.form();
        let guard = FieldSpec::new(Field::Guard, 12, 3);
        let guard = self.used(form.guard, &guard, Role::Guard, 1);
        let operands = form.pieces.iter().flat_map(move |piece| match piece {
            Piece::Op(operand) => self.operand_uses(operand),
            Piece::OpIf(operand, Show::NotNeutral) => self.operand_uses(operand),
            Piece::OpIf(operand, show) if crate::print::operand_shown(self, operand, *show) => {
                self.operand_uses(operand)
            }
            _ => [None; 3],
        });
        std::iter::once(guard).chain(operands).flatten()
    }

    fn operand_uses(&self, operand: &Operand) -> [Option<RegUse>; 3] {
        match operand {
            Operand::Reg(reg) | Operand::RegTarget(reg, ..) | Operand::Bracket(_, reg) => {
                [self.reg_use(reg), None, None]
            }
            Operand::Const(c) => {
                let handle = c.handle.and_then(|handle| self.used(RegFile::UR, &handle, Role::Base, 1));
                let index = c.index.and_then(|index| self.reg_use(&index));
                [handle, index, None]
            }
            Operand::Mem(mem) => {
                let desc = mem.desc.and_then(|desc| self.used(RegFile::UR, &desc.spec, Role::Descriptor, 2));
                let reg = mem.reg.and_then(|reg| self.reg_use(&reg));
                let ureg =
                    mem.ureg.and_then(|(ureg, count)| self.used(RegFile::UR, &ureg, Role::Base, count));
                [desc, reg, ureg]
            }
            _ => [None; 3],
        }
    }

    fn reg_use(&self, reg: &RegOperand) -> Option<RegUse> {
        let by = |field, counts: &[u8]| {
            let value = self.get(field).unwrap_or(0) as usize;
            counts.get(value).copied().unwrap_or(1)
        };
        let count = match reg.count {
            Count::Fixed(count) => count,
            Count::By(field, counts) => by(field, counts),
            Count::By2(field, counts, field2, counts2) => by(field, counts) * by(field2, counts2),
        };
        self.used(reg.file, &reg.spec, reg.role, count)
    }

    fn used(&self, file: RegFile, spec: &FieldSpec, role: Role, count: u8) -> Option<RegUse> {
        let index = self.get_spec(spec) as u8;
        // The last register of a file reads as zero or true; there is none among the barriers.
        let absent = file != RegFile::B && u128::from(index) == ones(spec.width);
        (!absent && count > 0).then_some(RegUse { file, index, count, role })
    }
}
