//! Infers the register of the global window's descriptor, which the text does not show before sm_90.
//!
//! NVIDIA's compiler loads the descriptor from `c[0x0][0x118]` into a pair of uniform registers, so the last load
//! before an access gives the pair. Excerpts, and listings from which repeated lines were removed, may lack the load.
//! The pair then follows from the uniform registers that the other lines of the function use ([`pairs`]) while accesses
//! need the descriptor ([`extent`]). Without optimization, each access has its own copy of the descriptor, made from
//! general registers.

mod extent;
mod loops;
mod pairs;
mod split;

use crate::inst::Inst;
use crate::model::{Field, MemOperand, Operand, Sm};
use crate::parse::{ParseError, USUAL_DESCRIPTOR};
use crate::print::{INST_BYTES, SHOWN_DESCRIPTOR_SM};
use extent::{Extent, Flow};
use pairs::Pairs;
use std::collections::BTreeSet;

/// The offset of the descriptor in constant bank 0.
const DESCRIPTOR_OFFSET: u64 = 0x118;

/// A line of a listing.
pub(crate) struct Line {
    /// 0 if the address is unknown.
    pub(crate) address: u64,
    pub(crate) inst: Result<Inst, ParseError>,
    /// The line itself gives the register.
    pub(crate) told: bool,
}

impl Line {
    fn hides_descriptor(&self, sm: Sm) -> bool {
        self.inst.as_ref().is_ok_and(|inst| hides_descriptor(sm, inst))
    }

    fn is(&self, mnemonic: &str) -> bool {
        self.inst.as_ref().is_ok_and(|inst| inst.form().mnemonic == mnemonic)
    }

    /// The branch target of the line, if the line's own address is known.
    fn target(&self) -> Option<u64> {
        self.inst.as_ref().ok()?.target(self.address).filter(|_| self.address != 0)
    }

    fn set(&mut self, register: u64) {
        if let Line { inst: Ok(inst), told: false, .. } = self {
            inst.set(Field::UrDesc, register);
        }
    }
}

/// Whether the instruction has a descriptor that its text does not show.
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
        let mut seen = BTreeSet::new();
        for function in split::functions(lines) {
            set_in_function(sm, &mut lines[function], &mut seen);
        }
    }
}

/// Sets the hidden descriptors of one function. `seen` collects the registers of the visible loads in all functions so
/// far.
fn set_in_function(sm: Sm, lines: &mut [Line], seen: &mut BTreeSet<u64>) {
    let uses: Vec<usize> = (0..lines.len()).filter(|&line| lines[line].hides_descriptor(sm)).collect();
    let loads = loads(lines);
    seen.extend(loads.iter().map(|load| load.register));
    if uses.is_empty() {
        return;
    }
    let served = served(sm, lines, &uses, &loads);
    let mut others = Vec::new();
    for (&line, load) in uses.iter().zip(served) {
        match load {
            Some(load) => lines[line].set(load.register),
            None => others.push(line),
        }
    }
    if others.is_empty() {
        return;
    }
    let mut pairs = Pairs::new(sm, lines);
    let copies = if loads.is_empty() { pairs.copies() } else { Vec::new() };
    if !copies.is_empty() {
        return set_copied(lines, &uses, &copies);
    }
    let flow = Flow::new(sm, lines);
    pairs.count(&loops::crowded(sm, lines, &flow));
    let (main, routines) = others.split_at(others.partition_point(|&line| line < flow.routines()));
    for accesses in [main, routines].into_iter().filter(|accesses| !accesses.is_empty()) {
        let tells = split::tells(lines);
        let register = tells.then(|| pairs.free(&Extent::new(sm, &flow, accesses), seen));
        accesses.iter().for_each(|&line| lines[line].set(register.unwrap_or(USUAL_DESCRIPTOR)));
    }
}

/// A line that loads the descriptor.
struct Load {
    line: usize,
    register: u64,
}

/// The last load before a line.
fn load_before(loads: &[Load], line: usize) -> Option<&Load> {
    loads[..loads.partition_point(|load| load.line < line)].last()
}

/// How many loads before an access are considered. Each may be in a block that some paths to the access bypass.
const PASSED_BY: usize = 16;

