//! Bulk copies and reductions, and stores into other blocks. They signal their completion to a barrier object or a
//! group.

use super::memory::update;
use super::{Block, Result, WARP, each};
use crate::float::{BF16, F16, Rounding};
use crate::launch::{FaultKind, NOTHING_CANCELLED};
use crate::memory::{RANK_SHIFT, Space};
use crate::tensormap::TensorMap;
use crate::transfers::{Done, From, Transfer};
use sass::{Field, Inst};

/// The mnemonics of instructions that begin transfers.
pub(super) const MNEMONICS: &[&str] =
    &["UBLKCP", "UBLKRED", "STAS", "REDAS", "UTMALDG", "UTMASTG", "UTMAREDG", "UGETNEXTWORKID"];

/// The unit of the sizes of bulk copies, in bytes.
const UNIT: u32 = 16;

/// In a copy of pixels, the lowest bit of the mask of receiving blocks. The lower bits are the offsets of the pixels.
const BLOCKS_AT: u32 = 16;

/// The destination of a copy to blocks of a cluster: these offsets in each block of a mask.
pub(super) struct ClusterEnds {
    pub to: u64,
    /// The barrier object that counts the bytes.
    pub object: u64,
    pub ranks: u32,
}

impl ClusterEnds {
    /// The destination and the barrier object in each of the blocks.
    fn each(self) -> impl Iterator<Item = (u64, u64)> {
        let there = |address: u64, rank: u64| address & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
        let receives = move |rank: &u64| self.ranks >> rank & 1 == 1;
        (0..16).filter(receives).map(move |rank| (there(self.to, rank), there(self.object, rank)))
    }
}

/// How elements are combined with those in memory: the position of the instruction, and the element type.
pub(super) type Reduction = (u32, &'static str);

/// The element type of a tensor reduction.
fn tensor_type(map: &TensorMap) -> Option<&'static str> {
    Some(match map.ty() {
        "u32" => "",
        "s32" => ".S32",
        "u64" => ".U64",
        "s64" => ".S64",
        "f16" => ".F16.RN",
        "bf16" => ".BF16.RN",
        "f32" => ".F32.RN",
        "f64" => ".F64.RN",
        _ => return None,
    })
}

fn type_of(inst: &Inst) -> &'static str {
    inst.text(Field::Type).unwrap_or("")
}

/// The size of an element of a reduction in bytes.
fn element(ty: &str) -> u32 {
    match ty {
        ".F16.RN" | ".BF16.RN" => 2,
        ".64" | ".U64" | ".S64" | ".F64.RN" => 8,
        _ => 4,
    }
}

/// The offsets of a pixel from the first pixel of its window, for a tensor with `rank` dimensions: 16, 8 or 5 bits
/// each.
fn image_offsets(rank: usize, word: u32) -> Vec<u64> {
    let count = rank.saturating_sub(2);
    let bits = match count {
        1 => 16,
        2 => 8,
        _ => 5,
    };
    (0..count).map(|i| u64::from(word >> (bits * i) & ((1 << bits) - 1))).collect()
}

