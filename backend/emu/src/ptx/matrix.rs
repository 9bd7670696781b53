//! Matrices in the registers of a warp: products, and copies from and to shared memory.

use super::arithmetic::{ty, unsupported};
use super::float::rounding;
use super::{Block, Step, WARP};
use crate::float::{F16, F32, Rounding};
use crate::launch::FaultKind;
use crate::matrix::{
    Element, Fragment, Product, Sum, bytes, half_place, spread, stored_bytes, total, transpose,
    transposed_bytes,
};
use crate::memory::Space;
use crate::narrow::Narrow;
use crate::quads;
use crate::sparse::{Metadata, Scales, Selected};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, Opcode, ScalarType};

/// The rows, columns and depth of each shape.
const SHAPES: &[(Mod, [usize; 3])] = &[
    (Mod::M8n8k4, [8, 8, 4]),
    (Mod::M8n8k16, [8, 8, 16]),
    (Mod::M8n8k32, [8, 8, 32]),
    (Mod::M8n8k128, [8, 8, 128]),
    (Mod::M16n8k4, [16, 8, 4]),
    (Mod::M16n8k8, [16, 8, 8]),
    (Mod::M16n8k16, [16, 8, 16]),
    (Mod::M16n8k32, [16, 8, 32]),
    (Mod::M16n8k64, [16, 8, 64]),
    (Mod::M16n8k128, [16, 8, 128]),
    (Mod::M16n8k256, [16, 8, 256]),
    (Mod::M16n16k8, [16, 16, 8]),
    (Mod::M16n16k16, [16, 16, 16]),
    (Mod::M32n8k16, [32, 8, 16]),
    (Mod::M8n32k16, [8, 32, 16]),
];

fn shape(op: &Opcode) -> Option<[usize; 3]> {
    SHAPES.iter().find(|(name, _)| op.has(*name)).map(|(_, shape)| *shape)
}

fn element(ty: ScalarType) -> Option<Element> {
    let integer = |bits, signed| Some(Element::Integer { bits, signed });
    match ty {
        ScalarType::F16 => Some(Element::F16),
        ScalarType::Bf16 => Some(Element::Bf16),
        ScalarType::Tf32 => Some(Element::Tf32),
        ScalarType::F64 => Some(Element::F64),
        ScalarType::U8 => integer(8, false),
        ScalarType::S8 => integer(8, true),
        ScalarType::U4 => integer(4, false),
        ScalarType::S4 => integer(4, true),
        ScalarType::B1 => integer(1, false),
        ty => Narrow::named(ty.text()).map(Element::Narrow),
    }
}

/// The element type of a factor. Two four-bit numbers share a byte only in products that have no other numbers.
fn factor(op: &Opcode, position: usize) -> Option<Element> {
    match element(op.ty(position)?)? {
        Element::Narrow(format) if op.has(Mod::KindMxf4) || op.has(Mod::KindMxf4nvf4) => {
            Some(Element::Nibble(format))
        }
        element => Some(element),
    }
}

/// A constant in an operand.
fn constant(operand: Option<&Operand>) -> Step<usize> {
    match operand {
        Some(Operand::Int(value)) => Ok(*value as usize),
        _ => Err(FaultKind::Malformed("no constant where one belongs".into())),
    }
}

fn sum(op: &Opcode, ty: ScalarType) -> Option<Sum> {
    match ty {
        ScalarType::F16 => Some(Sum::F16),
        ScalarType::F32 => Some(Sum::F32),
        ScalarType::F64 => Some(Sum::F64(rounding(op))),
        ScalarType::S32 if op.has(Mod::Popc) => Some(Sum::Bits { and: op.has(Mod::And) }),
        ScalarType::S32 => Some(Sum::S32(op.has(Mod::Satfinite))),
        _ => None,
    }
}

/// The elements of a vector. Any other operand counts as one element.
pub(super) fn parts(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(parts) => parts,
        one => std::slice::from_ref(one),
    }
}

