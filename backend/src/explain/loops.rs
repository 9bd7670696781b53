//! What limits the innermost loops of machine code.
//!
//! One warp executes all instructions of a loop in their order, iteration after iteration, on an otherwise idle
//! partition. Stall counts, scoreboards and busy pipes determine when each instruction issues. Memory is the second-level
//! cache. The figures are those of [`sass::rate`].

use super::{Loop, Unit, Wait};
use crate::hazard::{Blocks, blocks, group_wait, waits};
use crate::input::SrcId;
use crate::natural_loops::{NaturalLoop, natural_loops, reverse_postorder};
use rustc_hash::FxHashSet;
use sass::rate::{Figure, Pipe, exchange, figure, rate};
use sass::{Class, Inst, RegFile, Role, Sm};
use std::collections::BTreeMap;

/// The iterations that are executed; the last one is like all later ones.
const ITERATIONS: usize = 4;
/// The number of waits that are listed.
const LISTED: usize = 4;
/// The partitions of a multiprocessor.
const PARTITIONS: u32 = 4;
const SCOREBOARDS: usize = 6;
/// Bytes that a warp's threads access with a register each.
const WARP_BYTES: u32 = 128;

/// The innermost loops of a function's code that end. `lines` has the statement of each instruction, and `tables` the
/// targets of indirect branches.
pub(crate) fn loops(
    sm: Sm,
    code: &[Inst],
    lines: &[Option<SrcId>],
    tables: &[(usize, Vec<usize>)],
) -> Vec<Loop> {
    let flow = blocks(code, tables);
    let successors = successors(&flow, code);
    let found = natural_loops(&successors, &reverse_postorder(&successors));
    let headers: FxHashSet<usize> = found.iter().map(|one| one.header).collect();
    let is_inner = |one: &&NaturalLoop| !one.blocks.iter().any(|b| *b != one.header && headers.contains(b));
    let ends = |one: &&NaturalLoop| {
        let mut next = one.blocks.iter().flat_map(|&b| &successors[b]);
        next.any(|to| one.blocks.binary_search(to).is_err())
    };
    let mut innermost: Vec<&NaturalLoop> = found.iter().filter(is_inner).filter(ends).collect();
    innermost.sort_unstable_by_key(|one| one.header);
    let explained = innermost.into_iter().filter_map(|one| {
        let body: Vec<usize> = one.blocks.iter().flat_map(|&b| range(&flow, b, code.len())).collect();
        let end = one.blocks.iter().rev().find(|&&b| successors[b].contains(&one.header))?;
        let branch = range(&flow, *end, code.len()).rev().find_map(|at| lines[at])?;
        Some(Run::new(sm, code, lines, &body).explain(branch))
    });
    explained.collect()
}

fn name(inst: &Inst) -> &'static str {
    inst.form().mnemonic
}

fn range(flow: &Blocks, block: usize, len: usize) -> std::ops::Range<usize> {
    flow.starts[block]..flow.starts.get(block + 1).copied().unwrap_or(len)
}

/// The successors of each block, with calls that return to the next instruction.
fn successors(flow: &Blocks, code: &[Inst]) -> Vec<Vec<usize>> {
    let count = flow.starts.len();
    let of = |(b, to): (usize, &Vec<usize>)| match range(flow, b, code.len()).last().map(|at| name(&code[at]))
    {
        Some("CALL") => (b + 1 < count).then_some(b + 1).into_iter().collect(),
        Some("RET") => Vec::new(),
        _ => to.clone(),
    };
    flow.successors.iter().enumerate().map(of).collect()
}

/// The execution of a loop by one warp. Instructions are numbered by their place in the body.
struct Run<'a> {
    sm: Sm,
    insts: Vec<&'a Inst>,
    lines: Vec<Option<SrcId>>,
    /// When each scoreboard is released, and the instruction that does it last.
    scoreboards: [(u64, usize); SCOREBOARDS],
    /// When each pipe is free, and the last instruction in it.
    pipes: [(u64, usize); Pipe::COUNT],
    now: u64,
    /// For each instruction, the cycles for which others wait because of it, and the longest of these waits with the
    /// instruction that waits.
    waited: Vec<(u64, u64, usize)>,
}

