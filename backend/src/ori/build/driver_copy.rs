//! Bulk copies to the shared memory of other blocks of a cluster, on targets whose instruction reaches only the block's
//! own: a driver function does them.

use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::driver::DriverFunction;
use crate::ori::ir::Src;
use crate::ori::op::{ICmp, lut};
use ptx_isa::SpecialReg;

/// The rank of a block is in its shared addresses from this bit on.
const RANK_AT: u32 = 24;

/// A copy from global memory to the shared memory of a cluster.
pub(super) struct ClusterCopy {
    pub to: Src,
    /// The mbarrier object that counts the bytes.
    pub object: Src,
    /// The mask of the receiving blocks; without it, the addresses name the block.
    pub blocks: Option<Src>,
    /// The address of the bytes or of the tensor map.
    pub from: [Src; 2],
    /// The number of bytes or the coordinates.
    pub extent: Vec<Src>,
    /// The pixel offsets, as halves.
    pub offsets: Vec<Src>,
    pub policy: Option<[Src; 2]>,
}

impl<'a> Lowering<'a> {
    /// The driver function that does such a copy to other blocks; `None` if instructions can do it.
    pub(super) fn copy_function(&self, instr: &Statement<'a>) -> Option<DriverFunction> {
        DriverFunction::of(self.env, self.target, instr.input())
    }

    /// Starts a copy with the instruction that `here` creates, or with the driver function if the copy may go to other
    /// blocks.
    pub(super) fn begin_copy(
        &mut self,
        far: Option<(DriverFunction, ClusterCopy)>,
        here: impl FnOnce(&mut Self, Chosen) -> Result<()>,
    ) -> Result<()> {
        let Some((function, copy)) = far else { return self.one_by_one(here) };
        self.branch_around(|this| {
            let own = this.is_to_itself(&copy)?;
            let arguments = this.copy_arguments(copy);
            this.either(
                own,
                |this| this.one_by_one(here),
                |this| this.call_driver(function, arguments).map(drop),
            )
        })
    }

    /// Whether the copy goes to the block that starts it. For a mask, ptxas tests whether the block is alone in its
    /// cluster.
    fn is_to_itself(&mut self, copy: &ClusterCopy) -> Result<Src> {
        let Some(blocks) = copy.blocks else {
            let there = self.shift_right(copy.to, RANK_AT, false);
            let here = self.special_register(SpecialReg::ClusterCtarank)?;
            return Ok(self.compare(ICmp::Eq, false, there, here));
        };
        let blocks = self.halves_packed(blocks, Src::ZERO);
        let first = self.compare(ICmp::Eq, false, blocks, Src::imm(1));
        let cluster = self.special_register(SpecialReg::IsExplicitCluster)?;
        Ok(self.plop3(lut::A & !lut::B, first, cluster, Src::TRUE))
    }

    /// The words of each argument.
    fn copy_arguments(&mut self, copy: ClusterCopy) -> Vec<Vec<Src>> {
        let mut arguments = vec![vec![copy.to, Src::ZERO], copy.from.to_vec(), copy.extent];
        arguments.push(vec![copy.object, Src::ZERO]);
        if !copy.offsets.is_empty() {
            arguments.push(self.paired(&copy.offsets));
        }
        arguments.extend(copy.blocks.map(|blocks| vec![self.halves_packed(blocks, Src::ZERO)]));
        arguments.push(copy.policy.unwrap_or([Src::ZERO; 2]).to_vec());
        arguments
    }

    fn paired(&mut self, halves: &[Src]) -> Vec<Src> {
        let pair = |pair: &[Src]| self.halves_packed(pair[0], pair.get(1).copied().unwrap_or(Src::ZERO));
        halves.chunks(2).map(pair).collect()
    }
}
