//! Asynchronous matrix products of a warpgroup. They are computed when a warp waits for their group.

use super::{Block, Result, State, WARP};
use crate::launch::FaultKind;
use crate::matrix::{Element, Fragment, Sum};
use crate::memory::{RANK_SHIFT, Space};
use crate::narrow::{E4M3, E5M2};
use crate::sparse::Metadata;
use crate::warpgroup::{Factor, Product};
use sass::{Field, Inst};

/// The mnemonics of products and of the instructions that order them.
pub(super) const MNEMONICS: &[&str] = &["HGMMA", "IGMMA", "QGMMA", "BGMMA", "WARPGROUP"];

/// The number of warps in a warpgroup.
const WARPS: usize = 4;

/// A product in flight.
#[derive(Clone, Debug)]
struct Begun {
    at: u32,
    group: u32,
    /// The descriptors of both factors, or only of the second.
    descriptors: [u64; 2],
    adds: bool,
}

/// The products of a warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Products {
    begun: Vec<Begun>,
    /// The number of products that the warp has begun, and the number of groups that it has closed.
    count: u32,
    closed: u32,
}

/// The product that an instruction computes. `None` if the emulator does not execute it.
fn product(inst: &Inst) -> Option<Product> {
    let text = |field| inst.text(field).unwrap_or("");
    let float_sum = if text(Field::Type) == ".F16" { Sum::F16 } else { Sum::F32 };
    let quarter = |field| Element::Narrow(if text(field) == ".E5M2" { E5M2 } else { E4M3 });
    let byte = |field| Element::Integer { bits: 8, signed: text(field) == ".S8" };
    let (a, b, sum) = match inst.form().mnemonic {
        "HGMMA" => {
            let element = match text(Field::SrcType) {
                ".BF16" => Element::Bf16,
                ".TF32" => Element::Tf32,
                _ => Element::F16,
            };
            (element, element, float_sum)
        }
        "QGMMA" => (quarter(Field::SrcType), quarter(Field::SrcType2), float_sum),
        "IGMMA" => (byte(Field::SrcType), byte(Field::SrcType2), Sum::S32(inst.get(Field::Sat) == Some(1))),
        "BGMMA" => {
            let bit = Element::Integer { bits: 1, signed: false };
            (bit, bit, Sum::S32(false))
        }
        _ => return None,
    };
    let mut extents = text(Field::Size).trim_start_matches('.').split('x').map(str::parse);
    let (Some(Ok(64)), Some(Ok(columns)), Some(Ok(depth)), None) =
        (extents.next(), extents.next(), extents.next(), extents.next())
    else {
        return None;
    };
    let layout = text(Field::LayoutB);
    let negated = [layout.contains(".negA") || inst.get(Field::NegA) == Some(1), layout.contains(".negB")];
    let transposed = [layout.contains(".tnspA"), layout.contains(".tnspB")];
    Some(Product { columns, depth, a, b, sum, negated, transposed })
}

/// Whether an instruction computes nothing and only ends a group.
fn is_empty(inst: &Inst) -> bool {
    inst.get(Field::Rd) == Some(RZ)
}

const RZ: u64 = 255;

/// The descriptors of both factors. `pair` reads two uniform registers.
fn descriptors(inst: &Inst, pair: impl Fn(u64) -> u64) -> Result<[u64; 2]> {
    match (inst.get(Field::URa), inst.get(Field::URb)) {
        (Some(both), _) => Ok([pair(both), pair(both + 2)]),
        // The instruction names the pair of registers before the descriptor, which would hold the first factor's.
        (None, Some(second)) => Ok([0, pair(second + 2)]),
        _ => Err(FaultKind::Malformed(format!("{} without descriptors", inst.form().name))),
    }
}

