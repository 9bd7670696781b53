//! The entries and exits of a loop: before its iterations are copied, it gets one block that enters it and one that
//! leaves it.

use super::counted::Counted;
use super::{like, made};
use crate::ori::ir::{BlockId, Function, Phi, Src, SrcKind, Term, Value};
use crate::phase::edit::for_each_use_mut;
use rustc_hash::FxHashMap;

impl Counted {
    /// Adds a preheader.
    pub(super) fn enter(&self, func: &mut Function) -> BlockId {
        let (header, last) = (self.header(), self.last());
        let args = func.block(header).phis.iter().take(1).flat_map(|phi| &phi.args);
        let entries: Vec<BlockId> = args.map(|(from, _)| *from).filter(|&b| b != last).collect();
        let entry = func.new_block();
        let mut values = Vec::new();
        let mut phis = Vec::new();
        for i in 0..func.block(header).phis.len() {
            let phi = &func.block(header).phis[i];
            let args: Vec<(BlockId, Src)> =
                phi.args.iter().filter(|(from, _)| *from != last).copied().collect();
            match args[..] {
                [(_, src)] => values.push(src),
                _ => {
                    let dst = like(func, phi.dst);
                    phis.push(Phi { dst, args });
                    values.push(dst.into());
                }
            }
        }
        func.block_mut(entry).phis = phis;
        func.block_mut(entry).term = Term::Jump(header);
        func.block_mut(entry).term_src = func.block(last).term_src;
        for from in entries {
            redirect(&mut func.block_mut(from).term, header, entry);
        }
        for (phi, src) in func.block_mut(header).phis.iter_mut().zip(&values) {
            phi.args.retain(|(from, _)| *from == last);
            phi.args.push((entry, *src));
        }
        let place = func.layout.iter().position(|&b| b == header).unwrap_or(0);
        func.layout.insert(place, entry);
        entry
    }

    /// Adds a dedicated exit block. Its phis hold the values that `readers`, blocks after the loop, read.
    pub(super) fn leave(&self, func: &mut Function, readers: Vec<BlockId>) -> BlockId {
        let last = self.last();
        let mut held: FxHashMap<Value, Option<Value>> =
            self.body.iter().flat_map(|&b| made(func, b)).map(|v| (v, None)).collect();
        let after = func.new_block();
        let mut phis = Vec::new();
        let mut values = std::mem::take(&mut func.values);
        for b in readers {
            for_each_use_mut(func, b, |src| {
                let Some(v) = src.value() else { return };
                let Some(held) = held.get_mut(&v) else { return };
                let by = *held.get_or_insert_with(|| {
                    values.push(values[v.index()]);
                    let dst = Value(values.len() as u32 - 1);
                    phis.push(Phi { dst, args: vec![(last, v.into())] });
                    dst
                });
                src.kind = match src.kind {
                    SrcKind::Part(_, part) => SrcKind::Part(by, part),
                    _ => SrcKind::Value(by),
                };
            });
        }
        func.values = values;
        let header = self.header();
        let exits = func.block(last).term.successors();
        let Some(exit) = exits.into_iter().find(|&to| to != header) else { return after };
        for phi in &mut func.block_mut(exit).phis {
            phi.args.iter_mut().filter(|(from, _)| *from == last).for_each(|(from, _)| *from = after);
        }
        redirect(&mut func.block_mut(last).term, exit, after);
        let term_src = func.block(last).term_src;
        let block = func.block_mut(after);
        (block.phis, block.term, block.term_src) = (phis, Term::Jump(exit), term_src);
        let place = func.layout.iter().position(|&b| b == last).map_or(func.layout.len(), |place| place + 1);
        func.layout.insert(place, after);
        after
    }
}

pub(super) fn redirect(term: &mut Term, from: BlockId, to: BlockId) {
    let change = |b: &mut BlockId| {
        if *b == from {
            *b = to;
        }
    };
    match term {
        Term::Jump(b) => change(b),
        Term::Branch { then, els, .. } => [then, els].into_iter().for_each(change),
        Term::Switch { targets, .. } => targets.iter_mut().for_each(change),
        Term::Exit | Term::Ret | Term::Unreachable => {}
    }
}
