//! `wmma`: matrices whose layout in registers is known only to its own loads, stores and products.
//!
//! Fragments have the layout of `mma`, in tiles of eight rows: a thread of the warp holds some consecutive elements of
//! one row of each tile. Only loads and stores depend on the layout in memory: a tile whose rows are columns in memory
//! is transposed by `MOVM`, or read element by element. A product of 8 by 32 is computed as that of the transposed
//! matrices, so that the factor with many rows always comes first.

use super::memory::{Target, elements};
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::memory::Order;
use crate::ori::op::{
    Access, AddressScale, BitOp, BitShape, ByteShape, DoubleShape, FloatType, HalfRead, HalfShape, MemSize,
    NibbleShape, Op, Round, Sr, Tf32Shape,
};
use ptx_isa::{FormId, Mod, ScalarType};

/// The number of rows of a tile.
const TILE: u32 = 8;
/// The number of threads that share a row.
const SHARERS: u32 = 4;

/// A matrix in registers.
struct Fragment {
    /// The tiles in the order of their registers: the number of the tile's first row, and of the first element in its
    /// rows.
    tiles: Vec<[u32; 2]>,
    /// The number of elements of a row that a thread holds, and their bits.
    each: u32,
    bits: u32,
    /// Whether the elements of a row are consecutive in memory.
    along: bool,
    /// The number of rows, and of elements of a row.
    extents: [u32; 2],
}

impl Fragment {
    /// The number of registers of a tile.
    fn words(&self) -> u32 {
        (self.each * self.bits).div_ceil(32)
    }

    fn registers(&self) -> usize {
        self.tiles.len() * self.words() as usize
    }
}

/// The rows, columns and depth of a product, and whether it is computed transposed.
struct Shape {
    rows: u32,
    columns: u32,
    depth: u32,
    turned: bool,
}

impl Shape {
    fn of(instr: &Statement<'_>) -> Option<Shape> {
        let shape = |rows, columns, depth, turned| Shape { rows, columns, depth, turned };
        Some(
            match instr.take(&[
                (Mod::M16n16k16, 0),
                (Mod::M32n8k16, 1),
                (Mod::M8n32k16, 2),
                (Mod::M16n16k8, 3),
                (Mod::M8n8k4, 4),
                (Mod::M8n8k32, 5),
                (Mod::M8n8k128, 6),
            ])? {
                0 => shape(16, 16, 16, false),
                1 => shape(32, 8, 16, false),
                2 => shape(32, 8, 16, true),
                3 => shape(16, 16, 8, false),
                4 => shape(8, 8, 4, false),
                5 => shape(8, 8, 32, false),
                _ => shape(8, 8, 128, false),
            },
        )
    }

    /// The number of vertically adjacent tiles that one operation takes.
    fn block(&self) -> u32 {
        (self.rows / TILE).min(2)
    }

    /// The factor that has the rows of the product.
    fn first(&self, ty: ScalarType, along: bool) -> Fragment {
        let (each, tiles) = (factor_elements(ty), self.depth / depth(ty));
        let block = self.block();
        let mut order = Vec::new();
        for top in (0..self.rows / TILE).step_by(block as usize) {
            for k in 0..tiles {
                order.extend((0..block).map(|row| [(top + row) * TILE, k * depth(ty)]));
            }
        }
        Fragment { tiles: order, each, bits: ty.bits(), along, extents: [self.rows, self.depth] }
    }

    /// The factor that has the columns of the product, stored as rows.
    fn second(&self, ty: ScalarType, along: bool) -> Fragment {
        let (each, tiles) = (factor_elements(ty), self.depth / depth(ty));
        let order = (0..self.columns / TILE)
            .flat_map(|n| (0..tiles).map(move |k| [n * TILE, k * depth(ty)]))
            .collect();
        Fragment { tiles: order, each, bits: ty.bits(), along, extents: [self.columns, self.depth] }
    }

    fn sum(&self, ty: ScalarType, along: bool) -> Fragment {
        let order = (0..self.columns / TILE)
            .flat_map(|n| (0..self.rows / TILE).map(move |m| [m * TILE, n * TILE]))
            .collect();
        Fragment { tiles: order, each: 2, bits: ty.bits(), along, extents: [self.rows, self.columns] }
    }
}

