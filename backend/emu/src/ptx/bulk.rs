//! Bulk copies and reductions, and stores into other blocks. They signal their completion to a barrier object or a
//! group.

use super::arithmetic::{ty, unsupported};
use super::memory::update;
use super::{Block, Step, WARP, each};
use crate::launch::{FaultKind, IS_CANCELLED, NOTHING_CANCELLED};
use crate::memory::{RANK_SHIFT, Space};
use crate::tensormap::{self, Part, TensorMap};
use crate::transfers::{Done, From, Transfer};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

/// The size of a bulk copy and its addresses must be multiples of this, in bytes.
const UNIT: u64 = 16;

/// How elements are combined with those in memory: the instruction, and the element type.
pub(super) type Reduction<'a> = (&'a Instr, ScalarType);

/// The type of a tensor's elements.
fn element(map: &TensorMap) -> Option<ScalarType> {
    use ScalarType as S;
    let types = [S::U32, S::S32, S::U64, S::S64, S::F16, S::Bf16, S::F32, S::F64];
    types.into_iter().find(|ty| ty.text() == map.ty())
}

fn is_half(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::F16 | ScalarType::Bf16)
}

impl<'a> Block<'a> {
    pub(super) fn bulk(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        use FormId as F;
        self.races.cut();
        match instr.opcode.form {
            F::CpAsyncBulkPrefetch | F::CpAsyncBulkPrefetchTensor => Ok(()),
            F::CpAsyncBulkTensorLoad | F::CpAsyncBulkTensorStore | F::CpReduceAsyncBulkTensor => {
                self.copy_tensor(w, mask, instr)
            }
            F::CpAsyncBulkCommitGroup => {
                each(mask).for_each(|lane| self.transfers.close((self.cluster.rank(), w, lane)));
                Ok(())
            }
            F::CpAsyncBulkWaitGroup => self.wait_bulk(w, mask, instr),
            F::StAsync | F::RedAsync => self.store_async(w, mask, instr),
            _ => self.copy_bulk(w, mask, instr),
        }
    }

    fn wait_bulk(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let Some(Operand::Int(but)) = instr.operands.first() else { return unsupported(instr) };
        for lane in each(mask) {
            let thread = (self.cluster.rank(), w, lane);
            if instr.opcode.has(Mod::Read) {
                let mut transfers = std::mem::take(&mut self.transfers);
                let mut view = self.view(w, lane);
                let result = transfers.closed(thread, *but as u32).try_for_each(|t| t.fetch(&mut view));
                self.transfers = transfers;
                result?;
                continue;
            }
            for transfer in self.transfers.finish(thread, *but as u32) {
                self.land_transfer(transfer)?;
            }
        }
        Ok(())
    }

    /// The address of a lane's operand in the cluster's shared memory.
    fn in_cluster(&mut self, w: usize, lane: usize, operand: &Operand, space: Space) -> Step<u64> {
        let address = self.address(w, lane, operand)?;
        self.view(w, lane).in_cluster(space, address)
    }

