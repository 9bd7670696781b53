//! Compiles one function from input to machine code: all steps of the backend in order.

use crate::abi::{self, Known};
use crate::assemble::JumpTable;
use crate::explain::{self, Explanation, Kept};
use crate::hazard;
use crate::input::{Env, Function, SrcId, Stmt};
use crate::ori::cfg::returning_blocks;
use crate::ori::compact::compact;
use crate::ori::op::Op;
use crate::ori::{build, ir, text};
use crate::products::{self, MatrixUse};
use crate::regalloc::convention;
use crate::registers::{self, Fixed};
use crate::session::Session;
use crate::switches::Step;
use crate::target::Target;
use crate::{Attributes, CodegenError, CompiledFunction, Copies, Options, Resources};
use crate::{assemble, emit, order, phases, sched, shown};
use ptx_isa::Facts;
use rustc_hash::FxHashSet;
use sass::{RegFile, Sm};

/// Compiles a function. The result depends only on the function's body, the module's environment and the options.
///
/// The register allocation, the timing and the memory order of the result are always checked. Builds with debug
/// assertions also verify the IR after every phase.
///
/// # Errors
/// [`CodegenError::Unsupported`] with the statement that cannot be compiled yet.
pub fn compile(
    env: &Env,
    func: &Function,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<CompiledFunction, CodegenError> {
    compile_as(env, func, options, false, session)
}

/// Like [`compile()`], for a private function: it preserves no registers for its callers. [`CompiledFunction::known`]
/// lists the registers that it overwrites.
///
/// # Errors
/// As there.
pub fn compile_private(
    env: &Env,
    func: &Function,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<CompiledFunction, CodegenError> {
    compile_as(env, func, options, true, session)
}

fn compile_as(
    env: &Env,
    func: &Function,
    options: &Options,
    private: bool,
    session: &mut Session<'_>,
) -> Result<CompiledFunction, CodegenError> {
    let first = session.dumps.len();
    let (found, hoists) = compile_once(env, func, options, private, session)?;
    let second = session.dumps.len();
    let switches = options.switches.without(phases::HOISTING);
    let bytes = |code: &CompiledFunction| code.resources.spill_store_bytes + code.resources.spill_load_bytes;
    if !hoists || !(1..=registers::MUCH_SPILLED).contains(&bytes(&found)) {
        return Ok(found);
    }
    // Invariants that are computed in the loop again may cost less than others that spill.
    let options = Options { switches, ..options.clone() };
    match compile_once(env, func, &options, private, session) {
        Ok((other, _)) if bytes(&other) < bytes(&found) => {
            session.dumps.drain(first..second);
            Ok(other)
        }
        _ => {
            session.dumps.truncate(second);
            Ok(found)
        }
    }
}

/// Returns also whether invariants of loops were hoisted.
fn compile_once(
    env: &Env,
    func: &Function,
    options: &Options,
    private: bool,
    session: &mut Session<'_>,
) -> Result<(CompiledFunction, bool), CodegenError> {
    let changes = registers::starts_with(env, func, options);
    match compile_with(env, func, options, private, changes, session) {
        // `setmaxnreg` leaves too few registers at some point; without it the thread may have enough everywhere.
        Err(CodegenError::Limit { .. }) if matches!(changes, Some(Ok(_))) => {
            compile_with(env, func, options, private, Some(Err(Fixed::TooFew)), session)
        }
        result => result,
    }
}

/// `changes` says whether `setmaxnreg` is honored.
fn compile_with(
    env: &Env,
    func: &Function,
    options: &Options,
    private: bool,
    changes: Option<Result<u32, Fixed>>,
    session: &mut Session<'_>,
) -> Result<(CompiledFunction, bool), CodegenError> {
    let target = Target::of(options.sm)
        .ok_or_else(|| CodegenError::unsupported(SrcId(0), format!("code for {}", options.sm)))?;
    let sm = Sm(options.sm.number as u8);

    let starts_with = changes.and_then(Result::ok);
    let mut ori = build::build(env, func, options, starts_with, session.checkpoint)?;
    // A function that allocates stack memory at run time needs the words for the stack end in its calls.
    ori.facts.private = private && !func.entry && !ori.frame.moving;
    compact(&mut ori);
    session.over(BUILD, || text::print(&ori));
    let hoists = phases::run(&mut ori, options, session)?.contains(&phases::HOISTING);
    // Calls of runtime routines exist only now, and may overwrite the return address.
    ori.facts.private = ori.facts.private && convention::keeps_frame(&ori, target)?;
    compact(&mut ori);
    let limit = registers::limit(&func.launch, options);
    let statements = ori.facts.statements;
    let Generated { registers, assembled, insts, shown, explanation } =
        generate(&mut ori, limit, options, session)
            .map_err(|error| error.moved(|at| statements.original(at)))?;
    let explanation = explanation.map(|mut explanation| {
        let has_pragma = env.nounroll || func.nounroll.everywhere || !func.nounroll.before.is_empty();
        explanation.kept.retain(|(_, why)| has_pragma || *why != Kept::Pragma);
        explanation.map(&|src| statements.original(src));
        explanation
    });
    let claims = order::Claims {
        lines: &assembled.lines,
        unrolled: &ori.facts.unrolled,
        joined: &ori.facts.joined,
        spills: &assembled.spills,
        never: &ori.facts.never,
        tables: &assembled.tables,
        frame_is_gone: ori.frame.local_bytes == 0 && crate::layout::local_layout(&func.locals).size > 0,
    };
    order::check(env, func, sm, &insts, claims)
        .map_err(|violation| CodegenError::internal(violation.first, "order", violation.to_string()))?;
    session.over("order", String::new);
    let lines = assembled.lines.iter().map(|src| src.map(|src| statements.original(src))).collect::<Box<_>>();

    let block = target.place_params(if func.entry { &func.params } else { &[] });
    let handles = match func.entry && ori.facts.linking.is_joined() {
        true => crate::layout::handle_words(env, func, target),
        false => crate::layout::HandleWords::default(),
    };
    let parameters_end = u32::from(block.first) + block.bytes;
    let const0_bytes = if handles.words.is_empty() { parameters_end } else { handles.end() };
    let stack_bytes = emit::frame_bytes(&ori.frame);
    let asked: FxHashSet<SrcId> = func.body.iter().filter_map(warp_operation).collect();
    let is_asked = |at: u32| {
        let src = lines.get(at as usize / WORD).copied().flatten();
        src.is_some_and(|src| asked.contains(&src))
    };
    let (coop_groups, own): (Vec<_>, Vec<_>) =
        assembled.coop_groups.iter().partition(|(at, _)| is_asked(*at));
    let matrix = MatrixUse::of(func, &ori);
    let compiled = CompiledFunction {
        name: func.name.clone(),
        entry: func.entry,
        code: assembled.code,
        lines,
        inlined: None,
        known: known(&ori, sm, &insts, registers)?,
        copies: Copies { lines: assembled.lines, unrolled: ori.facts.unrolled, joined: ori.facts.joined },
        spills: assembled.spills,
        live_registers: assembled.live_registers,
        shown,
        explanation,
        resources: Resources {
            registers,
            stack_bytes,
            spill_store_bytes: ori.frame.spill_stores,
            spill_load_bytes: ori.frame.spill_loads,
            shared_bytes: ori.facts.shared_bytes,
            barriers: u32::from(ori.facts.barriers),
            const0_bytes,
        },
        links: assembled.links,
        tables: assembled.tables,
        literals: ori.literals,
        attributes: Attributes {
            exits: assembled.exits,
            system_calls: assembled.system_calls,
            coop_groups,
            own_warp_operations: own.into_iter().map(|(at, _)| at).collect(),
            uses_convergence_barriers: assembled.uses_convergence_barriers,
            reads_ctaid_z: ori.facts.reads_ctaid_z,
            tensor: ori.facts.tensor,
            matrix,
            reads_reserved_shared: products::reads_reserved_shared(func),
            symbols: ori.facts.symbols,
            max_registers: limit,
            changes_registers: changes.map(|most| most.map(|_| ())),
            params: block.offsets,
            locals: if emit::is_realigned(&ori.frame) { Vec::new() } else { ori.facts.locals },
            handles,
        },
    };
    Ok((compiled, hoists))
}

/// The registers that a call of a private function overwrites, and its effects, computed from its code.
fn known(
    func: &ir::Function,
    sm: Sm,
    insts: &[sass::Inst],
    registers: u32,
) -> Result<Option<Known>, CodegenError> {
    let Some(return_address) = func.facts.return_address else { return Ok(None) };
    let general = |index| ir::Reg { file: ir::File::R, index };
    let mut known = Known::new(return_address, registers);
    let all = || func.blocks.iter().flat_map(|block| &block.insts);
    known.yields = all().any(|inst| func.yields(inst));
    known.saves_barriers =
        all().any(|inst| matches!(inst.op, Op::BarrierTake { .. }) || func.saves_barriers(inst));
    let returning = returning_blocks(func);
    // If a function never returns, no caller observes the registers that it overwrites.
    if !returning.contains(&true) {
        return Ok(Some(known));
    }
    let written = insts.iter().flat_map(|inst| inst.writes(sm)).filter(|used| used.file == RegFile::R);
    for used in written {
        (0..used.count).for_each(|i| known.add(used.index.saturating_add(i)));
    }
    let blocks = func.blocks.iter().zip(returning).filter(|(_, returns)| *returns);
    for inst in blocks.flat_map(|(block, _)| &block.insts).filter(|inst| inst.op.calls_function()) {
        let more = func.known(&inst.op);
        let preserved = inst.op.preserved();
        let address = more.map_or(preserved.return_address(), |known| known.return_address);
        for reg in (0..=254).map(general) {
            let is_address = (address..address + 2).contains(&reg.index);
            if is_address || more.map_or(!preserved.has(reg), |known| known.has(reg)) {
                known.add(reg.index);
            }
        }
    }
    let is_own = |index| known.has(general(index));
    if is_own(return_address) || is_own(return_address + 1) || is_own(abi::FRAME) {
        return Err(CodegenError::internal(SrcId(0), "calls", "the return address is overwritten"));
    }
    Ok(Some(known))
}

/// Bytes of an instruction.
const WORD: usize = 16;

/// The source of a statement that threads of a warp execute together.
fn warp_operation(stmt: &Stmt) -> Option<SrcId> {
    match stmt {
        Stmt::Instr(instr) if ptx_isa::form(instr.opcode.form).facts.has(Facts::CONVERGENT) => {
            Some(instr.src)
        }
        _ => None,
    }
}

/// The stage of construction.
const BUILD: &str = "ori";

/// The stages after the phases.
const GENERATION: [&str; 3] = ["alloc", "mach", "sched"];

/// The stages whose result can be printed, in order: construction (`ori`), the phases, register allocation (`alloc`),
/// emission (`mach`) and scheduling (`sched`).
pub fn stages() -> impl Iterator<Item = &'static str> {
    let first = |i: usize, name: &str| phases::PHASES[..i].iter().all(|earlier| earlier.name != name);
    let phases = phases::PHASES.iter().enumerate().filter(move |(i, phase)| first(*i, phase.name));
    std::iter::once(BUILD).chain(phases.map(|(_, phase)| phase.name)).chain(GENERATION)
}

/// What the text after a stage shows; for a phase, the reasons for its position.
pub fn stage_about(stage: &str) -> String {
    match stage {
        BUILD => "the IR as built from PTX".to_owned(),
        "alloc" => "the IR with registers".to_owned(),
        "mach" => "machine code before scheduling".to_owned(),
        "sched" => "machine code after scheduling".to_owned(),
        name => {
            let phase = phases::PHASES.iter().find(|phase| phase.name == name);
            let after = phase.map_or(&[][..], |phase| phase.after);
            let reasons: Vec<String> =
                after.iter().map(|(earlier, reason)| format!("after {earlier}: {reason}")).collect();
            if reasons.is_empty() { "a phase".to_owned() } else { reasons.join("; ") }
        }
    }
}

/// The machine code of a function, and its number of registers per thread.
pub struct Generated {
    pub registers: u32,
    pub assembled: assemble::Assembled,
    /// The words of `assembled`, decoded to instructions.
    pub insts: Vec<sass::Inst>,
    pub shown: Vec<shown::Location>,
    pub explanation: Option<Box<Explanation>>,
}

/// Generates machine code from legal Ori. Allocates registers in `ori` on the way. `limit` is the maximum number of
/// registers per thread.
///
/// # Errors
/// [`CodegenError::Limit`] where the registers do not suffice, [`CodegenError::Internal`] for defects that the checks
/// find.
pub fn generate(
    ori: &mut ir::Function,
    limit: u32,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<Generated, CodegenError> {
    let [alloc, mach, scheduled] = GENERATION;
    let target = Target::of(options.sm)
        .ok_or_else(|| CodegenError::unsupported(SrcId(0), format!("code for {}", options.sm)))?;
    let sm = Sm(options.sm.number as u8);
    let allocated = registers::assign(ori, target, limit, options, session)?;
    let registers = allocated.allocation.registers;
    let pressure = options.explains.then(|| explain::pressure(&allocated, limit));
    drop(allocated);
    session.over(alloc, || text::print(ori));
    let mut code = emit::emit(ori, sm, target)?;
    ori.facts.never.clone_from(&code.facts.never);
    session.over(mach, || code.to_string());
    let reorder = options.opt_level > 0 && options.switches.takes(Step::PostSched);
    sched::schedule(&mut code, sched::Options { reorder }, session.checkpoint);
    session.over(scheduled, || code.to_string());
    let assembled = assemble::assemble(&code)?;
    // This check always runs: code that reads a register too early executes, but gives wrong results.
    let insts = decode(sm, &assembled.code)?;
    session.over("assemble", String::new);
    let tables: Vec<(usize, Vec<usize>)> = assembled.tables.iter().map(JumpTable::indices).collect();
    check_hazards(sm, &insts, &tables, session.checkpoint)?;
    session.over("hazards", String::new);
    let explanation = pressure.map(|(peak, spilled)| {
        let original = |src: &Option<SrcId>| src.map(|src| ori.facts.statements.original(src));
        let lines: Vec<Option<SrcId>> = assembled.lines.iter().map(original).collect();
        let loops = explain::loops(sm, &insts, &lines, &tables);
        let (unrolled, kept) = (ori.facts.unrolled.clone(), ori.facts.kept.clone());
        Box::new(Explanation { peak, spilled, loops, unrolled, kept })
    });
    Ok(Generated { registers, assembled, insts, shown: shown::locations(&code), explanation })
}

fn decode(sm: Sm, code: &[u128]) -> Result<Vec<sass::Inst>, CodegenError> {
    let inst = |(i, &word): (usize, &u128)| {
        sass::decode(sm, word).ok_or_else(|| {
            CodegenError::internal(SrcId(0), "decode", format!("word {i} does not decode: {word:#034x}"))
        })
    };
    code.iter().enumerate().map(inst).collect()
}

/// Rejects code in which an instruction reads a register before its value has been written.
fn check_hazards(
    sm: Sm,
    insts: &[sass::Inst],
    tables: &[(usize, Vec<usize>)],
    checkpoint: &dyn Fn(),
) -> Result<(), CodegenError> {
    match hazard::check_alone(sm, insts, tables, checkpoint).first() {
        None => Ok(()),
        Some(hazard) => Err(CodegenError::internal(SrcId(0), "hazard", format!("{hazard:?}"))),
    }
}
