//! Asynchronous matrix products of a warpgroup.
//!
//! The interpreter computes them as late as the rules allow: when a warp waits for their group. Until then, no other
//! instruction may access the registers of the result and of the first factor. Only values written to these registers
//! before a `wgmma.fence` are used. A product completes only after all warps of the group have begun it.

use super::arithmetic::{ty, unsupported};
use super::{Block, Step, WARP, each};
use crate::launch::FaultKind;
use crate::matrix::{Element, Fragment, Sum};
use crate::memory::Space;
use crate::narrow::{E4M3, E5M2};
use crate::sparse::Metadata;
use crate::warpgroup::{Factor, Product};
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, Opcode, ScalarType};
use std::collections::BTreeSet;

/// The number of warps in a warpgroup.
const WARPS: usize = 4;

/// A product in flight.
#[derive(Clone, Debug)]
struct Begun {
    group: u32,
    product: Product,
    /// The registers of the result and of the first factor.
    result: Vec<usize>,
    factor: Result<Vec<usize>, u64>,
    second: u64,
    /// The register with the metadata of a sparse factor, and the selector of the threads that provide it.
    metadata: Option<(usize, usize)>,
    adds: bool,
}

impl Begun {
    /// The registers that the product reads.
    fn sources(&self) -> impl Iterator<Item = &usize> {
        self.factor.iter().flatten().chain(self.metadata.iter().map(|(register, _)| register))
    }
}

/// The products of a warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    begun: Vec<Begun>,
    /// The number of products that the warp has begun, and the number of groups that it has closed.
    count: u32,
    closed: u32,
    in_flight: BTreeSet<usize>,
    /// The registers written since the last fence. `None` before the first one.
    written: Option<BTreeSet<usize>>,
}

impl Products {
    /// Returns a fault if a product in flight uses a register.
    pub(super) fn is_free(&self, register: usize) -> Step<()> {
        if self.in_flight.contains(&register) {
            let text = format!("register {register} is used before the product that has it is waited for");
            return Err(FaultKind::Race(text));
        }
        Ok(())
    }

    pub(super) fn write(&mut self, register: usize) {
        if let Some(written) = &mut self.written {
            written.insert(register);
        }
    }
}

/// The columns and the depth of a shape with 64 rows.
fn shape(op: &Opcode) -> Option<(usize, usize)> {
    op.mods().find_map(|m| {
        let (columns, depth) = m.text().strip_prefix("m64n")?.split_once('k')?;
        Some((columns.parse().ok()?, depth.parse().ok()?))
    })
}

fn element(ty: ScalarType) -> Option<Element> {
    match ty {
        ScalarType::F16 => Some(Element::F16),
        ScalarType::Bf16 => Some(Element::Bf16),
        ScalarType::Tf32 => Some(Element::Tf32),
        ScalarType::E4m3 => Some(Element::Narrow(E4M3)),
        ScalarType::E5m2 => Some(Element::Narrow(E5M2)),
        ScalarType::U8 => Some(Element::Integer { bits: 8, signed: false }),
        ScalarType::S8 => Some(Element::Integer { bits: 8, signed: true }),
        ScalarType::B1 => Some(Element::Integer { bits: 1, signed: false }),
        _ => None,
    }
}

