//! The read ports of a partition's register file. It has two banks, for even and odd registers, each of which reads one
//! register per cycle. Operand caches supply registers that the previous instruction marked for reuse.

use super::cost::Cost;

/// A register that an operand cache holds for a warp.
type Kept = Option<(usize, u8)>;

/// The operand caches of a partition, by bank and operand slot.
#[derive(Clone, Default, Debug)]
pub(super) struct Ports {
    caches: [[Kept; 3]; 2],
}

impl Ports {
    /// Reads an instruction's operands. Returns the number of cycles that this takes.
    pub(super) fn read(&mut self, warp: usize, cost: &Cost) -> u64 {
        let mut read: Vec<u8> = Vec::new();
        for &(slot, register) in &cost.operands {
            let cache = &mut self.caches[usize::from(register % 2)][slot];
            if *cache != Some((warp, register)) && !read.contains(&register) {
                read.push(register);
            }
            *cache = (cost.kept >> slot & 1 == 1).then_some((warp, register));
        }
        let odd = read.iter().filter(|register| *register % 2 == 1).count();
        odd.max(read.len() - odd).max(1) as u64
    }
}
