//! Control flow of machine code: blocks, convergence points, and the return points of subroutines.

use super::queue::name;
use super::state::PT;
use sass::{Field, Inst};
use std::collections::{BTreeMap, BTreeSet};

/// Control flow between basic blocks of instruction indices.
pub(super) struct Flow {
    /// The first instruction of each block, ascending; the first is 0.
    pub(super) starts: Vec<usize>,
    pub(super) successors: Vec<Vec<usize>>,
    /// Instructions on paths from a call to a return.
    pub(super) in_subroutine: Vec<bool>,
    /// Blocks that end with a return.
    pub(super) returns: Vec<usize>,
}

impl Flow {
    pub(super) fn of(code: &[Inst], tables: &[(usize, Vec<usize>)]) -> Flow {
        let target = |at: usize| -> Option<usize> {
            // A call through an address may call any function.
            let by_address = code[at].has(Field::Ra) || code[at].has(Field::URa);
            let elsewhere = by_address || code[at].form().name == "CALL.ABS";
            if elsewhere && name(&code[at]) == "CALL" {
                return None;
            }
            let offset = code[at].get(Field::Target)? as i64;
            let index = (at as i64 + 1) + offset / 16;
            (0..code.len() as i64).contains(&index).then_some(index as usize)
        };
        let mnemonic = |at: usize| name(&code[at]);
        let next = |at: usize| if at + 1 < code.len() { vec![at + 1] } else { Vec::new() };
        let meetings = meetings(code, &target, tables);
        let returns = returns(code, &target, tables);
        // The successors of instructions that may branch; other instructions fall through.
        let leave = |at: usize| -> Option<Vec<usize>> {
            let mut to = match mnemonic(at) {
                "BRA" | "JMP" => target(at).into_iter().collect(),
                "CALL" => {
                    let mut to: Vec<usize> = target(at).into_iter().collect();
                    if to.is_empty() {
                        to = next(at);
                    }
                    to
                }
                "BRX" | "BRXU" | "JMX" => listed(tables, at).collect(),
                "RET" => returns[at].clone(),
                "EXIT" => Vec::new(),
                "BSYNC" => match &meetings[at] {
                    // A `BSSY` may name the `BSYNC` itself, or the instruction after it.
                    to if to.is_empty() || to.contains(&at) => next(at),
                    to => to.clone(),
                },
                _ => return None,
            };
            if !is_unconditional(&code[at]) {
                to.extend(next(at));
            }
            Some(to)
        };
        let mut starts = BTreeSet::from([0]);
        for at in 0..code.len() {
            if let Some(to) = leave(at) {
                starts.extend(to);
                starts.extend(next(at));
            }
        }
        let starts: Vec<usize> = starts.into_iter().collect();
        let block_of = |at: usize| starts.partition_point(|&s| s <= at) - 1;
        let successors: Vec<Vec<usize>> = (0..starts.len())
            .map(|b| {
                let end = starts.get(b + 1).copied().unwrap_or(code.len());
                let to = end
                    .checked_sub(1)
                    .and_then(leave)
                    .unwrap_or_else(|| if end < code.len() { vec![end] } else { Vec::new() });
                to.into_iter().map(block_of).collect()
            })
            .collect();
        let last = |b: usize| starts.get(b + 1).copied().unwrap_or(code.len()) - 1;
        let mut in_subroutine = vec![false; code.len()];
        let mut work: Vec<usize> =
            (0..code.len()).filter(|&at| mnemonic(at) == "CALL").filter_map(target).map(block_of).collect();
        while let Some(b) = work.pop() {
            if !std::mem::replace(&mut in_subroutine[starts[b]], true) {
                in_subroutine[starts[b]..=last(b)].fill(true);
                if mnemonic(last(b)) != "RET" {
                    work.extend(&successors[b]);
                }
            }
        }
        let returns = (0..starts.len()).filter(|&b| mnemonic(last(b)) == "RET").collect();
        Flow { starts, successors, in_subroutine, returns }
    }

    pub(super) fn range(&self, block: usize, len: usize) -> std::ops::Range<usize> {
        self.starts[block]..self.starts.get(block + 1).copied().unwrap_or(len)
    }
}