/// The number of elements of a factor's row in a register. Doubles have two registers.
fn factor_elements(ty: ScalarType) -> u32 {
    (32 / ty.bits()).max(1)
}

/// The number of elements in a row of a factor's tile.
fn depth(ty: ScalarType) -> u32 {
    SHARERS * factor_elements(ty)
}

impl<'a> Lowering<'a> {
    /// The matrix that a load or store moves.
    fn wmma_fragment(&self, instr: &Statement<'a>) -> Result<Fragment> {
        let ty = self.type_of(instr, 0)?;
        let Some(shape) = Shape::of(instr) else { return self.unsupported(instr, "this shape") };
        let by_row = instr.any_of(&[Mod::Row, Mod::Col]) == Some(Mod::Row);
        Ok(match (instr.form(), instr.any_of(&[Mod::A, Mod::B])) {
            (FormId::WmmaLoad, Some(Mod::A)) if shape.turned => shape.second(ty, by_row),
            (FormId::WmmaLoad, Some(Mod::A)) => shape.first(ty, by_row),
            (FormId::WmmaLoad, _) if shape.turned => shape.first(ty, !by_row),
            (FormId::WmmaLoad, _) => shape.second(ty, !by_row),
            _ => shape.sum(ty, by_row != shape.turned),
        })
    }

    /// `wmma.load`. If the fragment has more registers than the matrix, the matrix is repeated.
    pub(super) fn load_fragment(&mut self, instr: &Statement<'a>) -> Result<()> {
        let fragment = self.wmma_fragment(instr)?;
        let places = self.wmma_places(instr, 1, &fragment)?;
        self.join_all();
        let mut words = Vec::new();
        for tile in &fragment.tiles {
            words.extend(self.load_tile(&fragment, &places, *tile));
        }
        let dsts = elements(instr, self.operand(instr, 0)?);
        let (ty, each) = if fragment.bits == 64 { (ScalarType::F64, 2) } else { (ScalarType::B32, 1) };
        if dsts.is_empty() || !(dsts.len() * each).is_multiple_of(words.len()) {
            return self.malformed("a fragment whose size differs from that of the matrix");
        }
        let words: Vec<Src> = words.iter().copied().cycle().take(dsts.len() * each).collect();
        self.write_elements(dsts, &words, ty)
    }

    /// `wmma.store`.
    pub(super) fn store_fragment(&mut self, instr: &Statement<'a>) -> Result<()> {
        let fragment = self.wmma_fragment(instr)?;
        let places = self.wmma_places(instr, 0, &fragment)?;
        self.join_all();
        let words = self.fragment_words(elements(instr, self.operand(instr, 1)?), fragment.bits)?;
        if words.len() != fragment.registers() {
            return self.malformed("a fragment whose size differs from that of the matrix");
        }
        for (tile, words) in fragment.tiles.iter().zip(words.chunks(fragment.words() as usize)) {
            self.store_tile(&fragment, &places, *tile, words);
        }
        Ok(())
    }

    /// The registers of a fragment.
    pub(super) fn fragment_words(&mut self, operands: &[Operand], bits: u32) -> Result<Vec<Src>> {
        let mut words = Vec::new();
        for operand in operands {
            if bits == 64 {
                let value = self.read(operand, ScalarType::F64)?;
                words.extend(self.pair(value));
            } else {
                words.push(self.read(operand, ScalarType::B32)?);
            }
        }
        Ok(words)
    }

