//! Loop unrolling.
//!
//! A loop is unrolled if its only exit test is at its end, and the trip count is known or the test compares an induction
//! variable with constant step against a loop-invariant limit. A trip count is known if the start and the limit are
//! constants, or if evaluating the test for one iteration after the other gives it. If it is known and small, the loop
//! becomes straight-line code. If it is known and larger, and an iteration is one block, the new loop does several
//! iterations at a time, and the remainder precedes it. If it is not known, and the test reads the variable after the
//! step, shorter and shorter pieces precede the loop. A guard before each checks that enough iterations are left:
//!
//! ```text
//!        guard: are four iterations left? ──── no ─┐
//!             │ yes                                │
//!             ▼                                    │
//!   ┌──► four iterations                           │
//!   └─yes─ guard                                   │
//!             │ no                                 │
//!           test ── yes ──► guard: are two left? ◄─┘
//!             │ no            │ yes         │ no
//!             │               ▼             │
//!             │         two iterations      │
//!             │               │             │
//!             ├────── no ── test ── yes ──► the loop
//!             ▼                             │
//!           after ◄─────────────────────────┘
//! ```
//!
//! ptxas creates the same pieces. A loop of unknown trip count stays if a branch in it depends on another one, as in
//! ptxas's code. Inner loops are unrolled first. If all of them became straight-line code, the loop around them may be
//! unrolled too.
//!
//! Before and after: SSA. Loops with `.pragma "nounroll"` and loops that call functions or routines are not unrolled. A
//! loop with convergent operations is unrolled only if the threads that execute an operation together execute the same
//! copy of an iteration: the operations are executed in every iteration, and either the trip count is known or the
//! threads of a warp leave the loop together. A loop that stores what it loads is unrolled on the same condition. A copy
//! of an instruction belongs to a copy of its statement ([`crate::copies`]).

mod copy;
mod counted;
mod ends;
mod known;
mod pieces;
pub mod rotate;
#[cfg(test)]
mod tests;

use crate::CodegenError;
use crate::copies::Piece;
use crate::explain::Kept;
use crate::input::SrcId;
use crate::ori::analyses::Analyses;
use crate::ori::defs::for_each_use;
use crate::ori::ir::{BlockId, Function, Inst, Value};
use crate::ori::loops::{LoopId, Loops};
use crate::phases::{Change, Context};
use crate::target::Target;
use counted::Counted;
use std::collections::BTreeMap;

/// The numbers of iterations of the pieces if the trip count is not known. The last piece is the original loop.
const PIECES: [Piece; 3] = [
    Piece { iterations: 4, repeats: true },
    Piece { iterations: 2, repeats: false },
    Piece { iterations: 1, repeats: true },
];
/// The maximum cost of an iteration ([`counted::cost`]) if the trip count is not known; loops that wait for memory gain
/// more. These are the figures of ptxas, found by adding operations to loops until it stopped unrolling them.
const MOST_COST: u64 = 20;
/// The amount that is added for each load of shared memory, up to [`MOST_COST_SHARED`].
const COST_OF_SHARED_WAIT: u64 = 5;
const MOST_COST_SHARED: u64 = 98;
/// The maximum cost with a load of global or local memory.
const MOST_COST_GLOBAL: u64 = 48;
/// The maximum number of iterations of a loop that becomes straight-line code.
const MOST_STRAIGHT: u32 = 1024;
/// Such code pays if the number of iterations, times the square of twice the cost of what stays in an iteration plus three,
/// is at most this number times the cost of what becomes known.
const STRAIGHT_GAIN: u64 = 50_000;
/// The maximum cost of an iteration if the trip count is known and larger, without the test and the steps.
const MOST_COST_DIVIDED: u32 = 72;
/// The maximum cost of an iteration of the new loop and of the iterations before it.
const LONGEST_DIVIDED: u32 = 350;
/// The maximum number of operations that unrolling adds to a function.
const MOST_ADDED: usize = 4000;
/// The number of nested loops that are unrolled.
const ROUNDS: u32 = 3;

pub fn run(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
    let Some(target) = Target::nearest(context.sm) else { return Ok(Change::Nothing) };
    let mut added = 0;
    let mut kept = BTreeMap::new();
    let mut change = Change::Nothing;
    for round in 0..ROUNDS {
        let own = Analyses::default();
        let analyses = if round == 0 { context.analyses } else { &own };
        let chosen = choose(func, analyses, target, round, &mut added, &mut kept);
        if chosen.is_empty() {
            break;
        }
        change = Change::Something;
        // Preheaders are added first, because the block that leaves one loop may enter another.
        let entries: Vec<BlockId> = chosen.iter().map(|(counted, _)| counted.enter(func)).collect();
        let mut readers = readers(func, &chosen);
        let afters: Vec<BlockId> = chosen
            .iter()
            .zip(&mut readers)
            .map(|((counted, _), readers)| counted.leave(func, std::mem::take(readers)))
            .collect();
        for (((counted, pieces), entry), after) in chosen.iter().zip(entries).zip(afters) {
            (context.checkpoint)();
            counted.unroll(func, pieces, entry, after, round);
        }
    }
    func.facts.kept = kept.into_values().collect();
    Ok(change)
}

