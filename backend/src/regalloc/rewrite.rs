//! Replaces values by their registers and converts the function out of SSA form.
//!
//! Phis, packs and copies become parallel copies; coalesced ones disappear. The copies of an edge are at the end of the
//! predecessor if it has no other successor, at the start of the successor if it has no other predecessor, and
//! otherwise in a separate block, which edges with the same copies share. The copies of a loop's back edge are also at
//! the end of the predecessor if the other successor does not read the overwritten registers, because a separate block
//! would cost a branch in each iteration.

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::ir::{BlockId, Dst, File, Inst, Reg, Src, SrcKind, Term, Value};
use crate::ori::op::Op;
use crate::regalloc::bundle::source_width;
use crate::regalloc::draft::{Code, Draft};
use crate::regalloc::live::{Liveness, Point};
use crate::regalloc::moves::{Move, ZERO_PAIR, sequence};
use crate::regalloc::occupancy::{Occupancy, Registers};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::hash_map::Entry;

/// The registers of all values.
pub(crate) struct Placement {
    /// For each value; `None` for values without a live range.
    pub(crate) registers: Vec<Option<Reg>>,
    /// For R, P and UR: the registers that are free for breaking cycles, up to the highest register in use.
    pub(crate) occupancy: Vec<(File, u16, Occupancy)>,
}

impl Placement {
    fn lane(&self, value: Value, part: u8) -> Option<Reg> {
        let Reg { file, index } = self.registers[value.index()]?;
        Some(Reg { file, index: index + part })
    }

    fn operand(&self, src: &mut Src) {
        let register = match src.kind {
            SrcKind::Value(v) => self.lane(v, 0),
            SrcKind::Part(v, part) => self.lane(v, part),
            _ => return,
        };
        src.kind = register.map_or(SrcKind::Undef, SrcKind::Reg);
    }

    /// A register that is free at both points. Only in the uniform file, which has no exchange and reserves a register,
    /// may it be above the highest one in use.
    fn free(&self, file: File, points: [Point; 2]) -> Option<Reg> {
        let (_, used, occupancy) = self.occupancy.iter().find(|o| o.0 == file)?;
        let taken = points.map(|point| occupancy.taken_at(point));
        let free = taken.into_iter().fold(Registers::every(1, 0, usize::from(*used)), Registers::without);
        let index = free.first().or((file == File::UR).then_some(usize::from(*used)))?;
        Some(Reg { file, index: index as u8 })
    }

    /// The moves of a pack, a copy or a phi's argument. A source without a register is not read.
    fn moves(&self, draft: &Draft<'_>, dst: Value, srcs: &[Src]) -> Vec<Move> {
        let mut moves = Vec::new();
        let width = draft.func.value(dst).width;
        let mut part = 0;
        for src in srcs {
            let lanes = match src.kind {
                // A constant or zero fills the rest of a copy's destination.
                SrcKind::Value(_) => source_width(draft.func, src),
                SrcKind::Part(..) => 1,
                _ if srcs.len() == 1 => width,
                _ => 1,
            };
            for i in 0..lanes {
                let kind = match src.kind {
                    SrcKind::Value(v) => self.lane(v, i).map_or(SrcKind::Undef, SrcKind::Reg),
                    SrcKind::Part(v, p) => self.lane(v, p).map_or(SrcKind::Undef, SrcKind::Reg),
                    // The second word of a wide constant.
                    SrcKind::Const(mut c) => {
                        c.offset += 4 * u16::from(i);
                        SrcKind::Const(c)
                    }
                    // An immediate is the low word.
                    SrcKind::Imm(_) if i > 0 => SrcKind::Zero,
                    kind => kind,
                };
                if let Some(to) = self.lane(dst, part) {
                    moves.push(Move { dst: to, src: Src { kind, mods: src.mods } });
                }
                part += 1;
            }
        }
        moves
    }
}

/// Converts to allocated form. Returns, for each block, the number of general registers that are live before each
/// instruction and the terminator.
pub(crate) fn rewrite(
    draft: &mut Draft<'_>,
    live: &Liveness,
    cfg: &Cfg,
    placement: &Placement,
) -> Result<Vec<Vec<u16>>, CodegenError> {
    let layout = draft.func.layout.clone();
    let pressure = live.pressure(draft.func, File::R);
    let mut counts: Vec<Vec<u16>> = vec![Vec::new(); draft.func.blocks.len()];
    for &b in &layout {
        let span = live.spans[b.index()];
        let mut code = Code::default();
        for (i, (mut inst, origin)) in draft.take(b).enumerate() {
            let count = pressure[span.read(i) as usize];
            if let Op::Pack | Op::Copy = inst.op {
                if let Some(dst) = inst.defs().next() {
                    let mut moves = placement.moves(draft, dst, &inst.srcs);
                    drop_dead(&mut moves, placement, live, dst, span.write(i));
                    code.added(sequence(moves, inst.src, |f| {
                        placement.free(f, [span.read(i), span.write(i)])
                    })?);
                }
                counts[b.index()].resize(code.insts.len(), count);
                continue;
            }
            inst.uses_mut().for_each(|src| placement.operand(src));
            for dst in &mut inst.dsts {
                if let Dst::Value(v) = *dst {
                    *dst = placement.lane(v, 0).map_or(Dst::Sink, Dst::Reg);
                }
            }
            code.push(inst, origin);
            counts[b.index()].push(count);
        }
        counts[b.index()].push(pressure[span.exit() as usize - 1]);
        draft.put(b, code);
        if let Some(src) = draft.func.block_mut(b).term.operand_mut() {
            placement.operand(src);
        }
    }
    // For each block, the number of its successors that have phis.
    let mut feeds = vec![0u8; draft.func.blocks.len()];
    for &b in layout.iter().filter(|b| !draft.func.block(**b).phis.is_empty()) {
        cfg.preds(b).iter().for_each(|pred| feeds[pred.index()] = feeds[pred.index()].saturating_add(1));
    }
    for &b in &layout {
        edges_into(draft, live, cfg, placement, (b, &feeds), |block, at_start, moves, pred| {
            let count = pressure[live.spans[pred.index()].exit() as usize];
            counts.resize(counts.len().max(block.index() + 1), Vec::new());
            let counts = &mut counts[block.index()];
            // Before the terminator, whose count is the last one; a new block has none yet.
            let at = if at_start { 0 } else { counts.len().saturating_sub(1) };
            let last = usize::from(counts.is_empty());
            counts.splice(at..at, std::iter::repeat_n(count, moves + last));
        })?;
        draft.func.block_mut(b).phis.clear();
    }
    draft.place_edges();
    Ok(counts)
}

