//! Checks when results are ready and when sources have been read. An instruction that issues too early is a fault.
//!
//! A result with a fixed latency is ready after the cycles in the latency tables. All other results, and sources that
//! are read after issue, are pending until the threads wait for a scoreboard: either the scoreboard that counts the
//! access, or one that a later instruction in the same queue set. So an access without a wait is never complete by
//! luck.
//!
//! Every group of threads has its own clock, which counts the cycles along its own path. So the time that other groups
//! of the warp spend does not hide a hazard.

use super::facts::Facts;
use super::step::Step;
use super::{Block, Result};
use crate::launch::FaultKind;
use ptx_backend::hazard::{Queue, SCOREBOARD_DELAY, forwards};
use ptx_backend::target::{HIDDEN_REGISTERS, MAX_REGISTERS};
use sass::{RegFile, RegUse, Role, Sm, latency};
use std::ops::Range;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PendingAccess {
    FixedWrite,
    VariableWrite,
    LateRead,
    /// A scoreboard was set. A wait does not see this immediately.
    Set,
}

/// The operand of an event that concerns no operand.
const NONE: RegUse = RegUse { file: RegFile::R, index: 0, count: 0, role: Role::Dst };

/// An operand that an earlier instruction still accesses.
#[derive(Clone, Debug)]
struct InProgress {
    access: PendingAccess,
    at: u32,
    operand: RegUse,
    registers: Range<u16>,
    /// The threads that have not waited for the access.
    lanes: u32,
    issued: u64,
    /// The instruction's number in the sequence of all that the warp has issued.
    order: u64,
    /// The scoreboards that tell about the access. It is complete if any of them is zero.
    told_by: u8,
    /// The number of cycles after which the access is complete for all threads. If this is unknown, only a wait tells.
    cycles: u64,
}

/// An event that a scoreboard counts until it is zero.
#[derive(Clone, Copy, Debug)]
struct Counted {
    scoreboard: u8,
    order: u64,
    queue: Option<Queue>,
    lanes: u32,
}

/// The largest count of a scoreboard.
const MOST_COUNTED: usize = 63;

/// An operand cache: the register that the previous instruction left in it, and whether the register has been written
/// since.
#[derive(Clone, Copy, Debug)]
struct Cached {
    register: u8,
    stale: bool,
}

impl InProgress {
    fn until(&self) -> u64 {
        self.issued.saturating_add(self.cycles)
    }
}

/// The accesses in progress in a warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    in_progress: Vec<InProgress>,
    /// In the order of issue.
    counted: Vec<Counted>,
    /// The number of instructions issued.
    order: u64,
    caches: [Option<Cached>; 3],
}

impl Timing {
    /// Joins groups, each with its threads and its clock. They continue with the largest clock. An access in progress
    /// in several groups counts from the path with the fewest cycles.
    pub(super) fn align(&mut self, groups: &[(u32, u64)]) {
        let ahead = groups.iter().map(|group| group.1).max().unwrap_or(0);
        let all = groups.iter().fold(0, |lanes, group| lanes | group.0);
        for i in 0..self.in_progress.len() {
            let access = &mut self.in_progress[i];
            let behind = groups.iter().filter(|(lanes, _)| lanes & access.lanes != 0);
            let behind = behind.map(|(_, clock)| ahead - clock).max().unwrap_or(0);
            if behind == 0 {
                continue;
            }
            // Threads in other groups keep their clock.
            let others = InProgress { lanes: access.lanes & !all, ..access.clone() };
            access.lanes &= all;
            access.issued += behind;
            if others.lanes != 0 {
                self.in_progress.push(others);
            }
        }
    }

    /// Marks the warpgroup's products as complete, except those at the given positions.
    pub(super) fn finish_products(&mut self, code: &[Step], left: &[u32]) {
        self.in_progress
            .retain(|access| !code[access.at as usize].inst.is_group_product() || left.contains(&access.at));
    }

