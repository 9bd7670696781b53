//! The register of the global window's descriptor, which the text does not tell before sm_90.
//!
//! NVIDIA's compiler loads the descriptor from `c[0x0][0x118]` into the lowest pair of uniform registers, UR4 at least,
//! that is free as long as accesses need it. So the last load tells the pair; where none is to be seen, as in excerpts
//! or in lines of a listing without their repetitions, it is the lowest pair that the other instructions leave free.

use crate::inst::Inst;
use crate::model::{Field, MemOperand, Operand, RegFile, Role, Sm};
use crate::parse::{ParseError, USUAL_DESCRIPTOR};
use crate::print::{INST_BYTES, SHOWN_DESCRIPTOR_SM};
use crate::roles::RegUse;
use std::ops::Range;

/// Where the descriptor lies in constant bank 0.
const DESCRIPTOR_OFFSET: u64 = 0x118;
/// Pairs of uniform registers, URZ not among them.
const PAIRS: usize = 31;
/// How many lines of a function an excerpt must have to tell which registers the function uses: one of so many.
const SPARSEST: u64 = 5;
/// From this generation on the descriptor is loaded again where so many instructions do without it, rather than kept.
const RELOADING_SM: u8 = 86;
const RELOADED_AFTER: usize = 300;

/// A line of a listing.
pub(crate) struct Line {
    /// 0 where it is not known.
    pub(crate) address: u64,
    pub(crate) inst: Result<Inst, ParseError>,
    /// The line itself tells the register.
    pub(crate) told: bool,
}

impl Line {
    fn hides_descriptor(&self, sm: Sm) -> bool {
        self.inst.as_ref().is_ok_and(|inst| hides_descriptor(sm, inst))
    }
}

/// Whether the instruction has a descriptor that its text does not tell.
pub(crate) fn hides_descriptor(sm: Sm, inst: &Inst) -> bool {
    let hides = |operand: &Operand| match operand {
        Operand::Mem(MemOperand { desc: Some(desc), .. }) => !desc.next && inst.raw(&desc.own) == 0,
        _ => false,
    };
    sm.0 < SHOWN_DESCRIPTOR_SM && inst.form().operands().any(hides)
}

/// Sets the register of each hidden descriptor.
pub(crate) fn set_descriptors(sm: Sm, lines: &mut [Line]) {
    if sm.0 < SHOWN_DESCRIPTOR_SM {
        for function in functions(lines) {
            set_in_function(sm, &mut lines[function]);
        }
    }
}

/// Splits lines where addresses tell that another function begins: where they fall, or where more lines lie between
/// two than have room. Lines without addresses that fit nowhere are alone.
fn functions(lines: &[Line]) -> Vec<Range<usize>> {
    let mut functions = Vec::new();
    // The function so far, its last address, and the end of it.
    let (mut start, mut end, mut last) = (0, 0, None);
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| line.address != 0) {
        let between = (index - end) as u64;
        let room = match last {
            Some(last) if line.address > last => Some((line.address - last) / INST_BYTES - 1),
            _ => None,
        };
        if room.is_none_or(|room| between > room) {
            functions.push(start..end);
            // Those before may be the beginning of this function.
            if between <= line.address / INST_BYTES {
                start = end;
            } else {
                functions.extend((end..index).map(|alone| alone..alone + 1));
                start = index;
            }
        }
        end = index + 1;
        last = Some(line.address);
        // A function ends with a branch to itself.
        if line.inst.as_ref().is_ok_and(|inst| is_end(inst, line.address)) {
            functions.push(start..end);
            (start, last) = (end, None);
        }
    }
    functions.push(start..end);
    functions.extend((end..lines.len()).map(|alone| alone..alone + 1));
    functions
}

fn is_end(inst: &Inst, address: u64) -> bool {
    inst.form().mnemonic == "BRA" && inst.target(address) == Some(address)
}

/// What a line does with a pair of uniform registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Read,
    Write,
    /// `R2UR`, which without optimization loads the descriptor.
    WriteFromRegister,
}

/// The events of a pair of registers, and the lines where they are.
type PairEvents = Vec<(usize, Event)>;

