//! Operations of several threads: barriers of the block, and operations of a warp.

use super::arithmetic::{split, ty};
use super::decode::extend;
use super::{Block, State, Step, WARP, each};
use crate::float::F32;
use crate::launch::FaultKind;
use ptx_backend::input::{Instr, Operand};
use ptx_isa::{FormId, Mod, ScalarType};

/// The number of groups of threads that the message about a deadlock lists.
const SHOWN: usize = 4;

/// The number of barriers of a block.
pub(super) const BARRIERS: usize = 16;

/// A barrier of the block and the threads that have arrived.
#[derive(Clone, Copy, Default)]
pub(super) struct Barrier {
    /// The number of threads that have arrived without waiting.
    arrived: u32,
    /// The number of threads that must arrive; `None` means all.
    expected: Option<u32>,
    /// The number of waiting threads whose predicate was true.
    ones: u32,
    /// The position of the reduction that the threads wait for.
    reduces: Option<u32>,
}

impl Block<'_> {
    pub(super) fn barrier(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let op = &instr.opcode;
        let reduces = op.has(Mod::Red);
        let at = usize::from(reduces);
        let u32_ = ScalarType::U32;
        let ids = self.gather(w, mask, &instr.operands[at], u32_)?;
        // The last operand of a reduction is its predicate.
        let count = instr.operands.len() - at - usize::from(reduces);
        let counts =
            if count > 1 { Some(self.gather(w, mask, &instr.operands[at + 1], u32_)?) } else { None };
        let inputs = match instr.operands.last() {
            Some(operand) if reduces => self.gather(w, mask, operand, ScalarType::Pred)?,
            _ => [0; WARP],
        };
        for lane in each(mask) {
            let id = ids[lane] as usize;
            let Some(barrier) = self.barriers.get_mut(id) else {
                return Err(FaultKind::Malformed(format!("barrier {id}")));
            };
            barrier.expected = counts.map(|counts| counts[lane] as u32);
            if op.has(Mod::Arrive) {
                barrier.arrived += 1;
                continue;
            }
            barrier.ones += inputs[lane] as u32;
            barrier.reduces = reduces.then_some(pc);
            self.warps[w].state[lane] = State::Barrier(id as u32);
        }
        self.release()
    }

    /// Counts exited threads as arrived, and releases the threads that waited for them.
    pub(super) fn leave(&mut self, w: usize) -> Step<()> {
        // They execute their operation again, which now has fewer threads.
        for lane in 0..WARP {
            if self.warps[w].state[lane] == State::Meets {
                self.warps[w].state[lane] = State::Runs;
            }
        }
        self.release()
    }

    /// Which thread waits for which, if none can continue. `None` if all threads have ended.
    pub(super) fn deadlock(&self) -> Option<(u32, FaultKind)> {
        let mut waits = Vec::new();
        let mut first = None;
        for (w, warp) in self.warps.iter().enumerate() {
            let mut left = warp.live();
            while left != 0 {
                let lane = left.trailing_zeros() as usize;
                let (state, place) = (warp.state[lane], warp.pc[lane]);
                let same = warp.lanes(|s| s == state) & left;
                let same = each(same).filter(|&l| warp.pc[l] == place).fold(0, |m, l| m | 1 << l);
                left &= !same;
                let (pc, at) = match state {
                    // The position of these threads is already after the barrier.
                    State::Barrier(id) => (place - 1, format!("barrier {id}")),
                    _ => {
                        let form = self.program.instr(place).map(|instr| instr.opcode.form);
                        let name = match form {
                            Some(FormId::BarWarpSync) => "bar.warp.sync",
                            Some(form) => form.mnemonic(),
                            None => "the end",
                        };
                        (place, name.to_owned())
                    }
                };
                first = first.or(Some(pc));
                if waits.len() < SHOWN {
                    waits.push(format!("threads {same:#x} of warp {w} wait at {at}"));
                }
            }
        }
        first.map(|pc| (pc, FaultKind::Deadlock(waits.join(", "))))
    }

    /// Releases the threads of complete barriers.
    fn release(&mut self) -> Step<()> {
        for id in 0..BARRIERS {
            let state = State::Barrier(id as u32);
            let waiting: u32 = self.warps.iter().map(|w| w.lanes(|s| s == state).count_ones()).sum();
            if waiting == 0 {
                continue;
            }
            let barrier = self.barriers[id];
            let live: u32 = self.warps.iter().map(|w| w.live().count_ones()).sum();
            // If there is a number of threads, a warp counts with all its threads.
            let rounded: u32 =
                self.warps.iter().map(|w| if w.lanes(|s| s == state) == 0 { 0 } else { WARP as u32 }).sum();
            let whole = self
                .warps
                .iter()
                .all(|w| matches!(w.lanes(|s| s == state), 0) || w.lanes(|s| s == state) == w.live());
            let complete = match barrier.expected {
                None => waiting + barrier.arrived >= live,
                Some(expected) => {
                    let arrived = barrier.arrived.next_multiple_of(WARP as u32);
                    whole && rounded + arrived >= expected
                }
            };
            if !complete {
                continue;
            }
            self.barriers[id] = Barrier::default();
            self.races.cut();
            for w in 0..self.warps.len() {
                for lane in each(self.warps[w].lanes(|s| s == state)) {
                    self.warps[w].state[lane] = State::Runs;
                    let Some(instr) = barrier.reduces.and_then(|pc| self.program.instr(pc)) else { continue };
                    let (t, value) = match () {
                        () if instr.opcode.has(Mod::Popc) => (ScalarType::U32, barrier.ones),
                        () if instr.opcode.has(Mod::And) => {
                            (ScalarType::Pred, u32::from(barrier.ones == waiting))
                        }
                        () => (ScalarType::Pred, u32::from(barrier.ones > 0)),
                    };
                    self.put(w, lane, &instr.operands[0], t, value.into())?;
                }
            }
        }
        Ok(())
    }

    /// Executes an operation of the threads in a mask. Waits until all of them have arrived.
    pub(super) fn meet(&mut self, w: usize, pc: u32, mask: u32, instr: &Instr) -> Step<()> {
        let names_threads = matches!(
            instr.opcode.form,
            FormId::BarWarpSync
                | FormId::ShflSync
                | FormId::VoteSync
                | FormId::MatchSync
                | FormId::Redux
                | FormId::Elect
        );
        let masks = match instr.operands.last() {
            Some(member) if names_threads => self.gather(w, mask, member, ScalarType::U32)?,
            // The other operations are for all threads.
            _ => [u32::MAX.into(); WARP],
        };
        // Threads in a mask may be at different statements with the same operation.
        let places: [u32; WARP] =
            std::array::from_fn(|l| if mask >> l & 1 == 1 { pc } else { self.warps[w].pc[l] });
        let pairs = |place: u32| {
            let other = || self.program.instr(place).is_some_and(|other| other.opcode == instr.opcode);
            place == pc || names_threads && other()
        };
        let waiting = self.warps[w].lanes(|s| s == State::Meets);
        let waiting = each(waiting).filter(|&l| pairs(places[l])).fold(0, |m, l| m | 1 << l);
        let masks_waiting = match instr.operands.len().checked_sub(1) {
            Some(member) if names_threads => {
                self.gather_placed(w, waiting, &places, member, ScalarType::U32)?
            }
            _ => [u32::MAX.into(); WARP],
        };
        if each(mask).any(|l| masks[l] >> l & 1 == 0) {
            return Err(FaultKind::Malformed("a thread that its mask does not name".into()));
        }
        let mask_of = |l: usize| if mask >> l & 1 == 1 { masks[l] } else { masks_waiting[l] };
        let live = self.warps[w].live();
        let mut left = mask;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            let members = masks[lane] as u32;
            let needed = members & live;
            // Threads with another mask execute another operation, even at the same instruction.
            let same = each(mask | waiting).filter(|&l| mask_of(l) as u32 == members);
            let here = same.fold(0, |here, l| here | 1 << l);
            left &= !here;
            if needed & !here != 0 {
                // Waiting threads stay at the instruction.
                for lane in each(here & mask) {
                    (self.warps[w].state[lane], self.warps[w].pc[lane]) = (State::Meets, pc);
                }
                continue;
            }
            for lane in each(needed) {
                (self.warps[w].state[lane], self.warps[w].pc[lane]) = (State::Runs, places[lane] + 1);
            }
            self.together(w, needed, instr, &places)?;
        }
        Ok(())
    }

    /// The operand of each lane, from the operation at the lane's position.
    fn gather_placed(
        &mut self,
        w: usize,
        mask: u32,
        places: &[u32; WARP],
        operand: usize,
        t: ScalarType,
    ) -> Step<[u64; WARP]> {
        let program = self.program;
        let mut all = [0; WARP];
        let mut left = mask;
        while left != 0 {
            let place = places[left.trailing_zeros() as usize];
            let same = each(left).filter(|&l| places[l] == place).fold(0, |m, l| m | 1 << l);
            left &= !same;
            let instr = program.instr_at(place)?;
            let values = self.gather(w, same, &instr.operands[operand], t)?;
            each(same).for_each(|lane| all[lane] = values[lane]);
        }
        Ok(all)
    }

    /// Writes one result to all lanes, to the operands of the operations at their positions.
    fn put_placed(
        &mut self,
        w: usize,
        mask: u32,
        places: &[u32; WARP],
        t: ScalarType,
        value: u64,
    ) -> Step<()> {
        let program = self.program;
        each(mask).try_for_each(|lane| {
            let instr = program.instr_at(places[lane])?;
            self.put(w, lane, &instr.operands[0], t, value)
        })
    }

    /// Executes the operation. `places` gives the position of each lane.
    pub(super) fn together(&mut self, w: usize, mask: u32, instr: &Instr, places: &[u32; WARP]) -> Step<()> {
        let op = &instr.opcode;
        let program = self.program;
        match op.form {
            FormId::BarWarpSync => Ok(()),
            FormId::TensormapCpFenceproxy => self.copy_map(w, mask, instr),
            FormId::ShflSync | FormId::Shfl => self.shuffle(w, mask, instr, places),
            FormId::VoteSync | FormId::Vote => {
                let a = self.gather_placed(w, mask, places, 1, ScalarType::Pred)?;
                let ones = each(mask).filter(|&lane| a[lane] != 0).fold(0u32, |m, lane| m | 1 << lane);
                let (t, value) = match () {
                    () if op.has(Mod::Ballot) => (ScalarType::B32, ones),
                    () if op.has(Mod::All) => (ScalarType::Pred, u32::from(ones == mask)),
                    () if op.has(Mod::Any) => (ScalarType::Pred, u32::from(ones != 0)),
                    () => (ScalarType::Pred, u32::from(ones == mask || ones == 0)),
                };
                self.put_placed(w, mask, places, t, value.into())
            }
            FormId::MatchSync => {
                let t = ty(op, 0)?;
                let a = self.gather_placed(w, mask, places, 1, t)?;
                for lane in each(mask) {
                    let (d, p) = split(&program.instr_at(places[lane])?.operands[0]);
                    let same = each(mask).filter(|&l| a[l] == a[lane]).fold(0u32, |m, l| m | 1 << l);
                    let all = same == mask;
                    let value = if op.has(Mod::All) && !all { 0 } else { same };
                    self.put(w, lane, d, ScalarType::B32, value.into())?;
                    if let Some(p) = p {
                        self.put(w, lane, p, ScalarType::Pred, all.into())?;
                    }
                }
                Ok(())
            }
            FormId::Redux => {
                let t = ty(op, 0)?;
                let a = self.gather_placed(w, mask, places, 1, t)?;
                let values = each(mask).map(|lane| extend(a[lane], t));
                let signed = t.is_signed();
                let result = match () {
                    () if op.has(Mod::Add) => values.fold(0, u64::wrapping_add),
                    () if op.has(Mod::And) => values.fold(u64::MAX, |x, y| x & y),
                    () if op.has(Mod::Or) => values.fold(0, |x, y| x | y),
                    () if op.has(Mod::Xor) => values.fold(0, |x, y| x ^ y),
                    () if t == ScalarType::F32 => {
                        let values: Vec<u64> = values.collect();
                        super::float::extremum(op, F32, &values, op.has(Mod::Max))
                    }
                    () if op.has(Mod::Min) && signed => values.map(|x| x as i64).min().unwrap_or(0) as u64,
                    () if op.has(Mod::Min) => values.min().unwrap_or(0),
                    () if signed => values.map(|x| x as i64).max().unwrap_or(0) as u64,
                    () => values.max().unwrap_or(0),
                };
                self.put_placed(w, mask, places, t, result)
            }
            FormId::Elect => {
                let leader = mask.trailing_zeros();
                for lane in each(mask) {
                    let (d, p) = split(&program.instr_at(places[lane])?.operands[0]);
                    self.put(w, lane, d, ScalarType::B32, leader.into())?;
                    if let Some(p) = p {
                        self.put(w, lane, p, ScalarType::Pred, (lane as u32 == leader).into())?;
                    }
                }
                Ok(())
            }
            FormId::WgmmaFence
            | FormId::WgmmaCommitGroup
            | FormId::WgmmaWaitGroup
            | FormId::WgmmaMma
            | FormId::WgmmaMmaSp
            | FormId::WgmmaMmaBits => self.warpgroup(w, mask, instr),
            FormId::Tcgen05Alloc
            | FormId::Tcgen05Dealloc
            | FormId::Tcgen05RelinquishAllocPermit
            | FormId::Tcgen05Ld
            | FormId::Tcgen05LdRed
            | FormId::Tcgen05St
            | FormId::Tcgen05Wait => self.tensor_together(w, mask, instr),
            // The interpreter has unlimited registers.
            FormId::Setmaxnreg => Ok(()),
            _ => self.matrix(w, mask, instr),
        }
    }

    fn shuffle(&mut self, w: usize, mask: u32, instr: &Instr, places: &[u32; WARP]) -> Step<()> {
        let op = &instr.opcode;
        let program = self.program;
        let u32_ = ScalarType::U32;
        let [a, b, c] = [1, 2, 3].map(|i| self.gather_placed(w, mask, places, i, u32_));
        let (a, b, c) = (a?, b?, c?);
        for lane in each(mask) {
            let (d, p): (&Operand, _) = split(&program.instr_at(places[lane])?.operands[0]);
            let (offset, clamp, segment) = (b[lane] & 31, c[lane] & 31, c[lane] >> 8 & 31);
            let own = lane as u64;
            let max = own & segment | clamp & !segment & 31;
            let min = own & segment;
            let (from, inside) = match () {
                () if op.has(Mod::Up) => (own.wrapping_sub(offset), own as i64 - offset as i64 >= max as i64),
                () if op.has(Mod::Down) => (own + offset, own + offset <= max),
                () if op.has(Mod::Bfly) => (own ^ offset, own ^ offset <= max),
                () => (min | offset & !segment & 31, min | offset & !segment & 31 <= max),
            };
            let from = if inside { from as usize } else { lane };
            // The value from a thread outside the mask is undefined.
            let value = if mask >> from & 1 == 1 { a[from] } else { 0xdead_beef };
            self.put(w, lane, d, ScalarType::B32, value)?;
            if let Some(p) = p {
                self.put(w, lane, p, ScalarType::Pred, inside.into())?;
            }
        }
        Ok(())
    }
}