    /// Issues an instruction at `now` for a group. The instruction acts in the threads `active` of the group.
    fn issue(
        &mut self,
        sm: Sm,
        code: &[Step],
        at: u32,
        now: u64,
        [group, active]: [u32; 2],
    ) -> std::result::Result<(), String> {
        let step = &code[at as usize];
        let facts = &step.facts;
        if facts.waits != 0 {
            for access in &self.in_progress {
                let sees = access.access == PendingAccess::Set && access.lanes & group != 0;
                if sees && access.told_by & facts.at_issue != 0 && now < access.until() {
                    return Err("waits for a scoreboard that was set just before".into());
                }
            }
            for access in self.in_progress.iter_mut().filter(|access| access.told_by & facts.waits != 0) {
                access.lanes &= !group;
            }
        }
        self.counted.retain(|set| set.scoreboard & facts.waits == 0 || set.lanes & !group != 0);
        if let Some((scoreboard, left)) = facts.counted {
            self.wait_but(code, scoreboard, left, group);
        }
        self.order += 1;
        // The clock of these threads says nothing about accesses of other threads.
        self.in_progress
            .retain(|access| access.lanes != 0 && (access.lanes & !group != 0 || now < access.until()));
        for access in &self.in_progress {
            endangered(sm, code, step, access, now, [group, active])?;
        }
        self.cached(facts)?;
        self.start(sm, code, at, now, [group, active]);
        Ok(())
    }

    /// Waits until a scoreboard counts at most `left` events. The operations of one queue complete in order. If a
    /// scoreboard counts operations of several queues, the wait says nothing about their order.
    fn wait_but(&mut self, code: &[Step], scoreboard: u8, left: usize, group: u32) {
        let sets =
            self.counted.iter().filter(|set| set.scoreboard & scoreboard != 0 && set.lanes & group != 0);
        let sets: Vec<Counted> = sets.copied().collect();
        let Some(last) = sets.len().checked_sub(left + 1).map(|last| sets[last]) else { return };
        if last.queue.is_none() || sets.iter().any(|set| set.queue != last.queue) {
            return;
        }
        for access in &mut self.in_progress {
            let earlier = &code[access.at as usize].facts;
            let queue = match access.access {
                PendingAccess::VariableWrite => earlier.write_queue,
                PendingAccess::LateRead => earlier.read_queue,
                PendingAccess::FixedWrite | PendingAccess::Set => None,
            };
            if queue == last.queue && access.order <= last.order {
                access.lanes &= !group;
            }
        }
    }

    /// Checks reads of the operand caches, and records what is left in them for the next instruction.
    fn cached(&mut self, facts: &Facts) -> std::result::Result<(), String> {
        for (cache, slot) in self.caches.iter().zip(facts.slots) {
            if let (Some(cached), Some(register)) = (cache, slot)
                && cached.stale
                && cached.register == register
            {
                return Err(format!("reads R{register} from an operand cache that holds an older value"));
            }
        }
        let written = |register: u8| {
            facts.writes.iter().any(|(def, range)| def.file == RegFile::R && range.contains(&register.into()))
        };
        for (slot, cache) in self.caches.iter_mut().enumerate() {
            *cache = facts.slots[slot]
                .filter(|_| facts.kept >> slot & 1 == 1)
                .map(|register| Cached { register, stale: written(register) });
        }
        Ok(())
    }

