//! Bitwise logic, shifts, byte permutation and selection.

use super::integer::lut;
use super::memory::elements;
use super::operand::{known, registers};
use super::{Lowering, Result, Statement};
use crate::input::Operand;
use crate::ori::ir::Src;
use crate::ori::op::{Bool, ICmp, Op, ShfType, Sign};
use ptx_isa::{FormId, Mod, ScalarType, TypeKind};

/// The named modes of `prmt`: for each control value, the selector of the general form, lowest first.
const PERMUTATIONS: [(Mod, u64); 6] = [
    (Mod::F4e, 0x6543_5432_4321_3210),
    (Mod::B4e, 0x0123_7012_6701_5670),
    (Mod::Rc8, 0x3333_2222_1111_0000),
    (Mod::Ecl, 0x3333_3222_3211_3210),
    (Mod::Ecr, 0x3210_2210_1110_0000),
    (Mod::Rc16, 0x3232_1010_3232_1010),
];

impl<'a> Lowering<'a> {
    /// The type of a bitwise instruction; any type of that size has the same meaning.
    pub(super) fn type_of(&self, instr: &Statement<'_>, i: usize) -> Result<ScalarType> {
        match instr.ty(i) {
            Some(ty) => Ok(ty),
            None => self.malformed(format!("{} without a type", instr.form().mnemonic())),
        }
    }

    pub(super) fn lop3(&mut self, lut: u8, a: Src, b: Src, c: Src) -> Src {
        self.reg(Op::Lop3 { lut }, &[a, b, c])
    }

    /// A logical function of predicates.
    pub(super) fn plop3(&mut self, lut: u8, a: Src, b: Src, c: Src) -> Src {
        self.pred(Op::Plop3 { lut, lut2: 0 }, &[a, b, c])
    }

    /// `and`, `or`, `xor`.
    pub(super) fn logic(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let lut = match instr.form() {
            FormId::And => lut::A & lut::B,
            FormId::Or => lut::A | lut::B,
            _ => lut::A ^ lut::B,
        };
        if ty == ScalarType::Pred {
            let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
            let result = self.plop3(lut, a, b, Src::TRUE);
            return self.result(instr, result);
        }
        let mut result = [Src::ZERO; 4];
        let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
        let count = registers(ty);
        for i in 0..count {
            let (a, b) = (self.word(a, i, count), self.word(b, i, count));
            let (a, b) = if known(a).is_some() { (b, a) } else { (a, b) };
            result[usize::from(i)] = self.lop3_folded(lut, a, b);
        }
        self.result_words(instr, &result[..usize::from(count)])
    }

    /// A logical function of two words. Halves of wide constants are often all zeros or all ones, for which it is
    /// folded.
    fn lop3_folded(&mut self, lut: u8, a: Src, b: Src) -> Src {
        const AND: u8 = lut::A & lut::B;
        match (known(a), known(b)) {
            (Some(a), Some(b)) => Src::imm(match lut {
                AND => a & b,
                l if l == lut::A | lut::B => a | b,
                _ => a ^ b,
            }),
            (None, Some(0)) if lut == AND => Src::ZERO,
            (None, Some(u32::MAX)) if lut == AND => a,
            (None, Some(0)) => a,
            (None, Some(u32::MAX)) if lut == lut::A | lut::B => b,
            _ => {
                let result = self.lop3(lut, a, b, Src::ZERO);
                let bits = if lut == AND { self.bits_of(a) & self.bits_of(b) } else { u32::MAX };
                self.note_bits(result, bits)
            }
        }
    }

    pub(super) fn word(&self, src: Src, i: u8, count: u8) -> Src {
        if count == 1 { src } else { self.part(src, i) }
    }

    pub(super) fn result_words(&mut self, instr: &Statement<'a>, words: &[Src]) -> Result<()> {
        let src = if words.len() == 1 { words[0] } else { self.pack(words) };
        self.result(instr, src)
    }