/// The bits of one register of a fragment.
fn register_type(bits: u32) -> ScalarType {
    if bits == 64 { ScalarType::B64 } else { ScalarType::B32 }
}

impl Block<'_> {
    /// The registers of a fragment with elements of `bits` bits.
    fn fragment(&self, w: usize, operand: &Operand, bits: u32) -> Step<Fragment> {
        let mut fragment = Vec::new();
        for part in parts(operand) {
            let values = self.gather(w, u32::MAX, part, register_type(bits))?;
            fragment.push(values.map(|value| value as u32));
            if bits == 64 {
                fragment.push(values.map(|value| (value >> 32) as u32));
            }
        }
        Ok(fragment)
    }

    fn put_fragment(&mut self, w: usize, operand: &Operand, bits: u32, fragment: &Fragment) -> Step<()> {
        let words = bits.div_ceil(32) as usize;
        for (part, registers) in parts(operand).iter().zip(fragment.chunks(words)) {
            for lane in 0..WARP {
                let value = registers.iter().rev().fold(0, |value, word| value << 32 | u64::from(word[lane]));
                self.put(w, lane, part, register_type(bits), value)?;
            }
        }
        Ok(())
    }

    /// Executes an operation of all threads of a full warp.
    pub(super) fn matrix(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        use FormId as F;
        if mask != u32::MAX {
            return Err(FaultKind::Malformed("an operation of the whole warp without some threads".into()));
        }
        match instr.opcode.form {
            F::MmaF16
            | F::MmaBf16
            | F::MmaTf32
            | F::MmaF64
            | F::MmaFp8
            | F::MmaInt8
            | F::MmaInt4
            | F::MmaBits
            | F::MmaKind
            | F::MmaBlockScale
            | F::MmaSpF16
            | F::MmaSpBf16
            | F::MmaSpTf32
            | F::MmaSpInt8
            | F::MmaSpInt4
            | F::MmaSpFp8
            | F::MmaSpKind
            | F::MmaSpBlockScale => self.mma(w, instr),
            F::MmaF16M8 => self.mma_quads(w, instr),
            F::Ldmatrix => self.load_matrix(w, instr),
            F::LdmatrixBytes | F::LdmatrixUnpack => self.load_bytes(w, instr),
            F::Stmatrix => self.store_matrix(w, instr),
            F::StmatrixBytes => self.store_bytes(w, instr),
            F::Movmatrix => {
                let fragment = self.fragment(w, &instr.operands[1], 16)?;
                self.put_fragment(w, &instr.operands[0], 16, &vec![transpose(&fragment[0])])
            }
            F::WmmaLoad | F::WmmaLoadC | F::WmmaStore => self.wmma_memory(w, instr),
            F::WmmaMmaF16 | F::WmmaMma | F::WmmaMmaInt4 | F::WmmaMmaBits => self.wmma(w, instr),
            _ => unsupported(instr),
        }
    }

    fn mma(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let Some([rows, 8, depth]) = shape(op) else { return unsupported(instr) };
        let (Some(a), Some(b), Some(sum)) = (factor(op, 1), factor(op, 2), sum(op, ty(op, 0)?)) else {
            return unsupported(instr);
        };
        let product = Product { rows, depth, a, b, sum };
        let bits = if matches!(sum, Sum::F64(_)) { 64 } else { 32 };
        let [x, y, z] = [(1, a.bits()), (2, b.bits()), (3, bits)]
            .map(|(i, bits)| self.fragment(w, &instr.operands[i], bits));
        let (x, y, z) = (x?, y?, z?);
        let mut rest = instr.operands.iter().skip(4);
        let held = if op.has(Mod::Sp) || op.has(Mod::SpOrderedMetadata) {
            Some((self.word(w, rest.next())?, constant(rest.next())?))
        } else {
            None
        };
        let metadata = held.as_ref().map(|(register, selector)| Metadata { register, selector: *selector });
        let result = if op.has(Mod::BlockScale) {
            let [first, second] = [self.scale(w, &mut rest)?, self.scale(w, &mut rest)?];
            let select = |(register, byte, thread)| Selected { register, byte, thread };
            let scales = Scales {
                count: match () {
                    () if op.has(Mod::ScaleVec4X) => 4,
                    () if op.has(Mod::ScaleVec2X) || op.has(Mod::KindMxf4) => 2,
                    () => 1,
                },
                powers: ty(op, 4)? == ScalarType::Ue8m0,
                a: select((&first.0, first.1, first.2)),
                b: select((&second.0, second.1, second.2)),
            };
            product.compute_scaled([&x, &y, &z], metadata.as_ref(), &scales)
        } else if let Some(metadata) = metadata {
            product.compute_sparse([&x, &y, &z], &metadata)
        } else {
            product.compute(&x, &y, &z)
        };
        self.put_fragment(w, &instr.operands[0], bits, &result)
    }

    /// Executes four products of eight lanes each.
    fn mma_quads(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let mut layouts = op.mods().filter(|m| matches!(m, Mod::Row | Mod::Col));
        let product = quads::Product {
            by_row: layouts.next() == Some(Mod::Row),
            by_column: layouts.next() == Some(Mod::Col),
            half_result: ty(op, 0)? == ScalarType::F16,
            half_start: ty(op, 3)? == ScalarType::F16,
        };
        let [a, b, c] = [1, 2, 3].map(|i| self.fragment(w, &instr.operands[i], 32));
        let result = product.compute(&a?, &b?, &c?);
        self.put_fragment(w, &instr.operands[0], 32, &result)
    }

    /// The value of a register in every lane. The register may be in braces.
    fn word(&self, w: usize, operand: Option<&Operand>) -> Step<[u32; WARP]> {
        let operand = operand
            .and_then(|operand| parts(operand).first())
            .ok_or_else(|| FaultKind::Malformed("an operand is missing".into()))?;
        Ok(self.gather(w, u32::MAX, operand, ScalarType::B32)?.map(|value| value as u32))
    }

    /// A register with scale factors, the byte to use in it, and the threads that hold it.
    fn scale<'b>(
        &self,
        w: usize,
        rest: &mut impl Iterator<Item = &'b Operand>,
    ) -> Step<([u32; WARP], usize, usize)> {
        let register = self.word(w, rest.next())?;
        let selectors = rest.next().map_or(&[][..], parts);
        let selector = |i: usize| match selectors.get(i) {
            Some(Operand::Int(value)) => Ok(*value as usize),
            // The same for the whole warp.
            other => Ok(self.word(w, other)?[0] as usize & 3),
        };
        Ok((register, selector(0)?, selector(1)?))
    }

    /// The addresses of the rows of `count` matrices, in the order of the lanes that provide them.
    fn rows(&self, w: usize, count: usize, operand: &Operand) -> Step<Vec<u64>> {
        (0..8 * count).map(|lane| self.address(w, lane, operand)).collect()
    }

    fn load_matrix(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let count = parts(&instr.operands[0]).len();
        let rows = self.rows(w, count, &instr.operands[1])?;
        let space = self.matrix_space(&instr.opcode);
        for (matrix, part) in parts(&instr.operands[0]).iter().enumerate() {
            let mut register = [0; WARP];
            for row in 0..8 {
                let start = rows[8 * matrix + row];
                let bytes: [u8; 16] = self.view(w, 0).slice(space, start, 16)?.try_into().unwrap_or([0; 16]);
                for column in 0..8 {
                    let (lane, half) = half_place(row, column);
                    let element = u16::from_le_bytes([bytes[2 * column], bytes[2 * column + 1]]);
                    register[lane] |= u32::from(element) << (16 * half);
                }
            }
            let register = if instr.opcode.has(Mod::Trans) { transpose(&register) } else { register };
            self.put_fragment(w, part, 16, &vec![register])?;
        }
        Ok(())
    }

    fn store_matrix(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let fragment = self.fragment(w, &instr.operands[1], 16)?;
        let rows = self.rows(w, fragment.len(), &instr.operands[0])?;
        let space = self.matrix_space(&instr.opcode);
        for (matrix, register) in fragment.iter().enumerate() {
            let register = if instr.opcode.has(Mod::Trans) { transpose(register) } else { *register };
            for row in 0..8 {
                let mut bytes = [0; 16];
                for column in 0..8 {
                    let (lane, half) = half_place(row, column);
                    let element = (register[lane] >> (16 * half)) as u16;
                    bytes[2 * column..2 * column + 2].copy_from_slice(&element.to_le_bytes());
                }
                self.view(w, 0).slice(space, rows[8 * matrix + row], 16)?.copy_from_slice(&bytes);
            }
        }
        Ok(())
    }

    /// Loads matrices of bytes, or of smaller elements that are expanded to bytes.
    fn load_bytes(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let space = self.matrix_space(op);
        let bits = match op.ty(1) {
            Some(ScalarType::B6x16P32) => 6,
            Some(ScalarType::B4x16P64) => 4,
            _ => 8,
        };
        let (height, each) = if op.has(Mod::M16n16) { (16, 2) } else { (8, 1) };
        let results = parts(&instr.operands[0]);
        let rows = self.rows(w, results.len() / each * height / 8, &instr.operands[1])?;
        for (starts, registers) in rows.chunks(height).zip(results.chunks(each)) {
            let mut matrix = Vec::new();
            for &start in starts {
                let row = self.view(w, 0).slice(space, start, 16)?.try_into().unwrap_or([0; 16]);
                matrix.push(spread(row, bits));
            }
            let fragment = if each == 2 { transposed_bytes(&matrix) } else { vec![bytes(&matrix)] };
            for (part, register) in registers.iter().zip(fragment) {
                self.put_fragment(w, part, 16, &vec![register])?;
            }
        }
        Ok(())
    }

    fn store_bytes(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let fragment = self.fragment(w, &instr.operands[1], 16)?;
        let starts = self.rows(w, fragment.len(), &instr.operands[0])?;
        let space = self.matrix_space(&instr.opcode);
        for (starts, register) in starts.chunks(8).zip(&fragment) {
            for (&start, row) in starts.iter().zip(stored_bytes(register)) {
                self.view(w, 0).slice(space, start, 16)?.copy_from_slice(&row);
            }
        }
        Ok(())
    }

    fn matrix_space(&self, op: &Opcode) -> Space {
        match () {
            () if op.has(Mod::Global) => Space::Global,
            () if op.has(Mod::Shared) || op.has(Mod::SharedCta) => Space::Shared,
            () => Space::Generic,
        }
    }

    /// Loads and stores fragments with an unspecified layout. The elements are in row order.
    fn wmma_memory(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let Some([m, n, k]) = shape(op) else { return unsupported(instr) };
        let t = ty(op, 0)?;
        let (rows, columns) = match () {
            () if op.has(Mod::A) => (m, k),
            () if op.has(Mod::B) => (k, n),
            () => (m, n),
        };
        let stores = op.form == FormId::WmmaStore;
        let (fragment, address) = if stores { (1, 0) } else { (0, 1) };
        let bits = t.bits() as usize;
        let by_row = op.has(Mod::Row);
        let stride = match instr.operands.get(2) {
            Some(operand) => self.gather(w, u32::MAX, operand, ScalarType::U32)?[0] as usize,
            None if by_row => columns,
            None => rows,
        };
        let start = self.address(w, 0, &instr.operands[address])?;
        let space = self.matrix_space(op);
        let count = parts(&instr.operands[fragment]).len() * bits.div_ceil(32);
        let mut registers =
            if stores { self.fragment(w, &instr.operands[1], t.bits())? } else { vec![[0; WARP]; count] };
        for row in 0..rows {
            for column in 0..columns {
                let at = if by_row { row * stride + column } else { column * stride + row };
                let place = ElementPlace::of(row * columns + column, bits);
                if bits < 8 {
                    let byte = self.view(w, 0).load(space, start + (at * bits / 8) as u64, 1)?;
                    place.put(&mut registers, byte >> (at * bits % 8));
                    continue;
                }
                let (address, size) = (start + (at * bits / 8) as u64, (bits / 8) as u32);
                if stores {
                    let value = place.get(&registers);
                    self.view(w, 0).store(space, address, size, value)?;
                } else {
                    let value = self.view(w, 0).load(space, address, size)?;
                    place.put(&mut registers, value);
                }
            }
        }
        if stores { Ok(()) } else { self.put_fragment(w, &instr.operands[0], t.bits(), &registers) }
    }

    fn wmma(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let Some([m, n, k]) = shape(op) else { return unsupported(instr) };
        // For halves, the name contains only the types of the accumulators.
        let half = op.form == FormId::WmmaMmaF16;
        let factor = if half { Some(Element::F16) } else { element(ty(op, 1)?) };
        let other = if half { Some(Element::F16) } else { element(ty(op, 2)?) };
        let (Some(a), Some(b), Some(d)) = (factor, other, sum(op, ty(op, 0)?)) else {
            return unsupported(instr);
        };
        let (result, start) = (ty(op, 0)?.bits(), ty(op, if half { 1 } else { 3 })?.bits());
        // Single precision and halves may be mixed. The accumulation is then in single precision.
        let narrow =
            |value: u64| if result < start { F32.convert(value, F16, Rounding::Nearest) } else { value };
        let widen =
            |value: u64| if start < result { F16.convert(value, F32, Rounding::Nearest) } else { value };
        let d = if start == result { d } else { Sum::F32 };
        let [x, y, z] = [(1, a.bits()), (2, b.bits()), (3, start)]
            .map(|(i, bits)| self.fragment(w, &instr.operands[i], bits));
        let (x, y, z) = (x?, y?, z?);
        let words = parts(&instr.operands[0]).len() * result.div_ceil(32) as usize;
        let mut registers = vec![[0; WARP]; words];
        for row in 0..m {
            for column in 0..n {
                let before = ElementPlace::of(row * n + column, start as usize).get(&z);
                let factors = (0..k).map(|i| {
                    let left = ElementPlace::of(row * k + i, a.bits() as usize).get(&x);
                    (left, ElementPlace::of(i * n + column, b.bits() as usize).get(&y))
                });
                let sum = narrow(total(a, b, d, factors, widen(before)));
                ElementPlace::of(row * n + column, result as usize).put(&mut registers, sum);
            }
        }
        self.put_fragment(w, &instr.operands[0], result, &registers)
    }
}