    /// The address of the thread's elements of the first tile.
    fn wmma_places(&mut self, instr: &Statement<'a>, i: usize, fragment: &Fragment) -> Result<Places> {
        let target = self.target(instr, i)?;
        let bits = fragment.bits;
        let stride = match instr.operand_count() {
            3 => self.source(instr, 2, ScalarType::U32)?,
            _ => Src::imm(fragment.extents[usize::from(fragment.along)]),
        };
        // The number of bytes from one line of memory to the next.
        let stride = match bits {
            64 => self.shift_left(stride, Src::imm(3)),
            32 => self.shift_left(stride, Src::imm(2)),
            16 => self.shift_left(stride, Src::imm(1)),
            8 => stride,
            4 => self.shift_right(stride, 1, false),
            _ => self.shift_right(stride, 3, false),
        };
        let lane = self.s2r(Sr(0));
        let row = self.shift_right(lane, 2, false);
        let place = self.lop3(super::integer::lut::A & super::integer::lut::B, lane, Src::imm(3), Src::ZERO);
        let (line, within) = if fragment.along || bits == 16 {
            // The row, and the elements of it that the thread holds.
            (row, self.multiply_add(place, Src::imm(fragment.each * bits / 8), Src::ZERO))
        } else {
            let first = self.multiply_add(place, Src::imm(fragment.each), Src::ZERO);
            (first, self.multiply_add(row, Src::imm(bits / 8), Src::ZERO))
        };
        // The offset in the matrix is computed first, because it is often the same for all matrices of a loop.
        let base = match target {
            Target::Wide { address, offset, generic } => {
                let within = self.pack(&[within, Src::ZERO]);
                let place = self.multiply_wide(false, line, stride, within);
                let (start, place) = (self.pair(address), self.pair(place));
                let address = self.add_pair(start, place);
                Target::Wide { address: self.pack(&address), offset, generic }
            }
            Target::Shared { address, base, offset } => {
                let place = self.multiply_add(line, stride, within);
                Target::Shared { address: self.add(address, place), base, offset }
            }
            _ => return self.unsupported(instr, "a matrix in this state space"),
        };
        Ok(Places { base, stride })
    }

    /// The address that is `lines` below the first one and `bytes` after it.
    fn line_of_matrix(&mut self, places: &Places, lines: u32, bytes: u32) -> Target {
        match places.base {
            Target::Wide { address, offset, generic } => {
                let address = match lines {
                    0 => address,
                    _ => self.multiply_wide(false, places.stride, Src::imm(lines), address),
                };
                Target::Wide { address, offset: offset + bytes as i32, generic }
            }
            Target::Shared { address, base, offset } => {
                let address = match lines {
                    0 => address,
                    _ => self.multiply_add(places.stride, Src::imm(lines), address),
                };
                Target::Shared { address, base, offset: offset + bytes as i32 }
            }
            other => other,
        }
    }

    fn load_at(&mut self, target: Target, size: MemSize, words: u8) -> Vec<Src> {
        let value = match target {
            Target::Wide { address, offset, generic } => {
                let access = Access::weak(size, offset);
                let op = if generic { Op::Ld { access } } else { Op::Ldg { access } };
                let descriptor = self.descriptor();
                self.wide(words, op, &[address, descriptor])
            }
            Target::Shared { address, base, offset } => self.wide(
                words,
                Op::Lds { size, order: Order::Weak, scale: AddressScale::One, offset },
                &[address, base],
            ),
            _ => Src::UNDEF,
        };
        if words == 1 { vec![value] } else { (0..words).map(|i| self.part(value, i)).collect() }
    }

    fn store_at(&mut self, target: Target, size: MemSize, words: &[Src]) {
        let data = if words.len() == 1 { words[0] } else { self.pack(words) };
        match target {
            Target::Wide { address, offset, generic } => {
                let access = Access::weak(size, offset);
                let op = if generic { Op::St { access } } else { Op::Stg { access } };
                let descriptor = self.descriptor();
                self.effect(op, &[address, descriptor, data]);
            }
            Target::Shared { address, base, offset } => {
                self.effect(
                    Op::Sts { size, order: Order::Weak, scale: AddressScale::One, offset },
                    &[address, base, data],
                );
            }
            _ => {}
        }
    }

    fn load_tile(&mut self, fragment: &Fragment, places: &Places, [row, first]: [u32; 2]) -> Vec<Src> {
        let (bits, each) = (fragment.bits, fragment.each);
        if fragment.along {
            let target = self.line_of_matrix(places, row, first * bits / 8);
            return self.load_at(target, size(each * bits), fragment.words() as u8);
        }
        if bits == 16 {
            let target = self.line_of_matrix(places, first, row * bits / 8);
            let across = self.load_at(target, MemSize::B32, 1)[0];
            return vec![self.reg(Op::Movm, &[across])];
        }
        let mut words = Vec::new();
        for i in 0..each {
            let target = self.line_of_matrix(places, first + i, row * bits / 8);
            words.extend(self.load_at(target, size(bits), (bits / 32).max(1) as u8));
        }
        if bits == 8 { vec![self.bytes_of([words[0], words[1], words[2], words[3]])] } else { words }
    }

