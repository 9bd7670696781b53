//! `wgmma`: products that four warps compute together, of factors in shared memory that descriptors locate.
//!
//! A product runs asynchronously until a wait completes its group. Its result is in the registers of the accumulator,
//! and the IR reads it like any other value. If code accesses a register of a product in flight, emission adds a wait
//! (`emit/products.rs`). Factors in registers stay live until the wait.

use super::flight::Around;
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::input::{Instr, Operand, RegId, Stmt};
use crate::ori::ir::{Dst, File, Src, SrcKind};
use crate::ori::op::{GroupFormat, Op, QuarterType, VoteMode};
use ptx_isa::{FormId, Mod, ScalarType};
use std::collections::BTreeSet;

/// The location and format of a factor.
#[derive(Clone, Copy, Default)]
struct Factor {
    negated: bool,
    transposed: bool,
}

/// The properties that select the operation, besides the types of the factors.
struct Product {
    sum: ScalarType,
    /// The number of columns in units of eight.
    eighths: u8,
    /// The number of accumulator registers of a thread.
    registers: u8,
    in_registers: bool,
    /// The selector of the threads that supply the metadata of a sparse first factor.
    selector: Option<u8>,
    factors: [Factor; 2],
}

impl Product {
    fn operation(&self, a: ScalarType, b: ScalarType, sat: bool) -> Option<Op> {
        use ScalarType as T;
        // Counts of bits and bytes have fewer widths: up to four, then every second one.
        let width = if self.eighths <= 4 { self.eighths - 1 } else { self.eighths / 2 + 1 };
        let Product { registers, in_registers, .. } = *self;
        match (a, b) {
            (T::F16, T::F16) => Some(self.halves(GroupFormat::F16)),
            (T::Bf16, T::Bf16) => Some(self.halves(GroupFormat::Bf16)),
            (T::Tf32, T::Tf32) => Some(self.halves(GroupFormat::Tf32)),
            (T::S8 | T::U8, T::S8 | T::U8) => {
                let (a_signed, b_signed) = (a == T::S8, b == T::S8);
                // The codes of dense and sparse shapes alternate, and one of three codes is unused.
                let shape = 3 * width + u8::from(self.selector.is_some());
                Some(match (in_registers, self.selector) {
                    (false, None) => Op::Igmma { shape, registers, a_signed, b_signed, sat },
                    (true, None) => Op::IgmmaRegisters { shape, registers, a_signed, b_signed, sat },
                    (false, _) => Op::IgmmaSparse { shape, registers, a_signed, b_signed, sat },
                    (true, _) => Op::IgmmaSparseRegisters { shape, registers, a_signed, b_signed, sat },
                })
            }
            (T::B1, T::B1) if self.selector.is_none() => Some(match in_registers {
                true => Op::BgmmaRegisters { shape: width, registers },
                false => Op::Bgmma { shape: width, registers },
            }),
            _ => Some(self.quarters(quarter(a)?, quarter(b)?)),
        }
    }

    fn halves(&self, format: GroupFormat) -> Op {
        let Product { registers, in_registers, factors: [first, second], .. } = *self;
        let layout = match in_registers {
            true => bit(second.transposed, 0) | bit(second.negated, 1),
            false => {
                bit(first.transposed, 0)
                    | bit(second.transposed, 1)
                    | bit(second.negated, 2)
                    | bit(first.negated, 3)
            }
        };
        // For dense shapes, halves come before words; for sparse ones, words come first.
        let words = format == GroupFormat::Tf32;
        let shape = self.eighths - 1 + if words == self.selector.is_none() { 32 } else { 0 };
        let (f32, negated) = (self.sum == ScalarType::F32, first.negated);
        match (in_registers, self.selector) {
            (false, None) => Op::Hgmma { shape, registers, f32, format, layout },
            (true, None) => Op::HgmmaRegisters { shape, registers, f32, format, layout, negated },
            (false, Some(selector)) => Op::HgmmaSparse { shape, registers, f32, format, layout, selector },
            (true, Some(selector)) => {
                Op::HgmmaSparseRegisters { shape, registers, f32, format, layout, negated, selector }
            }
        }
    }

    fn quarters(&self, a: QuarterType, b: QuarterType) -> Op {
        let Product { registers, in_registers, factors: [first, second], .. } = *self;
        let (shape, f32, negated) = (self.eighths - 1, self.sum == ScalarType::F32, first.negated);
        let layout = bit(second.negated, 0) | if in_registers { 0 } else { bit(negated, 1) };
        match (in_registers, self.selector.is_some()) {
            (false, false) => Op::Qgmma { shape, registers, f32, a, b, layout },
            (true, false) => Op::QgmmaRegisters { shape, registers, f32, a, b, layout, negated },
            (false, true) => Op::QgmmaSparse { shape, registers, f32, a, b, layout },
            (true, true) => Op::QgmmaSparseRegisters { shape, registers, f32, a, b, layout, negated },
        }
    }
}