    /// Adds the accesses that an instruction leaves in progress.
    fn start(&mut self, sm: Sm, code: &[Step], at: u32, now: u64, [group, active]: [u32; 2]) {
        let step = &code[at as usize];
        let facts = &step.facts;
        let both = facts.write_sb | facts.read_sb;
        if facts.drains {
            self.in_progress.retain(|access| {
                let queue = code[access.at as usize].facts.read_queue;
                access.access != PendingAccess::LateRead || queue != Some(Queue::Memory)
            });
        }
        if both != 0 {
            let same = |a: Option<Queue>, b: Option<Queue>| a.is_some() && a == b;
            for access in self.in_progress.iter_mut().filter(|access| access.lanes & !group == 0) {
                let earlier = &code[access.at as usize].facts;
                access.told_by |= match access.access {
                    PendingAccess::VariableWrite if same(facts.write_queue, earlier.write_queue) => {
                        facts.write_sb
                    }
                    PendingAccess::LateRead if same(facts.read_queue, earlier.read_queue) => both,
                    _ => 0,
                };
            }
        }
        if both != 0 {
            let sets = [(facts.write_sb, facts.write_queue), (facts.read_sb, facts.read_queue)];
            for (scoreboard, queue) in sets.into_iter().filter(|(scoreboard, _)| *scoreboard != 0) {
                self.counted.push(Counted { scoreboard, order: self.order, queue, lanes: group });
            }
            let surplus = self.counted.len().saturating_sub(MOST_COUNTED * 6);
            self.counted.drain(..surplus);
            self.in_progress.push(InProgress {
                access: PendingAccess::Set,
                at,
                operand: NONE,
                registers: 0..0,
                lanes: group,
                issued: now,
                order: self.order,
                told_by: both,
                cycles: SCOREBOARD_DELAY.into(),
            });
        }
        let order = self.order;
        let mut add = |access, (operand, range): &(RegUse, Range<u16>), told_by| {
            let lanes = if matches!(operand.file, RegFile::UR | RegFile::UP) { group } else { active };
            let new = InProgress {
                access,
                at,
                operand: *operand,
                registers: range.clone(),
                lanes,
                issued: now,
                order,
                told_by,
                cycles: match access {
                    PendingAccess::FixedWrite => latency::longest(sm, &step.inst, operand).into(),
                    _ => u64::MAX,
                },
            };
            // For the same access in an earlier loop iteration, the later one completes last.
            self.in_progress.retain(|old| {
                old.at != at || old.operand != *operand || old.lanes & !lanes != 0 || old.access != access
            });
            if lanes != 0 {
                self.in_progress.push(new);
            }
        };
        for operand in &facts.writes {
            let access =
                if facts.variable { PendingAccess::VariableWrite } else { PendingAccess::FixedWrite };
            // The scoreboard that says that an atomic has read its sources also says that its predicate is written.
            let predicate = operand.0.file == RegFile::P && facts.atomic;
            add(access, operand, if predicate { both } else { facts.write_sb });
        }
        if facts.late {
            // All instructions read uniform registers at issue.
            for operand in facts.reads.iter().filter(|(operand, _)| operand.file == RegFile::R) {
                add(PendingAccess::LateRead, operand, both);
            }
        }
    }
}

/// Returns an error if an instruction conflicts with an operand that is in progress.
fn endangered(
    sm: Sm,
    code: &[Step],
    step: &Step,
    earlier: &InProgress,
    now: u64,
    [group, active]: [u32; 2],
) -> std::result::Result<(), String> {
    // The clocks of other threads are irrelevant here.
    if earlier.registers.is_empty() || earlier.lanes & group == 0 {
        return Ok(());
    }
    let producer = &code[earlier.at as usize];
    let overlaps =
        |range: &Range<u16>| range.start < earlier.registers.end && earlier.registers.start < range.end;
    let passed = now - earlier.issued;
    let complain = |what: &str, needed: u8| {
        let needed = if needed == latency::UNKNOWN { "a wait".into() } else { format!("{needed} cycles") };
        let name = producer.inst.form().mnemonic;
        let RegUse { file, index, .. } = earlier.operand;
        Err(format!("{what} {file:?}{index} of {name} at {} after {passed} of {needed}", earlier.at))
    };
    let late = |needed: u8| needed == latency::UNKNOWN || passed < needed.into();
    // Products of a warpgroup add to the same accumulator in order.
    let in_order = producer.inst.is_group_product() && step.inst.is_group_product();
    if earlier.access != PendingAccess::LateRead {
        for (read, range) in &step.facts.reads {
            if in_order && read.role == Role::C {
                continue;
            }
            let lanes = match read.role {
                Role::Guard => group,
                _ if matches!(read.file, RegFile::UR | RegFile::UP) => group,
                _ => active,
            };
            let shared = lanes & earlier.lanes != 0 && overlaps(range);
            if shared && !forwards(sm, &producer.inst, &step.inst, read) {
                let needed = latency::raw(sm, &producer.inst, &earlier.operand, &step.inst, read);
                if late(needed) {
                    return complain("reads", needed);
                }
            }
        }
    }
    for (over, range) in &step.facts.writes {
        let lanes = if matches!(over.file, RegFile::UR | RegFile::UP) { group } else { active };
        if lanes & earlier.lanes == 0 || !overlaps(range) || in_order {
            continue;
        }
        let ours = &step.facts;
        let in_order = |a: Option<Queue>, b: Option<Queue>| a.is_some() && a == b;
        if earlier.access == PendingAccess::LateRead {
            // A write in the same queue happens later.
            if !in_order(producer.facts.read_queue, ours.read_queue) {
                return complain("overwrites the source", latency::UNKNOWN);
            }
        } else if !in_order(producer.facts.write_queue, ours.write_queue) {
            let needed = latency::waw(sm, &producer.inst, &earlier.operand, &step.inst, over);
            if late(needed) {
                return complain("overwrites", needed);
            }
        }
    }
    Ok(())
}