/// The place of an element in a fragment with an unspecified layout.
#[derive(Clone, Copy)]
struct ElementPlace {
    register: usize,
    lane: usize,
    shift: usize,
    bits: usize,
}

impl ElementPlace {
    /// Words are assigned to all lanes first, then to the next register.
    fn of(element: usize, bits: usize) -> ElementPlace {
        if bits == 64 {
            return ElementPlace { register: element / WARP * 2, lane: element % WARP, shift: 0, bits };
        }
        let (word, shift) = (element * bits / 32, element * bits % 32);
        ElementPlace { register: word / WARP, lane: word % WARP, shift, bits }
    }

    fn get(self, fragment: &Fragment) -> u64 {
        let word = |i: usize| u64::from(fragment.get(self.register + i).map_or(0, |word| word[self.lane]));
        if self.bits == 64 {
            return word(1) << 32 | word(0);
        }
        word(0) >> self.shift & (u64::MAX >> (64 - self.bits))
    }

    fn put(self, fragment: &mut Fragment, value: u64) {
        if self.bits == 64 {
            fragment[self.register][self.lane] = value as u32;
            fragment[self.register + 1][self.lane] = (value >> 32) as u32;
            return;
        }
        let value = (value & (u64::MAX >> (64 - self.bits))) as u32;
        fragment[self.register][self.lane] |= value << self.shift;
    }
}