fn bit(flag: bool, at: u8) -> u8 {
    u8::from(flag) << at
}

impl<'a> Lowering<'a> {
    /// `wgmma.mma_async`, of a dense or sparse first factor.
    pub(super) fn multiply_group(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        let shape = instr.take_text(|text| {
            let (columns, depth) = text.strip_prefix("m64n")?.split_once('k')?;
            Some((columns.parse::<u8>().unwrap_or(0), depth.parse::<u16>().ok()?))
        });
        let Some((columns, _)) = shape else { return self.malformed("a product without its shape") };
        // 256 does not fit into the field, so it is encoded as 0.
        let eighths = if columns == 0 { 32 } else { columns / 8 };
        let [sum, a, b] = [0, 1, 2].map(|i| instr.ty(i).unwrap_or(ScalarType::F16));
        let registers = eighths * if sum == ScalarType::F16 { 2 } else { 4 };
        let in_registers = matches!(self.operand(instr, 1)?, Operand::Vector(_));
        let sparse = instr.form() == FormId::WgmmaMmaSp;
        let selector = match sparse {
            true => self.immediate(instr, 4)? as u8,
            false => 0,
        };
        let mut next = if sparse { 5 } else { 3 };
        let adds = self.adds_to_sum(instr, next)?;
        next += 1;
        let mut factors = [Factor::default(); 2];
        if sum != ScalarType::S32 {
            for factor in &mut factors {
                factor.negated = self.immediate(instr, next)? == u32::MAX;
                next += 1;
            }
        }
        if instr.operand_count() > next {
            for factor in factors.iter_mut().skip(usize::from(in_registers)) {
                factor.transposed = self.immediate(instr, next)? == 1;
                next += 1;
            }
        }
        let sat = instr.has(Mod::Satfinite);
        let product =
            Product { sum, eighths, registers, in_registers, selector: sparse.then_some(selector), factors };
        let Some(op) = product.operation(a, b, sat) else {
            return self.unsupported(instr, "factors of these types");
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "warp group products on this target");
        }
        let Operand::Vector(places) = self.operand(instr, 0)? else {
            return self.malformed("an accumulator that is not a vector");
        };
        let old = match adds.kind {
            SrcKind::Pred(false) => Src::ZERO,
            _ => self.kept(places, if sum == ScalarType::F16 { ScalarType::B32 } else { sum })?,
        };
        let second = self.source_pair(instr, 2, ScalarType::U64)?;
        let all = Chosen::all(Src::TRUE);
        let mut srcs = Vec::new();
        if in_registers {
            let Operand::Vector(rows) = self.operand(instr, 1)? else {
                return self.malformed("a matrix `a` that is not a vector");
            };
            srcs.push(self.kept(rows, ScalarType::B32)?);
            self.join_all();
            srcs.push(self.uniform_pack(&[second[0], second[1], second[0], second[1]], all));
        } else {
            let first = self.source_pair(instr, 1, ScalarType::U64)?;
            self.join_all();
            srcs.push(self.uniform_pack(&[first[0], first[1], second[0], second[1]], all));
        }
        let adds = match adds.kind {
            SrcKind::Pred(_) => adds,
            _ => {
                let uniform = self.new_value(File::UP, 1);
                let vote = Op::Voteu { mode: VoteMode::Any };
                self.guarded(vote, &[Dst::Value(uniform)], &[adds], &[]);
                uniform.into()
            }
        };
        if sparse {
            srcs.push(self.source(instr, 3, ScalarType::B32)?);
        }
        srcs.extend([old, adds]);
        let rows = in_registers.then_some(srcs[0]);
        let result = self.wide(registers, op, &srcs);
        if let Some(rows) = rows {
            // The result is in registers of its own.
            self.effect(Op::Hold { registers: ROWS }, &[rows]);
        }
        for (i, place) in places.iter().enumerate() {
            let part = self.part(result, i as u8);
            self.write(place, part)?;
        }
        Ok(())
    }

    /// `wgmma.commit_group`.
    pub(super) fn end_product_group(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        if !self.encodes(&Op::EndGroup) {
            return self.unsupported(instr, "warp group products on this target");
        }
        self.effect(Op::EndGroup, &[]);
        Ok(())
    }

    /// `wgmma.wait_group`. The results of the products that it completes are available from here on, and their operands
    /// in registers are live up to here.
    pub(super) fn wait_for_products(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        let Operand::Int(but) = self.operand(instr, 0)? else {
            return self.malformed("a wait without a number");
        };
        let op = Op::AwaitGroup { but: u8::try_from(*but).unwrap_or(MOST_LEFT).min(MOST_LEFT) };
        if !self.encodes(&op) {
            return self.unsupported(instr, "warp group products on this target");
        }
        self.effect(op, &[]);
        let Around { over, left, .. } = self.products.remove(&self.src).unwrap_or_default();
        let busy: BTreeSet<RegId> = left.into_iter().flat_map(|at| vector(&self.func.body[at], 0)).collect();
        let sums = self.vectors(&over, 0);
        self.hold_rows(&over)?;
        for sum in sums.iter().filter(|sum| sum.iter().all(|register| !busy.contains(register))) {
            let registers = sum.len() as u8;
            let value = self.values_of(sum)?;
            if !matches!(value.kind, SrcKind::Value(_)) {
                continue;
            }
            let value = self.wide(registers, Op::Settle { registers }, &[value]);
            for (i, register) in sum.iter().enumerate() {
                let part = self.part(value, i as u8);
                self.write(&Operand::Reg(*register), part)?;
            }
        }
        Ok(())
    }

    /// `wgmma.fence`. The register operands of the products after it are computed before it, because emission needs a
    /// new arrival wherever a register of a product was written since the previous arrival.
    pub(super) fn fence_products(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        let next = self.products.remove(&self.src).unwrap_or_default().next;
        let registers = |operand: usize| -> usize { self.vectors(&next, operand).iter().map(Vec::len).sum() };
        // If the operands take too much of the register file, each product has its own arrival instead.
        if registers(0) + registers(1) > MOST_FENCED {
            return Ok(());
        }
        self.hold_rows(&next)
    }

    /// The registers of one operand of several products, without duplicates.
    fn vectors(&self, products: &BTreeSet<usize>, operand: usize) -> BTreeSet<Vec<RegId>> {
        let vectors = products.iter().map(|&at| vector(&self.func.body[at], operand));
        vectors.filter(|of| of.len() > 1).collect()
    }

    /// Keeps the register operands of products live up to here.
    fn hold_rows(&mut self, products: &BTreeSet<usize>) -> Result<()> {
        for rows in self.vectors(products, 1) {
            let rows = self.values_of(&rows)?;
            if matches!(rows.kind, SrcKind::Value(_)) {
                self.effect(Op::Hold { registers: ROWS }, &[rows]);
            }
        }
        // The metadata of sparse factors.
        let sparse = |at: &&usize| matches!(&self.func.body[**at], Stmt::Instr(i) if i.opcode.form == FormId::WgmmaMmaSp);
        let held: BTreeSet<RegId> =
            products.iter().filter(sparse).flat_map(|&at| vector(&self.func.body[at], 3)).collect();
        for register in held {
            let held = self.values_of(&[register])?;
            if held.value().is_some() {
                self.effect(Op::Hold { registers: 1 }, &[held]);
            }
        }
        Ok(())
    }

    /// Packs 32-bit registers into one value.
    fn values_of(&mut self, registers: &[RegId]) -> Result<Src> {
        let operands: Vec<Operand> = registers.iter().map(|register| Operand::Reg(*register)).collect();
        self.kept(&operands, ScalarType::B32)
    }

    /// Whether the product is added to the accumulator.
    fn adds_to_sum(&mut self, instr: &Statement<'a>, i: usize) -> Result<Src> {
        let operand = self.operand(instr, i)?;
        match operand {
            Operand::Int(adds) => Ok(Src::new(SrcKind::Pred(*adds != 0))),
            _ => self.read(operand, ScalarType::Pred),
        }
    }
}

/// The maximum number of registers that the operands of products may occupy at a fence: half of the register file.
const MOST_FENCED: usize = 128;

/// The maximum number of groups that a wait can leave in flight.
const MOST_LEFT: u8 = 7;

/// The number of registers of a first factor.
const ROWS: u8 = 4;

/// The registers of an operand of a product; empty if the operand is not in registers.
fn vector(product: &Stmt, operand: usize) -> Vec<RegId> {
    let Stmt::Instr(Instr { operands, .. }) = product else { return Vec::new() };
    let elements = match operands.get(operand) {
        Some(Operand::Vector(elements)) => &elements[..],
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let register = |element: &Operand| match element {
        Operand::Reg(register) => Some(*register),
        _ => None,
    };
    elements.iter().map(register).collect::<Option<_>>().unwrap_or_default()
}

fn quarter(ty: ScalarType) -> Option<QuarterType> {
    match ty {
        ScalarType::E4m3 => Some(QuarterType::E4m3),
        ScalarType::E5m2 => Some(QuarterType::E5m2),
        _ => None,
    }
}
