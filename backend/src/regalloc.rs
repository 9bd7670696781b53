//! Register allocation: replaces the values of SSA form by registers.
//!
//! ```text
//! prepare ─► live ranges ─► bundles ─► assignment ──fits──► rewrite
//!                ▲                          └──does not──► spill ─┐
//!                └────────────────────────────────────────────────┘
//! ```
//!
//! Live ranges are exact, per 32-bit lane, with holes ([`live`]). Values that a copy joins are coalesced into bundles
//! that occupy one run of registers ([`bundle`]). Bundles take the lowest free run ([`assign`]). If the limit is too
//! small, the cheapest bundles go to memory or another file ([`spill`]), and allocation starts again.
//!
//! [`check`] proves every allocation correct, independently of the allocator.

mod assign;
mod banks;
mod bundle;
pub mod check;
pub(crate) mod convention;
pub(crate) mod counts;
mod draft;
mod late;
pub(crate) mod live;
mod moves;
mod occupancy;
mod prepare;
#[cfg(test)]
pub(crate) mod random;
mod rewrite;
mod spill;

use std::fmt::Display;

use crate::CodegenError;
use crate::input::SrcId;
use crate::ori::cfg::Cfg;
use crate::ori::dominators::dominators;
use crate::ori::ir::{BlockId, File, Function, Reg, Value};
use crate::ori::loops::Loops;
use crate::switches::{Step, Switches};
use crate::target::{HIDDEN_REGISTERS, MAX_REGISTERS, REGISTER_UNIT, Target};
use assign::{Effort, Pool};
use bundle::Bundles;
use convention::Blocked;
use counts::Counts;
use draft::Draft;
use live::Liveness;
use rewrite::Placement;
use spill::Spill;
pub(crate) use spill::constants;

/// The stack pointer, never given out.
pub const STACK_POINTER: Reg = Reg { file: File::R, index: 1 };

/// The number of rounds that spill only some of the values without registers. Later rounds spill all of them.
const CAREFUL_ROUNDS: u32 = 3;

/// The number of instructions for which a spilled value stays in a register after it was defined, loaded or read.
const REACH: u32 = 16;

/// The result of allocation, besides the rewritten function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Allocation {
    /// General registers as ptxas counts them: see [`Resources::registers`](crate::Resources::registers).
    pub registers: u32,
    /// For each file, in the order of [`File`]: the highest index in use plus one; zero if none is used.
    pub used: [u16; 5],
    /// For each block and instruction: its index in the same block of the input; `None` for moves, spills and reloads
    /// that allocation added. Blocks that allocation added contain only such instructions.
    pub origin: Vec<Vec<Option<u32>>>,
    /// For each block, the number of live general registers before each instruction, and before the terminator.
    pub live: Vec<Vec<u16>>,
    /// Values of the input that did not get a register for their whole live range.
    pub spilled: Vec<Value>,
}

/// An allocation with the function that it is for.
#[derive(Debug)]
pub struct Allocated {
    /// The function before allocation, to which [`Allocation::origin`] and [`Allocation::spilled`] refer.
    pub input: Function,
    pub allocation: Allocation,
}

/// The limits of an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// General registers as ptxas counts them, unless the function changes their number.
    pub registers: u32,
    /// The number of bytes that spills store and load, counted per instruction. If it is zero, no general register is
    /// spilled, and the search for registers is short.
    pub traffic: u32,
}

impl Within {
    /// No limit on memory for the given number of registers.
    pub fn registers(registers: u32) -> Within {
        Within { registers, traffic: u32::MAX }
    }

    fn check_traffic(self, draft: &Draft<'_>) -> Result<(u32, u32), CodegenError> {
        let (stores, loads) = spill::traffic(draft);
        if stores + loads > self.traffic {
            return Err(exceeded(format!("spills move more than {} bytes", self.traffic)));
        }
        Ok((stores, loads))
    }
}

/// The error that a statement needs more registers at once than there are.
fn too_few(file: File, count: impl Display) -> CodegenError {
    let what = match file {
        File::R => "registers",
        File::P => "predicates",
        File::UR => "uniform registers",
        File::UP => "uniform predicates",
        File::B => "convergence barriers",
    };
    exceeded(format!("more than {count} {what} are needed at once"))
}

fn exceeded(what: String) -> CodegenError {
    CodegenError::Limit { at: SrcId::default(), what }
}

/// Allocates at most the given number of registers, as ptxas counts them. A function that cannot be allocated within
/// the limits causes [`CodegenError::Limit`]. The result is checked in every build, because wrong code is worse than no
/// code.
pub fn allocate(
    func: &mut Function,
    target: &Target,
    max_registers: u32,
) -> Result<Allocation, CodegenError> {
    let within = Within::registers(max_registers);
    allocate_within(func, target, within, Switches::ALL_ON, &|| ()).map(|allocated| allocated.allocation)
}