impl Block<'_> {
    /// Executes an instruction. Returns whether the group may continue; if not, it executes the instruction again
    /// later.
    pub(super) fn warpgroup(&mut self, w: usize, active: u32, at: u32) -> Result<bool> {
        let inst = &self.machine.code[at as usize].inst;
        let whole = self.warps[w].groups.iter().all(|group| group.state == State::Runs);
        if active != u32::MAX || !whole || w / WARPS * WARPS + WARPS > self.warps.len() {
            return Err(FaultKind::Malformed("an operation of a warp group without some threads".into()));
        }
        match inst.form().name {
            "WARPGROUP.ARRIVE" => Ok(true),
            "WARPGROUP.DEPBAR" => self.wait_products(w, inst.get(Field::Imm2).unwrap_or(0) as u32),
            _ if product(inst).is_some() => {
                let pair = |index: u64| {
                    let uniform = &self.warps[w].uniform;
                    u64::from(uniform[index as usize + 1]) << 32 | u64::from(uniform[index as usize])
                };
                let descriptors = match is_empty(inst) {
                    true => [0, 0],
                    false => descriptors(inst, pair)?,
                };
                let adds = self.holds(w, 0, true, self.machine.code[at as usize].accumulates());
                let closes = inst.get(Field::Scoreboard) == Some(0);
                let products = &mut self.warps[w].products;
                products.begun.push(Begun { at, group: products.closed, descriptors, adds });
                products.count += 1;
                products.closed += u32::from(closes);
                Ok(true)
            }
            _ => Err(FaultKind::Unsupported(sass::print(self.machine.sm, inst, 0))),
        }
    }

    fn wait_products(&mut self, w: usize, but: u32) -> Result<bool> {
        let first = w / WARPS * WARPS;
        let count = self.warps[w].products.count;
        let behind = |warp: &super::Warp| warp.products.count < count && !warp.groups.is_empty();
        if self.warps[first..first + WARPS].iter().any(behind) {
            return Ok(false);
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
        let warp = &mut self.warps[w];
        let left: Vec<u32> = warp.products.begun.iter().map(|begun| begun.at).collect();
        warp.timing.finish_products(&self.machine.code, &left);
        Ok(true)
    }

    /// Computes a warp's oldest product.
    fn finish_product(&mut self, w: usize) -> Result<()> {
        let begun = self.warps[w].products.begun.remove(0);
        let step = &self.machine.code[begun.at as usize];
        let inst = &step.inst;
        let Some(product) = product(inst).filter(|_| !is_empty(inst)) else { return Ok(()) };
        let count = product.result_registers();
        let values = |warp: &super::Warp, first: u64, count: usize| -> Fragment {
            let of = |i: usize| {
                let start = (first as usize + i) * WARP;
                warp.registers[start..start + WARP].try_into().unwrap_or([0; WARP])
            };
            (0..count).map(of).collect()
        };
        let factor = match inst.get(Field::Ra) {
            Some(first) => Factor::Registers(values(&self.warps[w], first, 4)),
            None => Factor::Shared(begun.descriptors[0]),
        };
        let held = inst.get(Field::Re).map(|register| values(&self.warps[w], register, 1));
        let selector = inst.get(Field::Imm2).unwrap_or(0) as usize;
        let metadata = held.as_ref().map(|words| Metadata { register: &words[0], selector });
        let source = inst.get(Field::Rc).filter(|&first| first != 255 && begun.adds);
        let start = source.map(|first| values(&self.warps[w], first, count));
        let base = (self.cluster.rank() as u64) << RANK_SHIFT;
        let mut view = self.view(w, 0);
        let read = |address: u64, size: u32| view.load(Space::Shared, base | address, size);
        let result = product.quarter(w, (&factor, metadata), begun.descriptors[1], start.as_ref(), read)?;
        for (i, values) in result.iter().enumerate() {
            for (lane, value) in values.iter().enumerate() {
                self.set_register(w, lane, step.rd + i as u8, *value);
            }
        }
        Ok(())
    }
}