fn set_in_function(sm: Sm, lines: &mut [Line]) {
    let uses: Vec<usize> = (0..lines.len()).filter(|&line| lines[line].hides_descriptor(sm)).collect();
    if uses.is_empty() {
        return;
    }
    let mut events = pair_events(sm, lines);
    let loads = take_loads(lines, &mut events);
    let load_before = |line| loads[..loads.partition_point(|load| load.line < line)].last();
    let mut used = None;
    let mut load_of = |&line: &usize| {
        let load = load_before(line)?;
        // One that serves one access would be repeated before the next, and may be left out there.
        let serves =
            !load.brief || used.replace(load.line) != Some(load.line) || follow(&lines[load.line..=line]);
        serves.then_some(load)
    };
    let uses: Vec<_> = uses.iter().map(|line| (*line, load_of(line).map(|load| load.register))).collect();
    for uses in uses.chunk_by(|(_, one), (_, next)| one == next) {
        let register = uses[0].1;
        let uses: Vec<usize> = uses.iter().map(|&(line, _)| line).collect();
        let register = register.unwrap_or_else(|| lowest_free(sm, lines, &events, &uses));
        for line in uses {
            if let Line { inst: Ok(inst), told: false, .. } = &mut lines[line] {
                inst.set(Field::UrDesc, register);
            }
        }
    }
}

/// A line that loads the descriptor.
struct Load {
    line: usize,
    register: u64,
    /// Without optimization, for one access.
    brief: bool,
}

/// Whether no line is missing between these.
fn follow(lines: &[Line]) -> bool {
    lines.windows(2).all(|pair| pair[1].address == pair[0].address + INST_BYTES)
}

/// The loads of the descriptor. Events that belong to them are taken away.
fn take_loads(lines: &[Line], events: &mut [PairEvents]) -> Vec<Load> {
    let load = |line: usize| {
        let register = loaded(lines[line].inst.as_ref().ok()?)?;
        Some(Load { line, register, brief: false })
    };
    let mut loads: Vec<_> = (0..lines.len()).filter_map(load).collect();
    for (pair, events) in (0..).zip(events) {
        let mut next = None;
        let mut kept = Vec::new();
        for &(line, event) in events.iter().rev() {
            // What no line seems to read is read where the text does not tell.
            if event == Event::WriteFromRegister && next != Some(Event::Read) {
                loads.push(Load { line, register: 2 * pair, brief: true });
            } else {
                next = Some(event);
                kept.push((line, event));
            }
        }
        kept.reverse();
        *events = kept;
    }
    loads.sort_unstable_by_key(|load| load.line);
    loads
}

/// The register that the instruction loads the descriptor into.
fn loaded(inst: &Inst) -> Option<u64> {
    let loads = inst.form().mnemonic == "ULDC"
        && inst.text(Field::Size) == Some(".64")
        && inst.get(Field::CBank) == Some(0)
        && inst.get(Field::COffset) == Some(DESCRIPTOR_OFFSET);
    inst.get(Field::URd).filter(|_| loads)
}

/// What the lines do with each pair of uniform registers, loads of the descriptor and what is hidden left out.
fn pair_events(sm: Sm, lines: &[Line]) -> Vec<PairEvents> {
    let mut events = vec![Vec::new(); PAIRS];
    for (index, line) in lines.iter().enumerate() {
        let Ok(inst) = &line.inst else { continue };
        if loaded(inst).is_some() {
            continue;
        }
        let hides = line.hides_descriptor(sm);
        let mut note = |used: RegUse, event| {
            if used.file == RegFile::UR && !(hides && used.role == Role::Descriptor) {
                let (first, count) = (usize::from(used.index), usize::from(used.count));
                let last = (first + count - 1) / 2;
                events[first / 2..PAIRS.min(last + 1)]
                    .iter_mut()
                    .for_each(|events| events.push((index, event)));
            }
        };
        inst.reads(sm).for_each(|used| note(used, Event::Read));
        let from_register = inst.form().mnemonic == "R2UR";
        let written = if from_register { Event::WriteFromRegister } else { Event::Write };
        inst.writes(sm).for_each(|used| note(used, written));
    }
    events
}