/// As [`allocate`]; `checkpoint` is called often and cancels by unwinding.
pub fn allocate_within(
    func: &mut Function,
    target: &Target,
    within: Within,
    switches: Switches,
    checkpoint: &dyn Fn(),
) -> Result<Allocated, CodegenError> {
    convention::lower_fixes(func);
    let input = func.clone();
    checkpoint();
    let allocation = run(func, target, within, switches, checkpoint)?;
    check::check(&input, func, target, &allocation, within.registers, checkpoint)
        .map_err(|what| CodegenError::internal(SrcId::default(), "regalloc", what))?;
    Ok(Allocated { input, allocation })
}

fn run(
    func: &mut Function,
    target: &Target,
    within: Within,
    switches: Switches,
    checkpoint: &dyn Fn(),
) -> Result<Allocation, CodegenError> {
    let mut draft = Draft::new(func);
    prepare::prepare(&mut draft);
    checkpoint();
    let counts = Counts::of(draft.func, &Cfg::new(draft.func));
    let most = counts.as_ref().map_or(within.registers, |counts| counts.most(draft.func));
    let pools = pools(draft.func, target, most, switches);
    let remakes = switches.takes(Step::Remat);
    let mut whole = None;
    loop {
        checkpoint();
        let cfg = Cfg::new(draft.func);
        let live = Liveness::compute(draft.func, &cfg);
        checkpoint();
        if within.traffic == 0 {
            let most = live.pressure(draft.func, File::R).into_iter().max();
            if pools.iter().any(|pool| pool.file == File::R && most > Some(pool.count)) {
                return Err(too_few(File::R, within.registers));
            }
        }
        let frequency = frequency(draft.func, &cfg);
        let counts = Counts::of(draft.func, &cfg);
        let blocked = Blocked::new(draft.func, &live, counts.as_ref(), target)?;
        let build = |draft: &Draft<'_>| {
            let coalesces = switches.takes(Step::Coalesce);
            bundle::build(draft.func, &live, &frequency, &draft.fixed, blocked.general.clone(), coalesces)
        };
        let mut bundles = build(&draft);
        let placed =
            match (place(&draft, &live, &mut bundles, pools, &blocked, within, checkpoint), &mut whole) {
                // All values that can be spilled are spilled; each loaded value then serves only one instruction.
                (Err(_), Some(Whole { reach: reach @ 1.., .. })) => {
                    *reach = 0;
                    Placed::Without(Vec::new(), pools[0])
                }
                (placed, _) => placed?,
            };
        match placed {
            Placed::All(placement, used) => {
                let mut counts = rewrite::rewrite(&mut draft, &live, &cfg, &placement)?;
                let saved = convention::save(&mut draft, &mut counts, target, within.registers)?;
                let back = convention::place_return_address(draft.func, target)?;
                let (stores, loads) = within.check_traffic(&draft)?;
                draft.func.frame.spill_stores = stores;
                draft.func.frame.spill_loads = loads;
                let called = convention::most_overwritten(draft.func, target)?;
                let called = called.max(back.map_or(0, |first| u16::from(first) + 2));
                let general =
                    used[File::R as usize].max(called).max(saved).max(u16::from(STACK_POINTER.index) + 1);
                let mut registers = u32::from(general) + HIDDEN_REGISTERS;
                if draft.func.follows_convention() {
                    registers = registers.max(draft.func.facts.preserved.fewest_registers());
                }
                // Other warps rely on the remaining registers.
                registers = draft.func.facts.starts_with.unwrap_or(registers);
                let spilled = whole.iter().flat_map(Whole::spilled).collect();
                return Ok(Allocation { registers, used, origin: draft.origin, live: counts, spilled });
            }
            Placed::Without(mut failed, pool) => {
                let careful = whole.as_ref().is_none_or(|whole| whole.rounds < CAREFUL_ROUNDS);
                if pool.file == File::R && careful {
                    failed = assign::relieving(&bundles, failed, live.pressure(draft.func, File::R), &pool);
                }
                let members = failed.iter().flat_map(|&i| &bundles.bundles[i as usize].members);
                let values: Vec<Value> =
                    members.map(|member| member.0).filter(|v| !draft.fixed[v.index()]).collect();
                let whole = whole.get_or_insert_with(|| Whole {
                    func: draft.func.clone(),
                    origin: draft.origin.clone(),
                    bundles: build(&draft),
                    spills: vec![Spill::No; draft.func.values.len()],
                    shadows: Vec::new(),
                    reach: REACH,
                    rounds: 0,
                    cfg,
                });
                whole.rounds += 1;
                // Every round spills more.
                whole.add(&values);
                *draft.func = whole.func.clone();
                draft.origin.clone_from(&whole.origin);
                draft.fixed = draft::pinned(draft.func);
                whole.shadows =
                    spill::spill(&mut draft, &whole.cfg, &whole.bundles, &whole.spills, whole.reach, remakes);
                // Later rounds never move fewer bytes.
                within.check_traffic(&draft)?;
            }
        }
    }
}

