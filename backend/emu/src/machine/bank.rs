//! Constant bank 0: what the driver writes before the parameters, and those.

use super::{Kernel, STACK_TOP, cluster};
use crate::launch::Launch;
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, UNWRITTEN};
use ptx_backend::target::Target;

/// Words of a generation beside those that the compiler's description of it names; offsets in bytes.
///
/// Source: observation of ptxas 13.0.88 for `cvta`, `isspacep` and the special registers.
struct Words {
    /// The generic addresses of constant bank 3 and of the parameters.
    constants: u16,
    parameters: Parameters,
    dynamic_shared: u16,
    grid_id: u16,
    multiprocessors: u16,
    /// Bytes of shared memory that the system takes.
    reserved_shared: u16,
}

/// Where a word with the address of the parameters is, and what it points to.
enum Parameters {
    OfBank(u16),
    OfFirst(u16),
}

fn words(target: &Target) -> Words {
    match target.sms.0 {
        ..90 => Words {
            constants: 0x50,
            parameters: Parameters::OfBank(0x40),
            dynamic_shared: 0x2c,
            grid_id: 0x30,
            multiprocessors: 0x10c,
            reserved_shared: 0x114,
        },
        90..100 => Words {
            constants: 0xd0,
            parameters: Parameters::OfFirst(0x198),
            dynamic_shared: 0x2c,
            grid_id: 0x30,
            multiprocessors: 0x10c,
            reserved_shared: 0x114,
        },
        100.. => Words {
            constants: 0x120,
            parameters: Parameters::OfFirst(0x348),
            dynamic_shared: 0x2ac,
            grid_id: 0x140,
            multiprocessors: 0x2d0,
            reserved_shared: 0x16c,
        },
    }
}

/// The bank of a launch; `constants` is the generic address of bank 3.
pub(super) fn filled(kernel: &Kernel, target: &Target, launch: &Launch, constants: u64) -> Vec<u8> {
    let base = usize::from(target.param_base);
    let mut bank = vec![UNWRITTEN; base];
    let mut put = |offset: u16, bytes: &[u8]| {
        bank[usize::from(offset)..usize::from(offset) + bytes.len()].copy_from_slice(bytes);
    };
    for i in 0..3 {
        put(target.ntid + 4 * i as u16, &launch.block[i].to_le_bytes());
        put(target.nctaid + 4 * i as u16, &launch.grid[i].to_le_bytes());
    }
    put(target.stack_slot, &(STACK_TOP as u32).to_le_bytes());
    put(target.local_window, &LOCAL_WINDOW.to_le_bytes());
    if let Some(slot) = target.shared_window {
        put(slot, &SHARED_WINDOW.to_le_bytes());
    }
    let words = words(target);
    put(words.constants, &constants.to_le_bytes());
    match words.parameters {
        // The window is that of the bank, in which parameters are aligned.
        Parameters::OfBank(slot) => put(slot, &PARAM_WINDOW.to_le_bytes()),
        Parameters::OfFirst(slot) => put(slot, &(PARAM_WINDOW + base as u64).to_le_bytes()),
    }
    put(words.dynamic_shared, &launch.dynamic_shared.to_le_bytes());
    put(words.grid_id, &1u64.to_le_bytes());
    put(words.multiprocessors, &1u32.to_le_bytes());
    put(words.reserved_shared, &target.shared_base.to_le_bytes());
    cluster::constants(target, launch, &mut bank);
    bank.extend(kernel.params(launch));
    // Loads of whole words may touch the bytes after the last.
    bank.resize(bank.len().next_multiple_of(16), 0);
    bank
}