/// The lowest pair that is free where the descriptor is used, as far as the function's lines tell.
fn lowest_free(sm: Sm, lines: &[Line], events: &[PairEvents], uses: &[usize]) -> u64 {
    let mut addresses = lines.iter().map(|line| line.address).filter(|&address| address != 0);
    let tells = match (addresses.next(), addresses.next_back()) {
        (Some(_), Some(end)) => lines.len() as u64 * SPARSEST > end / INST_BYTES,
        _ => false,
    };
    // Where it is loaded again after a while, others may take the register in between.
    let keeps = |pair: &&[usize]| sm.0 < RELOADING_SM || pair[1] - pair[0] < RELOADED_AFTER;
    let is_free = |&register: &u64| {
        let events = &events[register as usize / 2];
        let until = |end| events.partition_point(|&(line, _)| line <= end);
        let (begin, end) = (until(uses[0]), until(uses[uses.len() - 1]));
        // A value of before that is read behind lives all along.
        let passes = begin > 0 && events.get(end).is_some_and(|&(_, event)| event == Event::Read);
        !passes && uses.windows(2).filter(keeps).all(|pair| until(pair[0]) == until(pair[1]))
    };
    let pairs = (USUAL_DESCRIPTOR..2 * PAIRS as u64).step_by(2);
    pairs.filter(|_| tells).find(is_free).unwrap_or(USUAL_DESCRIPTOR)
}

#[cfg(test)]
mod tests {
    use crate::assemble::assemble;
    use crate::{Field, Sm};

    /// The registers of the descriptors of lines ADDRESS TEXT.
    fn descriptors(lines: &str) -> Vec<u64> {
        let lines = lines.lines().map(|line| line.trim().split_once(' ').unwrap());
        let lines = lines.map(|(address, text)| (u64::from_str_radix(address, 16).unwrap(), text));
        let made = assemble(Sm(80), lines).into_iter();
        made.filter_map(|inst| inst.unwrap().get(Field::UrDesc)).collect()
    }

    #[test]
    fn the_descriptor_is_in_the_pair_that_was_loaded_with_it() {
        assert_eq!(descriptors("0 LDG.E R5, [R2.64]"), [4]);
        let loads = "0 ULDC.64 UR6, c[0x0][0x118]\n10 LDG.E R5, [R2.64]\n30 BRA 0x30\n20 LDG.E R5, [R2.64]";
        assert_eq!(descriptors(loads), [6, 4]);
        let told = "0 ULDC.64 UR6, c[0x0][0x118]\n10 LDG.E R5, [R2.64] {UrDesc=0x8}\n20 ST.E [R2.64], R1";
        assert_eq!(descriptors(told), [8, 6]);
        let moved = "0 R2UR UR8, R6\n10 R2UR UR9, R7\n20 LD.E R5, [R2.64]\n30 R2UR UR4, R6\n40 MOV R6, UR4";
        assert_eq!(descriptors(moved), [8]);
    }

    #[test]
    fn without_a_load_it_is_in_the_lowest_pair_that_is_free() {
        let between = "10 LDG.E R5, [R2.64]\n0 UIADD3 UR4, UR4, 0x1, URZ\n30 BRA 0x10\n0 STG.E [R2.64], R1\n50 BRA 0x50";
        assert_eq!(descriptors(between), [6, 6]);
        let around = "0 UMOV UR5, 0x1\n10 LDG.E R5, [R2.64]\n20 MOV R1, UR5\n30 BRA 0x30";
        assert_eq!(descriptors(around), [6]);
        let before = "0 MOV R1, UR4\n10 LDG.E R5, [R2.64]\n20 UMOV UR4, 0x1\n30 BRA 0x30";
        assert_eq!(descriptors(before), [4]);
    }

    #[test]
    fn lines_of_other_functions_tell_nothing() {
        // More lines than have room before the second address, and too few of a long function.
        let crowded = "20 BRA 0x10\n0 MOV R1, UR4\n0 LDG.E R5, [R2.64]\n0 MOV R2, UR4\n40 BRA 0x10";
        assert_eq!(descriptors(crowded), [4]);
        let sparse = "20 MOV R1, UR4\n0 LDG.E R5, [R2.64]\n0 MOV R2, UR4\n1000 BRA 0x10";
        assert_eq!(descriptors(sparse), [4]);
    }
}