impl Block<'_> {
    /// Issues an instruction for a group. The registers that it uses must be free.
    pub(super) fn issue(&mut self, w: usize, g: usize, active: u32) -> Result<()> {
        let machine = self.machine;
        let warp = &mut self.warps[w];
        let group = &mut warp.groups[g];
        let (at, now, mask) = (group.pc, group.clock, group.mask);
        let step = &machine.code[at as usize];
        group.clock += step.facts.stall;
        if let Some(why) = step.facts.illegal {
            let name = step.inst.form().mnemonic;
            return Err(FaultKind::Malformed(format!("{name} is an illegal instruction: {why}")));
        }
        if step.facts.named + HIDDEN_REGISTERS > warp.held.min(MAX_REGISTERS) && step.facts.named > 0 {
            let (name, named, held) = (step.inst.form().mnemonic, step.facts.named - 1, warp.held);
            return Err(FaultKind::Hazard(format!(
                "{name} names R{named} where a thread has {held} registers"
            )));
        }
        warp.timing
            .issue(machine.sm, &machine.code, at, now, [mask, active])
            .map_err(|what| FaultKind::Hazard(format!("{} {what}", step.inst.form().mnemonic)))
    }
}

#[cfg(test)]
mod tests {
    use crate::Launch;
    use crate::machine::run;
    use crate::machine::testing::{device, kernel};
    use sass::Sm;

    const SM: Sm = Sm(80);

    fn fault(lines: &[&str]) -> String {
        fault_on(SM, lines)
    }

    fn fault_on(sm: Sm, lines: &[&str]) -> String {
        let result = run(&kernel(sm, lines), &Launch::new(1, 32, Vec::new()), &mut device(sm));
        result.map_or_else(|fault| fault.to_string(), |_| String::new())
    }

    /// Threads add one to the same word, one after the other, until each has stored its sum.
    #[test]
    fn a_tested_store_tells_whether_it_stored() {
        let lines = [
            "s5: MOV R0, RZ",
            "s4: BSSY.RECONVERGENT B0, 0x70",
            "s4 r1: STS [R0+0x400], RZ",
            "s4 ?1 w0: LDS R3, [R0+0x400]",
            "s8 ?0: VIADD R4, R3, 0x1",
            "s4 w0: ATOMS.CAST.SPIN P0, [R0+0x400], R3, R4",
            "s5 ?0: @!P0 BRA 0x30",
            "s5: BSYNC.RECONVERGENT B0",
            "s4 w0: LDS R5, [R0+0x400]",
            "s13 ?0: ISETP.NE.AND P1, PT, R5, 0x20, PT",
            "s5: @P1 BPT.TRAP",
        ];
        assert_eq!(fault_on(Sm(100), &lines), "");
    }

    #[test]
    fn fixed_latencies() {
        assert_eq!(fault(&["s4: MOV R0, 0x1", "s4: IADD3 R1, R0, R0, RZ"]), "");
        assert_eq!(
            fault(&["s3: MOV R0, 0x1", "s4: IADD3 R1, R0, R0, RZ"]),
            "at 1: too early: IADD3 reads R0 of MOV at 0 after 3 of 4 cycles"
        );
        assert_eq!(
            fault(&["s4: ISETP.NE.AND P0, PT, RZ, RZ, PT", "s1: @P0 MOV R0, 0x1"]),
            "at 1: too early: MOV reads P0 of ISETP at 0 after 4 of 13 cycles"
        );
        assert_eq!(
            fault(&["s1: UMOV UR4, 0x1", "s1: UIADD3 UR5, UR4, 0x1, URZ"]),
            "at 1: too early: UIADD3 reads UR4 of UMOV at 0 after 1 of 2 cycles"
        );
    }