    fn store_tile(&mut self, fragment: &Fragment, places: &Places, [row, first]: [u32; 2], words: &[Src]) {
        let (bits, each) = (fragment.bits, fragment.each);
        if fragment.along {
            let target = self.line_of_matrix(places, row, first * bits / 8);
            return self.store_at(target, size(each * bits), words);
        }
        if bits == 16 {
            let across = self.in_register(words[0]);
            let across = self.reg(Op::Movm, &[across]);
            let target = self.line_of_matrix(places, first, row * bits / 8);
            return self.store_at(target, MemSize::B32, &[across]);
        }
        for (i, words) in words.chunks((bits / 32).max(1) as usize).enumerate() {
            let target = self.line_of_matrix(places, first + i as u32, row * bits / 8);
            self.store_at(target, size(bits), words);
        }
    }

    /// Four bytes in one register.
    fn bytes_of(&mut self, bytes: [Src; 4]) -> Src {
        let low = self.reg(Op::Prmt, &[bytes[0], Src::imm(0x0040), bytes[1]]);
        let high = self.reg(Op::Prmt, &[bytes[2], Src::imm(0x0040), bytes[3]]);
        self.halves_of(low, high)
    }

    /// `wmma.mma`.
    pub(super) fn multiply_fragments(&mut self, instr: &Statement<'a>) -> Result<()> {
        // The layouts of the factors do not matter once they are in registers.
        instr.ignore(&[Mod::Row, Mod::Col, Mod::Popc]);
        let Some(shape) = Shape::of(instr) else { return self.unsupported(instr, "this shape") };
        let halves = instr.form() == FormId::WmmaMmaF16;
        let ty = |i| if halves { Ok(ScalarType::F16) } else { self.type_of(instr, i) };
        let (to, a, b) = (self.type_of(instr, 0)?, ty(1)?, ty(2)?);
        let from = self.type_of(instr, if halves { 1 } else { 3 })?;
        let (first, second) = (shape.first(a, true), shape.second(b, true));
        let (one, other) = if shape.turned { (2, 1) } else { (1, 2) };
        let mut words = Vec::new();
        for (i, fragment) in [(one, &first), (other, &second), (3, &shape.sum(from, true))] {
            let operands = elements(instr, self.operand(instr, i)?);
            let mut all = self.fragment_words(operands, fragment.bits)?;
            if !all.len().is_multiple_of(fragment.registers()) {
                return self.malformed("a fragment whose size differs from that of the matrix");
            }
            all.truncate(fragment.registers());
            words.push(all);
        }
        let (x, y, mut z) = (words.remove(0), words.remove(0), words.remove(0));
        // Singles and halves may be mixed; then the sums are singles.
        let f32 = to == ScalarType::F32 || from == ScalarType::F32;
        if f32 && from == ScalarType::F16 {
            z = z.iter().flat_map(|pair| self.half_floats(*pair)).collect();
        }
        let signs =
            if shape.turned { (b.is_signed(), a.is_signed()) } else { (a.is_signed(), b.is_signed()) };
        let Some(op) = wmma_operation(instr, a, &shape, f32, signs) else {
            return self.unsupported(instr, "this type");
        };
        self.join_all();
        let sums = self.multiply_tiles(instr, op, &shape, a, [&x, &y, &z])?;
        let sums = if f32 && to == ScalarType::F16 {
            sums.chunks(2).map(|pair| self.float_halves(pair)).collect()
        } else {
            sums
        };
        let dsts = elements(instr, self.operand(instr, 0)?);
        let (ty, each) = if to == ScalarType::F64 { (ScalarType::F64, 2) } else { (ScalarType::B32, 1) };
        if dsts.len() * each != sums.len() {
            return self.malformed("a fragment whose size differs from that of the product");
        }
        self.write_elements(dsts, &sums, ty)
    }

