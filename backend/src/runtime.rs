//! The runtime library: the text in the IR of PTX instructions that have no machine instruction.
//!
//! Construction requests a routine with [`Op::Compute`], which is pure. A routine that a kernel requests once is
//! inlined, so that phases can optimize it. A routine that it requests more often is called, with one copy of its code
//! after the kernel's ([`crate::phase::routines`]). A routine is straight-line code: one block from `PARAMS` to
//! `RESULTS`, whose operands are a few words.
//!
//! A called routine has its own convention. Words are passed in the first parameter registers of functions, the return
//! address in the pair after them. The other registers that it overwrites are known, because it is compiled before its
//! callers. It has no stack frame, and uses only one uniform register, which functions reserve for routines.
//!
//! Barriers of the block and warp operations are routines if threads of a warp may reach them at different places. The
//! hardware counts whole warps, and executes a warp operation for the threads at one instruction. So the threads must
//! meet in the routine, wherever they come from. [`crate::phase::convergence`] calls these routines; threads never wait
//! in other routines.

use crate::abi;
use crate::input::SrcId;
use crate::ori::ir::{Dst, File, Function, Inst, Reg, Src};
use crate::ori::op::{ExtremeType, FloatRedux, Op, ReduxOp, Routine};
use crate::ori::signature::{Width, signature};
use crate::ori::text;
use crate::session::Session;
use crate::target::Target;
use crate::{CodegenError, Options, phases, registers};
use ptx_isa::Sm;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

impl Routine {
    /// The name in the IR, without the dot.
    pub fn name(self) -> &'static str {
        self.text().trim_start_matches('.')
    }

    /// Whether threads wait in the routine, because it is a barrier or a warp operation.
    pub fn waits(self) -> bool {
        !matches!(
            self,
            Routine::DivideU64
                | Routine::QuotientF32
                | Routine::ReciprocalF32
                | Routine::RootF32
                | Routine::QuotientF64
                | Routine::ReciprocalF64
                | Routine::RootF64
                | Routine::ReciprocalRootF64
                | Routine::TruncatedQuotientF64
                | Routine::TruncatedRootF64
        )
    }

    /// The routine that executes a reduction for threads at different places.
    pub fn of_reduction(op: Op) -> Option<Routine> {
        REDUCTIONS.iter().find(|(_, reduces)| *reduces == op).map(|(routine, _)| *routine)
    }

    fn source(self) -> &'static str {
        match self {
            Routine::DivideU64 => include_str!("runtime/divide_u64.ori"),
            Routine::QuotientF32 => include_str!("runtime/quotient_f32.ori"),
            Routine::ReciprocalF32 => include_str!("runtime/reciprocal_f32.ori"),
            Routine::RootF32 => include_str!("runtime/root_f32.ori"),
            Routine::QuotientF64 => include_str!("runtime/quotient_f64.ori"),
            Routine::ReciprocalF64 => include_str!("runtime/reciprocal_f64.ori"),
            Routine::RootF64 => include_str!("runtime/root_f64.ori"),
            Routine::ReciprocalRootF64 => include_str!("runtime/reciprocal_root_f64.ori"),
            Routine::TruncatedQuotientF64 => include_str!("runtime/truncated_quotient_f64.ori"),
            Routine::TruncatedRootF64 => include_str!("runtime/truncated_root_f64.ori"),
            Routine::BarrierSync => include_str!("runtime/barrier_sync.ori"),
            Routine::BarrierArrive => include_str!("runtime/barrier_arrive.ori"),
            Routine::BarrierCount => include_str!("runtime/barrier_count.ori"),
            Routine::BarrierAll => include_str!("runtime/barrier_all.ori"),
            Routine::BarrierAny => include_str!("runtime/barrier_any.ori"),
            Routine::WarpBallots => include_str!("runtime/warp_ballots.ori"),
            Routine::ShuffleIdx => include_str!("runtime/shuffle_idx.ori"),
            Routine::ShuffleUp => include_str!("runtime/shuffle_up.ori"),
            Routine::ShuffleDown => include_str!("runtime/shuffle_down.ori"),
            Routine::ShuffleBfly => include_str!("runtime/shuffle_bfly.ori"),
            Routine::MatchWord => include_str!("runtime/match_word.ori"),
            Routine::MatchPair => include_str!("runtime/match_pair.ori"),
            Routine::Elect => include_str!("runtime/elect.ori"),
            // The operation of each is in REDUCTIONS.
            Routine::ReduxAnd
            | Routine::ReduxOr
            | Routine::ReduxXor
            | Routine::ReduxSum
            | Routine::ReduxMinU32
            | Routine::ReduxMaxU32
            | Routine::ReduxMinS32
            | Routine::ReduxMaxS32
            | Routine::CreduxMinU32
            | Routine::CreduxMaxU32
            | Routine::CreduxMinS32
            | Routine::CreduxMaxS32
            | Routine::CreduxMin
            | Routine::CreduxMax
            | Routine::CreduxMinAbs
            | Routine::CreduxMaxAbs
            | Routine::CreduxMinNan
            | Routine::CreduxMaxNan
            | Routine::CreduxMinAbsNan
            | Routine::CreduxMaxAbsNan => include_str!("runtime/redux.ori"),
        }
    }
}