impl<'a> Run<'a> {
    fn new(sm: Sm, code: &'a [Inst], lines: &[Option<SrcId>], body: &[usize]) -> Run<'a> {
        Run {
            sm,
            insts: body.iter().map(|&at| &code[at]).collect(),
            lines: body.iter().map(|&at| lines[at]).collect(),
            scoreboards: [(0, 0); SCOREBOARDS],
            pipes: [(0, 0); Pipe::COUNT],
            now: 0,
            waited: vec![(0, 0, 0); body.len()],
        }
    }

    fn explain(mut self, branch: SrcId) -> Loop {
        let mut began = 0;
        for _ in 0..ITERATIONS {
            began = self.now;
            self.waited.fill((0, 0, 0));
            (0..self.insts.len()).for_each(|at| self.issue(at));
        }
        let statement = |at: usize| self.lines[at].unwrap_or(branch);
        let mut by_statement: BTreeMap<SrcId, (u64, u64, usize)> = BTreeMap::new();
        for (of, &(cycles, longest, at)) in self.waited.iter().enumerate().filter(|(_, wait)| wait.0 > 0) {
            let sum = by_statement.entry(statement(of)).or_insert((0, 0, at));
            sum.0 += cycles;
            if longest > sum.1 {
                (sum.1, sum.2) = (longest, at);
            }
        }
        let wait = |(of, (cycles, _, at)): (SrcId, (u64, u64, usize))| Wait {
            of,
            at: statement(at),
            cycles: cycles as u32,
        };
        let mut waits: Vec<Wait> = by_statement.into_iter().map(wait).collect();
        waits.sort_by_key(|wait| std::cmp::Reverse(wait.cycles));
        waits.truncate(LISTED);
        Loop {
            branch,
            instructions: self.insts.len() as u32,
            cycles: (self.now - began) as u32,
            waits,
            busiest: self.busiest(),
            calls: self.insts.iter().any(|inst| name(inst) == "CALL"),
        }
    }

    /// Issues an instruction at the earliest cycle, and advances to the cycle from which the next one may issue.
    fn issue(&mut self, at: usize) {
        let inst = self.insts[at];
        let rate = rate(self.sm, inst);
        let needed = waits(inst);
        let mut pending: Vec<(u64, usize)> =
            (0..SCOREBOARDS).filter(|sb| needed >> sb & 1 == 1).map(|sb| self.scoreboards[sb]).collect();
        let busy = || rate.busy.iter().flatten().map(|&(pipe, cycles)| (pipe as usize, u64::from(cycles)));
        pending.extend(busy().map(|(pipe, _)| self.pipes[pipe]));
        if group_wait(inst) == Some(0) {
            pending.push(self.pipes[Pipe::Tensor as usize]);
        }
        if let Some((ready, of)) = pending.into_iter().max_by_key(|(ready, _)| *ready)
            && ready > self.now
        {
            self.wait(of, at, ready - self.now);
            self.now = ready;
        }
        for (pipe, cycles) in busy() {
            self.pipes[pipe] = (self.now + cycles, at);
        }
        let timing = Timing::of(self.sm, inst, rate.result);
        let releases = [(inst.control.write_sb, timing.result), (inst.control.read_sb, timing.release)];
        for (sb, cycles) in releases {
            let release = (self.now + u64::from(cycles), at);
            if let Some(held) = sb.and_then(|sb| self.scoreboards.get_mut(usize::from(sb))) {
                *held = release.max(*held);
            }
        }
        let stall = match inst.control.stall {
            0 => figure(self.sm, Figure::Pause).into(),
            stall => u64::from(stall),
        };
        self.now += stall;
        if stall > 1 {
            self.wait(at, (at + 1) % self.insts.len(), stall - 1);
        }
    }

    fn wait(&mut self, of: usize, at: usize, cycles: u64) {
        let (sum, longest, by) = &mut self.waited[of];
        *sum += cycles;
        if cycles > *longest {
            (*longest, *by) = (cycles, at);
        }
    }

    /// The unit that an iteration keeps busy for most cycles.
    fn busiest(&self) -> (Unit, u32) {
        let mut pipes = [0; Pipe::COUNT];
        let mut memory = 0;
        for inst in &self.insts {
            for (pipe, cycles) in rate(self.sm, inst).busy.into_iter().flatten() {
                let shared = if pipe.is_shared() { PARTITIONS } else { 1 };
                pipes[pipe as usize] += cycles * shared;
            }
            memory += PARTITIONS * transfer(self.sm, inst);
        }
        let pipes = Pipe::ALL.iter().map(|&pipe| (Unit::Pipe(pipe), pipes[pipe as usize]));
        let units = pipes.chain([(Unit::Memory, memory), (Unit::Issue, self.insts.len() as u32)]);
        units.max_by_key(|(_, cycles)| *cycles).unwrap_or((Unit::Issue, 0))
    }
}

/// The cycles until scoreboards are released.
struct Timing {
    /// When the result is available.
    result: u32,
    /// When the sources have been read.
    release: u32,
}

impl Timing {
    fn of(sm: Sm, inst: &Inst, result: Option<u32>) -> Timing {
        let of = |of| figure(sm, of);
        let is_store = inst.class(sm) == Class::Store;
        let release = of(if is_store { Figure::StoreRelease } else { Figure::LoadRelease });
        let wide = of(Figure::ReleaseWord) * words(sm, inst).saturating_sub(1);
        let result = exchange(sm, inst).or(result).unwrap_or_else(|| {
            of(match inst.class(sm) {
                _ if is_in_shared(inst) => Figure::Shared,
                Class::Load if name(inst) == "LDL" => Figure::L1,
                Class::Load | Class::Atomic => Figure::L2,
                _ => Figure::Special,
            })
        });
        Timing { result, release: if is_store { release + wide } else { release } }
    }
}

/// Whether the instruction accesses shared memory.
fn is_in_shared(inst: &Inst) -> bool {
    matches!(name(inst), "LDS" | "LDSM" | "STS" | "STSM" | "ATOMS")
}

/// The number of registers of a thread's data.
fn words(sm: Sm, inst: &Inst) -> u32 {
    let written = inst.writes(sm).filter(|def| def.file == RegFile::R).map(|def| u32::from(def.count)).sum();
    let stored = inst.reads(sm).filter(|read| read.file == RegFile::R && read.role == Role::Data);
    stored.map(|read| u32::from(read.count)).sum::<u32>().max(written).max(1)
}

/// The cycles for which a memory instruction occupies the memory pipeline of its multiprocessor.
fn transfer(sm: Sm, inst: &Inst) -> u32 {
    if !matches!(inst.class(sm), Class::Load | Class::Store | Class::Atomic) {
        return 0;
    }
    let bytes = figure(sm, if is_in_shared(inst) { Figure::SharedBytes } else { Figure::L1Bytes });
    (words(sm, inst) * WARP_BYTES / bytes.max(1)).max(figure(sm, Figure::Request))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hazard::tests::code_of;

    /// The loops of code with a statement for each instruction.
    fn explained(code: &[&str]) -> Vec<Loop> {
        let code = code_of(Sm(80), code);
        let lines: Vec<Option<SrcId>> = (0..code.len() as u32).map(|line| Some(SrcId(line))).collect();
        loops(Sm(80), &code, &lines, &[])
    }

    fn wait(of: u32, at: u32, cycles: u32) -> Wait {
        Wait { of: SrcId(of), at: SrcId(at), cycles }
    }

    #[test]
    fn a_loop_waits_for_its_load() {
        let found = explained(&[
            "s4: MOV R2, 0x10",
            "s1 w0: LDG.E R4, [R2.64]",
            "s4 ?0: FADD R5, R5, R4",
            "s4: IADD3 R2, R2, 0x4, RZ",
            "s13: ISETP.NE.AND P0, PT, R2, 0x100, PT",
            "s5: @P0 BRA 0x10",
            "s5: EXIT",
        ]);
        let [one] = &found[..] else { panic!("{found:?}") };
        let latency = figure(Sm(80), Figure::L2);
        // The load issues in one cycle and is waited for in the others; then come the stall counts.
        assert_eq!((one.instructions, one.cycles), (5, latency + 4 + 4 + 13 + 5));
        let stalls = [wait(4, 5, 12), wait(5, 1, 4), wait(2, 3, 3)];
        assert_eq!(one.waits, [&[wait(1, 2, latency - 1)], &stalls[..]].concat());
        assert_eq!((one.branch, one.calls), (SrcId(5), false));
    }

    #[test]
    fn only_innermost_loops_count() {
        let found = explained(&[
            "s1: MOV R2, 0x10",
            "s1: FADD R0, R0, R2",
            "s1: @P0 BRA 0x10",
            "s1: @P1 BRA 0x0",
            "s1: EXIT",
            "s1: BRA 0x50",
        ]);
        let all: Vec<(SrcId, u32)> = found.iter().map(|one| (one.branch, one.instructions)).collect();
        assert_eq!(all, [(SrcId(2), 2)]);
    }

    #[test]
    fn products_keep_the_tensor_pipe_busy() {
        let product = "s1: HMMA.16816.F32 R12, R4, R8, R12";
        let found = explained(&["s1: NOP", product, product, "s1: @P0 BRA 0x10", "s1: EXIT"]);
        let busy = rate(Sm(80), &code_of(Sm(80), &[product])[0]).busy[0].expect("a pipe");
        assert_eq!(found[0].busiest, (Unit::Pipe(Pipe::Tensor), 2 * busy.1));
        assert_eq!(found[0].cycles, 2 * busy.1);
    }
}
