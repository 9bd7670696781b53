//! Constant bank 0: the words that the driver writes before the parameters, and the parameters.

use super::{Kernel, STACK_TOP, cluster};
use crate::launch::Launch;
use crate::memory::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, UNWRITTEN};
use ptx_backend::target::{ParamWindow, Target};

/// The constant bank of a launch. `constants` is the generic address of bank 3; `tables` are the addresses of the
/// tables of textures, samplers and surfaces.
pub(super) fn filled(
    kernel: &Kernel,
    target: &Target,
    launch: &Launch,
    constants: u64,
    tables: Option<[u64; 3]>,
) -> Vec<u8> {
    let base = usize::from(target.first_param(launch.params.len() as u32));
    let mut bank = vec![UNWRITTEN; base];
    let mut put = |offset: u16, bytes: &[u8]| {
        bank[usize::from(offset)..usize::from(offset) + bytes.len()].copy_from_slice(bytes);
    };
    let words = target.driver;
    for i in 0..3 {
        put(words.ntid + 4 * i as u16, &launch.block[i].to_le_bytes());
        put(words.nctaid + 4 * i as u16, &launch.grid[i].to_le_bytes());
    }
    put(words.stack, &(STACK_TOP as u32).to_le_bytes());
    put(words.local_window, &LOCAL_WINDOW.to_le_bytes());
    if let Some(slot) = words.shared_window {
        put(slot, &SHARED_WINDOW.to_le_bytes());
    }
    put(words.const_window, &constants.to_le_bytes());
    // The address of the last byte.
    let end = (base + launch.params.len().max(1) - 1) as u64;
    match words.param_window {
        // The window is that of the constant bank, in which parameters are aligned.
        ParamWindow::Bank(slot) => {
            put(slot, &PARAM_WINDOW.to_le_bytes());
            put(words.param_end, &(end as u32).to_le_bytes());
        }
        ParamWindow::Parameters(slot) => {
            put(slot, &(PARAM_WINDOW + base as u64).to_le_bytes());
            put(words.param_end, &(PARAM_WINDOW + end).to_le_bytes());
        }
    }
    put(words.launch.dynamic_shared, &launch.dynamic_shared.to_le_bytes());
    put(words.grid_id, &1u64.to_le_bytes());
    put(words.sm_count, &1u32.to_le_bytes());
    for (i, table) in (0..).zip(tables.into_iter().flatten()) {
        put(words.descriptors + 8 * i, &table.to_le_bytes());
    }
    if let Some(slot) = words.reserved_shared {
        put(slot, &target.shared_base.to_le_bytes());
    }
    cluster::constants(target, launch, &mut bank);
    bank.extend(kernel.params(launch));
    for &(at, bits) in &kernel.handles {
        let at = at as usize;
        bank.resize(bank.len().max(at + 4), 0);
        let word = u32::from_le_bytes([bank[at], bank[at + 1], bank[at + 2], bank[at + 3]]) | bits as u32;
        bank[at..at + 4].copy_from_slice(&word.to_le_bytes());
    }
    // Loads of whole words may read the bytes after the last parameter.
    bank.resize(bank.len().next_multiple_of(16), 0);
    bank
}