/// For each access, the visible load that provides its descriptor.
fn served<'a>(sm: Sm, lines: &[Line], uses: &[usize], loads: &'a [Load]) -> Vec<Option<&'a Load>> {
    let all_alike = loads.windows(2).all(|pair| pair[0].register == pair[1].register);
    if all_alike && follow(lines) {
        return uses.iter().map(|&line| load_before(loads, line)).collect();
    }
    // If a path bypasses a load and reaches the access, the load does not provide its descriptor.
    let passed_by = Flow::new(sm, lines).passed_by(loads.iter().map(|load| load.line));
    let serves = |load: usize, line| passed_by[load].is_none_or(|to| to > line);
    let load = |&line: &usize| {
        let before = loads.partition_point(|load| load.line < line);
        let load = (0..before).rev().take(PASSED_BY).find(|&load| serves(load, line))?;
        Some(&loads[load])
    };
    uses.iter().map(load).collect()
}

/// Sets the descriptors of unoptimized code. A copy provides the descriptor of one access only. The copy of the next
/// access may be a missing line.
fn set_copied(lines: &mut [Line], uses: &[usize], copies: &[Load]) {
    // The copy before the last access, and that access if it used the copy.
    let (mut last, mut served) = (None, None);
    for &line in uses {
        let copy = load_before(copies, line);
        let is_next = last != copy.map(|copy| copy.line);
        let serves = is_next || served.is_some_and(|served: usize| follow(&lines[served..=line]));
        (last, served) = (copy.map(|copy| copy.line), serves.then_some(line));
        lines[line].set(copy.filter(|_| serves).map_or(USUAL_DESCRIPTOR, |copy| copy.register));
    }
}

/// Whether the addresses of the lines are consecutive, so that no line is missing.
fn follow(lines: &[Line]) -> bool {
    lines.windows(2).all(|pair| pair[0].address.checked_add(INST_BYTES) == Some(pair[1].address))
}

fn loads(lines: &[Line]) -> Vec<Load> {
    let load = |line: usize| {
        let register = loaded(lines[line].inst.as_ref().ok()?)?;
        Some(Load { line, register })
    };
    (0..lines.len()).filter_map(load).collect()
}

/// The register into which the instruction loads the descriptor.
fn loaded(inst: &Inst) -> Option<u64> {
    let loads = inst.form().mnemonic == "ULDC"
        && inst.text(Field::Size) == Some(".64")
        && inst.get(Field::CBank) == Some(0)
        && inst.get(Field::COffset) == Some(DESCRIPTOR_OFFSET);
    inst.get(Field::URd).filter(|_| loads)
}

#[cfg(test)]
mod tests {
    use crate::assemble::assemble;
    use crate::{Field, Sm};

    /// The registers of the descriptors in lines with an address and a text.
    fn descriptors_on(sm: u8, lines: &str) -> Vec<u64> {
        let lines = lines.lines().map(|line| line.trim().split_once(' ').unwrap());
        let lines = lines.map(|(address, text)| (u64::from_str_radix(address, 16).unwrap(), text));
        let made = assemble(Sm(sm), lines).into_iter();
        made.filter_map(|inst| inst.unwrap().get(Field::UrDesc)).collect()
    }

    fn descriptors(lines: &str) -> Vec<u64> {
        descriptors_on(80, lines)
    }

    #[test]
    fn the_descriptor_is_in_the_pair_that_was_loaded_with_it() {
        assert_eq!(descriptors("0 LDG.E R5, [R2.64]"), [4]);
        let loads = "0 ULDC.64 UR6, c[0x0][0x118]\n10 LDG.E R5, [R2.64]\n30 BRA 0x30\n20 LDG.E R5, [R2.64]";
        assert_eq!(descriptors(loads), [6, 4]);
        let told = "0 ULDC.64 UR6, c[0x0][0x118]\n10 LDG.E R5, [R2.64] {UrDesc=0x8}\n20 ST.E [R2.64], R1";
        assert_eq!(descriptors(told), [8, 6]);
        let copied = "0 R2UR UR8, R6\n10 R2UR UR9, R7\n20 LD.E R5, [R2.64]\n40 LD.E R5, [R2.64]\n50 BRA 0x50";
        assert_eq!(descriptors(copied), [8, 4]);
    }

    #[test]
    fn a_load_that_a_way_passes_by_serves_its_block() {
        let lines = "0 ULDC.64 UR6, c[0x0][0x118]\n10 @P0 BRA 0x40\n20 ULDC.64 UR8, c[0x0][0x118]
            30 LDG.E R5, [R2.64]\n40 LDG.E R5, [R2.64]\n50 BRA 0x50";
        assert_eq!(descriptors(lines), [8, 6]);
    }

