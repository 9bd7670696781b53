//! `cp.async.bulk` and `cp.reduce.async.bulk`: bulk copies and reductions of contiguous memory and of tensor tiles.
//!
//! The uniform datapath starts a copy once for all threads that execute the instruction together, so the threads take
//! turns. On some targets the instruction reaches only the shared memory of the block itself; a driver function does
//! the other copies.

use super::driver_copy::ClusterCopy;
use super::operand::known;
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{AtomOp, BulkPlace, BulkType, CctlOp, Dims, Op, TensorMode};
use crate::ori::signature::tile_coordinates;
use ptx_isa::{FormId, Mod, ScalarType};

/// Combines two halves in one register, the first one in the low bits.
const HALVES: Src = Src::imm(0x5410);
/// The logarithm of the unit of sizes in bytes.
const UNIT: u32 = 4;

/// The source or destination of a bulk copy.
#[derive(Clone, Copy)]
enum CopyEnd {
    Global([Src; 2]),
    Shared(Src),
}

impl<'a> Lowering<'a> {
    /// `cp.async.bulk` and `cp.reduce.async.bulk`.
    pub(super) fn copy_bulk(&mut self, instr: &Statement<'a>) -> Result<()> {
        use FormId as F;
        // Copies of the asynchronous proxy always have these properties.
        instr.ignore(&[Mod::Weak, Mod::Cta, Mod::Cluster, Mod::Gpu, Mod::Sys]);
        // The form determines the spaces, and how a thread waits for the copy.
        instr.ignore(&[Mod::Global, Mod::SharedCta, Mod::SharedCluster]);
        instr.ignore(&[Mod::MbarrierCompleteTxBytes, Mod::BulkGroup, Mod::L2]);
        let form = instr.form();
        let to_shared =
            matches!(form, F::CpAsyncBulkLoad | F::CpAsyncBulkCluster | F::CpReduceAsyncBulkCluster);
        let reduces = matches!(form, F::CpReduceAsyncBulkCluster | F::CpReduceAsyncBulkStore);
        let operation = if reduces { Some(self.bulk_reduction(instr)?) } else { None };
        if !self.encodes(&Op::BulkPrefetch) {
            return self.unsupported(instr, "bulk copies on this target");
        }
        if form == F::CpAsyncBulkPrefetch {
            let from = self.global_address(instr, 0)?;
            let size = self.bulk_size(instr, 1, None)?;
            let policy = self.cache_policy(instr, 2)?;
            return self.one_by_one(|this, chosen| {
                let from = this.uniform_pack(&from, chosen);
                let size = this.uniform_register(size, chosen);
                let policy = this.uniform_policy(policy, chosen);
                this.effect(Op::BulkPrefetch, &[from, size, policy]);
                Ok(())
            });
        }
        let destination = match to_shared {
            true => [self.shared_address(instr, 0)?, self.shared_address(instr, 3)?],
            false => self.global_address(instr, 0)?,
        };
        let source = match form {
            F::CpAsyncBulkLoad => CopyEnd::Global(self.global_address(instr, 1)?),
            _ => CopyEnd::Shared(self.shared_address(instr, 1)?),
        };
        let mut next = if to_shared { 4 } else { 3 };
        let multicast = instr.has(Mod::MulticastCluster);
        let mut blocks = if multicast { Some(self.source(instr, next, ScalarType::U16)?) } else { None };
        next += usize::from(multicast);
        let policy = self.cache_policy(instr, next)?;
        next += usize::from(policy.is_some());
        let masked = instr.has(Mod::CpMask);
        let bytes = if masked { Some(self.source(instr, next, ScalarType::U16)?) } else { None };
        let driver = match (self.copy_function(instr), source) {
            (Some(function), CopyEnd::Global(from)) => {
                let extent = vec![self.source(instr, 2, ScalarType::U32)?];
                let ([to, object], blocks, offsets) = (destination, blocks.take(), Vec::new());
                Some((function, ClusterCopy { to, object, blocks, from, extent, offsets, policy }))
            }
            _ => None,
        };
        let size = self.bulk_size(instr, 2, blocks.or(bytes))?;
        let place = |shared| if shared { BulkPlace::Shared } else { BulkPlace::Global };
        let op = match operation {
            Some((op, ty)) => Op::BulkReduce { to: place(to_shared), op, ty },
            None => Op::BulkCopy {
                to: place(to_shared),
                from: place(matches!(source, CopyEnd::Shared(_))),
                multicast: blocks.is_some(),
                masked,
            },
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "this copy on this target");
        }
        self.begin_copy(driver, |this, chosen| {
            let destination = this.uniform_pack(&destination, chosen);
            let source = match source {
                CopyEnd::Global(address) => this.uniform_pack(&address, chosen),
                CopyEnd::Shared(address) => this.uniform_register(address, chosen),
            };
            let size = this.uniform_register(size, chosen);
            let policy = this.uniform_policy(policy, chosen);
            this.effect(op, &[destination, source, size, policy]);
            Ok(())
        })
    }

    fn bulk_reduction(&mut self, instr: &Statement<'a>) -> Result<(AtomOp, BulkType)> {
        // Single floats and pairs have only one way of adding.
        instr.ignore(&[Mod::Noftz]);
        let Some(op) = instr.take(&super::atomic::OPERATIONS) else {
            return self.malformed("a reduction without an operation such as `.add`");
        };
        let ty = match self.type_of(instr, 0)? {
            ScalarType::S32 if matches!(op, AtomOp::Min | AtomOp::Max) => BulkType::S32,
            ScalarType::U32 | ScalarType::S32 | ScalarType::B32 => BulkType::U32,
            ScalarType::S64 if matches!(op, AtomOp::Min | AtomOp::Max) => BulkType::S64,
            ScalarType::U64 | ScalarType::S64 | ScalarType::B64 => BulkType::U64,
            ScalarType::F16 => BulkType::F16,
            ScalarType::Bf16 => BulkType::Bf16,
            ScalarType::F32 => BulkType::F32,
            ScalarType::F64 => BulkType::F64,
            ty => return self.unsupported(instr, &format!("the type `.{}`", ty.text())),
        };
        Ok((op, ty))
    }

    /// The words of an address in global memory.
    fn global_address(&mut self, instr: &Statement<'a>, i: usize) -> Result<[Src; 2]> {
        let address = self.address(instr, i)?;
        let (address, offset) = self.wide_address(address, false)?;
        let address = self.pair(address);
        Ok(if offset == 0 { address } else { self.add_pair(address, super::operand::halves(offset as u64)) })
    }

    /// The size in units and, in the upper bits, the mask of receiving blocks or of copied bytes.
    fn bulk_size(&mut self, instr: &Statement<'a>, i: usize, mask: Option<Src>) -> Result<Src> {
        let size = self.source(instr, i, ScalarType::U32)?;
        let units = self.shift_right(size, UNIT, false);
        Ok(self.halves_packed(units, mask.unwrap_or(Src::ZERO)))
    }

    pub(super) fn halves_packed(&mut self, low: Src, high: Src) -> Src {
        match (known(low), known(high)) {
            (Some(low), Some(high)) => Src::imm(low & 0xffff | high << 16),
            _ => self.reg(Op::Prmt, &[low, HALVES, high]),
        }
    }

    /// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`.
    pub(super) fn copy_tensor(&mut self, instr: &Statement<'a>) -> Result<()> {
        use FormId as F;
        let form = instr.form();
        instr.ignore(&[Mod::Global, Mod::SharedCta, Mod::SharedCluster]);
        instr.ignore(&[Mod::MbarrierCompleteTxBytes, Mod::BulkGroup, Mod::L2, Mod::Tile]);
        // The same as without the modifier.
        instr.ignore(&[Mod::CtaGroup1]);
        let dims = instr.take(&[
            (Mod::D1d, Dims::D1),
            (Mod::D2d, Dims::D2),
            (Mod::D3d, Dims::D3),
            (Mod::D4d, Dims::D4),
            (Mod::D5d, Dims::D5),
        ]);
        let Some(dims) = dims else { return self.malformed("a tensor without its dimensions") };
        let modes = [
            (Mod::Im2col, TensorMode::Im2col),
            (Mod::Im2colNoOffs, TensorMode::Im2col),
            (Mod::Im2colW, TensorMode::W),
            (Mod::Im2colW128, TensorMode::W128),
            (Mod::TileGather4, TensorMode::Gather),
            (Mod::TileScatter4, TensorMode::Scatter),
        ];
        let mode = instr.take(&modes).unwrap_or(TensorMode::Tiled);
        let loads = form == F::CpAsyncBulkTensorLoad;
        let (map, coordinates) = self.tensor(instr, usize::from(loads))?;
        if coordinates.len() != usize::from(tile_coordinates(dims, mode)) {
            return self.malformed("a number of coordinates that differs from the tensor dimension");
        }
        let pair = instr.has(Mod::CtaGroup2);
        let multicast = instr.has(Mod::MulticastCluster);
        let mut tile = Vec::new();
        let mut next = match form {
            F::CpAsyncBulkPrefetchTensor => 1,
            F::CpAsyncBulkTensorLoad => {
                tile.extend([self.shared_address(instr, 0)?, self.shared_address(instr, 2)?]);
                3
            }
            _ => {
                tile.push(self.shared_address(instr, 1)?);
                2
            }
        };
        tile.extend(coordinates);
        let offsets = matches!(form, F::CpAsyncBulkTensorLoad | F::CpAsyncBulkPrefetchTensor)
            && !matches!(mode, TensorMode::Tiled | TensorMode::Gather);
        let offsets = if offsets { self.image_offsets(instr, next)? } else { Vec::new() };
        next += usize::from(!offsets.is_empty());
        let mut blocks = if multicast { Some(self.source(instr, next, ScalarType::U16)?) } else { None };
        next += usize::from(multicast);
        let policy = self.cache_policy(instr, next)?;
        let driver = match (self.copy_function(instr), &tile[..]) {
            (Some(function), &[to, object, ref extent @ ..]) => {
                let (extent, offsets, blocks) = (extent.to_vec(), offsets.clone(), blocks.take());
                Some((function, ClusterCopy { to, object, blocks, from: map, extent, offsets, policy }))
            }
            _ => None,
        };
        let multicast = blocks.is_some();
        let offsets = self.image_word(&offsets, mode)?;
        let extra = match blocks {
            Some(blocks) => Some(self.halves_packed(offsets.unwrap_or(Src::ZERO), blocks)),
            None => offsets.map(|offsets| self.halves_packed(offsets, Src::ZERO)),
        };
        let op = match form {
            F::CpAsyncBulkTensorLoad => Op::TensorLoad { dims, mode, multicast, pair },
            F::CpAsyncBulkTensorStore => Op::TensorStore { dims, mode },
            F::CpAsyncBulkPrefetchTensor => Op::TensorPrefetch { dims, mode },
            _ => {
                let Some(op) = instr.take(&super::atomic::OPERATIONS) else {
                    return self.malformed("a reduction without an operation such as `.add`");
                };
                Op::TensorReduce { dims, mode, op }
            }
        };
        // Prefetches have the modes of loads, with one form for each.
        let like = match op {
            Op::TensorPrefetch { dims, mode } => Op::TensorLoad { dims, mode, multicast: false, pair: false },
            op => op,
        };
        if !self.encodes(&like) {
            return self.unsupported(instr, "this tensor load mode on this target");
        }
        self.begin_copy(driver, |this, chosen| {
            let tile = match tile[..] {
                [one] => this.uniform_register(one, chosen),
                _ => this.uniform_pack(&tile, chosen),
            };
            let map = this.uniform_pack(&map, chosen);
            let mut srcs = vec![tile, map];
            if matches!(op, Op::TensorLoad { .. } | Op::TensorPrefetch { .. }) {
                srcs.push(extra.map_or(Src::UNDEF, |extra| this.uniform_register(extra, chosen)));
            }
            srcs.push(this.uniform_policy(policy, chosen));
            this.effect(op, &srcs);
            Ok(())
        })
    }

    /// The address of a tensor map, and coordinates in its tensor.
    fn tensor(&mut self, instr: &Statement<'a>, i: usize) -> Result<([Src; 2], Vec<Src>)> {
        let Operand::List(parts) = self.operand(instr, i)? else {
            return self.malformed("a tensor without coordinates");
        };
        let [map, coordinates] = &parts[..] else {
            return self.unsupported(instr, "tensor properties in the tensor map operand");
        };
        let map = self.read(map, ScalarType::U64)?;
        let coordinates = match coordinates {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let coordinates =
            coordinates.iter().map(|part| self.read(part, ScalarType::U32)).collect::<Result<Vec<Src>>>()?;
        Ok((self.pair(map), coordinates))
    }

    /// The offsets in the window of an im2col copy.
    fn image_offsets(&mut self, instr: &Statement<'a>, i: usize) -> Result<Vec<Src>> {
        let operand = self.operand(instr, i)?;
        let parts = match operand {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        parts.iter().map(|part| self.read(part, ScalarType::U16)).collect()
    }

    /// The offsets in the encoding of the instruction: one of 16 bits, two of 8, three of 5, or, by rows, two of 11 and
    /// 5.
    fn image_word(&mut self, offsets: &[Src], mode: TensorMode) -> Result<Option<Src>> {
        Ok(Some(match (offsets, mode) {
            ([], _) => return Ok(None),
            ([low, high], TensorMode::W | TensorMode::W128) => self.placed(*low, *high, 11),
            ([one], _) => *one,
            ([low, high], _) => self.reg(Op::Prmt, &[*low, Src::imm(0x40), *high]),
            ([low, middle, high], _) => {
                let low = self.placed(*low, *middle, 5);
                self.placed(low, *high, 10)
            }
            _ => return self.malformed("a number of im2col offsets that does not match the mode"),
        }))
    }

    /// `low + (high << by)`.
    fn placed(&mut self, low: Src, high: Src, by: u32) -> Src {
        let high = self.shift_left(high, Src::imm(by));
        self.add(low, high)
    }

    /// `cp.async.bulk.commit_group`.
    pub(super) fn end_bulk_group(&mut self, instr: &Statement<'a>) -> Result<()> {
        if !self.encodes(&Op::BulkFlush) {
            return self.unsupported(instr, "bulk copies on this target");
        }
        self.branch_around(|this| {
            this.effect(Op::BulkFlush, &[]);
            Ok(())
        })
    }

    /// `cp.async.bulk.wait_group`: waits until the sources have been read, or until the copies are complete.
    pub(super) fn wait_for_bulk(&mut self, instr: &Statement<'a>) -> Result<()> {
        let done = !instr.has(Mod::Read);
        self.wait_for_copies(instr)?;
        if done {
            self.effect(Op::Cctl { op: CctlOp::Ivall }, &[]);
        }
        Ok(())
    }
}