fn registers(operand: &Operand) -> Step<Vec<usize>> {
    let parts = match operand {
        Operand::Vector(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    let index = |part: &Operand| match part {
        Operand::Reg(register) => Ok(register.0 as usize),
        _ => Err(FaultKind::Malformed("a fragment of something else than registers".into())),
    };
    parts.iter().map(index).collect()
}

impl Block<'_> {
    /// Executes an operation of all threads of a warp, in each warp of its warpgroup.
    pub(super) fn warpgroup(&mut self, w: usize, mask: u32, instr: &Instr) -> Step<()> {
        if mask != u32::MAX || w / WARPS * WARPS + WARPS > self.warps.len() {
            return Err(FaultKind::Malformed("an operation of a warp group without some threads".into()));
        }
        self.races.cut();
        let products = &mut self.warps[w].products;
        match instr.opcode.form {
            FormId::WgmmaFence => products.written = Some(BTreeSet::new()),
            FormId::WgmmaCommitGroup => products.closed += 1,
            FormId::WgmmaWaitGroup => {
                let Some(Operand::Int(but)) = instr.operands.first() else { return unsupported(instr) };
                return self.wait_products(w, *but as u32);
            }
            _ => return self.begin_product(w, instr),
        }
        Ok(())
    }

    fn begin_product(&mut self, w: usize, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let sparse = op.form == FormId::WgmmaMmaSp;
        // The index of the first operand after the factors and their metadata.
        let rest = if sparse { 5 } else { 3 };
        let operands = &instr.operands;
        let integer = |at: usize| match operands.get(at) {
            Some(Operand::Int(value)) => *value,
            _ => 0,
        };
        let in_registers = matches!(&operands[1], Operand::Vector(parts) if parts.len() > 1);
        let (Some((columns, depth)), Some(a), Some(b)) =
            (shape(op), element(ty(op, 1)?), element(ty(op, 2)?))
        else {
            return unsupported(instr);
        };
        let sum = match ty(op, 0)? {
            ScalarType::F16 => Sum::F16,
            ScalarType::F32 => Sum::F32,
            _ => Sum::S32(op.has(Mod::Satfinite)),
        };
        let transposed = match in_registers {
            true => [false, integer(rest + 3) == 1],
            false => [integer(rest + 3) == 1, integer(rest + 4) == 1],
        };
        let negated = [integer(rest + 1) == -1, integer(rest + 2) == -1];
        let product = Product { columns, depth, a, b, sum, negated, transposed };
        let descriptor = |block: &Self, at: usize| -> Step<u64> {
            let operand = match &operands[at] {
                Operand::Vector(parts) => &parts[0],
                one => one,
            };
            same(&block.gather(w, u32::MAX, operand, ScalarType::U64)?)
        };
        let factor = match in_registers {
            true => Ok(registers(&operands[1])?),
            false => Err(descriptor(self, 1)?),
        };
        let second = descriptor(self, 2)?;
        let metadata = match sparse {
            true => Some((registers(&operands[3])?[0], integer(4) as usize)),
            false => None,
        };
        let adds = match &operands[rest] {
            Operand::Int(value) => *value != 0,
            operand => same(&self.gather(w, u32::MAX, operand, ScalarType::Pred)?)? != 0,
        };
        let result = registers(&operands[0])?;
        if result.len() != product.result_registers() {
            return unsupported(instr);
        }
        let products = &self.warps[w].products;
        let Some(written) = &products.written else {
            return Err(FaultKind::Race("a product before any wgmma.fence".into()));
        };
        // Only the accumulators may also be those of an earlier product in flight.
        let mut of_factor = factor.iter().flatten();
        let earlier = |register: &usize| products.begun.iter().any(|begun| begun.result.contains(register));
        if let Some(register) = result.iter().chain(factor.iter().flatten()).find(|r| written.contains(r)) {
            let name = self.program.name(*register);
            return Err(FaultKind::Race(format!(
                "{name} was written with no wgmma.fence before its product"
            )));
        }
        if let Some(register) = of_factor.find(|register| earlier(register)) {
            let name = self.program.name(*register);
            return Err(FaultKind::Race(format!("{name} is a factor before it is the result")));
        }
        for &register in factor.iter().flatten().chain(if adds { &result[..] } else { &[] }) {
            if self.launch.strict && self.warps[w].written[register] != u32::MAX && !earlier(&register) {
                return Err(FaultKind::Unwritten(self.program.name(register)));
            }
        }
        let products = &mut self.warps[w].products;
        let begun = Begun { group: products.closed, product, result, factor, second, metadata, adds };
        products.in_flight.extend(begun.result.iter().chain(begun.sources()));
        products.count += 1;
        products.begun.push(begun);
        Ok(())
    }

    /// Completes all groups except the last `but` closed ones.
    fn wait_products(&mut self, w: usize, but: u32) -> Step<()> {
        let first = w / WARPS * WARPS;
        let count = self.warps[w].products.count;
        if self.warps[first..first + WARPS].iter().any(|warp| warp.products.count < count && warp.live() != 0)
        {
            // Another warp of the group has not begun all products yet. This warp tries again later.
            each(u32::MAX).for_each(|lane| self.warps[w].pc[lane] -= 1);
            return Ok(());
        }
        // Groups are complete for all warps of the warpgroup at the same time.
        let limit = self.warps[w].products.closed.saturating_sub(but);
        let own = &self.warps[w].products;
        let left = own.begun.iter().filter(|begun| begun.group >= limit).count();
        let over = own.count - left as u32;
        for other in first..first + WARPS {
            let products = &self.warps[other].products;
            let done = products.count - products.begun.len() as u32;
            for _ in done..over {
                self.finish_product(other)?;
            }
        }
        let products = &mut self.warps[w].products;
        let left = products.begun.iter();
        products.in_flight =
            left.flat_map(|begun| begun.result.iter().chain(begun.sources()).copied()).collect();
        Ok(())
    }

    /// Computes a warp's oldest product.
    fn finish_product(&mut self, w: usize) -> Step<()> {
        let begun = self.warps[w].products.begun.remove(0);
        let values = |warp: &super::Warp, registers: &[usize]| -> Fragment {
            let of =
                |&register: &usize| std::array::from_fn(|lane| warp.registers[register * WARP + lane] as u32);
            registers.iter().map(of).collect()
        };
        let factor = match &begun.factor {
            Ok(registers) => Factor::Registers(values(&self.warps[w], registers)),
            Err(descriptor) => Factor::Shared(*descriptor),
        };
        let held = begun.metadata.map(|(register, selector)| (values(&self.warps[w], &[register]), selector));
        let start = begun.adds.then(|| values(&self.warps[w], &begun.result));
        let base = self.cluster.base();
        let mut view = self.view(w, 0);
        let read = |address: u64, size: u32| view.load(Space::Shared, base | address, size);
        let metadata =
            held.as_ref().map(|(words, selector)| Metadata { register: &words[0], selector: *selector });
        let result = begun.product.quarter(w, (&factor, metadata), begun.second, start.as_ref(), read)?;
        let warp = &mut self.warps[w];
        for (&register, values) in begun.result.iter().zip(&result) {
            warp.written[register] = u32::MAX;
            for (lane, &value) in values.iter().enumerate() {
                warp.registers[register * WARP + lane] = value.into();
            }
        }
        Ok(())
    }
}

/// The value that all lanes have in common.
fn same(values: &[u64; WARP]) -> Step<u64> {
    match values.iter().all(|value| *value == values[0]) {
        true => Ok(values[0]),
        false => Err(FaultKind::Malformed("lanes of a warp group differ in what must be the same".into())),
    }
}
