//! Loops in which no general register is free for the loop counter.
//!
//! Only the counting instruction writes the register of a loop counter. So if the lines of a loop write every general
//! register and none of them counts, the counter is in a uniform register. The lines that count are then missing from
//! the listing, because they are identical in many functions.

use super::Line;
use super::extent::Flow;
use crate::inst::Inst;
use crate::model::{Field, RegFile, Sm};
use crate::roles::RegUse;
use std::ops::Range;

/// The number of general registers without RZ.
const REGISTERS: usize = 255;
/// The stack pointer. Loops neither write it nor count in it.
const STACK_POINTER: usize = 1;
/// The smallest number of registers, and of lines in a loop, that is considered. A function with fewer registers could
/// have used more, and a shorter loop rarely writes as many.
const FEW: usize = 24;

/// The loops whose lines write every general register of the function without counting in one.
pub(super) fn crowded(sm: Sm, lines: &[Line], flow: &Flow) -> Vec<Range<usize>> {
    let insts = || lines.iter().enumerate().filter_map(|(line, it)| Some((line, it.inst.as_ref().ok()?)));
    let counts: Vec<usize> = insts().filter(|(_, inst)| adds_to_itself(inst)).map(|(line, _)| line).collect();
    let next_count = |line| counts.get(counts.partition_point(|&count| count < line));
    let does_not_count = |turn: &Range<usize>| next_count(turn.start).is_none_or(|&count| count >= turn.end);
    let may_be_crowded = |turn: &Range<usize>| turn.len() >= FEW && does_not_count(turn);
    let mut loops: Vec<_> = flow.loops().filter(may_be_crowded).collect();
    if loops.is_empty() {
        return loops;
    }
    let used = insts().flat_map(|(_, inst)| inst.uses(sm)).filter_map(general).map(|registers| registers.end);
    let used = used.max().filter(|&used| used >= FEW);
    // The line that last wrote each register, counted from 1.
    let mut written = [0; REGISTERS];
    let mut writes = insts().peekable();
    loops.retain(|turn| {
        while let Some((line, inst)) = writes.next_if(|&(line, _)| line < turn.end) {
            inst.writes(sm).filter_map(general).for_each(|registers| written[registers].fill(line + 1));
        }
        let is_written = |register| register == STACK_POINTER || written[register] > turn.start;
        used.is_some_and(|used| (0..used).all(is_written))
    });
    loops
}

/// The numbers of the general registers of an operand.
fn general(used: RegUse) -> Option<Range<usize>> {
    let first = usize::from(used.index);
    (used.file == RegFile::R).then(|| first..REGISTERS.min(first + usize::from(used.count)))
}

fn adds_to_itself(inst: &Inst) -> bool {
    let written = || inst.get(Field::Rd);
    let reads = |field| inst.get(field) == written();
    matches!(inst.form().mnemonic, "IADD3" | "IMAD")
        && [Field::Ra, Field::Rb, Field::Rc].into_iter().any(reads)
}