    fn store_async(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        let t = ty(&instr.opcode, 0)?;
        let parts = match &instr.operands[1] {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let Some(barrier) = instr.operands.get(2) else { return unsupported(instr) };
        let values: Vec<[u64; WARP]> =
            parts.iter().map(|part| self.gather(w, mask, part, t)).collect::<Step<_>>()?;
        let space = super::memory::space(instr);
        let size = t.bytes() * parts.len() as u32;
        for lane in each(mask) {
            let to = self.in_cluster(w, lane, &instr.operands[0], space)?;
            let barrier = self.in_cluster(w, lane, barrier, space)?;
            self.view(w, lane).is_aligned(Space::Cluster, to, size)?;
            self.view(w, lane).reaches(Space::Cluster, to, size)?;
            same_block(to, barrier)?;
            let bytes = |value: &[u64; WARP]| value[lane].to_le_bytes()[..t.bytes() as usize].to_vec();
            let bytes = From::Bytes(values.iter().flat_map(bytes).collect());
            let done = Done::Bytes { barrier, count: size };
            let transfer = Transfer::copy(bytes, (Space::Cluster, to), size, done);
            let reduces = (instr.opcode.form == FormId::RedAsync).then_some(((instr, t), t.bytes()));
            self.transfers.begin(Transfer { reduces, ..transfer });
        }
        Ok(())
    }

    fn copy_bulk(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        use FormId as F;
        let op = &instr.opcode;
        let (from, to) = match op.form {
            F::CpAsyncBulkLoad => {
                (Space::Global, if op.has(Mod::SharedCta) { Space::Shared } else { Space::Cluster })
            }
            F::CpAsyncBulkCluster | F::CpReduceAsyncBulkCluster => (Space::Shared, Space::Cluster),
            F::CpAsyncBulkStore | F::CpReduceAsyncBulkStore => (Space::Shared, Space::Global),
            _ => return unsupported(instr),
        };
        let half = op.types().any(is_half);
        if half && !op.has(Mod::Add) {
            return unsupported(instr);
        }
        let sizes = self.gather(w, mask, &instr.operands[2], ScalarType::U32)?;
        let masks = match instr.operands.get(4) {
            Some(operand) if op.has(Mod::MulticastCluster) => {
                Some(self.gather(w, mask, operand, ScalarType::U16)?)
            }
            _ => None,
        };
        let kept = match instr.operands.get(3 + usize::from(op.has(Mod::L2CacheHint))) {
            Some(operand) if op.has(Mod::CpMask) => Some(self.gather(w, mask, operand, ScalarType::U16)?),
            _ => None,
        };
        let reduces = match op.form {
            F::CpReduceAsyncBulkCluster | F::CpReduceAsyncBulkStore => {
                let t = ty(op, 0)?;
                Some(((instr, t), t.bytes()))
            }
            _ => None,
        };
        for lane in each(mask) {
            let [destination, source] = [0, 1].map(|i| self.address(w, lane, &instr.operands[i]));
            let (destination, source, size) = (destination?, source?, sizes[lane] as u32);
            for (place, address) in [("destination", destination), ("source", source), ("size", size.into())]
            {
                if address % UNIT != 0 {
                    let text = format!("the {place} {address:#x} of a bulk copy is no multiple of {UNIT}");
                    return Err(FaultKind::Malformed(text));
                }
            }
            self.view(w, lane).reaches(from, source, size)?;
            let bytes = From::Memory(if from == Space::Shared { Space::Cluster } else { from }, source);
            if to == Space::Global {
                self.view(w, lane).reaches(to, destination, size)?;
                let done = self.transfers.group((self.cluster.rank(), w, lane));
                let mut transfer = Transfer::copy(bytes, (to, destination), size, done);
                if let Some(kept) = kept {
                    transfer = transfer.masked(kept[lane] as u16);
                }
                self.transfers.begin(Transfer { reduces, ..transfer });
                continue;
            }
            let barrier = self.in_cluster(w, lane, &instr.operands[3], to)?;
            same_block(destination, barrier)?;
            let own = destination >> RANK_SHIFT;
            let ranks = masks.map_or(1 << own, |masks| masks[lane]);
            let there = |address: u64, rank: u64| address & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
            for rank in (0..16).filter(|rank| ranks >> rank & 1 == 1) {
                let to = there(destination, rank);
                self.view(w, lane).reaches(Space::Cluster, to, size)?;
                let done = Done::Bytes { barrier: there(barrier, rank), count: size };
                let transfer = Transfer::copy(bytes.clone(), (Space::Cluster, to), size, done);
                self.transfers.begin(Transfer { reduces, ..transfer });
            }
        }
        Ok(())
    }

    fn copy_tensor(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        let op = &instr.opcode;
        let loads = op.form == FormId::CpAsyncBulkTensorLoad;
        const OTHERS: &[Mod] = &[Mod::Im2colW, Mod::Im2colW128, Mod::CtaGroup1, Mod::CtaGroup2];
        let (tensor, shared) = if loads { (1, 0) } else { (0, 1) };
        let Operand::List(parts) = &instr.operands[tensor] else { return unsupported(instr) };
        let [map, coordinates] = &parts[..] else { return unsupported(instr) };
        if OTHERS.iter().any(|&m| op.has(m)) {
            return unsupported(instr);
        }
        let coordinates = match coordinates {
            Operand::Vector(parts) => &parts[..],
            one => std::slice::from_ref(one),
        };
        let maps = self.gather(w, mask, map, ScalarType::U64)?;
        let coordinates: Vec<[u64; WARP]> = coordinates
            .iter()
            .map(|part| self.gather(w, mask, part, ScalarType::U32))
            .collect::<Step<_>>()?;
        let offsets = match instr.operands.get(3) {
            Some(Operand::Vector(parts)) if op.has(Mod::Im2col) => Some(&parts[..]),
            Some(one) if op.has(Mod::Im2col) => Some(std::slice::from_ref(one)),
            _ => op.has(Mod::Im2colNoOffs).then_some(&[][..]),
        };
        let offsets: Option<Vec<[u64; WARP]>> = match offsets {
            Some(parts) => {
                let values = parts.iter().map(|part| self.gather(w, mask, part, ScalarType::U16));
                Some(values.collect::<Step<_>>()?)
            }
            None => None,
        };
        let masks = match instr.operands.get(3 + usize::from(op.has(Mod::Im2col))) {
            Some(operand) if op.has(Mod::MulticastCluster) => {
                Some(self.gather(w, mask, operand, ScalarType::U16)?)
            }
            _ => None,
        };
        for lane in each(mask) {
            let offsets: Option<Vec<u64>> =
                offsets.as_ref().map(|all| all.iter().map(|values| values[lane]).collect());
            let map = TensorMap::read(&mut self.view(w, lane), maps[lane])?;
            let at: Vec<i32> = coordinates.iter().map(|values| values[lane] as i32).collect();
            let place = self.in_cluster(w, lane, &instr.operands[shared], Space::Cluster)?;
            if !loads {
                let done = self.transfers.group((self.cluster.rank(), w, lane));
                let pieces = map.pieces(&at, offsets.as_deref(), place, false)?;
                let reduces = match element(&map) {
                    _ if op.form != FormId::CpReduceAsyncBulkTensor => None,
                    Some(t) if op.has(Mod::Add) || !is_half(t) => Some(((instr, t), t.bytes())),
                    _ => return unsupported(instr),
                };
                self.transfers.begin(Transfer { pieces, reduces, done });
                continue;
            }
            let barrier = self.in_cluster(w, lane, &instr.operands[2], Space::Cluster)?;
            same_block(place, barrier)?;
            let own = place >> RANK_SHIFT;
            let ranks = masks.map_or(1 << own, |masks| masks[lane]);
            let there = |address: u64, rank: u64| address & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
            for rank in (0..16).filter(|rank| ranks >> rank & 1 == 1) {
                let pieces = map.pieces(&at, offsets.as_deref(), there(place, rank), true)?;
                let done = Done::Bytes { barrier: there(barrier, rank), count: map.bytes(&at) };
                self.transfers.begin(Transfer { pieces, reduces: None, done });
            }
        }
        Ok(())
    }

    /// Requests the cancellation of a cluster that has not begun, or reads the response.
    pub(super) fn cancel(&mut self, w: usize, mask: u32, instr: &'a Instr) -> Step<()> {
        let op = &instr.opcode;
        if op.form != FormId::ClusterlaunchcontrolTryCancel {
            let answers = self.gather_wide(w, mask, &instr.operands[1], ScalarType::B128)?;
            for lane in each(mask) {
                let cancelled = answers[lane] & IS_CANCELLED != 0;
                if op.form != FormId::ClusterlaunchcontrolIsCanceled || cancelled {
                    return Err(FaultKind::Malformed("the block of a cluster that was not cancelled".into()));
                }
                self.put(w, lane, &instr.operands[0], ScalarType::Pred, 0)?;
            }
            return Ok(());
        }
        self.races.cut();
        let space = super::memory::space(instr);
        for lane in each(mask) {
            let to = self.in_cluster(w, lane, &instr.operands[0], space)?;
            let barrier = self.in_cluster(w, lane, &instr.operands[1], space)?;
            same_block(to, barrier)?;
            let blocks = self.shared.len() as u64;
            let own = to >> RANK_SHIFT;
            let ranks = if op.has(Mod::MulticastClusterAll) { 0..blocks } else { own..own + 1 };
            let there = |address: u64, rank: u64| address & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
            for rank in ranks {
                let to = there(to, rank);
                let size = NOTHING_CANCELLED.len() as u32;
                self.view(w, lane).is_aligned(Space::Cluster, to, size)?;
                self.view(w, lane).reaches(Space::Cluster, to, size)?;
                let answer = From::Bytes(NOTHING_CANCELLED.to_vec());
                let done = Done::Bytes { barrier: there(barrier, rank), count: size };
                self.transfers.begin(Transfer::copy(answer, (Space::Cluster, to), size, done));
            }
        }
        Ok(())
    }

    pub(super) fn replace_in_map(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let ordinal = match instr.operands.get(1) {
            Some(Operand::Int(ordinal)) => *ordinal as usize,
            _ => 0,
        };
        let part = match () {
            () if op.has(Mod::GlobalAddress) => Part::Address,
            () if op.has(Mod::Rank) => Part::Rank,
            () if op.has(Mod::Elemtype) => Part::Element,
            () if op.has(Mod::SwizzleMode) => Part::Swizzle,
            () if op.has(Mod::GlobalDim) => Part::Extent(ordinal),
            () if op.has(Mod::GlobalStride) => Part::Stride(ordinal),
            () if op.has(Mod::BoxDim) => Part::Box(ordinal),
            () => return unsupported(instr),
        };
        let Some(value) = instr.operands.last() else { return unsupported(instr) };
        let values = self.gather(w, mask, value, ty(op, 0)?)?;
        let space = super::memory::space(instr);
        for lane in each(mask) {
            let address = self.address(w, lane, &instr.operands[0])?;
            let mut view = self.view(w, lane);
            let mut map = view.read(space, address, tensormap::BYTES as u32)?.to_vec();
            let none = || FaultKind::Malformed("a dimension that no map has".into());
            tensormap::replace(&mut map, part, values[lane]).ok_or_else(none)?;
            view.slice(space, address, tensormap::BYTES as u32)?.copy_from_slice(&map);
        }
        Ok(())
    }

    /// Copies a tensor map from shared to global memory. Executed by a whole warp.
    pub(super) fn copy_map(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        self.races.publish();
        let lane = mask.trailing_zeros() as usize;
        let [to, from] = [0, 1].map(|i| self.address(w, lane, &instr.operands[i]));
        let (to, from) = (to?, from?);
        let mut view = self.view(w, lane);
        let map = view.read(Space::Shared, from, tensormap::BYTES as u32)?.to_vec();
        view.slice(Space::Global, to, tensormap::BYTES as u32)?.copy_from_slice(&map);
        Ok(())
    }

    /// Completes a transfer.
    pub(super) fn land_transfer(&mut self, transfer: Transfer<Reduction<'a>>) -> Step<()> {
        let done = transfer.done;
        let combine = |(instr, t): Reduction<'_>, old, new| {
            let unflushed = matches!(instr.opcode.form, FormId::RedAsync | FormId::CpReduceAsyncBulkTensor);
            update(instr, t, !(unflushed || instr.opcode.has(Mod::Noftz)), old, new)
        };
        transfer.perform(&mut self.view(0, 0), combine)?;
        match done {
            Done::Group { .. } => Ok(()),
            Done::Bytes { barrier, count } => self.complete_bytes(barrier, count),
            Done::Arrival { barrier, thread: (rank, w, lane), copies, .. } => {
                let back = self.cluster.rank();
                self.switch_to(rank);
                let copies = self.warps[w].copies.finish_first(lane, copies);
                self.land(w, copies)?;
                self.switch_to(back);
                self.complete_arrival(barrier)
            }
        }
    }

    /// Completes all remaining transfers after all threads have exited.
    pub(super) fn land_all(&mut self) -> Step<()> {
        self.transfers.finish_all().into_iter().try_for_each(|transfer| self.land_transfer(transfer))
    }
}

/// Returns a fault unless the barrier object is in the block that receives the bytes.
fn same_block(to: u64, barrier: u64) -> Step<()> {
    if to >> RANK_SHIFT != barrier >> RANK_SHIFT {
        return Err(FaultKind::Malformed(
            "a barrier object in another block than the bytes that it counts".into(),
        ));
    }
    Ok(())
}