    /// `not`, `cnot`.
    pub(super) fn complement(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        if instr.form() == FormId::Cnot {
            let zero = self.is_zero(instr, ty)?;
            let low = self.select(zero, Src::imm(1), Src::ZERO, 1);
            let words = [low, Src::ZERO];
            return self.result_words(instr, &words[..usize::from(registers(ty))]);
        }
        let a = self.source(instr, 1, ty)?;
        if ty == ScalarType::Pred {
            return self.result(instr, a.not());
        }
        let count = registers(ty);
        let mut result = [Src::ZERO; 4];
        for i in 0..count {
            let a = self.word(a, i, count);
            result[usize::from(i)] = self.lop3(!lut::A, a, Src::ZERO, Src::ZERO);
        }
        self.result_words(instr, &result[..usize::from(count)])
    }

    fn is_zero(&mut self, instr: &Statement<'a>, ty: ScalarType) -> Result<Src> {
        if ty.bits() == 64 {
            let a = self.source_pair(instr, 1, ty)?;
            return Ok(self.compare_pair(ICmp::Eq, false, a, [Src::ZERO; 2]));
        }
        let a = self.source_extended(instr, 1, ty)?;
        Ok(self.compare(ICmp::Eq, false, a, Src::ZERO))
    }

    /// `lop3`, also with a predicate result that combines a predicate with whether the result is not zero.
    pub(super) fn logic_three(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = ScalarType::B32;
        let (a, b, c) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
        let lut = self.immediate(instr, 4)? as u8;
        let result = self.lop3(lut, a, b, c);
        let Operand::Pair(pair) = self.operand(instr, 0)? else { return self.result(instr, result) };
        let with = self.source(instr, 5, ScalarType::Pred)?;
        let bools = [(Mod::And, Bool::And), (Mod::Or, Bool::Or)];
        let bool_ = instr.take(&bools).unwrap_or(Bool::And);
        let op = Op::Isetp { cmp: ICmp::Ne, sign: Sign::U32, bool_, ex: false };
        let test = self.pred(op, &[result, Src::ZERO, with]);
        self.write(&pair.1, test)?;
        self.write(&pair.0, result)
    }

    /// `a << by` in 32 bits; zero for shifts of 32 and more.
    pub(super) fn shift_left(&mut self, a: Src, by: Src) -> Src {
        match (known(a), known(by)) {
            (_, Some(0)) => a,
            (_, Some(32..)) => Src::ZERO,
            (Some(a), Some(by)) => Src::imm(a << by),
            _ => {
                let op = Op::Shf { right: false, wrap: false, hi: false, ty: ShfType::U32 };
                self.reg(op, &[a, by, Src::ZERO])
            }
        }
    }

    /// `a >> by` in 32 bits; zero or the sign for shifts of 32 and more.
    pub(super) fn shift_right_by(&mut self, a: Src, by: Src, signed: bool) -> Src {
        match known(by) {
            Some(0) => a,
            Some(32..) if !signed => Src::ZERO,
            Some(by) => self.shift_right(a, by.min(31), signed),
            None => {
                let ty = if signed { ShfType::S32 } else { ShfType::U32 };
                self.reg(Op::Shf { right: true, wrap: false, hi: true, ty }, &[Src::ZERO, by, a])
            }
        }
    }

    pub(super) fn shift_left_pair(&mut self, a: [Src; 2], by: Src) -> [Src; 2] {
        if let Some(by @ 32..) = known(by) {
            return [Src::ZERO, self.shift_left(a[0], Src::imm(by - 32))];
        }
        if known(by) == Some(0) {
            return a;
        }
        let low = self.shift_left(a[0], by);
        let op = Op::Shf { right: false, wrap: false, hi: true, ty: ShfType::U64 };
        [low, self.reg(op, &[a[0], by, a[1]])]
    }

    pub(super) fn shift_right_pair(&mut self, a: [Src; 2], by: Src, signed: bool) -> [Src; 2] {
        if let Some(by @ 32..) = known(by) {
            let high = if signed { self.shift_right(a[1], 31, true) } else { Src::ZERO };
            return [self.shift_right_by(a[1], Src::imm(by - 32), signed), high];
        }
        if known(by) == Some(0) {
            return a;
        }
        let ty = if signed { ShfType::S64 } else { ShfType::U64 };
        let low = self.reg(Op::Shf { right: true, wrap: false, hi: false, ty }, &[a[0], by, a[1]]);
        [low, self.shift_right_by(a[1], by, signed)]
    }