    #[test]
    fn scoreboards() {
        let load = "s2 w0: MUFU.RCP R0, R2";
        assert_eq!(fault(&[load, "s4 ?0: FADD R1, R0, R0"]), "");
        assert_eq!(
            fault(&[load, "s4 ?1: FADD R1, R0, R0"]),
            "at 1: too early: FADD reads R0 of MUFU at 0 after 2 of a wait"
        );
        assert_eq!(
            fault(&[load, "s4: MOV R0, 0x1"]),
            "at 1: too early: MOV overwrites R0 of MUFU at 0 after 2 of a wait"
        );
        assert_eq!(
            fault(&["s1 w0: MUFU.RCP R0, R2", "s4 ?0: FADD R1, R0, R0"]),
            "at 1: too early: FADD waits for a scoreboard that was set just before"
        );
        // The unit completes in order, so the scoreboard of a later result also signals the earlier one.
        assert_eq!(fault(&["s2: MUFU.RCP R0, R2", "s2 w1: MUFU.RCP R3, R2", "s4 ?1: FADD R1, R0, R0"]), "");
    }

    /// A scoreboard with a count of at most one shows that the first of two results is ready, but only if both are from
    /// one unit.
    #[test]
    fn scoreboards_that_count() {
        let wait = "s4: DEPBAR.LE SB0, 0x1";
        let two = |second| ["s2 w0: MUFU.RCP R0, R2", second, wait, "s4: FADD R1, R0, R0"];
        assert_eq!(fault(&two("s2 w0: MUFU.RCP R3, R2")), "");
        let other = "at 3: too early: FADD reads R0 of MUFU at 0 after 8 of a wait";
        assert_eq!(fault(&two("s2 w0: S2R R3, SR_LANEID")), other);
        let last = ["s2 w0: MUFU.RCP R0, R2", wait, "s4: FADD R1, R0, R0"];
        assert_eq!(fault(&last), "at 2: too early: FADD reads R0 of MUFU at 0 after 6 of a wait");
    }

    #[test]
    fn sources_that_are_read_late() {
        assert_eq!(
            fault(&["s2: STS [RZ], R2", "s4: MOV R2, 0x1"]),
            "at 1: too early: MOV overwrites the source R2 of STS at 0 after 2 of a wait"
        );
        assert_eq!(fault(&["s2 r0: STS [RZ], R2", "s4 ?0: MOV R2, 0x1"]), "");
    }

    #[test]
    fn operand_caches() {
        assert_eq!(fault(&["s4 u1: FADD R3, R2, R2", "s4: FADD R4, R2, R2"]), "");
        assert_eq!(
            fault(&["s4 u1: FADD R2, R2, R2", "s4: FADD R4, R2, R2"]),
            "at 1: too early: FADD reads R2 from an operand cache that holds an older value"
        );
    }

    /// Instructions of other threads do not add cycles to a path.
    #[test]
    fn each_path_has_its_time() {
        let lines = |branch: &'static str| {
            [
                "s8 w0: S2R R1, SR_LANEID",
                "s13 ?0: ISETP.GT.AND P0, PT, R1, 0x4, PT",
                "s1: MOV R2, 0x3",
                branch,
                "s4: NOP",
                "s4: NOP",
                "s4: NOP",
                "s4: IMAD.WIDE.U32 R4, R2, R2, RZ",
            ]
        };
        assert_eq!(fault(&lines("s5: @P0 BRA 0x70")), "");
        assert_eq!(
            fault(&lines("s2: @P0 BRA 0x70")),
            "at 7: too early: IMAD reads R2 of MOV at 2 after 3 of 5 cycles"
        );
    }
}
