//! Bulk copies from global memory into the shared memory of other blocks of a cluster, for machines whose instruction
//! copies only into the shared memory of the block itself (sm_120 and sm_121).

use super::param;
use crate::input::{Instr, Param};
use crate::ori::op::Dims;
use ptx_isa::{FormId, Mod, ScalarType};

/// The kind of source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BulkSource {
    /// Contiguous bytes.
    Block,
    /// A tile of a tensor or, as `.im2col`, pixels.
    Tensor { dims: Dims, image: bool },
}

/// A function that copies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BulkFunction {
    pub source: BulkSource,
    /// The copy goes to all blocks of a mask, instead of the block that the address names.
    pub multicast: bool,
}

const DIMS: [(Mod, Dims); 5] = [
    (Mod::D1d, Dims::D1),
    (Mod::D2d, Dims::D2),
    (Mod::D3d, Dims::D3),
    (Mod::D4d, Dims::D4),
    (Mod::D5d, Dims::D5),
];
/// The number of coordinates that are passed, for any number of dimensions.
const COORDINATES: u32 = 5;
/// The number of offsets that are passed, for any number of dimensions.
const OFFSETS: u32 = 3;

impl BulkFunction {
    /// The function for a statement; `None` if it does not copy to the cluster from global memory.
    pub fn of(instr: &Instr) -> Option<BulkFunction> {
        let has = |modifier| instr.opcode.has(modifier);
        if !has(Mod::SharedCluster) {
            return None;
        }
        let source = match instr.opcode.form {
            FormId::CpAsyncBulkLoad => BulkSource::Block,
            FormId::CpAsyncBulkTensorLoad => {
                let (_, dims) = *DIMS.iter().find(|(modifier, _)| has(*modifier))?;
                BulkSource::Tensor { dims, image: has(Mod::Im2col) }
            }
            _ => return None,
        };
        Some(BulkFunction { source, multicast: has(Mod::MulticastCluster) })
    }

    pub(super) fn all() -> impl Iterator<Item = BulkFunction> {
        let tensors = |image: bool| {
            // Images have a channel and an image number in addition to their extents.
            let dims = DIMS.into_iter().skip(if image { 2 } else { 0 });
            dims.map(move |(_, dims)| BulkSource::Tensor { dims, image })
        };
        let sources = [BulkSource::Block].into_iter().chain(tensors(false)).chain(tensors(true));
        sources.flat_map(|source| [false, true].map(|multicast| BulkFunction { source, multicast }))
    }

    pub(super) fn name(self) -> String {
        let to = if self.multicast { "multicast" } else { "unicast" };
        match self.source {
            BulkSource::Block => format!("__cuda_syscall_cp_async_bulk_{to}"),
            BulkSource::Tensor { dims, image } => {
                let count = DIMS.iter().position(|(_, other)| *other == dims).map_or(0, |index| index + 1);
                let mode = if image { "im2col" } else { "tile" };
                format!("__cuda_syscall_cp_async_bulk_tensor_{count}d_{mode}_{to}")
            }
        }
    }

    /// The parameters: the destination, the source (for tensors, the map and the coordinates) and its size, the
    /// mbarrier object, pixel offsets, the mask of blocks, and the cache policy, which is zero if there is none.
    pub(super) fn params(self) -> Vec<Param> {
        let wide = || param(ScalarType::U64, 8);
        let list = |ty, count: u32, size: u32| Param { size: count * size, ..param(ty, size) };
        let mut params = vec![wide(), wide()];
        let (extent, image) = match self.source {
            BulkSource::Block => (param(ScalarType::U32, 4), false),
            BulkSource::Tensor { image, .. } => (list(ScalarType::B32, COORDINATES, 4), image),
        };
        params.push(extent);
        params.push(wide());
        params.extend(image.then(|| list(ScalarType::B16, OFFSETS, 2)));
        params.extend(self.multicast.then(|| param(ScalarType::U16, 2)));
        params.push(wide());
        params
    }
}