    /// `shl`, `shr`.
    pub(super) fn shift(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let left = instr.form() == FormId::Shl;
        let by = self.source(instr, 2, ScalarType::U32)?;
        if ty.bits() == 64 {
            let a = self.source_pair(instr, 1, ty)?;
            let result =
                if left { self.shift_left_pair(a, by) } else { self.shift_right_pair(a, by, ty.is_signed()) };
            return self.result_pair(instr, result);
        }
        let result = if left {
            // Bits that are shifted out of a 16-bit value stay in the upper half, which is undefined.
            let a = self.source(instr, 1, ty)?;
            self.shift_left(a, by)
        } else {
            let a = self.source_extended(instr, 1, ty)?;
            self.shift_right_by(a, by, ty.is_signed())
        };
        self.result(instr, result)
    }

    /// `prmt`.
    pub(super) fn permute(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = ScalarType::B32;
        let (a, b, control) =
            (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?, self.source(instr, 3, ty)?);
        let selector = match (instr.take(&PERMUTATIONS), known(control)) {
            (None, _) => control,
            (Some(table), Some(c)) => Src::imm((table >> (16 * (c & 3)) & 0xffff) as u32),
            (Some(table), None) => {
                let index = self.lop3(lut::A & lut::B, control, Src::imm(3), Src::ZERO);
                let by = self.shift_left(index, Src::imm(4));
                let op = Op::Shf { right: true, wrap: false, hi: false, ty: ShfType::U64 };
                let [low, high] = super::operand::halves(table);
                self.reg(op, &[low, by, high])
            }
        };
        let result = self.reg(Op::Prmt, &[a, selector, b]);
        self.result(instr, result)
    }