/// The innermost loops that are unrolled, and the pieces of each. `kept` gets the reasons for the others, by header.
fn choose(
    func: &Function,
    analyses: &Analyses,
    target: &Target,
    round: u32,
    added: &mut usize,
    kept: &mut BTreeMap<BlockId, (SrcId, Kept)>,
) -> Vec<(Counted, Vec<Piece>)> {
    let (cfg, loops) = (analyses.cfg(func), analyses.loops(func));
    let mut inner = vec![true; loops.loops.len()];
    for one in &loops.loops {
        if let Some(parent) = one.parent {
            inner[parent.0 as usize] = false;
        }
    }
    let mut chosen = Vec::new();
    for (i, one) in loops.loops.iter().enumerate() {
        let may_unroll = func.block(one.header).may_unroll;
        let found = match () {
            // After the first round, the remains of unrolled loops are among these.
            () if !may_unroll && round > 0 => continue,
            () if !may_unroll => Err(Kept::Pragma),
            () if !inner[i] => Err(Kept::Outer),
            () => {
                let mut body = loops.blocks_outside(LoopId(i as u32), |_| false);
                body.sort_unstable_by_key(|b| cfg.place(*b));
                let tree = analyses.dominators(func);
                Counted::of(func, cfg, tree, analyses.defs(func), target, body).and_then(|counted| {
                    let agree = || !analyses.divergence(func).branch_diverges(counted.last());
                    let nests = || counted.nests_branches(tree, analyses.post_dominators(func));
                    let pieces = counted.pieces(func, agree, nests)?;
                    let iterations: u32 = pieces.iter().map(|piece| piece.iterations).sum();
                    let more = counted.size(func) * iterations as usize;
                    if *added + more > MOST_ADDED {
                        return Err(Kept::Growth);
                    }
                    *added += more;
                    Ok((counted, pieces))
                })
            }
        };
        match found {
            Ok(found) => {
                kept.remove(&one.header);
                chosen.push(found);
            }
            // An endless loop.
            Err(_) if !leaves(func, loops, LoopId(i as u32)) => {}
            Err(why) => {
                let ends = cfg.preds(one.header).iter().filter(|end| loops.contains(LoopId(i as u32), **end));
                let last = ends.max_by_key(|end| cfg.place(**end)).unwrap_or(&one.header);
                kept.insert(one.header, (func.block(*last).term_src, why));
            }
        }
    }
    chosen
}

/// Whether control can leave a loop.
fn leaves(func: &Function, loops: &Loops, id: LoopId) -> bool {
    let body = loops.blocks_outside(id, |_| false);
    body.iter().any(|b| {
        let next = func.block(*b).term.successors();
        next.is_empty() || next.iter().any(|to| !loops.contains(id, *to))
    })
}

/// For each loop, the blocks outside of it that read its values.
fn readers(func: &Function, chosen: &[(Counted, Vec<Piece>)]) -> Vec<Vec<BlockId>> {
    const NONE: u32 = u32::MAX;
    let mut maker = vec![NONE; func.values.len()];
    let mut home = vec![NONE; func.blocks.len()];
    for ((counted, _), i) in chosen.iter().zip(0..) {
        for &b in &counted.body {
            home[b.index()] = i;
            made(func, b).for_each(|v| maker[v.index()] = i);
        }
    }
    let mut readers = vec![Vec::new(); chosen.len()];
    for &b in &func.layout {
        for_each_use(func, b, |src| {
            let Some(&of) = src.value().and_then(|v| maker.get(v.index())) else { return };
            if of != NONE && of != home[b.index()] && readers[of as usize].last() != Some(&b) {
                readers[of as usize].push(b);
            }
        });
    }
    readers
}

/// The values that a block defines.
fn made(func: &Function, b: BlockId) -> impl Iterator<Item = Value> + '_ {
    let block = func.block(b);
    block.phis.iter().map(|phi| phi.dst).chain(block.insts.iter().flat_map(Inst::defs))
}

/// A new value of the same file and width.
fn like(func: &mut Function, v: Value) -> Value {
    let data = func.value(v);
    func.new_value(data.file, data.width)
}
