//! Calls of functions that the driver provides: code at addresses after all other code.
//!
//! Arguments are in R4 and the registers after it, wide ones in even pairs; R20 and R21 hold where to return, and R4
//! takes the result.

use super::{Block, INSTRUCTION, Result, each};
use crate::launch::FaultKind;
use crate::system::System;

/// The first instruction of the system.
const FIRST: u32 = 0x0700_0000;
const ARGUMENT: u8 = 4;
const RETURN_ADDRESS: u8 = 20;

/// The address of a function of the system.
pub(crate) fn address(name: &str) -> Option<u64> {
    let index = System::ALL.iter().position(|(known, _)| *known == name)?;
    Some(u64::from(INSTRUCTION) * (u64::from(FIRST) + index as u64))
}

/// The function of the system that an instruction is the start of.
pub(super) fn at(pc: u32) -> Option<System> {
    System::ALL.get(pc.checked_sub(FIRST)? as usize).map(|(_, system)| *system)
}

/// The instruction at an address.
pub(super) fn instruction_at(address: u64) -> Result<u32> {
    u32::try_from(address / u64::from(INSTRUCTION))
        .map_err(|_| FaultKind::Malformed("a jump out of the code".into()))
}

impl Block<'_> {
    /// Calls a function of the system for the threads of a group, which return at once.
    pub(super) fn call_system(&mut self, w: usize, g: usize, system: System) -> Result<()> {
        let group = self.warps[w].groups[g];
        let mut back = [0; super::WARP];
        for lane in each(group.mask) {
            let word = |block: &Self, index: u8| {
                u64::from(block.warps[w].registers[usize::from(index) * super::WARP + lane])
            };
            let pair = |index: u8| word(self, index) | word(self, index + 1) << 32;
            let arguments = match system {
                System::Print => vec![pair(ARGUMENT), pair(ARGUMENT + 2)],
                System::Allocate | System::Free => vec![pair(ARGUMENT)],
                System::Assert => {
                    let [message, file, function] = [ARGUMENT, ARGUMENT + 2, ARGUMENT + 6].map(pair);
                    vec![message, file, word(self, ARGUMENT + 4), function]
                }
            };
            back[lane] = instruction_at(pair(RETURN_ADDRESS))?;
            let done = system.call(&arguments, &mut self.view(w, lane))?;
            self.device.output.extend(done.text);
            if done.traps {
                return Err(FaultKind::Trap);
            }
            match system {
                System::Print => self.set_register(w, lane, ARGUMENT, done.result as u32),
                System::Allocate => {
                    self.set_register(w, lane, ARGUMENT, done.result as u32);
                    self.set_register(w, lane, ARGUMENT + 1, (done.result >> 32) as u32);
                }
                System::Free | System::Assert => {}
            }
        }
        self.jump(w, g, group.mask, |lane| back[lane]);
        Ok(())
    }
}