/// The reductions, each with its routine. All these routines have the same text except for the operation.
const REDUCTIONS: [(Routine, Op); 20] = [
    (Routine::ReduxAnd, redux(ReduxOp::And, false)),
    (Routine::ReduxOr, redux(ReduxOp::Or, false)),
    (Routine::ReduxXor, redux(ReduxOp::Xor, false)),
    (Routine::ReduxSum, redux(ReduxOp::Sum, false)),
    (Routine::ReduxMinU32, redux(ReduxOp::Min, false)),
    (Routine::ReduxMaxU32, redux(ReduxOp::Max, false)),
    (Routine::ReduxMinS32, redux(ReduxOp::Min, true)),
    (Routine::ReduxMaxS32, redux(ReduxOp::Max, true)),
    (Routine::CreduxMinU32, credux(FloatRedux::Min, ExtremeType::U32, false)),
    (Routine::CreduxMaxU32, credux(FloatRedux::Max, ExtremeType::U32, false)),
    (Routine::CreduxMinS32, credux(FloatRedux::Min, ExtremeType::S32, false)),
    (Routine::CreduxMaxS32, credux(FloatRedux::Max, ExtremeType::S32, false)),
    (Routine::CreduxMin, credux(FloatRedux::Min, ExtremeType::F32, false)),
    (Routine::CreduxMax, credux(FloatRedux::Max, ExtremeType::F32, false)),
    (Routine::CreduxMinAbs, credux(FloatRedux::MinAbs, ExtremeType::F32, false)),
    (Routine::CreduxMaxAbs, credux(FloatRedux::MaxAbs, ExtremeType::F32, false)),
    (Routine::CreduxMinNan, credux(FloatRedux::Min, ExtremeType::F32, true)),
    (Routine::CreduxMaxNan, credux(FloatRedux::Max, ExtremeType::F32, true)),
    (Routine::CreduxMinAbsNan, credux(FloatRedux::MinAbs, ExtremeType::F32, true)),
    (Routine::CreduxMaxAbsNan, credux(FloatRedux::MaxAbs, ExtremeType::F32, true)),
];

const fn redux(op: ReduxOp, signed: bool) -> Op {
    Op::Redux { op, signed }
}

const fn credux(op: FloatRedux, ty: ExtremeType, nan: bool) -> Op {
    Op::Credux { op, ty, nan }
}

static PARSED: [OnceLock<Function>; Routine::ALL.len()] = [const { OnceLock::new() }; Routine::ALL.len()];

fn parsed(routine: Routine) -> &'static Function {
    PARSED[routine as usize].get_or_init(|| parse(routine).expect("the tests parse every routine"))
}

fn parse(routine: Routine) -> Result<Function, text::ParseError> {
    let mut func = text::parse(&numbered(routine.source()))?;
    func.routine = Some(routine);
    if let Some((_, reduction)) = REDUCTIONS.iter().find(|(reduces, _)| *reduces == routine) {
        let insts = func.blocks.iter_mut().flat_map(|block| &mut block.insts);
        insts.filter(|inst| inst.op.reduces_group()).for_each(|inst| inst.op = *reduction);
    }
    Ok(func)
}

