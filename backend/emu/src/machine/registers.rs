//! Registers that a warp releases to its block, and takes from those that others released.

use super::step::Step;
use super::{Block, Result, WARP};
use crate::launch::FaultKind;
use crate::memory::UNWRITTEN;
use ptx_backend::target::HIDDEN_REGISTERS;
use sass::Field;

impl Block<'_> {
    /// Executes `USETMAXREG`. The warp takes the requested registers if the block has enough, or continues without
    /// them.
    pub(super) fn change_registers(&mut self, w: usize, step: &Step) -> Result<()> {
        let count = step.inst.get(Field::Imm32);
        let count = count.ok_or_else(|| FaultKind::Unsupported("USETMAXREG of a register".into()))? as u32;
        let launched = self.machine.kernel.registers;
        let free: u32 = self.warps.iter().map(|warp| launched.saturating_sub(warp.held)).sum();
        let taken: u32 = self.warps.iter().map(|warp| warp.held.saturating_sub(launched)).sum();
        let held = self.warps[w].held;
        if step.inst.gives_registers() {
            if count > held {
                return Err(FaultKind::Malformed(format!("gives registers up to {count} of {held}")));
            }
            self.warps[w].held = count;
            let first = count.saturating_sub(HIDDEN_REGISTERS) as usize;
            self.warps[w].registers[first * WARP..255 * WARP].fill(u32::from_le_bytes([UNWRITTEN; 4]));
            return Ok(());
        }
        if count < held {
            return Err(FaultKind::Malformed(format!("takes registers up to {count} and has {held}")));
        }
        let succeeds = count - held <= free - taken;
        if succeeds {
            self.warps[w].held = count;
        }
        self.set_predicate(w, 0, true, step.pd, succeeds);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Launch;
    use crate::machine::run;
    use crate::machine::testing::{device, kernel};
    use sass::Sm;

    /// The fault of two warps that start with 32 registers. Empty if there is none.
    fn fault(lines: &[&str]) -> String {
        let sm = Sm(90);
        let result = run(&kernel(sm, lines), &Launch::new(1, 64, Vec::new()), &mut device(sm));
        result.map_or_else(|fault| fault.to_string(), |_| String::new())
    }

    const GIVE: &str = "s0 y w0: USETMAXREG.DEALLOC.CTAPOOL 0x18";
    const TAKE: &str = "s2 w0: USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0x28";
    /// The second warp takes the registers that the first one releases.
    const SHARE: [&str; 8] = [
        "s2 w0: S2R R0, SR_TID.X",
        "s13 ?0: ISETP.GE.U32.AND P0, PT, R0, 0x20, PT",
        "s5: @P0 BRA 0x60",
        GIVE,
        "s4 ?0: MOV R21, 0x1",
        "s5: EXIT",
        TAKE,
        "s13 ?0: PLOP3.LUT P0, PT, PT, PT, UP0, 0x80, 0x0",
    ];

    #[test]
    fn what_one_warp_gives_another_takes() {
        let again = "s5: @!P0 BRA 0x60";
        assert_eq!(fault(&[&SHARE[..], &[again, "s4: MOV R37, 0x1"]].concat()), "");
        let beyond = fault(&[&SHARE[..], &[again, "s4: MOV R38, 0x1"]].concat());
        assert!(beyond.contains("names R38 where a thread has 40"), "{beyond}");
        // Without a retry.
        let too_few = fault(&[&["s5: BRA 0x10"][..], &[TAKE, "s4 ?0: MOV R37, 0x1"]].concat());
        assert!(too_few.contains("names R37 where a thread has 32"), "{too_few}");
    }

    #[test]
    fn registers_that_are_given_are_gone() {
        let gone = fault(&[GIVE, "s4 ?0: MOV R22, 0x1"]);
        assert!(gone.contains("names R22 where a thread has 24"), "{gone}");
        assert!(fault(&["s4: MOV R30, 0x1"]).contains("names R30 where a thread has 32"));
    }

    #[test]
    fn accesses_are_over_before_registers_are_given() {
        let load = "s2 w1: S2R R25, SR_TID.X";
        assert!(fault(&[load, GIVE]).contains("USETMAXREG"), "{}", fault(&[load, GIVE]));
        assert_eq!(fault(&[load, &GIVE.replace(":", " ?1:")]), "");
        assert!(fault(&["s1: MOV R25, 0x1", GIVE]).contains("USETMAXREG"));
        assert_eq!(fault(&[&load.replace("R25", "R2"), GIVE]), "");
    }
}