/// Targets of an indirect branch, by its index.
type Tables = [(usize, Vec<usize>)];

/// The possible targets of the indirect branch at an index.
fn listed(tables: &Tables, at: usize) -> impl Iterator<Item = usize> {
    tables.iter().filter(move |table| table.0 == at).flat_map(|table| table.1.iter().copied())
}

/// For each `BSYNC`, where the converged threads continue: the targets of each `BSSY` that may have set its barrier.
/// These are the `BSSY`s from which control reaches the `BSYNC` without setting the barrier again.
fn meetings(code: &[Inst], target: &dyn Fn(usize) -> Option<usize>, tables: &Tables) -> Vec<Vec<usize>> {
    let barrier = |at: usize| code[at].get(Field::Barrier);
    let mut meetings: Vec<Vec<usize>> = vec![Vec::new(); code.len()];
    // The `BSSY` that last visited an instruction.
    let mut visited = vec![usize::MAX; code.len()];
    for setter in (0..code.len()).filter(|&at| name(&code[at]) == "BSSY") {
        let Some(meeting) = target(setter) else { continue };
        let mut work = vec![setter + 1];
        while let Some(at) = work.pop() {
            if at >= code.len() || std::mem::replace(&mut visited[at], setter) == setter {
                continue;
            }
            match name(&code[at]) {
                "BSSY" if barrier(at) == barrier(setter) => {}
                "BSYNC" if barrier(at) == barrier(setter) => {
                    if !meetings[at].contains(&meeting) {
                        meetings[at].push(meeting);
                    }
                }
                "EXIT" | "RET" if is_unconditional(&code[at]) => {}
                "BRX" | "BRXU" | "JMX" => {
                    work.extend(listed(tables, at));
                    if !is_unconditional(&code[at]) {
                        work.push(at + 1);
                    }
                }
                "BRA" | "JMP" => {
                    work.extend(target(at));
                    if !is_unconditional(&code[at]) {
                        work.push(at + 1);
                    }
                }
                _ => work.push(at + 1),
            }
        }
    }
    meetings
}

/// For each `RET`, where it may return to: after each call from whose target control reaches it. A function that is
/// called from several places may return to all of them.
fn returns(code: &[Inst], target: &dyn Fn(usize) -> Option<usize>, tables: &Tables) -> Vec<Vec<usize>> {
    let mut returns: Vec<Vec<usize>> = vec![Vec::new(); code.len()];
    let calls = (0..code.len()).filter(|&at| name(&code[at]) == "CALL" && at + 1 < code.len());
    let mut callers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for call in calls.clone() {
        if let Some(entry) = target(call) {
            callers.entry(entry).or_default().push(call + 1);
        }
    }
    for (&entry, behind) in &callers {
        let mut visited = vec![false; code.len()];
        let mut work = vec![entry];
        while let Some(at) = work.pop() {
            if at >= code.len() || std::mem::replace(&mut visited[at], true) {
                continue;
            }
            let ends = is_unconditional(&code[at]);
            match name(&code[at]) {
                "RET" => returns[at].extend(behind),
                "BRA" | "JMP" => work.extend(target(at)),
                "BRX" | "BRXU" | "JMX" => work.extend(listed(tables, at)),
                "EXIT" => {}
                _ => {
                    work.push(at + 1);
                    continue;
                }
            }
            if !ends {
                work.push(at + 1);
            }
        }
    }
    for (at, to) in returns.iter_mut().enumerate() {
        if name(&code[at]) == "RET" && to.is_empty() {
            *to = calls.clone().map(|call| call + 1).collect();
        }
    }
    returns
}

/// Whether all threads that reach a control instruction execute it. A predicate, or a test whether threads are together
/// (`BRA.DIV`, `BRA.CONV`), may let a thread continue at the next instruction.
pub(crate) fn is_unconditional(inst: &Inst) -> bool {
    let always = |field, not| {
        inst.get(field).is_none_or(|p| p == PT) && inst.get(not).is_none_or(|negated| negated == 0)
    };
    !inst.is_guarded()
        && always(Field::Pp, Field::PpNot)
        && always(Field::Pr, Field::PrNot)
        && !matches!(inst.text(Field::Mode), Some(".DIV" | ".CONV"))
}
