//! Control flow, convergence, barriers, and operations on several lanes of a warp.

use super::record::Meeting;
use super::step::What;
use super::system::{self, instruction_at};
use super::{Block, Group, INSTRUCTION, Machine, Result, State, WARP, Warp, each};
use crate::float::F32;
use crate::launch::FaultKind;
use sass::Field;

/// A barrier of the block.
#[derive(Clone, Copy, Default)]
pub(super) struct Barrier {
    /// The number of threads that have arrived without waiting.
    arrived: u32,
    /// The number of threads that must arrive; zero means all.
    expected: u32,
    /// The number of waiting threads whose predicate was true.
    ones: u32,
}

/// The position of a warp's number, and of the number of warps, in the special registers that contain them.
const VIRTUAL_WARP: u32 = 1 << 8;

/// All lanes of the quads that contain lanes of the mask.
fn of_quads(mask: u32) -> u32 {
    let each_first = (0..4).fold(0, |first, lane| first | mask >> lane) & 0x1111_1111;
    each_first * 0xf
}

impl Block<'_> {
    /// Executes the group's next instruction.
    pub(super) fn step(&mut self, w: usize, g: usize) -> Result<()> {
        let machine = self.machine;
        let Group { pc, mask, .. } = self.warps[w].groups[g];
        if let Some(function) = system::at(pc) {
            return match function {
                system::Function::System(system) => self.call_system(w, g, system),
                system::Function::Driver(function) => self.call_driver(w, g, function),
            };
        }
        let step = machine.code.get(pc as usize);
        let step = step.ok_or_else(|| FaultKind::Malformed("control runs out of the code".into()))?;
        let executing = (mask | self.warps[w].helpers) & step.lanes;
        let active = self.guarded(w, executing, step.uniform_guard, step.guard);
        self.covered[pc as usize] |= active != 0;
        // A wait for the scoreboard of copies waits for all closed groups.
        let scoreboard = self.warps[w].copies_scoreboard;
        if scoreboard.is_some_and(|scoreboard| step.inst.control.wait >> scoreboard & 1 == 1) {
            self.land(w, mask, Some(0))?;
        }
        let scoreboard = self.warps[w].bulk_scoreboard;
        if scoreboard.is_some_and(|scoreboard| step.inst.control.wait >> scoreboard & 1 == 1) {
            self.finish_bulk(w, 0)?;
        }
        // Helper lanes have the clocks of other groups.
        self.issue(w, g, active & mask)?;
        let transfers = self.transfers.count();
        self.record(w, pc, active)?;
        match step.what {
            What::Sync(name) => return self.sync(w, g, active, name),
            _ if active == 0 => {}
            What::Compute(compute) => self.compute(w, active, pc, compute)?,
            What::Memory(name) => self.access(w, active, pc, name)?,
            What::Matrix(name) => self.matrix(w, active, pc, name)?,
            What::Barrier(name) => self.barrier_object(w, active, pc, name)?,
            What::Bulk(name) => self.bulk(w, active, pc, name)?,
            What::Texture(name) => self.texture(w, active, pc, name)?,
            What::Tensor(name) => self.tensor(w, active, pc, name)?,
            What::Warpgroup => {
                if !self.warpgroup(w, active, pc)? {
                    // The warp waits for other warps of the warpgroup.
                    self.unrecord();
                    self.warps[w].went_back = true;
                    return Ok(());
                }
            }
            What::Unknown => {
                return Err(FaultKind::Unsupported(sass::print(
                    machine.sm,
                    &step.inst,
                    u64::from(pc * INSTRUCTION),
                )));
            }
        }
        self.record_effects(w, pc, active, transfers)?;
        self.warps[w].groups[g].pc = pc + 1;
        Ok(())
    }

    fn guarded(&self, w: usize, mask: u32, uniform: bool, p: super::operand::Predicate) -> u32 {
        if p.index == 7 {
            return if p.negated { 0 } else { mask };
        }
        let warp = &self.warps[w];
        let word = match uniform {
            true => u32::from(warp.uniform_predicates[usize::from(p.index)]).wrapping_neg(),
            false => warp.predicates[usize::from(p.index)],
        };
        mask & if p.negated { !word } else { word }
    }

    fn sync(&mut self, w: usize, g: usize, active: u32, name: &'static str) -> Result<()> {
        let machine = self.machine;
        let Group { pc, mask, .. } = self.warps[w].groups[g];
        let step = &machine.code[pc as usize];
        let inst = &step.inst;
        let form = inst.form();
        let unsupported =
            || Err(FaultKind::Unsupported(sass::print(machine.sm, inst, u64::from(pc * INSTRUCTION))));
        let barrier = inst.get(Field::Barrier).unwrap_or(0) as usize;
        let relative = |base: u64| -> Result<u32> {
            let address = u64::from(INSTRUCTION * (pc + 1))
                .wrapping_add(inst.get(Field::Target).unwrap_or(0))
                .wrapping_add(base);
            instruction_at(address)
        };
        // Control transfers have a second condition.
        let uniform_condition = form.name == "BRA.U";
        let condition = match uniform_condition {
            true => self.guarded(w, active, true, step.predicates[1]),
            false => active,
        };
        let mut taken = self.guarded(w, condition, false, step.predicates[0]);
        // If any thread takes the branch, all do.
        if inst.text(Field::Mode) == Some(".U.ANY") && taken != 0 {
            taken = mask;
        }
        match name {
            "BRA" if form.name == "BRA.DIV" => {
                const CONVERGED: u64 = 3;
                let wants_converged = inst.get(Field::Mode) == Some(CONVERGED);
                // Without a register with a mask, the operation concerns the whole warp.
                let members = match inst.get(Field::Ur) {
                    Some(index) => {
                        let word = self.warps[w].uniform[index as usize];
                        if inst.get(Field::NegA) == Some(1) { !word } else { word }
                    }
                    None => self.warps[w].live(),
                };
                let is_converged = active == members & self.warps[w].live();
                // Under a condition, the members differ between the threads for which it is true and the others, so all
                // take the path for diverged threads.
                let goes = if is_converged == wants_converged { mask } else { 0 };
                let target = relative(0)?;
                self.jump(w, g, goes, |_| target);
                return Ok(());
            }
            "BRA" => {
                let target = relative(0)?;
                self.jump(w, g, taken, |_| target);
                return Ok(());
            }
            "CALL" | "RET" | "BRX" | "BRXU" => {
                let mut targets = [0; WARP];
                for lane in each(taken) {
                    let register = self.pair(w, lane, step.sources[0], false)?;
                    targets[lane] = match form.name {
                        "CALL.ABS" | "RET.ABS" => {
                            let address = register.wrapping_add(inst.get(Field::Target).unwrap_or(0));
                            instruction_at(address)?
                        }
                        _ => relative(register)?,
                    };
                }
                self.jump(w, g, taken, |lane| targets[lane]);
                return Ok(());
            }
            "LEPC" => {
                // Without a distance, the target is the instruction itself.
                let own = u64::from(INSTRUCTION * pc);
                let distance =
                    inst.get(Field::Target).map(|distance| distance.wrapping_add(INSTRUCTION.into()));
                let address = own.wrapping_add(distance.unwrap_or(0));
                for lane in each(active) {
                    self.set_register(w, lane, step.rd, address as u32);
                    self.set_register(w, lane, step.rd + 1, (address >> 32) as u32);
                }
            }
            "EXIT" => {
                self.land(w, taken, None)?;
                let group = &mut self.warps[w].groups[g];
                (group.pc, group.mask) = (pc + 1, mask & !taken);
                self.warps[w].groups.retain(|group| group.mask != 0);
                self.settle(w)?;
                return Ok(());
            }
            "BPT" => return if active != 0 { Err(FaultKind::Trap) } else { self.go_on(w, g) },
            "BSSY" => {
                // In code of ptxas, threads always meet at a higher address.
                if relative(0)? <= pc {
                    return Err(FaultKind::Malformed("threads meet before the instruction".to_owned()));
                }
                each(active).for_each(|lane| self.warps[w].convergence[barrier][lane] = active);
            }
            "BSYNC" => {
                // Groups that diverged before may each have set the barrier. How the hardware behaves if these wait as
                // one group is unknown.
                let live = self.warps[w].live();
                let set = |lane: usize| self.warps[w].convergence[barrier][lane] & live;
                let first = set(taken.trailing_zeros() as usize % WARP);
                if each(taken).any(|lane| set(lane) != first) {
                    return Err(FaultKind::Malformed(format!(
                        "threads that set B{barrier} apart wait as one group"
                    )));
                }
                let firmly = inst.text(Field::Mode) == Some(".RECONVERGENT");
                self.park(w, g, taken, State::Converges { barrier: barrier as u8, firmly });
                return self.settle(w);
            }
            "BREAK" => {
                self.warps[w].convergence[barrier].iter_mut().for_each(|members| *members &= !taken);
                self.warps[w].groups[g].pc = pc + 1;
                return self.settle(w);
            }
            "BMOV" if form.name == "BMOV.32.STATE" && inst.text(Field::Special) == Some("MACTIVE") => {
                match form.shape {
                    "s" => each(mask).for_each(|lane| self.warps[w].convergence[barrier][lane] = mask),
                    _ => {
                        let set = |lane: usize| self.warps[w].convergence[barrier][lane];
                        if each(mask).any(|lane| set(lane) != mask) {
                            let what = format!("B{barrier} has not the threads that are to be active");
                            return Err(FaultKind::Malformed(what));
                        }
                        let quads = inst.get(Field::Flag) == Some(1);
                        self.warps[w].helpers = if quads { of_quads(mask) & !mask } else { 0 };
                    }
                }
            }
            "BMOV" if form.name == "BMOV.32" => {
                for lane in each(active) {
                    if form.shape == "r" {
                        self.warps[w].convergence[barrier][lane] = self.bits(w, lane, step.sources[1])?;
                    } else {
                        let value = self.warps[w].convergence[barrier][lane];
                        self.set_register(w, lane, step.rd, value);
                        if inst.get(Field::Flag) == Some(1) {
                            self.warps[w].convergence[barrier][lane] = 0;
                        }
                    }
                }
            }
            // The threads that met execute the code after `.COLLECTIVE` together.
            "WARPSYNC" => {
                let mut members = [u32::MAX; WARP];
                for lane in each(active).filter(|_| !form.name.ends_with(".ALL")) {
                    members[lane] = match inst.get(Field::Imm32) {
                        Some(members) => members as u32,
                        None => {
                            let source = if inst.has(Field::Ra) { step.sources[0] } else { step.sources[1] };
                            self.bits(w, lane, source)?
                        }
                    };
                }
                if let Some(lane) = each(active).find(|lane| members[*lane] >> lane & 1 == 0) {
                    let what = format!("thread {lane} waits for {:#x} without itself", members[lane]);
                    return Err(FaultKind::Malformed(what));
                }
                let live = self.warps[w].live();
                let is_met = each(active).all(|lane| members[lane] & live & !active == 0);
                // Hardware tests showed that waiting threads yield.
                if !is_met {
                    self.let_go(w, active);
                }
                // Threads in the same group diverge only if the instruction requires it, or for code that the members
                // execute together.
                if form.name.starts_with("WARPSYNC.COLLECTIVE") {
                    let target = relative(0)?;
                    each(active).for_each(|lane| self.warps[w].collective[lane] = target);
                    let collects = |group, named| Group { state: State::Collects(named), ..group };
                    self.part(w, g, active, |lane| members[lane], collects);
                    return self.settle(w);
                }
                let says_so = inst.text(Field::Mode) == Some(".EXCLUSIVE");
                if says_so || !is_met {
                    return self.meet(w, g, active, |lane| members[lane]);
                }
            }
            "ENDCOLLECTIVE" => {
                let targets = self.warps[w].collective;
                self.jump(w, g, active, |lane| targets[lane]);
                return Ok(());
            }
            // If its guard is false in all threads, the barrier does not count the warp.
            "BAR" if active == 0 => {}
            "BAR" if active != self.warps[w].live() => {
                return Err(FaultKind::Malformed(
                    "a barrier of the block counts warps, and threads of this one are elsewhere".to_owned(),
                ));
            }
            "BAR" => return self.barrier(w, g, active),
            "B2R" => {
                let [count, holds] = self.warps[w].reduction;
                for lane in each(active) {
                    self.set_register(w, lane, step.rd, count);
                    self.set_predicate(w, lane, false, step.pd, holds != 0);
                }
            }
            "SHFL" => self.shuffle(w, active, pc)?,
            // Each lane of a quad has two bits. Those of the first lane are the highest.
            "FSWZADD" => {
                for lane in each(active) {
                    let [a, b] = [step.sources[0], step.sources[2]].map(|source| self.bits(w, lane, source));
                    let (a, b) = (f32::from_bits(a?), f32::from_bits(b?));
                    let signs = inst.get(Field::Imm32).unwrap_or(0) >> (2 * (3 - lane % 4)) & 3;
                    let sum = [a + b, a - b, b - a, b][signs as usize];
                    self.set_register(w, lane, step.rd, sum.to_bits());
                }
            }
            "VOTE" | "VOTEU" => {
                let ones = self.guarded(w, active, false, step.predicates[0]);
                let holds = match inst.get(Field::Mode) {
                    Some(0) => ones == active,
                    Some(1) => ones != 0,
                    _ => ones == 0 || ones == active,
                };
                if name == "VOTEU" {
                    self.set_uniform(w, step.rd, ones);
                    self.set_predicate(w, 0, true, step.pd, holds);
                } else {
                    for lane in each(active) {
                        self.set_register(w, lane, step.rd, ones);
                        self.set_predicate(w, lane, false, step.pd, holds);
                    }
                }
            }
            "MATCH" => {
                let wide = inst.get(Field::Wide) == Some(1);
                let mut values = [0; WARP];
                for lane in each(active) {
                    let source = step.sources[0];
                    values[lane] = if wide {
                        self.pair(w, lane, source, false)?
                    } else {
                        self.bits(w, lane, source)?.into()
                    };
                }
                for lane in each(active) {
                    let same =
                        each(active).filter(|&l| values[l] == values[lane]).fold(0u32, |m, l| m | 1 << l);
                    let all = same == active;
                    let any = form.name == "MATCH.ANY";
                    self.set_register(w, lane, step.rd, if any || all { same } else { 0 });
                    self.set_predicate(w, lane, false, step.pd, all);
                }
            }
            "REDUX" => {
                let mut values = Vec::new();
                for lane in each(active) {
                    values.push(self.bits(w, lane, step.sources[0])?);
                }
                let values = values.into_iter();
                let signed = inst.get(Field::Signed) == Some(1);
                let flip = if signed { 1 << 31 } else { 0 };
                let result = match inst.get(Field::Op) {
                    Some(0) => values.fold(u32::MAX, |x, y| x & y),
                    Some(1) => values.fold(0, |x, y| x | y),
                    Some(2) => values.fold(0, |x, y| x ^ y),
                    Some(3) => values.fold(0, u32::wrapping_add),
                    Some(4) => values.map(|x| x ^ flip).min().unwrap_or(0) ^ flip,
                    _ => values.map(|x| x ^ flip).max().unwrap_or(0) ^ flip,
                };
                self.set_uniform(w, step.rd, result);
            }
            "CREDUX" if inst.text(Field::Type) == Some(".F32") => {
                let operation = inst.text(Field::Op).unwrap_or("");
                let keep = if operation.ends_with("ABS") { F32.sign() - 1 } else { u64::MAX };
                let nan = inst.get(Field::Mode) == Some(1);
                let mut result = None;
                for lane in each(active) {
                    let value = u64::from(self.bits(w, lane, step.sources[0])?) & keep;
                    let greatest = operation.starts_with(".MAX");
                    result = Some(result.map_or(value, |r| F32.extremum(r, value, greatest, nan)));
                }
                self.set_uniform(w, step.rd, result.unwrap_or(0) as u32);
            }
            "CREDUX" => {
                let flip = if inst.text(Field::Type) == Some(".S32") { 1 << 31 } else { 0 };
                let mut values = Vec::new();
                for lane in each(active) {
                    values.push(self.bits(w, lane, step.sources[0])? ^ flip);
                }
                let result = match inst.text(Field::Op) {
                    Some(".MIN") => values.into_iter().min(),
                    Some(".MAX") => values.into_iter().max(),
                    _ => return unsupported(),
                };
                self.set_uniform(w, step.rd, result.unwrap_or(0) ^ flip);
            }
            "ELECT" => {
                let leader = active.trailing_zeros();
                self.set_uniform(w, step.rd, leader);
                for lane in each(active) {
                    self.set_predicate(w, lane, false, step.pd, lane as u32 == leader);
                }
            }
            "R2UR" if active != 0 => {
                // If the lanes differ, it takes the value of the first lane and marks the others. Loops over the values
                // rely on this.
                let value = self.bits(w, active.trailing_zeros() as usize, step.sources[0])?;
                let adds = form.name == "R2UR.OR";
                for lane in each(active).filter(|_| step.pd != 7) {
                    let marked = adds && self.warps[w].predicates[usize::from(step.pd)] >> lane & 1 == 1;
                    let differs = self.bits(w, lane, step.sources[0])? != value;
                    self.set_predicate(w, lane, false, step.pd, marked || differs);
                }
                self.set_uniform(w, step.rd, value);
            }
            "S2R" => {
                for lane in each(active) {
                    let value = self.special(w, lane, inst.text(Field::Special).unwrap_or(""))?;
                    self.set_register(w, lane, step.rd, value);
                }
            }
            "S2UR" => {
                let lane = active.trailing_zeros() as usize % WARP;
                let value = self.special(w, lane, inst.text(Field::Special).unwrap_or(""))?;
                self.set_uniform(w, step.rd, value);
            }
            "CS2R" => {
                let clock = self.warps[w].groups[g].clock;
                let value = match inst.text(Field::Special) {
                    // A launch may permit several cluster sizes; clusters have the first of them.
                    Some("SRZ" | "SR_CgaSize") => 0,
                    Some("SR_CLOCKLO" | "SR_GLOBALTIMERLO") => clock,
                    Some("SR_CLOCKHI" | "SR_GLOBALTIMERHI") => clock >> 32,
                    _ => return unsupported(),
                };
                let wide = inst.get(Field::Wide) == Some(1) && step.rd != 255;
                for lane in each(active) {
                    self.set_register(w, lane, step.rd, value as u32);
                    if wide {
                        self.set_register(w, lane, step.rd + 1, (value >> 32) as u32);
                    }
                }
            }
            "LDGDEPBAR" => {
                self.warps[w].copies_scoreboard = inst.control.write_sb;
                each(active).for_each(|lane| self.warps[w].copies.close(lane));
            }
            "DEPBAR" => {
                let scoreboard = self.warps[w].copies_scoreboard;
                let but = inst.get(Field::Imm2).unwrap_or(0) as u32;
                if scoreboard.is_some() && inst.get(Field::Scoreboard) == scoreboard.map(u64::from) {
                    self.land(w, active, Some(but))?;
                }
                let scoreboard = self.warps[w].bulk_scoreboard;
                if scoreboard.is_some() && inst.get(Field::Scoreboard) == scoreboard.map(u64::from) {
                    self.finish_bulk(w, but)?;
                }
            }
            "UTMACMDFLUSH" => {
                self.warps[w].bulk_scoreboard = inst.control.read_sb.or(inst.control.write_sb);
                self.transfers.close((self.cluster.rank(), w, 0));
            }
            "UCGABAR_ARV" => self.arrive_at_cluster(w, active)?,
            "UCGABAR_WAIT" => {
                let waiting = self.waits_for_cluster(w, active)?;
                self.park(w, g, waiting, State::Cluster);
                return Ok(());
            }
            "RPCMOV" if form.name == "RPCMOV.32" => {
                // The halves are Rpc.LO and Rpc.HI.
                let half = usize::from(inst.text(Field::Special) == Some("Rpc.HI"));
                for lane in each(active) {
                    if inst.has(Field::Rd) {
                        let value = self.warps[w].rpc[lane][half];
                        self.set_register(w, lane, step.rd, value);
                    } else {
                        self.warps[w].rpc[lane][half] = self.bits(w, lane, step.sources[1])?;
                    }
                }
            }
            "YIELD" | "NANOSLEEP" => {
                self.let_go(w, mask);
                self.warps[w].groups[g].pc = pc + 1;
                return self.settle(w);
            }
            "NOP" | "MEMBAR" | "ERRBAR" | "CCTL" | "CCTLL" | "CGAERRBAR" | "PMTRIG" | "UBLKPF" | "UTMAPF"
            | "UTMACCTL" | "FENCE" | "ACQBULK" | "PREEXIT" => {}
            "USETMAXREG" => self.change_registers(w, step)?,
            _ if active == 0 => {}
            _ => return unsupported(),
        }
        self.go_on(w, g)
    }

    fn go_on(&mut self, w: usize, g: usize) -> Result<()> {
        self.warps[w].groups[g].pc += 1;
        Ok(())
    }

    /// Splits off lanes of a group. Lanes with the same key form a new group, which `becomes` derives from the group
    /// after the instruction. The other lanes stay in the group.
    fn part(
        &mut self,
        w: usize,
        g: usize,
        leaving: u32,
        key: impl Fn(usize) -> u32,
        becomes: impl Fn(Group, u32) -> Group,
    ) {
        let group = self.warps[w].groups[g];
        let behind = Group { pc: group.pc + 1, ..group };
        self.warps[w].groups[g] = Group { mask: group.mask & !leaving, ..behind };
        let mut left = leaving;
        while left != 0 {
            let of = key(left.trailing_zeros() as usize);
            let same = each(left).filter(|&lane| key(lane) == of).fold(0, |m, lane| m | 1 << lane);
            left &= !same;
            self.warps[w].groups.push(Group { mask: same, ..becomes(behind, of) });
        }
        self.warps[w].groups.retain(|group| group.mask != 0);
    }

    /// Sends the lanes in `taken` to their targets. The others continue.
    pub(super) fn jump(&mut self, w: usize, g: usize, taken: u32, target: impl Fn(usize) -> u32) {
        let pc = self.warps[w].groups[g].pc;
        self.warps[w].went_back |= each(taken).any(|lane| target(lane) <= pc);
        self.part(w, g, taken, target, |group, to| Group { pc: to, ..group });
    }

    /// Lets lanes wait after the instruction. The others continue.
    fn park(&mut self, w: usize, g: usize, waiting: u32, state: State) {
        self.part(w, g, waiting, |_| 0, |group, _| Group { state, ..group });
    }

    /// Lets lanes wait after the instruction for the members that each of them names.
    fn meet(&mut self, w: usize, g: usize, active: u32, members: impl Fn(usize) -> u32) -> Result<()> {
        self.part(w, g, active, members, |group, named| Group { state: State::Meets(named), ..group });
        self.settle(w)
    }

    /// Joins the members that are in a state, by place.
    pub(super) fn unite(&mut self, w: usize, state: State, members: u32) {
        let Warp { groups, timing, .. } = &mut self.warps[w];
        let (mut ready, others): (Vec<Group>, Vec<Group>) =
            groups.iter().partition(|group| group.state == state && group.mask & members != 0);
        *groups = others;
        ready.sort_by_key(|group| group.pc);
        if let (State::Collects(_), Some(first)) = (state, ready.first().map(|group| group.pc)) {
            ready.iter_mut().for_each(|group| group.pc = first);
        }
        for same in ready.chunk_by(|a, b| a.pc == b.pc) {
            let clocks: Vec<(u32, u64)> = same.iter().map(|group| (group.mask, group.clock)).collect();
            timing.align(&clocks);
            groups.push(Group {
                mask: clocks.iter().fold(0, |mask, group| mask | group.0),
                clock: clocks.iter().map(|group| group.1).max().unwrap_or(0),
                state: State::Runs,
                ..same[0]
            });
        }
    }

    /// Releases the threads that wait at convergence barriers for a thread that yields. The hardware does this only
    /// when it needs to; code must be correct in both cases.
    fn let_go(&mut self, w: usize, yielding: u32) {
        let Warp { groups, convergence, .. } = &mut self.warps[w];
        let of = |group: &Group| match group.state {
            State::Converges { barrier, firmly: false } => Some(usize::from(barrier)),
            _ => None,
        };
        for group in groups.iter() {
            let Some(barrier) = of(group) else { continue };
            let members = &mut convergence[barrier];
            let lane = |group: &Group| group.mask.trailing_zeros() as usize;
            let all = members[lane(group)];
            if all & yielding == 0 {
                continue;
            }
            let waiting =
                groups.iter().filter(|other| of(other) == Some(barrier) && members[lane(other)] == all);
            let waiting = waiting.fold(0, |mask, other| mask | other.mask);
            for other in each(all | waiting).filter(|other| members[*other] == all).collect::<Vec<_>>() {
                members[other] = if waiting >> other & 1 == 1 { waiting } else { all & !waiting };
            }
        }
    }

    /// Releases the lanes that no longer wait for another lane.
    fn settle(&mut self, w: usize) -> Result<()> {
        loop {
            let warp = &self.warps[w];
            let live = warp.live();
            let ready = warp.groups.iter().find_map(|group| {
                let members = match group.state {
                    State::Converges { barrier, .. } => {
                        warp.convergence[usize::from(barrier)][group.mask.trailing_zeros() as usize]
                    }
                    State::Meets(members) | State::Collects(members) => members,
                    _ => return None,
                };
                let members = members & live | group.mask;
                // Threads at a deeper level of a recursion may wait at the same barrier for fewer threads.
                let same = |other: &&Group| match other.state {
                    State::Converges { barrier, .. } => {
                        let lane = other.mask.trailing_zeros() as usize;
                        warp.convergence[usize::from(barrier)][lane] & live | other.mask == members
                    }
                    _ => true,
                };
                let waiting = warp.groups.iter().filter(|other| other.state == group.state).filter(same);
                let waiting = waiting.fold(0, |mask, other| mask | other.mask);
                (members & !waiting == 0).then_some((group.state, members))
            });
            let Some((state, members)) = ready else { break };
            self.unite(w, state, members);
        }
        self.release()
    }

    fn barrier(&mut self, w: usize, g: usize, active: u32) -> Result<()> {
        let machine = self.machine;
        let pc = self.warps[w].groups[g].pc;
        let step = &machine.code[pc as usize];
        let inst = &step.inst;
        let lane = active.trailing_zeros() as usize % WARP;
        let (id, count) = match inst.form().shape {
            "" => (inst.get(Field::Imm2).unwrap_or(0), inst.get(Field::Imm3).unwrap_or(0)),
            "ir" => (inst.get(Field::Imm2).unwrap_or(0), self.bits(w, lane, step.sources[1])?.into()),
            "r" => (self.bits(w, lane, step.sources[1])?.into(), inst.get(Field::Imm3).unwrap_or(0)),
            // One register holds both numbers.
            "rr" => {
                let both = u64::from(self.bits(w, lane, step.sources[1])?);
                (both, both >> 16)
            }
            shape => return Err(FaultKind::Unsupported(format!("BAR {shape}"))),
        };
        // Other bits of the registers have no effect.
        let (id, count) = (id & 0xf, count & 0xfff);
        let Some(barrier) = self.barriers.get_mut(id as usize) else {
            return Err(FaultKind::Malformed(format!("barrier {id}")));
        };
        barrier.expected = count as u32;
        let rank = self.cluster.rank();
        if let Some(recorder) = &mut self.recorder {
            recorder.meet_block(rank, id as u32, inst.get(Field::Mode) != Some(1));
        }
        match inst.get(Field::Mode) {
            Some(1) => {
                barrier.arrived += active.count_ones();
                self.warps[w].groups[g].pc = pc + 1;
            }
            mode => {
                if mode == Some(2) {
                    let ones = self.guarded(w, active, false, step.predicates[0]).count_ones();
                    self.barriers[id as usize].ones += ones;
                    let op = inst.get(Field::Op).unwrap_or(0) as u32;
                    // Holds the kind of the reduction until the result replaces it.
                    self.warps[w].reduction = [op, 0];
                }
                self.park(w, g, active, State::Barrier(id as u32));
            }
        }
        self.release()
    }

    /// Releases the threads of complete barriers.
    fn release(&mut self) -> Result<()> {
        for id in 0..self.barriers.len() {
            let state = State::Barrier(id as u32);
            let waiting: u32 = self.warps.iter().map(|w| w.lanes(state).count_ones()).sum();
            if waiting == 0 {
                continue;
            }
            let barrier = self.barriers[id];
            let complete = if barrier.expected == 0 {
                let live: u32 = self.warps.iter().map(|w| w.live().count_ones()).sum();
                waiting + barrier.arrived >= live
            } else {
                let whole = self.warps.iter().all(|w| w.lanes(state) == 0 || w.lanes(state) == w.live());
                let warps = self.warps.iter().filter(|w| w.lanes(state) != 0).count() as u32;
                whole
                    && warps * WARP as u32 + barrier.arrived.next_multiple_of(WARP as u32) >= barrier.expected
            };
            if !complete {
                continue;
            }
            self.barriers[id] = Barrier::default();
            let rank = self.cluster.rank();
            if let Some(recorder) = &mut self.recorder {
                recorder.end_phase(Meeting::Block(rank, id as u32));
            }
            for w in 0..self.warps.len() {
                if self.warps[w].lanes(state) == 0 {
                    continue;
                }
                let holds = match self.warps[w].reduction[0] {
                    1 => barrier.ones == waiting,
                    _ => barrier.ones > 0,
                };
                self.warps[w].reduction = [barrier.ones, holds.into()];
                self.unite(w, state, u32::MAX);
            }
        }
        Ok(())
    }

    fn shuffle(&mut self, w: usize, active: u32, pc: u32) -> Result<()> {
        let machine = self.machine;
        let step = &machine.code[pc as usize];
        let inst = &step.inst;
        let mut values = [0; WARP];
        let mut moves = [(0, 0); WARP];
        for lane in each(active) {
            values[lane] = self.bits(w, lane, step.sources[0])?;
            let register = |source: super::operand::Source, field, imm| match inst.has(field) {
                true => self.bits(w, lane, source),
                false => Ok(inst.get(imm).unwrap_or(0) as u32),
            };
            moves[lane] = (
                register(step.sources[1], Field::Rb, Field::Imm2)?,
                register(step.sources[2], Field::Rc, Field::Imm3)?,
            );
        }
        for lane in each(active) {
            let (by, bounds) = (moves[lane].0 & 31, moves[lane].1);
            let (clamp, segment) = (bounds & 31, bounds >> 8 & 31);
            let own = lane as u32;
            let least = own & segment;
            let most = least | clamp & !segment;
            let (from, inside) = match inst.get(Field::Mode) {
                Some(1) => (own.wrapping_sub(by), i64::from(own) - i64::from(by) >= i64::from(most)),
                Some(2) => (own + by, own + by <= most),
                Some(3) => (own ^ by, own ^ by <= most),
                _ => (least | by & !segment, least | by & !segment <= most),
            };
            let from = if inside { from as usize } else { lane };
            let value = if active >> from & 1 == 1 { values[from] } else { 0xdead_beef };
            self.set_register(w, lane, step.rd, value);
            self.set_predicate(w, lane, false, step.pd, inside);
        }
        Ok(())
    }

    fn special(&self, w: usize, lane: usize, name: &str) -> Result<u32> {
        let number = self.warps[w].first + lane as u32;
        let [x, y, z] = self.machine.launch.thread(number);
        let lane = lane as u32;
        Ok(match name {
            "SR_TID.X" => x,
            "SR_TID.Y" => y,
            "SR_TID.Z" => z,
            "SR_CTAID.X" => self.ctaid[0],
            "SR_CTAID.Y" => self.ctaid[1],
            "SR_CTAID.Z" => self.ctaid[2],
            "SR_LANEID" => lane,
            "SR_EQMASK" => 1 << lane,
            "SR_LTMASK" => (1 << lane) - 1,
            "SR_LEMASK" => u32::MAX >> (31 - lane),
            "SR_GEMASK" => u32::MAX << lane,
            "SR_GTMASK" => (u32::MAX << lane) << 1,
            // There is one multiprocessor, whose warps are in order.
            "SR_VIRTUALSMID" => 0,
            "SR_VIRTID" => number / WARP as u32 * VIRTUAL_WARP,
            "SR_VIRTCFG" => self.warps.len() as u32 * VIRTUAL_WARP,
            "SR_CLOCKLO" | "SR_GLOBALTIMERLO" => self.warps[w].groups[0].clock as u32,
            "SR_CLOCKHI" | "SR_GLOBALTIMERHI" => (self.warps[w].groups[0].clock >> 32) as u32,
            "SR_SMEMSZ" => {
                let Machine { kernel, launch, target, .. } = self.machine;
                target.shared_base + kernel.shared_bytes + launch.dynamic_shared
            }
            "SR_CgaCtaId" => self.cluster.rank() as u32,
            "SR_SWINHI" => (crate::memory::SHARED_WINDOW >> 32) as u32,
            "SR_LWINHI" => (crate::memory::LOCAL_WINDOW >> 32) as u32,
            // Stacks may extend down to the start of local memory.
            "SR_LMEMHIOFF" | "SRZ" => 0,
            _ => return Err(FaultKind::Unsupported(format!("the special register {name}"))),
        })
    }
}