    /// `selp`.
    pub(super) fn select_by_predicate(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let (a, b) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?);
        let cond = self.source(instr, 3, ScalarType::Pred)?;
        let result = self.select(cond, a, b, registers(ty));
        self.result(instr, result)
    }

    /// `slct`: a where c >= 0, else b.
    pub(super) fn select_by_sign(&mut self, instr: &Statement<'a>) -> Result<()> {
        let (ty, by) = (self.type_of(instr, 0)?, self.type_of(instr, 1)?);
        let (a, b, c) = (self.source(instr, 1, ty)?, self.source(instr, 2, ty)?, self.source(instr, 3, by)?);
        let cond = if by.kind() == TypeKind::Float {
            use crate::ori::op::FCmp;
            let ftz = instr.has(Mod::Ftz);
            self.pred(Op::Fsetp { cmp: FCmp::Ge, ftz, bool_: Bool::And }, &[c, Src::ZERO, Src::TRUE])
        } else {
            self.compare(ICmp::Ge, true, c, Src::ZERO)
        };
        let result = self.select(cond, a, b, registers(ty));
        self.result(instr, result)
    }

    /// `mov`: also packs and unpacks vectors.
    pub(super) fn mov(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        // A vector of one element is its element.
        let element = |operand: &'a Operand| match operand {
            Operand::Vector(elements) if elements.len() == 1 => &elements[0],
            _ => operand,
        };
        let (dst, src) = (element(self.operand(instr, 0)?), element(self.operand(instr, 1)?));
        match (dst, src) {
            (Operand::Vector(elements), _) => {
                let src = self.read(src, ty)?;
                self.unpack(elements, src, ty)
            }
            (_, Operand::Vector(elements)) => {
                let src = self.pack_elements(elements, ty)?;
                self.write(dst, src)
            }
            _ => {
                let src = self.read(src, ty)?;
                self.write(dst, src)
            }
        }
    }

    /// Writes the equal parts of a value, lowest first. For `mov` of whole vectors, all elements are read before any is
    /// written.
    pub(super) fn mov_vector(&mut self, instr: &Statement<'a>) -> Result<()> {
        let ty = self.type_of(instr, 0)?;
        let (dsts, srcs) =
            (elements(instr, self.operand(instr, 0)?), elements(instr, self.operand(instr, 1)?));
        if dsts.len() != srcs.len() {
            // One value is unpacked, as by `mov` without a vector modifier.
            let [src] = srcs else { return self.unsupported(instr, "vectors of different lengths") };
            if ty.bits() as usize / dsts.len() < 8 {
                return self.unsupported(instr, "vector elements of less than a byte");
            }
            let whole = self.read(src, ty)?;
            let parts = self.equal_parts(dsts.len(), whole, ty);
            let have = ty.bits() / dsts.len() as u32;
            return dsts.iter().zip(parts).try_for_each(|(dst, part)| {
                let part = match have {
                    8 => self.extend(part, ScalarType::B8),
                    16 => self.extend(part, ScalarType::B16),
                    _ => part,
                };
                let missing = registers(ty) as usize - (have as usize).div_ceil(32);
                let mut words: Vec<Src> = (0..have.div_ceil(32) as u8)
                    .map(|i| self.word(part, i, have.div_ceil(32) as u8))
                    .collect();
                words.extend(vec![Src::ZERO; missing]);
                let whole = if words.len() == 1 { words[0] } else { self.pack(&words) };
                self.write(dst, whole)
            });
        }
        let values = srcs.iter().map(|src| self.read(src, ty)).collect::<Result<Vec<Src>>>()?;
        dsts.iter().zip(values).try_for_each(|(dst, value)| self.write(dst, value))
    }

    fn unpack(&mut self, elements: &[Operand], src: Src, ty: ScalarType) -> Result<()> {
        let values = self.equal_parts(elements.len(), src, ty);
        elements.iter().zip(values).try_for_each(|(element, value)| self.write(element, value))
    }

    /// Splits a value into `number` equal parts, lowest first. In parts of less than a register, the upper bits are
    /// undefined.
    fn equal_parts(&mut self, number: usize, src: Src, ty: ScalarType) -> Vec<Src> {
        let bits = ty.bits() / number.max(1) as u32;
        let count = registers(ty);
        (0..number as u32)
            .map(|i| match bits {
                64 => {
                    let halves = [self.part(src, 2 * i as u8), self.part(src, 2 * i as u8 + 1)];
                    self.pack(&halves)
                }
                32 => self.word(src, i as u8, count),
                _ => {
                    let word = self.word(src, (i * bits / 32) as u8, count);
                    self.shift_right_by(word, Src::imm(i * bits % 32), false)
                }
            })
            .collect()
    }

    /// A value from its equal parts, lowest first.
    fn pack_elements(&mut self, elements: &[Operand], ty: ScalarType) -> Result<Src> {
        let bits = ty.bits() / elements.len().max(1) as u32;
        let part_type = match bits {
            8 => ScalarType::B8,
            16 => ScalarType::B16,
            32 => ScalarType::B32,
            64 => ScalarType::B64,
            _ => return self.malformed(format!("{} elements of a {}-bit value", elements.len(), ty.bits())),
        };
        let parts = elements.iter().map(|e| self.read(e, part_type)).collect::<Result<Vec<Src>>>()?;
        let words = self.elements_packed(parts, bits);
        Ok(if words.len() == 1 { words[0] } else { self.pack(&words) })
    }

    /// Packs values of `bits` bits each into words, in memory order.
    pub(super) fn elements_packed(&mut self, parts: Vec<Src>, bits: u32) -> Vec<Src> {
        match bits {
            64 => parts.iter().flat_map(|p| self.pair(*p)).collect(),
            32 => parts,
            16 => {
                let halves = |c: &[Src]| self.halves_of(c[0], c.get(1).copied().unwrap_or(Src::ZERO));
                parts.chunks(2).map(halves).collect()
            }
            _ => parts.chunks(4).map(|chunk| self.bytes_packed(chunk)).collect(),
        }
    }

    /// Up to four 8-bit values in one register.
    fn bytes_packed(&mut self, bytes: &[Src]) -> Src {
        let byte = |i: usize| bytes.get(i).copied().unwrap_or(Src::ZERO);
        let two = Src::imm(0x0040);
        let low = self.reg(Op::Prmt, &[byte(0), two, byte(1)]);
        if bytes.len() <= 2 {
            return low;
        }
        let high = self.reg(Op::Prmt, &[byte(2), two, byte(3)]);
        self.halves_of(low, high)
    }

    /// Two 16-bit values in one register.
    pub(super) fn halves_of(&mut self, low: Src, high: Src) -> Src {
        match (known(low), known(high)) {
            (Some(low), Some(high)) => Src::imm(low & 0xffff | high << 16),
            _ => self.reg(Op::Prmt, &[low, Src::imm(0x5410), high]),
        }
    }
}
