//! Reading and writing PTX operands: registers, literals, wide values and their halves.

use super::ssa::{Shape, Variable};
use super::{Lowering, Result, Statement, rewrite};
use crate::input::{Operand, RegId};
use crate::ori::ir::{Const, Dst, File, Inst, Src, SrcKind, SrcMods};
use crate::ori::op::Op;
use ptx_isa::{ScalarType, TypeKind};
use smallvec::SmallVec;

/// The file and the number of registers of a PTX type.
pub(super) fn shape(ty: ScalarType) -> Shape {
    match ty {
        ScalarType::Pred => Shape { file: File::P, width: 1 },
        _ => Shape { file: File::R, width: registers(ty) },
    }
}

/// The number of 32-bit registers of a value of this type; smaller types take a whole register.
pub(super) fn registers(ty: ScalarType) -> u8 {
    ty.bits().div_ceil(32) as u8
}

/// The bits of a literal in the type of the instruction.
pub(super) fn literal(operand: &Operand, ty: ScalarType) -> Option<u64> {
    let bits = match (operand, ty) {
        (&Operand::Int(v), _) => v as u64,
        (&Operand::F32(bits), ScalarType::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (&Operand::F32(bits), _) => u64::from(bits),
        (&Operand::F64(bits), _) if ty.kind() == TypeKind::Float && ty.bits() == 32 => {
            u64::from((f64::from_bits(bits) as f32).to_bits())
        }
        (&Operand::F64(bits), _) => bits,
        _ => return None,
    };
    Some(match ty.bits() {
        bits_of_type @ 0..64 => bits & ((1 << bits_of_type) - 1),
        _ => bits,
    })
}

/// The halves of a 64-bit literal.
pub(super) fn halves(bits: u64) -> [Src; 2] {
    [Src::imm(bits as u32), Src::imm((bits >> 32) as u32)]
}

/// The 32 bits of a source, if they are known.
pub(super) fn known(src: Src) -> Option<u32> {
    src.known()
}

impl<'a> Lowering<'a> {
    pub(super) fn register_type(&self, reg: RegId) -> Result<ScalarType> {
        match self.func.regs.get(reg.0 as usize) {
            Some(r) => Ok(r.ty),
            None => self.malformed(format!("register {} does not exist", reg.0)),
        }
    }

    pub(super) fn read_register(&mut self, reg: RegId) -> Result<Src> {
        self.register_type(reg)?;
        Ok(self.read_variable(Variable::Reg(reg)))
    }

    /// Reads an operand as `ty`. If the register is larger, its low part is read; if it is smaller, it is extended with
    /// zeros.
    pub(super) fn read(&mut self, operand: &Operand, ty: ScalarType) -> Result<Src> {
        let want = shape(ty);
        match *operand {
            Operand::Reg(reg) => {
                let have = shape(self.register_type(reg)?);
                let src = self.read_register(reg)?;
                self.fit(src, have, want)
            }
            Operand::Sum(reg, addend) => {
                let have = shape(self.register_type(reg)?);
                let src = self.read_register(reg)?;
                let sum = match have {
                    Shape { file: File::R, width: 1 } => self.add(src, Src::imm(addend as u32)),
                    Shape { file: File::R, width: 2 } => {
                        let words = self.pair(src);
                        let sum = self.add_pair(words, halves(addend as u64));
                        self.pack(&sum)
                    }
                    _ => return self.malformed("a constant added to a register that is not an integer"),
                };
                self.fit(sum, have, want)
            }
            Operand::NotPred(reg) if want.file == File::P && self.register_type(reg)? == ScalarType::Pred => {
                Ok(self.read_register(reg)?.not())
            }
            Operand::Special(special) => self.special_register(special),
            // ptxas reads the first element of a vector as the value.
            Operand::Vector(ref elements) if !elements.is_empty() => self.read(&elements[0], ty),
            Operand::Sink => self.refuse("`_` in place of a value that is read"),
            Operand::Symbol(..) if want.file == File::P => self.refuse("an address as a predicate"),
            Operand::Symbol(symbol, offset) => {
                let address = self.symbol_address(symbol, offset)?;
                self.fit(address, Shape { file: File::R, width: 2 }, want)
            }
            _ => match literal(operand, ty) {
                Some(bits) if want.file == File::P => Ok(Src::new(SrcKind::Pred(bits & 1 != 0))),
                Some(bits) if want.width == 1 => Ok(Src::imm(bits as u32)),
                Some(bits) if want.width == 2 => Ok(self.pack(&halves(bits))),
                Some(bits) => {
                    let [low, high] = halves(bits);
                    let sign = Src::imm(((bits as i64) >> 63) as u32);
                    Ok(self.pack(&[low, high, sign, sign]))
                }
                None => self.malformed(format!("operand {operand:?} where a value is expected")),
            },
        }
    }

    fn fit(&mut self, src: Src, have: Shape, want: Shape) -> Result<Src> {
        if have.file != want.file {
            return self.malformed(
                "a predicate where a register is expected, or a register where a predicate is expected",
            );
        }
        if have.width == want.width {
            return Ok(src);
        }
        if have.width > want.width {
            let parts: SmallVec<[Src; 4]> = (0..want.width).map(|i| self.part(src, i)).collect();
            return Ok(if want.width == 1 { parts[0] } else { self.pack(&parts) });
        }
        let parts: SmallVec<[Src; 4]> = (0..want.width)
            .map(|i| match (i < have.width, have.width) {
                (true, 1) => src,
                (true, _) => self.part(src, i),
                (false, _) => Src::ZERO,
            })
            .collect();
        Ok(self.pack(&parts))
    }

    /// The `i`-th operand of an instruction, as `ty`.
    pub(super) fn source(&mut self, instr: &Statement<'a>, i: usize, ty: ScalarType) -> Result<Src> {
        let operand = self.operand(instr, i)?;
        self.read(operand, ty)
    }

    /// The halves of the `i`-th operand of a 64-bit instruction.
    pub(super) fn source_pair(
        &mut self,
        instr: &Statement<'a>,
        i: usize,
        ty: ScalarType,
    ) -> Result<[Src; 2]> {
        let operand = self.operand(instr, i)?;
        if let Some(bits) = literal(operand, ty) {
            return Ok(halves(bits));
        }
        let src = self.read(operand, ty)?;
        Ok(self.pair(src))
    }

    /// The value of an operand that must be a literal.
    pub(super) fn immediate(&self, instr: &Statement<'a>, i: usize) -> Result<u32> {
        match self.operand(instr, i)? {
            Operand::Int(v) => Ok(*v as u32),
            _ => self.unsupported(instr, &format!("a non-constant operand {i}")),
        }
    }

    /// One register of a wide source.
    pub(super) fn part(&self, src: Src, part: u8) -> Src {
        if let SrcKind::Value(v) = src.kind
            && let Some(part) = self.packed.get(&v).and_then(|parts| parts.get(usize::from(part)))
        {
            return *part;
        }
        Src::new(rewrite::part_of(src.kind, part))
    }

    pub(super) fn pair(&self, src: Src) -> [Src; 2] {
        [self.part(src, 0), self.part(src, 1)]
    }

    /// Packs 32-bit sources into a wide value. If they are the parts of an existing value, returns that value.
    pub(super) fn pack(&mut self, parts: &[Src]) -> Src {
        if let Some(whole) = self.whole(parts) {
            return whole;
        }
        let src = self.wide(parts.len() as u8, Op::Pack, parts);
        if let SrcKind::Value(v) = src.kind {
            self.packed.insert(v, SmallVec::from_slice(parts));
        }
        src
    }

    fn whole(&self, parts: &[Src]) -> Option<Src> {
        if parts.iter().any(|p| p.mods != SrcMods::NONE) {
            return None;
        }
        if parts.iter().all(|p| p.kind == SrcKind::Zero) {
            return Some(Src::ZERO);
        }
        match parts[0].kind {
            SrcKind::Part(v, 0) if usize::from(self.out.value(v).width) == parts.len() => {
                let all = parts.iter().enumerate().all(|(i, p)| p.kind == SrcKind::Part(v, i as u8));
                all.then_some(v.into())
            }
            SrcKind::Const(c) if parts.len() == 2 && c.offset % 8 == 0 => {
                let high = Const { bank: c.bank, offset: c.offset + 4 };
                (parts[1].kind == SrcKind::Const(high)).then_some(parts[0])
            }
            _ => None,
        }
    }

    /// Extends an 8- or 16-bit value to 32 bits.
    pub(super) fn extend(&mut self, src: Src, ty: ScalarType) -> Src {
        let signed = ty.is_signed();
        match (ty.bits(), known(src)) {
            (8, Some(v)) if signed => Src::imm(v as i8 as u32),
            (16, Some(v)) if signed => Src::imm(v as i16 as u32),
            (8, Some(v)) => Src::imm(v & 0xff),
            (16, Some(v)) => Src::imm(v & 0xffff),
            (8, None) if signed => self.reg(Op::Prmt, &[src, Src::imm(0x8880), Src::ZERO]),
            (16, None) if signed => self.reg(Op::Prmt, &[src, Src::imm(0x9910), Src::ZERO]),
            (8, None) => self.reg(Op::Lop3 { lut: 0xc0 }, &[src, Src::imm(0xff), Src::ZERO]),
            (16, None) => self.reg(Op::Lop3 { lut: 0xc0 }, &[src, Src::imm(0xffff), Src::ZERO]),
            _ => src,
        }
    }

    /// The `i`-th operand of an integer instruction of at most 32 bits, extended to 32.
    pub(super) fn source_extended(&mut self, instr: &Statement<'a>, i: usize, ty: ScalarType) -> Result<Src> {
        let src = self.source(instr, i, ty)?;
        Ok(self.extend(src, ty))
    }

    /// Assigns a destination operand under the statement's guard.
    pub(super) fn write(&mut self, operand: &Operand, src: Src) -> Result<()> {
        match *operand {
            Operand::Reg(reg) => self.write_register(reg, src),
            Operand::Sink => Ok(()),
            // ptxas writes the value to each element.
            Operand::Vector(ref elements) => elements.iter().try_for_each(|element| self.write(element, src)),
            _ => self.malformed(format!("operand {operand:?} where a destination is expected")),
        }
    }

    /// Assigns the first operand.
    pub(super) fn result(&mut self, instr: &Statement<'a>, src: Src) -> Result<()> {
        let operand = self.operand(instr, 0)?;
        self.write(operand, src)
    }

    /// Assigns the first operand, 64-bit.
    pub(super) fn result_pair(&mut self, instr: &Statement<'a>, halves: [Src; 2]) -> Result<()> {
        let src = self.pack(&halves);
        self.result(instr, src)
    }

    fn write_register(&mut self, reg: RegId, src: Src) -> Result<()> {
        let want = shape(self.register_type(reg)?);
        if let Some(v) = src.value() {
            let have = self.out.value(v);
            let width = if matches!(src.kind, SrcKind::Part(..)) { 1 } else { have.width };
            if have.file != want.file {
                return self.malformed(format!("a result in {:?} for register {}", have.file, reg.0));
            }
            if width != want.width {
                let [has, wants] = [width, want.width].map(|words| 32 * u32::from(words));
                return self.refuse(&format!("a result of {has} bits in a register of {wants}"));
            }
        }
        let src = if self.guard.is_true() { src } else { self.keep(reg, src, want)? };
        let is_shown = self.shows_registers && want.file == File::R;
        let src = match src.kind {
            // Debuggers do not look for variables in constant banks.
            SrcKind::Const(_) if is_shown => {
                let value = self.new_value(want.file, want.width);
                self.push(Inst::new(Op::Copy, &[Dst::Value(value)], &[src], self.src));
                value.into()
            }
            _ => src,
        };
        self.write_variable(Variable::Reg(reg), src);
        if is_shown {
            self.show(reg, src, want.width);
        }
        Ok(())
    }

    /// Records where the register that has just been written is.
    fn show(&mut self, reg: RegId, src: Src, width: u8) {
        let guard = std::mem::replace(&mut self.guard, Src::TRUE);
        for word in 0..width {
            let place = match src.kind {
                _ if src.mods != SrcMods::NONE => Src::ZERO,
                SrcKind::Value(value) if width > 1 => Src::new(SrcKind::Part(value, word)),
                SrcKind::Value(_) | SrcKind::Part(..) => src,
                SrcKind::Imm(_) | SrcKind::Zero if width == 1 => self.reg(Op::Mov, &[src]),
                _ => Src::ZERO,
            };
            self.effect(Op::Shown { register: reg.0, word }, &[place]);
        }
        self.guard = guard;
    }

    /// `src` if the statement's guard is true, otherwise the old value of the register.
    fn keep(&mut self, reg: RegId, src: Src, shape: Shape) -> Result<Src> {
        let old = self.read_register(reg)?;
        if old.kind == SrcKind::Undef || old == src {
            return Ok(src);
        }
        if shape.file == File::P {
            // guard ? src : old.
            return Ok(self.pred(Op::Plop3 { lut: 0xca, lut2: 0 }, &[self.guard, src, old]));
        }
        if matches!(old.kind, SrcKind::Value(_)) && self.guard_in_place(src, old) {
            return Ok(src);
        }
        if shape.width > 1 || !matches!(old.kind, SrcKind::Value(_)) || old.mods != SrcMods::NONE {
            return Ok(self.select(self.guard, src, old, shape.width));
        }
        let value = self.new_value(shape.file, shape.width);
        self.guarded(Op::Mov, &[Dst::Value(value)], &[src], &[old]);
        Ok(value.into())
    }

    /// Guards the operation that computes `src`, if it is the last operation of this statement and has no other result.
    fn guard_in_place(&mut self, src: Src, old: Src) -> bool {
        let (guard, begin) = (self.guard, self.begin);
        let insts = &mut self.out.block_mut(self.block).insts;
        if insts.len() <= begin {
            return false;
        }
        let Some(inst) = insts.last_mut() else { return false };
        let fits = matches!(src.kind, SrcKind::Value(v) if inst.defs().eq([v]))
            && src.mods == SrcMods::NONE
            && inst.guard.is_true()
            && inst.op != Op::Pack;
        if fits {
            inst.guard = guard;
            inst.old =
                inst.dsts.iter().map(|d| if matches!(d, Dst::Value(_)) { old } else { Src::UNDEF }).collect();
            // If the guard is false, the old bits remain.
            let bits = self.bits_of(src) | self.bits_of(old);
            if let Some(v) = src.value().filter(|v| self.bits.contains_key(v)) {
                self.bits.insert(v, bits);
            }
        }
        fits
    }

    /// The bits that a word may have set.
    pub(super) fn bits_of(&self, src: Src) -> u32 {
        match known(src) {
            Some(number) => number,
            None if src.mods != SrcMods::NONE => u32::MAX,
            None => src.value().and_then(|v| self.bits.get(&v).copied()).unwrap_or(u32::MAX),
        }
    }

    /// Records that no bits of a word other than these can be set.
    pub(super) fn note_bits(&mut self, src: Src, bits: u32) -> Src {
        if let Some(v) = src.value().filter(|_| bits != u32::MAX && src.mods == SrcMods::NONE) {
            self.bits.insert(v, bits);
        }
        src
    }

    /// `yes` if the predicate is true, otherwise `no`; in `width` registers.
    pub(super) fn select(&mut self, cond: Src, yes: Src, no: Src, width: u8) -> Src {
        if cond.is_true() || yes == no {
            return yes;
        }
        if width == 1 {
            let selected = self.reg(Op::Sel, &[yes, no, cond]);
            return self.note_bits(selected, self.bits_of(yes) | self.bits_of(no));
        }
        let parts: SmallVec<[Src; 4]> = (0..width)
            .map(|i| {
                let (yes, no) = (self.part(yes, i), self.part(no, i));
                self.select(cond, yes, no, 1)
            })
            .collect();
        self.pack(&parts)
    }

    pub(super) fn select_pair(&mut self, cond: Src, yes: [Src; 2], no: [Src; 2]) -> [Src; 2] {
        [self.select(cond, yes[0], no[0], 1), self.select(cond, yes[1], no[1], 1)]
    }

    /// A copy in a register, for operands that must be one.
    pub(super) fn in_register(&mut self, src: Src) -> Src {
        match (src.kind, src.mods) {
            (SrcKind::Value(_) | SrcKind::Part(..), SrcMods::NONE) => src,
            _ => self.reg(Op::Mov, &[src]),
        }
    }
}