impl Block<'_> {
    pub(super) fn bulk(&mut self, w: usize, mask: u32, at: u32, name: &str) -> Result<()> {
        match name {
            "STAS" | "REDAS" => self.store_async(w, mask, at, name == "REDAS"),
            "UTMALDG" | "UTMASTG" | "UTMAREDG" => self.copy_tensor(w, at, name),
            "UGETNEXTWORKID" => self.cancel(w, at),
            _ => self.copy_bulk(w, at, name == "UBLKRED"),
        }
    }

    /// Stores into another block. The register after the address holds the address of the barrier object.
    fn store_async(&mut self, w: usize, mask: u32, at: u32, reduces: bool) -> Result<()> {
        let step = &self.machine.code[at as usize];
        let inst = &step.inst;
        let size = match inst.text(Field::Size) {
            _ if reduces => element(type_of(inst)),
            Some(".64") => 8,
            Some(".128") => 16,
            _ => 4,
        };
        let first = inst.get(Field::Rb).or(inst.get(Field::Rc)).unwrap_or(255) as usize;
        let base = inst.get(Field::Ra).unwrap_or(255) as usize;
        if inst.get(Field::AddressWidth) == Some(0) || base == 255 {
            return Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        }
        for lane in each(mask) {
            let to = self.address(w, lane, at, true)?;
            let register = |index: usize| self.warps[w].registers[index * WARP + lane];
            let barrier = register(base + 1).into();
            let word = |i: u32| if first == 255 { 0 } else { register(first + i as usize) };
            let bytes = (0..size / 4).flat_map(|i| word(i).to_le_bytes()).collect();
            self.view(w, lane).is_aligned(Space::Cluster, to, size)?;
            self.view(w, lane).reaches(Space::Cluster, to, size)?;
            let done = Done::Bytes { barrier, count: size };
            let transfer = Transfer::copy(From::Bytes(bytes), (Space::Cluster, to), size, done);
            let reduces = reduces.then_some(((at, type_of(inst)), size));
            self.transfers.begin(Transfer { reduces, ..transfer });
        }
        Ok(())
    }

    /// Executed once for the warp, whatever threads are active.
    fn copy_bulk(&mut self, w: usize, at: u32, reduces: bool) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let uniform = &self.warps[w].uniform;
        let register = |field| inst.get(field).unwrap_or(0) as usize;
        let (to, from) = (register(Field::UrBase), register(Field::Ur));
        let pair = |at: usize| u64::from(uniform[at + 1]) << 32 | u64::from(uniform[at]);
        let extent = uniform[register(Field::URb)];
        let size = (extent & 0xffff) * UNIT;
        let into_shared = inst.text(Field::Mode) == Some(".S");
        let source = match inst.text(Field::Mode2) {
            Some(".S") => (Space::Cluster, uniform[from].into()),
            _ => (Space::Global, pair(from)),
        };
        let masked = inst.get(Field::Mask) == Some(1);
        if (masked && into_shared) || inst.get(Field::Flag2) == Some(1) || inst.get(Field::Flag3) == Some(1) {
            return Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        }
        let (destination, barrier) = (u64::from(uniform[to]), u64::from(uniform[to + 1]));
        let far = pair(to);
        let reduces = reduces.then(|| ((at, type_of(inst)), element(type_of(inst))));
        let multicast = inst.get(Field::Flag) == Some(1);
        self.view(w, 0).reaches(source.0, source.1, size)?;
        let bytes = From::Memory(source.0, source.1);
        if !into_shared {
            self.view(w, 0).reaches(Space::Global, far, size)?;
            let done = self.transfers.group((self.cluster.rank(), w, 0));
            let mut transfer = Transfer::copy(bytes, (Space::Global, far), size, done);
            if masked {
                transfer = transfer.masked((extent >> 16) as u16);
            }
            self.transfers.begin(Transfer { reduces, ..transfer });
            return Ok(());
        }
        let ranks = if multicast { extent >> 16 } else { 1 << (destination >> RANK_SHIFT) };
        let ends = ClusterEnds { to: destination, object: barrier, ranks };
        self.copy_block_to_cluster(w, source, size, ends, reduces)
    }

    /// The registers hold the address in shared memory, for loads the address of the barrier object, and the
    /// coordinates.
    fn copy_tensor(&mut self, w: usize, at: u32, name: &str) -> Result<()> {
        let loads = name == "UTMALDG";
        let inst = &self.machine.code[at as usize].inst;
        let unsupported = || Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0)));
        let (gathers, image) = match inst.text(Field::Mode).unwrap_or("") {
            "" => (false, false),
            ".GATHER4" | ".SCATTER4" => (true, false),
            ".IM2COL" => (false, true),
            _ => return unsupported(),
        };
        if inst.get(Field::Flag2) == Some(1) {
            return unsupported();
        }
        let uniform = self.warps[w].uniform;
        let register = |field| inst.get(field).unwrap_or(0) as usize;
        let (to, from) = (register(Field::UrBase), register(Field::Ur));
        let map = u64::from(uniform[from + 1]) << 32 | u64::from(uniform[from]);
        // A column and four rows.
        let count = if gathers { 5 } else { inst.get(Field::Dims).unwrap_or(0) as usize + 1 };
        let first = to + 1 + usize::from(loads);
        let coordinates: Vec<i32> = uniform[first..first + count].iter().map(|&at| at as i32).collect();
        let (place, barrier) = (u64::from(uniform[to]), u64::from(uniform[to + 1]));
        let multicast = inst.get(Field::Flag) == Some(1);
        let extra = inst.get(Field::URc).map(|index| uniform[index as usize]);
        let map = TensorMap::read(&mut self.view(w, 0), map)?;
        let offsets = match extra {
            Some(extra) if image && loads => Some(image_offsets(count, extra)),
            None if image && loads => return unsupported(),
            _ => image.then(Vec::new),
        };
        if !loads {
            let done = self.transfers.group((self.cluster.rank(), w, 0));
            let pieces = map.pieces(&coordinates, offsets.as_deref(), place, false)?;
            let reduces = match tensor_type(&map) {
                _ if name == "UTMASTG" => None,
                Some(ty) => Some(((at, ty), element(ty))),
                None => return unsupported(),
            };
            self.transfers.begin(Transfer { pieces, reduces, done });
            return Ok(());
        }
        let ranks = match extra {
            Some(extra) if multicast && image => extra >> BLOCKS_AT,
            Some(ranks) if multicast => ranks,
            Some(_) if image => 1 << (place >> RANK_SHIFT),
            None if !multicast => 1 << (place >> RANK_SHIFT),
            _ => return unsupported(),
        };
        let ends = ClusterEnds { to: place, object: barrier, ranks };
        self.copy_tensor_to_cluster(&map, &coordinates, offsets.as_deref(), ends)
    }

    /// Begins a copy of bytes, or a reduction of elements, to each of the receiving blocks.
    pub(super) fn copy_block_to_cluster(
        &mut self,
        w: usize,
        (space, from): (Space, u64),
        size: u32,
        ends: ClusterEnds,
        reduces: Option<(Reduction, u32)>,
    ) -> Result<()> {
        for (to, barrier) in ends.each() {
            self.view(w, 0).reaches(Space::Cluster, to, size)?;
            let done = Done::Bytes { barrier, count: size };
            let transfer = Transfer::copy(From::Memory(space, from), (Space::Cluster, to), size, done);
            self.transfers.begin(Transfer { reduces, ..transfer });
        }
        Ok(())
    }

    /// Begins a copy of a tile, or of pixels at offsets, to each of the receiving blocks.
    pub(super) fn copy_tensor_to_cluster(
        &mut self,
        map: &TensorMap,
        coordinates: &[i32],
        offsets: Option<&[u64]>,
        ends: ClusterEnds,
    ) -> Result<()> {
        for (to, barrier) in ends.each() {
            let pieces = map.pieces(coordinates, offsets, to, true)?;
            let done = Done::Bytes { barrier, count: map.bytes(coordinates) };
            self.transfers.begin(Transfer { pieces, reduces: None, done });
        }
        Ok(())
    }

    /// Requests the cancellation of a cluster that has not begun. The operands are the address of the response and the
    /// barrier object.
    fn cancel(&mut self, w: usize, at: u32) -> Result<()> {
        let inst = &self.machine.code[at as usize].inst;
        let base = inst.get(Field::UrBase).unwrap_or(0) as usize;
        let [to, barrier] = [0, 1].map(|i| u64::from(self.warps[w].uniform[base + i]));
        let own = to >> RANK_SHIFT;
        let blocks = self.shared.len() as u64;
        let ranks = if inst.text(Field::Mode) == Some(".BROADCAST") { 0..blocks } else { own..own + 1 };
        let there = |address: u64, rank: u64| address & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
        for rank in ranks {
            let to = there(to, rank);
            let size = NOTHING_CANCELLED.len() as u32;
            self.view(w, 0).is_aligned(Space::Cluster, to, size)?;
            self.view(w, 0).reaches(Space::Cluster, to, size)?;
            let answer = From::Bytes(NOTHING_CANCELLED.to_vec());
            let done = Done::Bytes { barrier: there(barrier, rank), count: size };
            self.transfers.begin(Transfer::copy(answer, (Space::Cluster, to), size, done));
        }
        Ok(())
    }

    /// Completes the bulk copies of a warp, except those of the last `but` closed groups.
    pub(super) fn finish_bulk(&mut self, w: usize, but: u32) -> Result<()> {
        let over = self.transfers.finish((self.cluster.rank(), w, 0), but);
        over.into_iter().try_for_each(|transfer| self.land_transfer(transfer))
    }

    /// Completes a transfer.
    pub(super) fn land_transfer(&mut self, transfer: Transfer<Reduction>) -> Result<()> {
        let done = transfer.done;
        let machine = self.machine;
        let combine = |(at, ty): Reduction, old, new| {
            let inst = &machine.code[at as usize].inst;
            let op = inst.text(Field::Op).unwrap_or("");
            let half = |format: crate::float::Format| match op {
                ".ADD" => Some(format.add(old, new, Rounding::Nearest)),
                _ => None,
            };
            let result = match ty {
                ".F16.RN" => half(F16),
                ".BF16.RN" => half(BF16),
                ".U64" => update(op, ".64", false, old, new),
                _ => update(op, ty, ty.contains(".F"), old, new),
            };
            result.ok_or_else(|| FaultKind::Unsupported(sass::print(machine.sm, inst, 0)))
        };
        transfer.perform(&mut self.view(0, 0), combine)?;
        self.complete(done)
    }

    /// Completes all remaining transfers after all threads have exited.
    pub(super) fn land_all(&mut self) -> Result<()> {
        self.transfers.finish_all().into_iter().try_for_each(|transfer| self.land_transfer(transfer))
    }
}