/// Removes the moves of pack results that are never read.
fn drop_dead(moves: &mut Vec<Move>, placement: &Placement, live: &Liveness, dst: Value, written: Point) {
    moves.retain(|m| {
        let Some(first) = placement.registers[dst.index()] else { return false };
        let ranges = live.ranges(dst, m.dst.index - first.index);
        ranges.0.iter().any(|i| i.start <= written && written + 1 < i.end)
    });
}

/// An operation that copies, with its destinations and sources.
type Copy = (Op, SmallVec<[Dst; 2]>, SmallVec<[Src; 4]>);

/// Puts the copies of the edges into `b` in place. `feeds`: for each block, the number of its successors that have
/// phis. `placed` is called with the block, whether the copies are at its start, their number, and the predecessor.
fn edges_into(
    draft: &mut Draft<'_>,
    live: &Liveness,
    cfg: &Cfg,
    placement: &Placement,
    (b, feeds): (BlockId, &[u8]),
    mut placed: impl FnMut(BlockId, bool, usize, BlockId),
) -> Result<(), CodegenError> {
    let here = live.spans[b.index()];
    // The results and arguments of all phis, by predecessor.
    let mut arguments: FxHashMap<BlockId, Vec<(Value, Src)>> = FxHashMap::default();
    for phi in &draft.func.block(b).phis {
        for &(from, arg) in &phi.args {
            arguments.entry(from).or_default().push((phi.dst, arg));
        }
    }
    // Blocks on edges, by their copies.
    let mut shared: FxHashMap<Vec<Copy>, BlockId> = FxHashMap::default();
    for &pred in cfg.preds(b) {
        let mut moves = Vec::new();
        for &(dst, arg) in arguments.get(&pred).into_iter().flatten() {
            let mut these = placement.moves(draft, dst, &[arg]);
            drop_dead(&mut these, placement, live, dst, here.phi());
            moves.extend(these);
        }
        let at: SrcId = draft.func.block(pred).term_src;
        let points = [live.spans[pred.index()].exit(), here.phi()];
        let code = sequence(moves, at, |f| placement.free(f, points))?;
        if code.is_empty() {
            continue;
        }
        let only_successor = matches!(draft.func.block(pred).term, Term::Jump(_));
        // The copies of the other edge would come after these.
        let is_early =
            feeds[pred.index()] == 1 && may_overwrite(draft, live, cfg, placement, (pred, b), &code);
        // A block may branch to itself.
        let (home, at_start) = if only_successor || is_early {
            (pred, false)
        } else if cfg.preds(b).len() == 1 {
            (b, true)
        } else {
            let copies = code.iter().map(|inst| (inst.op, inst.dsts.clone(), inst.srcs.clone())).collect();
            match shared.entry(copies) {
                Entry::Occupied(entry) => {
                    draft.lead_through(*entry.get(), pred, b);
                    continue;
                }
                Entry::Vacant(entry) => (*entry.insert(draft.split_edge(pred, b)), false),
            }
        };
        let origins = vec![None; code.len()];
        placed(home, at_start, code.len(), pred);
        if at_start {
            draft.func.block_mut(b).insts.splice(0..0, code);
            draft.origin[b.index()].splice(0..0, origins);
        } else {
            draft.func.block_mut(home).insts.extend(code);
            draft.origin[home.index()].extend(origins);
        }
    }
    Ok(())
}

/// Whether the copies of the back edge from `pred` to `b` may precede the branch: neither the branch nor the other
/// successor reads the overwritten registers.
fn may_overwrite(
    draft: &Draft<'_>,
    live: &Liveness,
    cfg: &Cfg,
    placement: &Placement,
    (pred, b): (BlockId, BlockId),
    code: &[Inst],
) -> bool {
    let Term::Branch { cond, then, els, .. } = &draft.func.block(pred).term else { return false };
    let other = if *then == b { *els } else { *then };
    let Some(start) = live.spans.get(other.index()).map(|span| span.phi()) else { return false };
    if cfg.place(b) > cfg.place(pred) || other == b {
        return false;
    }
    let is_free = |reg: Reg| {
        let occupancy = placement.occupancy.iter().find(|(file, ..)| *file == reg.file);
        let taken = |point| {
            occupancy.is_none_or(|(.., occupancy)| occupancy.taken_at(point).contains(reg.index.into()))
        };
        cond.kind != SrcKind::Reg(reg) && !taken(start - 1) && !taken(start)
    };
    code.iter().all(|inst| {
        inst.dsts.iter().all(|dst| match *dst {
            Dst::Reg(reg) => {
                let lanes = if inst.op == ZERO_PAIR { 2 } else { 1 };
                (0..lanes).all(|lane| is_free(Reg { index: reg.index + lane, ..reg }))
            }
            _ => true,
        })
    })
}