/// The function without spills, from which every round of spilling starts, and the values that the next round spills.
struct Whole {
    func: Function,
    origin: Vec<Vec<Option<u32>>>,
    cfg: Cfg,
    bundles: Bundles,
    /// Per value.
    spills: Vec<Spill>,
    /// The spilled values that the new values of the last round represent.
    shadows: Vec<Value>,
    /// The number of instructions for which a loaded value is kept.
    reach: u32,
    /// The number of rounds that have spilled.
    rounds: u32,
}

impl Whole {
    fn spilled(&self) -> impl Iterator<Item = Value> {
        let spills = (0..).zip(&self.spills);
        spills.filter(|(_, spill)| **spill != Spill::No).map(|(v, _)| Value(v))
    }

    /// Adds values of the last round that did not get registers.
    fn add(&mut self, values: &[Value]) {
        for v in values {
            let (v, spill) = match v.index().checked_sub(self.spills.len()) {
                Some(shadow) => (self.shadows[shadow], Spill::ToFrame),
                None if self.func.value(*v).file == File::R => (*v, Spill::ToFrame),
                None => (*v, Spill::ToGeneral),
            };
            self.spills[v.index()] = spill;
        }
    }
}

enum Placed {
    /// All values have registers; the number of registers of each file.
    All(Placement, [u16; 5]),
    /// These bundles did not get registers of the pool.
    Without(Vec<u32>, Pool),
}

/// Assigns a register to every value.
fn place(
    draft: &Draft<'_>,
    live: &Liveness,
    bundles: &mut Bundles,
    pools: [Pool; 5],
    blocked: &Blocked,
    within: Within,
    checkpoint: &dyn Fn(),
) -> Result<Placed, CodegenError> {
    let mut placement = Placement { registers: vec![None; draft.func.values.len()], occupancy: Vec::new() };
    let mut used = [0; 5];
    for pool in pools {
        let can_spill = match pool.file {
            File::R => within.traffic > 0,
            File::P | File::UR => true,
            File::UP | File::B => false,
        };
        let effort = if pool.file == File::R && !can_spill { Effort::Brief } else { Effort::Full };
        let mut solution = assign::assign(bundles, draft.func, live, pool, &blocked.lost, effort, checkpoint);
        if solution.is_none() && (can_spill || pool.file != File::R) {
            solution = assign::assign_or_spill(bundles, draft.func, live, &draft.fixed, pool, &blocked.lost);
        }
        let Some((assignment, occupancy)) = solution.filter(|(a, _)| a.failed.is_empty() || can_spill) else {
            return Err(too_few(pool.file, pool.count));
        };
        if !assignment.failed.is_empty() {
            return Ok(Placed::Without(assignment.failed, pool));
        }
        for (v, register) in placement.registers.iter_mut().enumerate() {
            let (bundle, offset) = bundles.of[v];
            if draft.func.values[v].file == pool.file {
                *register =
                    assignment.base[bundle as usize].map(|b| Reg { file: pool.file, index: b + offset });
            }
        }
        used[pool.file as usize] = assignment.used;
        placement.occupancy.push((pool.file, assignment.used, occupancy));
    }
    Ok(Placed::All(placement, used))
}

/// The expected number of executions of each block for one execution of the function: a loop is assumed to iterate
/// eight times.
fn frequency(func: &Function, cfg: &Cfg) -> Vec<f32> {
    let loops = Loops::new(func, cfg, &dominators(cfg, func));
    let depth = |b| loops.depth(BlockId(b as u32)).min(6);
    (0..func.blocks.len()).map(|b| 8f32.powi(depth(b) as i32)).collect()
}