    /// Computes the whole product with operations that each take a block of tiles.
    fn multiply_tiles(
        &mut self,
        instr: &Statement<'a>,
        op: Op,
        shape: &Shape,
        ty: ScalarType,
        [x, y, z]: [&[Src]; 3],
    ) -> Result<Vec<Src>> {
        let block = shape.block() as usize;
        let depth = (shape.depth / depth(ty)) as usize;
        let wide = (ty.bits() / 32).max(1) as usize;
        let blocks = shape.rows as usize / TILE as usize / block;
        let (columns, each) = (shape.columns as usize / TILE as usize, block * depth * wide);
        let sums = z.len() / columns / blocks;
        let mut out = Vec::new();
        for column in 0..columns {
            for row in 0..blocks {
                let a = &x[row * each..][..each];
                let b = &y[column * depth * wide..][..depth * wide];
                let c = &z[(column * blocks + row) * sums..][..sums];
                out.extend(self.multiply_words(instr, op, [a, b, c])?);
            }
        }
        Ok(out)
    }

    /// The halves of a register as floats.
    fn half_floats(&mut self, pair: Src) -> [Src; 2] {
        let pair = self.in_register(pair);
        let high = self.shift_right(pair, 16, false);
        [pair, high].map(|half| {
            let op = Op::Hadd2 { bf16: false, ftz: false, sat: false, f32: true, half: HalfRead::Own };
            self.reg(op, &[Src::ZERO.neg(), half])
        })
    }

    /// Two floats as halves of one register.
    pub(super) fn float_halves(&mut self, pair: &[Src]) -> Src {
        let pack = Op::F2fp { bf16: false, round: Round::Rn, relu: false, sat: false };
        if self.encodes(&pack) {
            return self.reg(pack, &[pair[1], pair[0]]);
        }
        let halves = [pair[0], pair[1]].map(|float| {
            let round = Round::Rn;
            let op = Op::F2f { to: FloatType::F16, from: FloatType::F32, round, ftz: false, sat: false };
            self.reg(op, &[float])
        });
        self.halves_of(halves[0], halves[1])
    }
}

/// The operation on a block of tiles.
fn wmma_operation(
    instr: &Statement<'_>,
    ty: ScalarType,
    shape: &Shape,
    f32: bool,
    (a_signed, b_signed): (bool, bool),
) -> Option<Op> {
    let whole = shape.block() == 2;
    Some(match ty {
        ScalarType::F16 => Op::Hmma { shape: HalfShape::M16n8k16, f32, bf16: false },
        ScalarType::Bf16 => Op::Hmma { shape: HalfShape::M16n8k16, f32, bf16: true },
        ScalarType::Tf32 => Op::HmmaTf32 { shape: Tf32Shape::M16n8k8, f32 },
        ScalarType::F64 => {
            let rounds =
                [(Mod::Rn, Round::Rn), (Mod::Rz, Round::Rz), (Mod::Rm, Round::Rm), (Mod::Rp, Round::Rp)];
            Op::Dmma { shape: DoubleShape::M8n8k4, round: instr.take(&rounds).unwrap_or(Round::Rn) }
        }
        ScalarType::U8 | ScalarType::S8 => {
            let shape = if whole { ByteShape::M16n8k16 } else { ByteShape::M8n8k16 };
            Op::Imma { shape, a_signed, b_signed, sat: instr.has(Mod::Satfinite) }
        }
        ScalarType::U4 | ScalarType::S4 => {
            let sat = instr.has(Mod::Satfinite);
            Op::ImmaNibbles { shape: NibbleShape::M8n8k32, a_signed, b_signed, sat }
        }
        ScalarType::B1 => {
            let op = instr.take(&[(Mod::Xor, BitOp::Xor), (Mod::And, BitOp::And)])?;
            Op::Bmma { shape: BitShape::M8n8k128, op }
        }
        _ => return None,
    })
}

/// The addresses of a thread's elements of the first tile, and the number of bytes from one line of memory to the next.
struct Places {
    base: Target,
    stride: Src,
}

/// The size of an access of `bits` bits.
fn size(bits: u32) -> MemSize {
    match bits {
        8 => MemSize::U8,
        16 => MemSize::U16,
        32 => MemSize::B32,
        64 => MemSize::B64,
        _ => MemSize::B128,
    }
}
