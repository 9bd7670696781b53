//! The registers that an instruction reads and writes, derived from its form's operands.

use crate::inst::Inst;
use crate::model::*;
use crate::print::INST_BYTES;

/// The predicate that is always true.
const PT: u64 = 7;

/// Registers that an instruction uses as one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegUse {
    pub file: RegFile,
    /// The first register.
    pub index: u8,
    /// The number of registers, from the first on.
    pub count: u8,
    pub role: Role,
}

impl RegUse {
    /// Whether the two uses have a register in common.
    pub fn overlaps(&self, other: &RegUse) -> bool {
        let end = |of: &RegUse| u16::from(of.index) + u16::from(of.count);
        self.file == other.file && u16::from(self.index) < end(other) && u16::from(other.index) < end(self)
    }
}

impl Inst {
    /// The registers read, including the guard. RZ, PT and URZ are never listed.
    pub fn reads(&self, sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        self.uses(sm).filter(|used| used.role != Role::Dst)
    }

    /// The address of the instruction's branch or code target, if the target is encoded as a distance.
    pub fn target(&self, address: u64) -> Option<u64> {
        self.form().operands().find_map(|operand| match operand {
            Operand::Target(spec, TargetStyle::FromNext) => {
                Some(address.wrapping_add(INST_BYTES).wrapping_add(self.get_spec(spec)))
            }
            _ => None,
        })
    }

    /// Whether the instruction has a guard other than PT.
    pub fn is_guarded(&self) -> bool {
        self.get(Field::Guard).is_some_and(|guard| guard != PT) || self.get(Field::GuardNot) == Some(1)
    }

    /// The registers written.
    pub fn writes(&self, sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        self.uses(sm).filter(|used| used.role == Role::Dst)
    }

