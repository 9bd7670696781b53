//! Makes consecutive copies of a loop's body.

use super::counted::Counted;
use super::ends::redirect;
use super::pieces::PieceContext;
use super::{like, made};
use crate::copies::Statements;
use crate::ori::ir::{Block, BlockId, Dst, Function, Src, SrcKind, Term, Value};
use crate::ori::signature;
use crate::phase::edit::{normalize_predicate, part_of};
use rustc_hash::FxHashMap;

/// Maps the values of a loop to those of a copy.
pub(super) type Map = FxHashMap<Value, Src>;

/// The consecutive iterations of a piece.
pub(super) struct Iterations {
    pub(super) top: BlockId,
    pub(super) bottom: BlockId,
    /// The values of the header's phis after the last iteration.
    pub(super) values: Vec<Src>,
    /// The map of the last iteration.
    pub(super) map: Map,
}

impl Counted {
    /// Copies the body, with `values` for the header's phis. Returns the new blocks, in the order of the body, and the
    /// map of values. The blocks are not in the layout yet.
    fn copy(&self, func: &mut Function, values: &[Src], iteration: u32, copies: u32) -> (Vec<BlockId>, Map) {
        let mut map = Map::default();
        for (phi, value) in func.block(self.header()).phis.iter().zip(values) {
            map.insert(phi.dst, *value);
        }
        let blocks: Vec<BlockId> = self.body.iter().map(|_| func.new_block()).collect();
        let block_of = |b: BlockId| self.body.iter().position(|&own| own == b).map_or(b, |i| blocks[i]);
        for &b in &self.body {
            let all: Vec<Value> = made(func, b).collect();
            for v in all {
                map.entry(v).or_insert_with(|| like(func, v).into());
            }
        }
        for (&b, &copy) in self.body.iter().zip(&blocks) {
            let mut block: Block = func.block(b).clone();
            block.may_unroll = false;
            if b == self.header() {
                block.phis.clear();
            }
            for phi in &mut block.phis {
                rename(&map, &mut phi.dst);
                for (from, src) in &mut phi.args {
                    *from = block_of(*from);
                    *src = substituted(&map, *src);
                }
            }
            for inst in &mut block.insts {
                inst.uses_mut().for_each(|src| *src = substituted(&map, *src));
                for dst in &mut inst.dsts {
                    if let Dst::Value(v) = dst {
                        rename(&map, v);
                    }
                }
                if inst.guard.is_true() {
                    inst.old.clear();
                }
                signature::fold_modifiers(inst);
            }
            if let Some(src) = block.term.operand_mut() {
                *src = substituted(&map, *src);
            }
            for to in &self.body {
                redirect(&mut block.term, *to, block_of(*to));
            }
            number(&mut block, func.facts.statements, iteration, copies);
            *func.block_mut(copy) = block;
        }
        (blocks, map)
    }

    /// Makes as many consecutive copies of the loop as the piece has iterations. The header's phis have `values` in the
    /// first one.
    pub(super) fn iterations_of(
        &self,
        func: &mut Function,
        place: &PieceContext<'_>,
        mut values: Vec<Src>,
        made: &mut Vec<BlockId>,
    ) -> Option<Iterations> {
        let carried = self.carried(func);
        let mut ends: Option<(BlockId, BlockId)> = None;
        let mut map = Map::default();
        for iteration in 0..place.piece.iterations {
            let (blocks, own) = self.copy(func, &values, place.first + iteration, place.copies);
            map = own;
            let (start, end) = (*blocks.first()?, *blocks.last()?);
            let top = match ends {
                None => start,
                Some((top, before)) => {
                    func.block_mut(before).term = Term::Jump(start);
                    top
                }
            };
            ends = Some((top, end));
            values = carried.iter().map(|src| substituted(&map, *src)).collect();
            made.extend(blocks);
        }
        let (top, bottom) = ends?;
        Some(Iterations { top, bottom, values, map })
    }
}

/// Assigns the instructions of a block to copies of their statements.
pub(super) fn number(block: &mut Block, statements: Statements, iteration: u32, copies: u32) {
    for inst in &mut block.insts {
        inst.src = statements.in_iteration(inst.src, iteration, copies);
    }
    block.term_src = statements.in_iteration(block.term_src, iteration, copies);
}

pub(super) fn substituted(map: &Map, src: Src) -> Src {
    let Some(by) = src.value().and_then(|v| map.get(&v)) else { return src };
    let kind = match src.kind {
        SrcKind::Part(_, part) => part_of(by.kind, part),
        _ => by.kind,
    };
    let mut src = Src { kind, mods: src.mods };
    src.mods.not ^= by.mods.not;
    normalize_predicate(&mut src);
    src
}

pub(super) fn rename(map: &Map, v: &mut Value) {
    if let Some(by) = map.get(v).and_then(Src::value) {
        *v = by;
    }
}