fn pools(func: &Function, target: &Target, max_registers: u32, switches: Switches) -> [Pool; 5] {
    let sm = target.generation();
    let pool = |file, count| Pool { file, count, reserved: None, saves: None, free: 0, unit: 1, sm };
    // Callers keep values in higher registers. Their barriers can be saved.
    let lent = |count: u16| if func.entry { count } else { count.min(36) };
    let general = max_registers.min(MAX_REGISTERS).saturating_sub(HIDDEN_REGISTERS) as u16;
    [
        pool(File::P, 7),
        pool(File::UP, 7),
        pool(File::B, func.barriers()),
        // One register is reserved for cycles of copies. In functions, routines use that register.
        pool(File::UR, lent(u16::from(target.uniform_registers)) - u16::from(func.routine.is_none())),
        Pool {
            file: File::R,
            count: general,
            reserved: Some(STACK_POINTER.index),
            saves: (!func.entry && func.routine.is_none() && !func.facts.private)
                .then_some(func.facts.preserved),
            free: match func.facts.starts_with {
                Some(_) => MAX_REGISTERS as u16,
                // Even if the kernel states fewer blocks: only the order uses the additional registers, as in ptxas.
                None if func.entry => target.limits.free_registers() as u16,
                None => 0,
            },
            // The registers that a function takes are not available to its callers.
            unit: if func.entry && switches.takes(Step::WholeUnits) { REGISTER_UNIT as u16 } else { 1 },
            sm,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::verify::Stage;
    use random::Shape;

    fn target() -> &'static Target {
        Target::of(ptx_isa::Sm::new(90)).expect("a target")
    }

    fn check(seed: u64, limits: &[u32]) {
        let shape = Shape {
            straight: 4 + seed as usize % 20,
            depth: seed as usize % 4,
            guarded: if seed.is_multiple_of(3) { 30 } else { 5 },
            far: seed as usize % 40,
        };
        let before = random::function(seed, shape);
        assert_eq!(crate::ori::verify::verify(&before, Stage::Built), Ok(()), "seed {seed}");
        for &limit in limits {
            let mut func = before.clone();
            let allocation = allocate(&mut func, target(), limit).unwrap_or_else(|error| {
                panic!("seed {seed}, limit {limit}: {error}\n{}", crate::ori::text::print(&before));
            });
            assert!(allocation.registers <= limit, "seed {seed}, limit {limit}");
            for &b in &func.layout {
                assert_eq!(allocation.live[b.index()].len(), func.block(b).insts.len() + 1);
            }
        }
    }

    #[test]
    fn random_functions_pass_the_checker() {
        for seed in 0..250 {
            check(seed, &[255]);
        }
    }

    #[test]
    fn a_block_that_jumps_to_itself_ends_with_its_moves() {
        let text = "entry \"f\" {
        b0:
          %v0:r2 = PACK 0x1, RZ
          %v1:r = MOV 0x1
          JUMP b1
        b1:
          %v2:r2 = phi b0 %v0, b1 %v6
          %v3:r, %v4:p, _ = IADD3 %v1, 0x4, RZ
          %v5:r, _, _ = IADD3.X RZ, RZ, RZ, %v4, PF
          %v6:r2 = PACK %v3, %v5
          STG.E %v2, RZ, %v3
          JUMP b1
        }";
        let mut func = crate::ori::text::parse(text).expect("parses");
        allocate(&mut func, target(), 255).expect("is right");
        let last = func.block(crate::ori::ir::BlockId(1)).insts.last().map(|inst| inst.op);
        assert_eq!(last, Some(crate::ori::op::Op::Mov));
    }

    /// Predicates that change in a loop, without a free register: they are stored in memory as integers, and so are the
    /// constants with which they start.
    #[test]
    fn constants_go_to_the_frame_of_predicates() {
        let lines =
            |count: usize, line: &dyn Fn(usize) -> String| -> String { (0..count).map(line).collect() };
        let (general, predicates) = (20, 9);
        let text = [
            "entry \"f\" {\nb0:\n".to_owned(),
            lines(general, &|i| format!("%v{i}:r = S2R{{sr={i}}}\n")),
            "JUMP b1\nb1:\n".to_owned(),
            lines(predicates, &|i| {
                let start = ["PT", "PF", "!PT"][i % 3];
                format!("%v{}:p = phi b0 {start}, b1 !%v{}\n", 50 + i, 50 + (i + 1) % predicates)
            }),
            lines(6 * general, &|i| format!("STG.E RZ, RZ, %v{}\n", i % general)),
            "BRA %v50, b1, b2\nb2:\nEXIT\n}\n".to_owned(),
        ]
        .concat();
        let mut func = crate::ori::text::parse(&text).expect("parses");
        allocate(&mut func, target(), 24).expect("allocates");
        assert!(func.frame.spill_bytes > 0);
    }

    #[test]
    fn random_functions_spill_correctly() {
        for seed in 1000..1100 {
            check(seed, &[40, 24, 19]);
        }
    }
}