/// The text with numbers instead of value names, as in the IR's text.
fn numbered(text: &str) -> String {
    let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
    let mut out = String::new();
    for line in text.lines() {
        let mut parts = line.split_once("//").map_or(line, |(code, _)| code).split('%');
        out.push_str(parts.next().unwrap_or(""));
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(part.len());
            let next = numbers.len();
            let number = numbers.entry(&part[..end]).or_insert(next);
            out.push_str(&format!("%v{number}{}", &part[end..]));
        }
        out.push('\n');
    }
    out
}

/// The parts of a routine.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    /// The function that defines the values of `insts`.
    pub func: &'a Function,
    pub params: &'a [Dst],
    pub insts: &'a [Inst],
    pub results: &'a [Src],
}

/// The body of a routine.
pub fn body(routine: Routine) -> Body<'static> {
    let func = parsed(routine);
    match &func.blocks[0].insts[..] {
        [params, insts @ .., results] => Body { func, params: &params.dsts, insts, results: &results.srcs },
        _ => Body { func, params: &[], insts: &[], results: &[] },
    }
}

/// The first register of the pair with the return address of a routine.
pub fn return_address(routine: Routine) -> u8 {
    let body = body(routine);
    abi::FIRST + body.params.len().max(body.results.len()).next_multiple_of(2) as u8
}

/// The register that passes the n-th word to and from a routine.
pub fn place(n: usize) -> u8 {
    abi::FIRST + n as u8
}

/// A routine compiled for a target.
#[derive(Debug)]
pub struct Compiled {
    /// The allocated function.
    pub func: Function,
    /// The registers that it overwrites, except its results and the return address.
    pub overwrites: Vec<Reg>,
}

type Key = (u16, Routine);
static COMPILED: LazyLock<Mutex<FxHashMap<Key, Arc<Compiled>>>> = LazyLock::new(Mutex::default);

/// The routine's code, which is compiled on first use. It is the same for all callers.
///
/// # Errors
/// [`CodegenError::Internal`]: the tests compile every routine for every target.
pub fn compiled(target: &Target, routine: Routine) -> Result<Arc<Compiled>, CodegenError> {
    let lock = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(&(target.sm, routine)) {
        return Ok(known.clone());
    }
    let new = Arc::new(compile(target, routine)?);
    lock().insert((target.sm, routine), new.clone());
    Ok(new)
}

fn compile(target: &Target, routine: Routine) -> Result<Compiled, CodegenError> {
    let wrong =
        |what: String| CodegenError::internal(SrcId(0), "runtime", format!("{}: {what}", routine.name()));
    let mut func = callable(routine);
    let options = Options::new(Sm::new(target.sm));
    let mut session = Session::default();
    phases::run(&mut func, &options, &mut session)?;
    // Every caller has that number of registers.
    registers::assign(&mut func, target, registers::FEWEST, &options, &session)?;
    if func.layout.len() != 1 || func.frame.spill_bytes > 0 {
        return Err(wrong("it is not straight-line code in registers".to_owned()));
    }
    let mut overwrites: Vec<Reg> = func.block(func.layout[0]).insts.iter().flat_map(written).collect();
    overwrites.sort_unstable();
    overwrites.dedup();
    let is_own = |reg: &Reg| matches!(reg.file, File::R | File::P) || *reg == abi::ROUTINES_UNIFORM;
    if let Some(reg) = overwrites.iter().find(|reg| !is_own(reg)) {
        return Err(wrong(format!("it writes {reg:?}, which the whole warp shares")));
    }
    Ok(Compiled { func, overwrites })
}

/// The routine's text as a function that follows the routine convention.
fn callable(routine: Routine) -> Function {
    let mut func = body(routine).func.clone();
    let b = func.layout[0];
    let mut insts = std::mem::take(&mut func.block_mut(b).insts);
    let fix = |dst: Dst, src: Src| Inst::new(Op::Fix, &[dst], &[src], SrcId(0));
    let mut taken = Vec::new();
    if let Some(params) = insts.first_mut() {
        for (i, dst) in params.dsts.iter_mut().enumerate() {
            let pinned = func.new_pinned(place(i));
            taken.push(fix(*dst, pinned.into()));
            *dst = Dst::Value(pinned);
        }
    }
    let mut results = insts.pop();
    let mut given = Vec::new();
    if let Some(results) = &mut results {
        for (i, src) in results.srcs.iter_mut().enumerate() {
            let pinned = func.new_pinned(place(i));
            given.push(fix(Dst::Value(pinned), *src));
            *src = pinned.into();
        }
    }
    insts.splice(1..1, taken);
    insts.extend(given);
    insts.extend(results);
    func.block_mut(b).insts = insts;
    func
}