    #[test]
    fn without_a_load_it_is_in_the_lowest_pair_that_is_free() {
        let between = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 UIADD3 UR4, UR4, 0x1, URZ\n0 STG.E [R2.64], R1\n80 BRA 0x80";
        assert_eq!(descriptors(between), [6, 6]);
        let through = "0 UMOV UR5, 0x1\n20 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 MOV R1, UR5\n60 BRA 0x60";
        assert_eq!(descriptors(through), [6]);
        let behind = "0 MOV R1, UR4\n20 @P0 BRA 0x60\n0 LDG.E R5, [R2.64]\n0 UMOV UR4, 0x1\n60 BRA 0x60";
        assert_eq!(descriptors(behind), [4]);
        // The registers that missing lines use are below the visible ones, except for the descriptor's pair.
        let above =
            "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 UMOV UR6, 0x1\n0 STG.E [R2.64], R1\n80 BRA 0x80";
        assert_eq!(descriptors(above), [4, 4]);
        let far_above = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 MOV R1, UR6\n0 MOV R1, UR8\n80 BRA 0x80";
        assert_eq!(descriptors(far_above), [10]);
        // But not if no line except the load is missing.
        let complete =
            "0 MOV R1, UR4\n10 MOV R1, R2\n20 MOV R1, R2\n30 MOV R1, R2\n40 MOV R1, UR4\n60 LDG.E R5, [R2.64]
            70 UMOV UR8, 0x1\n80 MOV R1, UR8\n90 STG.E [R2.64], R1\na0 BRA 0xa0";
        assert_eq!(descriptors(complete), [4, 4]);
        assert_eq!(descriptors(&complete.replace("60 LDG", "0 LDG").replace("90 STG", "0 STG")), [6, 6]);
        let function =
            "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n30 CALL.ABS.NOINC R6\n0 STG.E [R2.64], R1\n80 BRA 0x80";
        assert_eq!(descriptors(function), [36, 36]);
    }

    #[test]
    fn a_load_that_is_missing_repeats_one_that_was_seen() {
        let between = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 UIADD3 UR4, UR4, 0x1, URZ\n0 STG.E [R2.64], R1\n80 BRA 0x80";
        let seen = |register| format!("0 ULDC.64 UR{register}, c[0x0][0x118]\n10 BRA 0x10\n");
        assert_eq!(descriptors(&(seen(6) + between)), [6, 6]);
        assert_eq!(descriptors(&(seen(10) + between)), [10, 10]);
        // Loaded after the line that reads another value.
        let later = "0 MOV R1, UR4\n0 MOV R1, R2\n0 LDG.E R5, [R2.64]\n40 BSSY B0, 0x60\n90 BRA 0x90";
        assert_eq!(descriptors(later), [6]);
        assert_eq!(descriptors(&(seen(4) + later)), [4]);
    }

    #[test]
    fn it_is_needed_where_code_may_come_back_to_an_access() {
        let out_of_line =
            "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n40 EXIT\n0 UMOV UR4, 0x1\n60 BRA 0x10\n90 BRA 0x90";
        assert_eq!(descriptors(out_of_line), [6]);
        let routine = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n30 CALL.REL.NOINC 0x60\n0 STG.E [R2.64], R1
            50 EXIT\n60 BSSY B0, 0x80\n0 UMOV UR4, 0x1\n80 RET.REL.NODEC R8 0x0\n90 BRA 0x90";
        assert_eq!(descriptors(routine), [6, 6]);
        let vote = routine.replace("0 UMOV UR4, 0x1", "70 WARPSYNC R9").replace("80 RET", "f0 RET");
        assert_eq!(descriptors(&vote.replace("90 BRA 0x90", "100 BRA 0x100")), [6, 6]);
    }

    #[test]
    fn routines_have_loads_of_their_own() {
        let lines = "0 ULDC.64 UR8, c[0x0][0x118]\n10 LDG.E R5, [R2.64]\n20 CALL.REL.NOINC 0x40\n30 EXIT
            40 LDG.E R5, [R2.64]\n50 RET.REL.NODEC R8 0x0\n60 BRA 0x60";
        assert_eq!(descriptors(lines), [8, 8]);
        assert_eq!(descriptors(&lines.replace("30 EXIT", "30 ULDC.64 UR4, c[0x0][0x118]")), [8, 4]);
        // The subroutine makes calls itself, so it preserves registers as any function does.
        let lines = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n30 CALL.REL.NOINC 0x60\n0 STG.E [R2.64], R1\n0 EXIT
            60 BSSY B0, 0x70\n70 CALL.REL.NOINC 0x60\n0 LDG.E R5, [R2.64]\n90 RET.REL.NODEC R20 0x0\na0 BRA 0xa0";
        assert_eq!(descriptors(lines), [36, 36, 4]);
    }

