//! Executes `tcgen05` in PTX. Asynchronous operations complete where they are issued; their arrivals are delayed.

use super::arithmetic::{ty, unsupported};
use super::{Block, Step, WARP, each};
use crate::launch::FaultKind;
use crate::matrix::Fragment;
use crate::memory::RANK_SHIFT;
use crate::tensor::{
    self, Compared, Factor, Kind, Product, Rows, Shape, TensorAccess, TensorMemory, UNIT, extremum,
};
use crate::transfers::{Done, Transfer};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};
use std::ops::Range;

const LOWER_HALF: u32 = 0xffff;

/// The layout of a warp's registers in tensor memory.
fn access(instr: &Instr, registers: usize) -> Option<TensorAccess> {
    let op = &instr.opcode;
    let shapes = [
        (Mod::N32x32b, Shape::L32B32),
        (Mod::N16x64b, Shape::L16B64),
        (Mod::N16x128b, Shape::L16B128),
        (Mod::N16x256b, Shape::L16B256),
        (Mod::N16x32bx2, Shape::L16B32),
    ];
    let shape = shapes.iter().find(|row| op.has(row.0))?.1;
    Some(TensorAccess { shape, registers, packed: op.has(Mod::Pack16b) || op.has(Mod::Unpack16b) })
}

/// The minimum or maximum of the words that each thread loads.
fn statistic(instr: &Instr, loaded: &Fragment) -> Step<[u32; WARP]> {
    let op = &instr.opcode;
    let compared = match ty(op, 0)? {
        ScalarType::F32 => Compared::Floats { magnitudes: op.has(Mod::Abs), nan: op.has(Mod::Nan) },
        ScalarType::S32 => Compared::Signed,
        _ => Compared::Unsigned,
    };
    Ok(extremum(loaded, compared, op.has(Mod::Max)))
}