/// Registers that an allocated instruction writes.
fn written(inst: &Inst) -> SmallVec<[Reg; 4]> {
    let signature = signature(&inst.op);
    let mut written = SmallVec::new();
    for (slot, dst) in signature.dsts.iter().zip(&inst.dsts) {
        let count = match slot.width {
            Width::Exactly(count) => count,
            Width::OneOrTwo => 2,
            Width::Any => 1,
        };
        if let Dst::Reg(Reg { file, index }) = *dst {
            written.extend((index..index.saturating_add(count)).map(|index| Reg { file, index }));
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::verify::{Stage, verify};
    use crate::target::TARGETS;

    /// Whether the target has the instructions that the routine uses.
    fn is_on(target: &Target, routine: Routine) -> bool {
        body(routine).insts.iter().all(|inst| crate::emit::encodes(target.generation(), &inst.op))
    }

    #[test]
    fn every_reduction_has_its_routine() {
        for (routine, op) in REDUCTIONS {
            assert_eq!(Routine::of_reduction(op), Some(routine));
            assert!(body(routine).insts.iter().any(|inst| inst.op == op), "{}", routine.name());
            assert!(TARGETS.iter().any(|target| is_on(target, routine)), "{}", routine.name());
        }
    }

    #[test]
    fn routines_are_straight_line_code_of_a_few_words() {
        for &routine in Routine::ALL {
            let parsed = parse(routine).unwrap_or_else(|e| panic!("{}: {e}", routine.name()));
            assert_eq!(parsed.layout.len(), 1, "{}", routine.name());
            let body = body(routine);
            assert!((1..=4).contains(&body.params.len()) && body.results.len() <= 4);
            assert!(
                !body
                    .insts
                    .iter()
                    .any(|inst| matches!(inst.op, Op::Params | Op::Results | Op::Compute { .. }))
            );
            verify(&callable(routine), Stage::Built)
                .unwrap_or_else(|e| panic!("{}: {}", routine.name(), e[0]));
        }
    }

    #[test]
    fn routines_that_wait_bring_threads_together_first() {
        for target in &TARGETS {
            for &routine in Routine::ALL.iter().filter(|routine| routine.waits() && is_on(target, **routine))
            {
                let compiled = compiled(target, routine).unwrap();
                let insts = &compiled.func.block(compiled.func.layout[0]).insts;
                let place = |is: fn(&Op) -> bool| insts.iter().position(|inst| is(&inst.op)).unwrap();
                let meets = place(|op| matches!(op, Op::Warpsync { .. }));
                let waits = place(|op| {
                    matches!(op, Op::Bar { .. } | Op::Vote { .. } | Op::Shfl { .. } | Op::Match { .. })
                        || op.reduces_group()
                });
                assert!(meets < waits, "sm_{} {}", target.sm, routine.name());
                let is_barrier = matches!(insts[waits].op, Op::Bar { .. });
                assert_eq!(insts[meets].srcs[..] == [Src::imm(u32::MAX)], is_barrier);
                assert_eq!(insts[meets].guard, Src::TRUE);
            }
        }
    }

    #[test]
    fn every_routine_compiles_for_every_target() {
        for target in &TARGETS {
            for &routine in Routine::ALL.iter().filter(|routine| is_on(target, **routine)) {
                let compiled = compiled(target, routine).unwrap_or_else(|e| panic!("sm_{}: {e}", target.sm));
                let address = return_address(routine);
                let own = |reg: &&Reg| reg.file == File::R && (address..address + 2).contains(&reg.index);
                assert_eq!(compiled.overwrites.iter().find(own), None, "sm_{} {}", target.sm, routine.name());
            }
        }
    }
}
