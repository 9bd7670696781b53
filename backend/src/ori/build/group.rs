//! `wgmma`: products of four warps, of factors in shared memory behind descriptors.
//!
//! A product goes on beside the code until a wait ends its group. Its sum has the registers of what it is added to; what
//! is read of it later is not told from what is read of any other value, and emission sees to it that all products that
//! have a register are over where the code touches it (`emit/products.rs`). Factors in registers live until the wait.

use super::flight::Around;
use super::uniform::Chosen;
use super::{Lowering, Result, Statement};
use crate::input::{Instr, Operand, RegId, Stmt};
use crate::ori::ir::{Dst, File, Src, SrcKind};
use crate::ori::op::{GroupFormat, Op, QuarterType, VoteMode};
use ptx_isa::{Mod, ScalarType};
use std::collections::BTreeSet;

/// How each factor is read.
#[derive(Clone, Copy, Default)]
struct Factor {
    negated: bool,
    transposed: bool,
}

impl<'a> Lowering<'a> {
    /// `wgmma.mma_async`.
    pub(super) fn multiply_group(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        let shape = instr.take_text(|text| {
            let (columns, depth) = text.strip_prefix("m64n")?.split_once('k')?;
            Some((columns.parse::<u8>().unwrap_or(0), depth.parse::<u8>().ok()?))
        });
        let Some((columns, _)) = shape else { return self.malformed("a product without its shape") };
        // 256 columns do not fit a byte.
        let eighths = if columns == 0 { 32 } else { columns / 8 };
        let [sum, a, b] = [0, 1, 2].map(|i| instr.ty(i).unwrap_or(ScalarType::F16));
        let registers = eighths * if sum == ScalarType::F16 { 2 } else { 4 };
        let in_registers = matches!(self.operand(instr, 1)?, Operand::Vector(_));
        let adds = self.adds_to_sum(instr)?;
        let mut factors = [Factor::default(); 2];
        let mut next = 4;
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
        let bit = |flag: bool, at: u8| u8::from(flag) << at;
        let [first, second] = factors;
        let halves = |format| {
            let layout = match in_registers {
                true => bit(second.transposed, 0) | bit(second.negated, 1),
                false => {
                    bit(first.transposed, 0)
                        | bit(second.transposed, 1)
                        | bit(second.negated, 2)
                        | bit(first.negated, 3)
                }
            };
            let shape = eighths - 1 + if format == GroupFormat::Tf32 { 32 } else { 0 };
            let f32 = sum == ScalarType::F32;
            match in_registers {
                true => Op::HgmmaRegisters { shape, registers, f32, format, layout, negated: first.negated },
                false => Op::Hgmma { shape, registers, f32, format, layout },
            }
        };
        let op = match (a, b) {
            (ScalarType::F16, ScalarType::F16) => halves(GroupFormat::F16),
            (ScalarType::Bf16, ScalarType::Bf16) => halves(GroupFormat::Bf16),
            (ScalarType::Tf32, ScalarType::Tf32) => halves(GroupFormat::Tf32),
            (ScalarType::S8 | ScalarType::U8, ScalarType::S8 | ScalarType::U8) => {
                let (a_signed, b_signed) = (a == ScalarType::S8, b == ScalarType::S8);
                let sat = instr.has(Mod::Satfinite);
                // Widths of four and less, then every second; dense and sparse shapes take turns.
                let width = if eighths <= 4 { eighths - 1 } else { eighths / 2 + 1 };
                let shape = 3 * width;
                match in_registers {
                    true => Op::IgmmaRegisters { shape, registers, a_signed, b_signed, sat },
                    false => Op::Igmma { shape, registers, a_signed, b_signed, sat },
                }
            }
            _ => {
                let (Some(a), Some(b)) = (quarter(a), quarter(b)) else {
                    return self.unsupported(instr, "factors of these types");
                };
                let (shape, f32) = (eighths - 1, sum == ScalarType::F32);
                match in_registers {
                    true => Op::QgmmaRegisters {
                        shape,
                        registers,
                        f32,
                        a,
                        b,
                        layout: bit(second.negated, 0),
                        negated: first.negated,
                    },
                    false => {
                        let layout = bit(second.negated, 0) | bit(first.negated, 1);
                        Op::Qgmma { shape, registers, f32, a, b, layout }
                    }
                }
            }
        };
        if !self.encodes(&op) {
            return self.unsupported(instr, "warp group products on this target");
        }
        let Operand::Vector(places) = self.operand(instr, 0)? else {
            return self.malformed("a sum that is not a vector");
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
                return self.malformed("rows that are no vector");
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
        srcs.extend([old, adds]);
        let rows = in_registers.then_some(srcs[0]);
        let result = self.wide(registers, op, &srcs);
        if let Some(rows) = rows {
            // The sum is elsewhere.
            self.effect(Op::Hold, &[rows]);
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

    /// `wgmma.wait_group`. The sums of products that it ends are there from here on, and their rows have lived until here.
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

    /// `wgmma.fence`. The products behind it have their rows from before it: emission lets products arrive where a
    /// register of theirs was written since another did.
    pub(super) fn fence_products(&mut self, instr: &Statement<'a>) -> Result<()> {
        instr.ignore(&[Mod::Aligned]);
        let next = self.products.remove(&self.src).unwrap_or_default().next;
        let registers = |operand: usize| -> usize { self.vectors(&next, operand).iter().map(Vec::len).sum() };
        // Where they take much of the file, each product has an arrival of its own instead.
        if registers(0) + registers(1) > MOST_FENCED {
            return Ok(());
        }
        self.hold_rows(&next)
    }

    /// The registers of an operand of products, each once.
    fn vectors(&self, products: &BTreeSet<usize>, operand: usize) -> BTreeSet<Vec<RegId>> {
        let vectors = products.iter().map(|&at| vector(&self.func.body[at], operand));
        vectors.filter(|of| of.len() > 1).collect()
    }

    /// Keeps the rows of products where they are until here.
    fn hold_rows(&mut self, products: &BTreeSet<usize>) -> Result<()> {
        for rows in self.vectors(products, 1) {
            let rows = self.values_of(&rows)?;
            if matches!(rows.kind, SrcKind::Value(_)) {
                self.effect(Op::Hold, &[rows]);
            }
        }
        Ok(())
    }

    /// What registers of 32 bits hold, as one value.
    fn values_of(&mut self, registers: &[RegId]) -> Result<Src> {
        let operands: Vec<Operand> = registers.iter().map(|register| Operand::Reg(*register)).collect();
        self.kept(&operands, ScalarType::B32)
    }

    /// Whether the sum before is added.
    fn adds_to_sum(&mut self, instr: &Statement<'a>) -> Result<Src> {
        let operand = self.operand(instr, 3)?;
        match operand {
            Operand::Int(adds) => Ok(Src::new(SrcKind::Pred(*adds != 0))),
            _ => self.read(operand, ScalarType::Pred),
        }
    }
}

/// The most registers of products that all have their rows before a fence: half of the file.
const MOST_FENCED: usize = 128;

/// The most groups that a wait leaves.
const MOST_LEFT: u8 = 7;

/// The registers of a product's sum or first factor. Empty where that is no vector of registers.
fn vector(product: &Stmt, operand: usize) -> Vec<RegId> {
    let Stmt::Instr(Instr { operands, .. }) = product else { return Vec::new() };
    let Some(Operand::Vector(elements)) = operands.get(operand) else { return Vec::new() };
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