    /// The registers read and written: first the guard, then in the order of the text.
    pub fn uses(&self, _sm: Sm) -> impl Iterator<Item = RegUse> + '_ {
        let form = self.form();
        let guard = FieldSpec::new(Field::Guard, 12, 3);
        let guard = self.used(form.guard, &guard, Role::Guard, 1);
        let operands = self.operands().flat_map(|operand| self.operand_uses(operand));
        std::iter::once(guard).chain(operands).flatten()
    }

    /// The registers that the instruction may keep in operand caches, each with its bit of [`crate::Control::reuse`].
    pub fn cached_reads(&self, sm: Sm) -> impl Iterator<Item = (u8, RegUse)> + '_ {
        let slots = self.cached_slots(sm);
        self.operands().filter_map(move |operand| match operand {
            Operand::Reg(reg) => Some((reg.reuse.filter(|bit| slots >> bit & 1 != 0)?, self.reg_use(reg)?)),
            _ => None,
        })
    }

    /// The slots whose operand caches the instruction may use. Matrix products may use fewer. As nvdisasm 13.0 accepts
    /// the words.
    fn cached_slots(&self, sm: Sm) -> u8 {
        match self.form().mnemonic {
            "HMMA" if sm.0 < 80 => 0b010,
            "HMMA" | "IMMA" | "QMMA" | "OMMA" if sm.0 >= 120 => 0b010,
            "HMMA" | "IMMA" | "BMMA" | "DMMA" | "QMMA" if sm.0 >= 80 => 0b011,
            _ => 0b111,
        }
    }

    /// The register in a field. `None` if the instruction does not have the operand: some operands depend on a
    /// modifier, and the field has no meaning without it.
    pub fn register(&self, field: Field) -> Option<u8> {
        let is_it = |operand: &&Operand| matches!(operand, Operand::Reg(reg) if reg.spec.field == field);
        self.operands().find(is_it).and_then(|_| self.get(field)).map(|index| index as u8)
    }

    /// The operands that the instruction has with its current modifiers, in the order of the text.
    fn operands(&self) -> impl Iterator<Item = &'static Operand> + '_ {
        self.form().pieces.iter().filter_map(|piece| match piece {
            Piece::Op(operand) => Some(operand),
            // At its neutral value, the operand refers to no register anyway.
            Piece::OpIf(operand, Show::NotNeutral | Show::NotNeutralOr(..)) => Some(operand),
            Piece::OpIf(operand, show) => {
                crate::print::operand_shown(self, operand, *show).then_some(operand)
            }
            _ => None,
        })
    }

    fn operand_uses(&self, operand: &Operand) -> [Option<RegUse>; 3] {
        match operand {
            Operand::Reg(reg)
            | Operand::RegTarget(reg, ..)
            | Operand::Handle(HandleOperand { reg, next: false, .. }) => [self.reg_use(reg), None, None],
            Operand::Const(c) => {
                let handle =
                    c.handle.as_ref().and_then(|handle| self.used(RegFile::UR, handle, Role::Base, 1));
                let index = c.index.as_ref().and_then(|index| self.reg_use(index));
                [handle, index, None]
            }
            Operand::Mem(mem) => {
                let desc = mem
                    .desc
                    .as_ref()
                    .filter(|desc| !desc.next)
                    .and_then(|desc| self.used(RegFile::UR, &desc.spec, Role::Descriptor, 2));
                let reg = mem.reg.as_ref().and_then(|reg| self.reg_use(reg));
                let ureg = mem
                    .ureg
                    .as_ref()
                    .and_then(|(ureg, count)| self.used(RegFile::UR, ureg, Role::Base, *count));
                [desc, reg, ureg]
            }
            Operand::Literal("PR") => [self.predicates(RegFile::P), None, None],
            Operand::Literal("UPR") => [self.predicates(RegFile::UP), None, None],
            _ => [None; 3],
        }
    }

    /// The predicates from the lowest to the highest bit of a mask. They are written if the register file is the first
    /// operand of the text.
    fn predicates(&self, file: RegFile) -> Option<RegUse> {
        let mask = (self.get(Field::Imm32)? & 0x7f) as u8;
        let written = matches!(self.form().operands().next(), Some(Operand::Literal(_)));
        let index = mask.trailing_zeros() as u8;
        let role = if written { Role::Dst } else { Role::Carry };
        (mask != 0).then(|| RegUse { file, index, count: 8 - mask.leading_zeros() as u8 - index, role })
    }

    fn reg_use(&self, reg: &RegOperand) -> Option<RegUse> {
        self.used(reg.file, &reg.spec, reg.role, self.count(&reg.count))
    }

    fn count(&self, count: &Count) -> u8 {
        let by = |field, counts: &[u8]| {
            let value = self.get(field).unwrap_or(0) as usize;
            counts.get(value).copied().unwrap_or(1)
        };
        match *count {
            Count::Fixed(count) => count,
            Count::By(field, counts) => by(field, counts),
            Count::By2(field, counts, field2, counts2) => {
                by(field, counts).saturating_mul(by(field2, counts2))
            }
            Count::Sum(terms) => terms
                .iter()
                .filter(|(field, _)| self.has(*field))
                .map(|(field, counts)| by(*field, counts))
                .sum(),
            Count::Select(field, counts) => {
                let value = self.get(field).unwrap_or(0) as usize;
                self.count(counts.get(value).unwrap_or(&counts[0]))
            }
            Count::Plus(more, count) => more + self.count(count),
            Count::AtMost(flag, most, count) => {
                let count = self.count(count);
                if self.get(flag) == Some(1) { count.min(most) } else { count }
            }
            Count::First(flag, a, b) => {
                let (a, b) = (self.count(a), self.count(b));
                if self.get(flag) == Some(1) { (a + b).div_ceil(2).min(2) } else { a }
            }
            Count::Second(flag, a, b) => {
                let both = self.count(a) + self.count(b);
                both - self.count(&Count::First(flag, a, b))
            }
        }
    }

    fn used(&self, file: RegFile, spec: &FieldSpec, role: Role, count: u8) -> Option<RegUse> {
        let index = self.get_spec(spec) as u8;
        // The last register of a file is RZ, URZ or PT. Barriers have no such register.
        let absent = file != RegFile::B && u128::from(index) == ones(spec.bits() as u8);
        (!absent && count > 0).then_some(RegUse { file, index, count, role })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn check(text: &str, reads: &str, writes: &str) {
        check_on(Sm(80), text, reads, writes);
    }

    fn check_on(sm: Sm, text: &str, reads: &str, writes: &str) {
        let inst = parse(sm, text, 0).unwrap();
        let show = |used: RegUse| format!("{:?}{}x{}", used.file, used.index, used.count);
        assert_eq!(inst.reads(sm).map(show).collect::<Vec<_>>().join(" "), reads, "{text}");
        assert_eq!(inst.writes(sm).map(show).collect::<Vec<_>>().join(" "), writes, "{text}");
    }

    #[test]
    fn counts_follow_sizes() {
        check("@!P1 LDG.E.128 R4, [R2.64+0x10]", "P1x1 UR4x2 R2x2", "R4x4");
        check("STS.64 [R3+0x8], R6", "R3x1 R6x2", "");
        check("IMAD.WIDE.U32 R2, R4, R5, R6", "R4x1 R5x1 R6x2", "R2x2");
        check("DFMA R2, R4, -R6, R8", "R4x2 R6x2 R8x2", "R2x2");
        check("IADD3.X R3, R11, R3, RZ, P0, !PT", "R11x1 R3x1 P0x1", "R3x1");
        check("HMMA.16816.F32 R8, R2, R6, R8", "R2x4 R6x2 R8x4", "R8x4");
    }

    #[test]
    fn counts_of_matrices() {
        let sm = Sm(90);
        check_on(sm, "HGMMA.64x96x16.F32 R24, gdesc[UR8], R24, UP0", "UR8x4 R24x48 UP0x1", "R24x48");
        check_on(sm, "HGMMA.64x96x16.F16 R24, R72, gdesc[UR4], R24", "R72x4 UR4x4 R24x24", "R24x24");
        check_on(sm, "IGMMA.SP.64x48x64.S8.U8 R24, gdesc[UR8], R24, R112", "UR8x4 R24x24 R112x1", "R24x24");
        let sm = Sm(100);
        check_on(sm, "LDTM.16dp256bit.x4 R4, tmem[UR6]", "UR6x1", "R4x16");
        check_on(
            sm,
            "UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR6], tmem[UR4], idesc[UR5], UR12, UP0",
            "UR8x2 UR10x2 UR6x1 UR4x2 UR12x4 UP0x1",
            "",
        );
        check_on(
            Sm(120),
            "QMMA.SF.SP.16864.F32.E4M3.E4M3.E8 R4, R4, R8, R12, R16, R19, UR4, 0x0",
            "R4x4 R8x4 R12x4 R16x2 R19x1 UR4x1",
            "R4x4",
        );
    }

    #[test]
    fn masks_span_predicates() {
        check("TXD.AOFFI R10, R8, R16, R8, 0x0, 0x4, ARRAY_2D", "R16x3 R8x4", "R10x2 R8x2");
        check("P2R R0, PR, RZ, 0x14", "P2x3", "R0x1");
        check("R2P PR, R5, 0x60", "R5x1", "P5x2");
    }
}