fn parts(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

impl Block<'_> {
    fn tensor_memory(&mut self) -> &mut TensorMemory {
        let blocks = self.shared.len();
        if self.tensor.is_empty() {
            self.tensor.resize(blocks, TensorMemory::default());
        }
        let rank = self.cluster.rank();
        &mut self.tensor[rank]
    }

    /// Executes the warp-wide operations.
    pub(super) fn tensor_together(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        self.races.cut();
        if mask != u32::MAX {
            let text = "an operation of tensor memory without some threads";
            return Err(FaultKind::Malformed(text.into()));
        }
        let pair = instr.opcode.has(Mod::CtaGroup2);
        let number = |block: &Self, at: usize| -> Step<u32> {
            same(&block.gather(w, mask, &instr.operands[at], ScalarType::U32)?)
        };
        match instr.opcode.form {
            FormId::Tcgen05Alloc => {
                let columns = number(self, 1)?;
                let Some(first) = self.take_units(pair, columns / UNIT)? else {
                    // The statement is executed again.
                    each(mask).for_each(|lane| self.warps[w].pc[lane] -= 1);
                    return Ok(());
                };
                let to = self.address(w, 0, &instr.operands[0])?;
                let space = super::memory::space(instr);
                self.view(w, 0).store(space, to, 4, u64::from(first * UNIT))
            }
            FormId::Tcgen05Dealloc => {
                let (address, columns) = (number(self, 0)?, number(self, 1)?);
                self.tensor_memory().give((address & 0xffff) / UNIT, columns / UNIT)
            }
            FormId::Tcgen05Ld | FormId::Tcgen05LdRed => self.load_tensor(w, mask, instr),
            FormId::Tcgen05St => self.store_tensor(w, mask, instr),
            _ => Ok(()),
        }
    }

    fn tensor_address(&self, w: usize, mask: u32, operand: &Operand) -> Step<u32> {
        let first = mask.trailing_zeros() as usize % WARP;
        let address = self.address(w, first, operand)?;
        for lane in each(mask) {
            if self.address(w, lane, operand)? != address {
                return Err(FaultKind::Malformed("threads differ in an address of tensor memory".into()));
            }
        }
        Ok(address as u32)
    }

    /// The address that each half of the warp accesses. For most shapes, they are equal.
    fn tensor_halves(&self, instr: &Instr, at: usize, address: u32) -> Step<Vec<(u32, u32)>> {
        if !instr.opcode.has(Mod::N16x32bx2) {
            return Ok(vec![(u32::MAX, address)]);
        }
        let Some(Operand::Int(behind)) = instr.operands.get(at) else { return unsupported(instr) };
        Ok(vec![(LOWER_HALF, address), (!LOWER_HALF, address.wrapping_add(*behind as u32))])
    }

    fn load_tensor(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let reduces = instr.opcode.form == FormId::Tcgen05LdRed;
        let places = parts(&instr.operands[0]);
        let Some(access) = access(instr, places.len()) else { return unsupported(instr) };
        let at = if reduces { 2 } else { 1 };
        let address = self.tensor_address(w, mask, &instr.operands[at])?;
        for (threads, address) in self.tensor_halves(instr, at + 1, address)? {
            let result = access.load(self.tensor_memory(), w, threads, address)?;
            let found = if reduces { Some(statistic(instr, &result)?) } else { None };
            let found = found.iter().map(|found| (&parts(&instr.operands[1])[0], found));
            for (place, values) in places.iter().zip(&result).chain(found) {
                for lane in each(threads) {
                    self.put(w, lane, place, ScalarType::B32, values[lane].into())?;
                }
            }
        }
        Ok(())
    }

    fn store_tensor(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        let Some(last) = instr.operands.last() else { return unsupported(instr) };
        let values: Fragment = parts(last)
            .iter()
            .map(|part| Ok(self.gather(w, mask, part, ScalarType::B32)?.map(|value| value as u32)))
            .collect::<Step<_>>()?;
        let Some(access) = access(instr, values.len()) else { return unsupported(instr) };
        let address = self.tensor_address(w, mask, &instr.operands[0])?;
        for (threads, address) in self.tensor_halves(instr, 1, address)? {
            access.store(self.tensor_memory(), w, threads, address, &values)?;
        }
        Ok(())
    }

    /// Executes the operations of single threads.
    pub(super) fn tensor_alone(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        self.races.cut();
        for lane in each(mask) {
            match instr.opcode.form {
                FormId::Tcgen05Fence => {}
                FormId::Tcgen05Cp => self.copy_into_tensor(w, lane, instr)?,
                FormId::Tcgen05Commit => self.commit_tensor(w, lane, instr)?,
                _ => self.multiply_tensor(w, lane, instr)?,
            }
        }
        Ok(())
    }

    fn one(&self, w: usize, lane: usize, operand: &Operand, ty: ScalarType) -> Step<u64> {
        Ok(self.gather(w, 1 << lane, operand, ty)?[lane])
    }

    /// Calls a function with the tensor memory of the block or of its pair, and a reader of their shared memory. The
    /// reader takes an address and a size.
    fn with_tensor(
        &mut self,
        w: usize,
        pair: bool,
        does: impl FnOnce(&mut [TensorMemory], &mut dyn FnMut(usize, u64, u32) -> Step<u64>) -> Step<()>,
    ) -> Step<()> {
        self.tensor_memory();
        let blocks = self.blocks(pair)?;
        let mut memories = std::mem::take(&mut self.tensor);
        let mut read = tensor::reader(self.view(w, 0), blocks.start);
        let result = does(&mut memories[blocks], &mut read);
        drop(read);
        self.tensor = memories;
        result
    }

    /// The blocks that an operation affects.
    fn blocks(&self, pair: bool) -> Step<Range<usize>> {
        tensor::blocks(self.cluster.rank(), pair, self.shared.len())
    }

    /// Allocates units. In a pair, the block of even rank allocates for both; the other block receives its units when
    /// it allocates.
    fn take_units(&mut self, pair: bool, count: u32) -> Step<Option<u32>> {
        self.tensor_memory();
        let blocks = self.blocks(pair)?;
        let rank = self.cluster.rank();
        if pair && rank % 2 == 1 {
            let given = self.tensor_given.iter().position(|given| given.0 == rank);
            return Ok(given.map(|given| self.tensor_given.remove(given).1));
        }
        let first = TensorMemory::take(&mut self.tensor[blocks], count)?;
        if let Some(first) = first.filter(|_| pair) {
            self.tensor_given.push((rank + 1, first));
        }
        Ok(first)
    }

    fn copy_into_tensor(&mut self, w: usize, lane: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        if op.types().next().is_some() || op.has(Mod::CtaGroup2) {
            return unsupported(instr);
        }
        let rows = match () {
            () if op.has(Mod::N128x256b) => Rows::Wide,
            () if op.has(Mod::N128x128b) => Rows::All,
            () if op.has(Mod::N32x128b) => Rows::Quarter,
            () if op.has(Mod::Warpx20213) => Rows::Pairs02,
            () if op.has(Mod::Warpx20123) => Rows::Pairs01,
            () => return unsupported(instr),
        };
        let address = self.address(w, lane, &instr.operands[0])? as u32;
        let descriptor = self.one(w, lane, &instr.operands[1], ScalarType::U64)?;
        self.with_tensor(w, false, |memories, read| {
            rows.copy(&mut memories[0], address, descriptor, |address, size| read(0, address, size))
        })
    }

    fn commit_tensor(&mut self, w: usize, lane: usize, instr: &Instr) -> Step<()> {
        let space = super::memory::space(instr);
        let address = self.address(w, lane, &instr.operands[0])?;
        let object = self.view(w, lane).in_cluster(space, address)?;
        let ranks = match instr.opcode.has(Mod::MulticastCluster) {
            true => self.one(w, lane, &instr.operands[1], ScalarType::U16)?,
            false => 1 << (object >> RANK_SHIFT),
        };
        let thread = (self.cluster.rank(), w, lane);
        for rank in (0..16).filter(|rank| ranks >> rank & 1 == 1) {
            let barrier = object & !(0xff << RANK_SHIFT) | rank << RANK_SHIFT;
            let done = Done::Arrival { barrier, thread, copies: 0, counts_bytes: false };
            self.transfers.begin(Transfer { pieces: Vec::new(), reduces: None, done });
        }
        Ok(())
    }

    fn multiply_tensor(&mut self, w: usize, lane: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let operands = &instr.operands;
        if op.has(Mod::Sp) || op.has(Mod::Ashift) {
            return unsupported(instr);
        }
        let fine = op.has(Mod::ScaleVec4X) || op.has(Mod::Block16);
        let (kind, scaled) = match () {
            () if op.has(Mod::KindF16) || op.has(Mod::KindTf32) => (Kind::Half, false),
            () if op.has(Mod::KindI8) => (Kind::Integer, false),
            () if op.has(Mod::KindF8f6f4) => (Kind::Quarter, false),
            () if op.has(Mod::KindMxf8f6f4) => (Kind::QuarterScaled, true),
            () if op.has(Mod::KindMxf4) || op.has(Mod::KindMxf4nvf4) => (Kind::NibbleScaled { fine }, true),
            () => return unsupported(instr),
        };
        let weights = op.form == FormId::Tcgen05MmaWs;
        let a = match &operands[1] {
            place @ Operand::Address(_) => Factor::Tensor(self.address(w, lane, place)? as u32),
            descriptor => Factor::Shared(self.one(w, lane, descriptor, ScalarType::U64)?),
        };
        let description = self.one(w, lane, &operands[3], ScalarType::U32)? as u32;
        if kind == Kind::Half && op.has(Mod::KindTf32) != (description >> 7 & 7 == 2) {
            return Err(FaultKind::Malformed("a description of another kind of product".into()));
        }
        let mut next = 4;
        let mut factors = [0; 2];
        if scaled {
            factors =
                [self.address(w, lane, &operands[4])? as u32, self.address(w, lane, &operands[5])? as u32];
            next = 6;
        }
        let mut without = [0; 8];
        if let Some(Operand::Vector(words)) = operands.get(next) {
            for (to, word) in without.iter_mut().zip(words.iter()) {
                *to = self.one(w, lane, word, ScalarType::B32)? as u32;
            }
            next += 1;
        }
        let adds = match &operands[next] {
            Operand::Int(number) => *number != 0,
            predicate => self.one(w, lane, predicate, ScalarType::Pred)? != 0,
        };
        let scale = match operands.get(next + 1) {
            None => 0,
            Some(Operand::Int(scale)) if !weights && kind == Kind::Half => *scale as u32,
            // Sums of integers are not scaled, whatever the operand.
            Some(_) if !weights && kind == Kind::Integer => 0,
            Some(_) => return unsupported(instr),
        };
        let product = Product {
            kind,
            sum: self.address(w, lane, &operands[0])? as u32,
            a,
            b: self.one(w, lane, &operands[2], ScalarType::U64)?,
            description,
            without,
            adds,
            scale,
            factors,
            weights,
            pair: op.has(Mod::CtaGroup2),
        };
        self.with_tensor(w, product.pair, |memories, read| product.compute(memories, read))
    }
}

/// The value of an operand that must be the same in all lanes.
fn same(values: &[u64; WARP]) -> Step<u32> {
    match values.iter().all(|value| *value == values[0]) {
        true => Ok(values[0] as u32),
        false => Err(FaultKind::Malformed("threads differ in what must be the same".into())),
    }
}
