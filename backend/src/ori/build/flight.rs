//! Finds the `wgmma` products that each wait completes. Until then their register operands stay live, and their
//! accumulators are not read.

use super::Run;
use crate::input::{Instr, Operand, SrcId, Stmt};
use ptx_isa::FormId;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A count above the most groups that a wait can leave in flight. Counts saturate here.
const MANY: u8 = 9;

/// The groups closed since a product began, as minimum and maximum over all paths. The first of them is its own.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Closed {
    fewest: u8,
    most: u8,
}

/// The products in flight, by statement index.
type InFlight = BTreeMap<usize, Closed>;

/// The products that a fence or wait affects, by statement index.
#[derive(Default)]
pub(super) struct Around {
    /// The products that follow the fence in its block.
    pub(super) next: BTreeSet<usize>,
    /// The products that the wait completes on some path.
    pub(super) over: BTreeSet<usize>,
    /// The products that are still in flight after the wait on some path.
    pub(super) left: BTreeSet<usize>,
}

/// The products that each fence and wait affects.
pub(super) type Products = FxHashMap<SrcId, Around>;

/// Follows the products of a body along all paths. `successors` has the successors of each run.
pub(super) fn follow(body: &[Stmt], runs: &[Run], successors: &[Vec<usize>]) -> Products {
    let mut products = Products::default();
    if !body.iter().any(|stmt| matches!(stmt, Stmt::Instr(instr) if is_product(instr.opcode.form))) {
        return products;
    }
    for run in runs {
        fences(body, run, &mut products);
    }
    let mut entry: Vec<InFlight> = vec![InFlight::new(); runs.len()];
    let mut work: BTreeSet<usize> = (0..runs.len()).collect();
    while let Some(run) = work.pop_first() {
        let mut state = entry[run].clone();
        for at in runs[run].statements.clone() {
            if let Stmt::Instr(instr) = &body[at] {
                pass(at, instr, &mut state, &mut products);
            }
        }
        for &next in &successors[run] {
            if unite(&mut entry[next], &state) {
                work.insert(next);
            }
        }
    }
    products
}

fn is_product(form: FormId) -> bool {
    matches!(form, FormId::WgmmaMma | FormId::WgmmaMmaSp | FormId::WgmmaMmaBits)
}

/// Finds the products after each fence of a block, up to the next fence.
fn fences(body: &[Stmt], run: &Run, products: &mut Products) {
    let mut next = BTreeSet::new();
    for at in run.statements.clone().rev() {
        let Stmt::Instr(instr) = &body[at] else { continue };
        match instr.opcode.form {
            FormId::WgmmaFence => products.entry(instr.src).or_default().next = std::mem::take(&mut next),
            form if is_product(form) => {
                next.insert(at);
            }
            _ => {}
        }
    }
}

/// Advances past a statement. A guarded one may have no effect.
fn pass(at: usize, instr: &Instr, state: &mut InFlight, products: &mut Products) {
    let surely = u8::from(instr.guard.is_none());
    match instr.opcode.form {
        FormId::WgmmaCommitGroup => {
            for closed in state.values_mut() {
                closed.fewest = (closed.fewest + surely).min(MANY);
                closed.most = (closed.most + 1).min(MANY);
            }
        }
        FormId::WgmmaWaitGroup => {
            let left = match instr.operands.first() {
                Some(Operand::Int(left)) => u8::try_from(*left).unwrap_or(MANY),
                _ => MANY,
            };
            let ended = products.entry(instr.src).or_default();
            ended.over.extend(state.iter().filter(|(_, closed)| closed.most > left).map(|(at, _)| *at));
            state.retain(|_, closed| surely == 0 || closed.fewest <= left);
            ended.left.extend(state.keys());
        }
        form if is_product(form) => {
            state.insert(at, Closed { fewest: 0, most: 0 });
        }
        _ => {}
    }
}

/// Merges the state of another path; returns whether `into` changed.
fn unite(into: &mut InFlight, from: &InFlight) -> bool {
    let mut changed = false;
    for (&at, new) in from {
        match into.get_mut(&at) {
            Some(old) => {
                let both = Closed { fewest: old.fewest.min(new.fewest), most: old.most.max(new.most) };
                changed |= std::mem::replace(old, both) != both;
            }
            None => {
                into.insert(at, *new);
                changed = true;
            }
        }
    }
    changed
}