    #[test]
    fn it_is_loaded_in_front_of_loops_and_of_the_blocks_of_all_accesses() {
        let once = "0 MOV R1, UR4\n20 @P0 BRA 0x80\n0 LDG.E R5, [R2.64]\n50 BSSY B0, 0x70\n90 BRA 0x90";
        assert_eq!(descriptors(once), [4]);
        assert_eq!(descriptors(&once.replace("BSSY B0, 0x70", "BRA 0x10")), [6]);
        let two_ways = "10 @P0 BRA 0x60\n0 MOV R1, UR4\n0 LDG.E R5, [R2.64]\n60 BSSY B0, 0x90\n0 STG.E [R2.64], R1\n90 BRA 0x90";
        assert_eq!(descriptors(two_ways), [6, 6]);
        let front = "0 MOV R1, UR4\n".repeat(6)
            + "80 @P0 BRA 0xc0\n0 LDG.E R5, [R2.64]\nc0 BSSY B0, 0xe0\n0 STG.E [R2.64], R1\nf0 BRA 0xf0";
        assert_eq!(descriptors(&front), [4, 4]);
    }

    #[test]
    fn loops_without_a_general_register_to_count_in_count_in_uniform_ones() {
        let turn = |lines: &str| {
            let writes: String = (2..30).map(|register| format!("0 MOV R{register}, R0\n")).collect();
            format!(
                "10 BSSY B0, 0x400\n0 LDG.E R5, [R2.64]\n30 BSSY B1, 0x300\n0 LDS R0, [R4]\n{writes}{lines}300 @P0 BRA 0x30\n0 STG.E [R2.64], R1\n400 BRA 0x400"
            )
        };
        assert_eq!(descriptors(&turn("")), [6, 6]);
        assert_eq!(descriptors(&turn("").replace("MOV R9,", "MOV R8,")), [4, 4]);
        assert_eq!(descriptors(&turn("0 IADD3 R9, R9, 0x1, RZ\n")), [4, 4]);
        assert_eq!(descriptors(&turn("0 UIADD3 UR6, UR6, 0x1, URZ\n")), [4, 4]);
    }

    #[test]
    fn after_a_while_it_is_loaded_again() {
        let mut lines = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 UMOV UR4, 0x1\n".to_owned();
        lines += &"0 MOV R1, R2\n".repeat(300);
        lines += "0 STG.E [R2.64], R1\n2000 BRA 0x2000";
        assert_eq!(descriptors_on(80, &lines), [6, 6]);
        assert_eq!(descriptors_on(86, &lines), [4, 4]);
    }

    #[test]
    fn lines_of_other_functions_tell_nothing() {
        // There are more lines before the second address than there is room for; and a function has a single address.
        let crowded = "20 BRA 0x10\n0 MOV R1, UR4\n0 LDG.E R5, [R2.64]\n0 MOV R2, UR4\n40 BRA 0x10";
        assert_eq!(descriptors(crowded), [4]);
        let front =
            "0 MOV R1, R2\n0 MOV R1, UR4\n40 BSSY B0, 0x60\n0 LDG.E R5, [R2.64]\n80 BRA 0x80".to_owned();
        assert_eq!(descriptors(&front), [6]);
        assert_eq!(descriptors(&(front + &"\n0 MOV R1, R2".repeat(9))), [4]);
        let single = "0 MOV R1, UR4\n0 LDG.E R5, [R2.64]\n0 MOV R2, UR4\n1000 BRA 0x1000".to_owned();
        assert_eq!(descriptors(&single), [4]);
        assert_eq!(descriptors(&("0 MOV R1, R2\n".repeat(124) + &single)), [4]);
        assert_eq!(descriptors(&("0 MOV R1, R2\n".repeat(125) + &single)), [6]);
    }

    #[test]
    fn lines_behind_the_last_address_are_the_end_of_the_function() {
        let lines = "10 BSSY B0, 0x40\n0 LDG.E R5, [R2.64]\n0 MOV R1, R2\n40 BSSY B0, 0x60
            0 UIADD3 UR4, UR4, 0x1, URZ\n0 STG.E [R2.64], R1\n10 BSSY B0, 0x30\n40 BRA 0x40";
        assert_eq!(descriptors(lines), [6, 6]);
        assert_eq!(descriptors(&lines.replace("40 BSSY B0, 0x60", "40 BRA 0x40")), [4, 4]);
    }
}
