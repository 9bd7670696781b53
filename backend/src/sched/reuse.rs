//! Reuse flags: the operand cache keeps a register for the next instruction, which then needs no read port for it.
//!
//! A register bank (even or odd registers) can read one register per cycle, so three sources in one bank take three
//! cycles. The operand cache holds one register for each bank and operand slot. The next read in the slot uses the
//! cached register if it is the same one; otherwise it drops it, unless that read is itself cached. So a register is
//! cached only for the next instruction, if that certainly reads it.

use crate::mach::{Code, MachInst};
use sass::{Class, Inst, RegUse, Sm};

/// Sets the flags, after stall counts and yield bits have been set.
pub(super) fn mark(code: &mut Code) {
    let sm = code.sm;
    for block in &mut code.blocks {
        for at in 1..block.insts.len() {
            let kept = kept(sm, &block.insts[at - 1], &block.insts[at]);
            block.insts[at - 1].inst.control.reuse = kept;
        }
    }
}

/// The flags of an instruction, given the next one.
fn kept(sm: Sm, inst: &MachInst, next: &MachInst) -> u8 {
    let (inst, next) = (&inst.inst, &next.inst);
    // If the warp yields, the bits have another meaning.
    if inst.control.yield_ || !reads_at_issue(sm, inst) || !reads_at_issue(sm, next) {
        return 0;
    }
    let again = |bit: u8, read: RegUse| {
        let same = next
            .cached_reads(sm)
            .any(|(slot, other)| slot == bit && (other.index, other.count) == (read.index, read.count));
        same && !inst.writes(sm).any(|def| def.overlaps(&read))
    };
    inst.cached_reads(sm).filter(|(bit, read)| again(*bit, *read)).fold(0, |flags, (bit, _)| flags | 1 << bit)
}

/// Whether the instruction reads its sources through the operand cache, whatever its guard.
fn reads_at_issue(sm: Sm, inst: &Inst) -> bool {
    let is_control = matches!(inst.class(sm), Class::Branch | Class::Sync);
    !inst.is_guarded() && !is_control && !inst.is_variable(sm) && !inst.reads_late(sm)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mach::Effect;

    fn flags(first: &str, second: &str) -> u8 {
        flags_for(Sm(90), first, second)
    }

    fn flags_for(sm: Sm, first: &str, second: &str) -> u8 {
        let inst = |text| MachInst {
            inst: sass::parse(sm, text, 0).unwrap_or_else(|e| panic!("{text}: {}", e.message)),
            src: None,
            target: None,
            link: None,
            effect: Effect::None,
        };
        kept(sm, &inst(first), &inst(second))
    }

    #[test]
    fn what_the_next_instruction_reads_in_the_same_slot_is_kept() {
        assert_eq!(flags("FFMA R0, R2, R4, R0", "FFMA R1, R2, R5, R1"), 0b001);
        assert_eq!(flags("FFMA R0, R2, R4, R6", "FFMA R1, R2, R4, R6"), 0b111);
        assert_eq!(flags("FFMA R0, R2, R4, R0", "FFMA R1, R4, R2, R1"), 0);
        assert_eq!(flags("FFMA R0, R2, 2, R6", "FFMA R1, R3, 2, R6"), 0b100);
        assert_eq!(flags("IMAD.WIDE.U32 R8, R2, R4, R6", "IMAD.WIDE.U32 R10, R3, R4, R6"), 0b110);
        assert_eq!(flags("IMAD.WIDE.U32 R8, R2, R4, R6", "IADD3 R10, R3, R4, R6"), 0b010);
    }

    #[test]
    fn what_is_overwritten_or_perhaps_not_read_is_not_kept() {
        assert_eq!(flags("FFMA R2, R2, R4, R0", "FFMA R1, R2, R5, R1"), 0);
        assert_eq!(flags("FFMA R0, R2, R4, R0", "@P0 FFMA R1, R2, R5, R1"), 0);
        assert_eq!(flags("@P0 FFMA R0, R2, R4, R0", "FFMA R1, R2, R5, R1"), 0);
        assert_eq!(flags("FADD R0, R2, R4", "MUFU.RCP R1, R2"), 0);
        assert_eq!(flags("FADD R0, RZ, R4", "FADD R1, RZ, R5"), 0);
        assert_eq!(flags("STS [R2], R4", "FADD R1, R2, R5"), 0);
        assert_eq!(flags("WARPSYNC R2", "FADD R1, R2, R5"), 0);
        assert_eq!(flags("FADD R1, R2, R5", "WARPSYNC R2"), 0);
    }

    #[test]
    fn matrix_products_keep_fewer_operands() {
        let pairs = [
            ("HMMA.16816.F32 R8, R20, R24, R4", "HMMA.16816.F32 R12, R20, R24, R4"),
            ("IMMA.16832.S8.S8 R8, R20.ROW, R24.COL, R4", "IMMA.16832.S8.S8 R12, R20.ROW, R24.COL, R4"),
        ];
        for (first, second) in pairs {
            let flags = [80, 90, 100, 120, 121].map(|sm| flags_for(Sm(sm), first, second));
            assert_eq!(flags, [0b011, 0b011, 0b011, 0b010, 0b010], "{first}");
        }
    }
}
