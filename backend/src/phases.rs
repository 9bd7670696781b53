//! The phases between construction and register allocation, as data, and their runner.
//!
//! A phase has the name of its counterpart in ptxas, if there is one.

use crate::ori::analyses::Analyses;
use crate::ori::ir::Function;
use crate::ori::text;
use crate::ori::verify::{Stage, verify};
use crate::phase;
use crate::session::Session;
use crate::switches::Switches;
use crate::{CodegenError, Options};
use ptx_isa::Sm;

/// The input of a phase besides the function.
pub struct Context<'a> {
    pub sm: Sm,
    pub switches: Switches,
    pub checkpoint: &'a dyn Fn(),
    /// Analyses of the function before the phase.
    pub analyses: &'a Analyses,
}

#[cfg(test)]
impl<'a> Context<'a> {
    pub(crate) fn of(sm: u16, analyses: &'a Analyses) -> Context<'a> {
        Context { sm: Sm::new(sm), switches: Switches::ALL_ON, checkpoint: &|| (), analyses }
    }
}

/// Whether a phase changed the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Nothing,
    /// Something may have changed.
    Something,
}

impl Change {
    pub fn of(changed: bool) -> Change {
        if changed { Change::Something } else { Change::Nothing }
    }
}

pub struct Phase {
    pub name: &'static str,
    pub run: fn(&mut Function, &Context<'_>) -> Result<Change, CodegenError>,
    /// Phases that run before this one, each with the reason. The reason is a benefit, not a condition for correct
    /// code: every phase accepts any valid function, so disabling an earlier phase only loses that benefit.
    pub after: &'static [(&'static str, &'static str)],
    /// The lowest `-O` level at which the phase runs; zero for required phases.
    pub level: u8,
    /// The stage whose rules the verifier checks in the result.
    pub result: Stage,
    /// The phase keeps all reachable blocks and the edges between them.
    pub keeps_flow: bool,
}

impl Phase {
    const fn keeps_flow(self) -> Phase {
        Phase { keeps_flow: true, ..self }
    }

    const fn at_level(self, level: u8) -> Phase {
        Phase { level, ..self }
    }
}

const fn optional(
    name: &'static str,
    run: fn(&mut Function, &Context<'_>) -> Result<Change, CodegenError>,
    after: &'static [(&'static str, &'static str)],
) -> Phase {
    Phase { name, run, after, level: 1, result: Stage::Built, keeps_flow: false }
}

/// The phase that `--fmad=false` disables.
pub const CONTRACTION: &str = "OriContractProducts";

/// The phase that moves invariants out of loops, where they take registers throughout.
pub const HOISTING: &str = "OriHoistInvariantsEarly";

/// The phase that `--disable-optimizer-constants` disables.
pub const LITERALS: &str = "ExtractShaderConstsFinal";

/// All phases in the order in which they run. A name may appear several times; `after` then requires one earlier run of
/// it.
pub const PHASES: &[Phase] = &[
    optional(CONTRACTION, phase::contract::run, &[]).keeps_flow(),
    optional("OriCopyProp", phase::copy_propagation::run, &[]).keeps_flow(),
    optional(
        "OriFold",
        phase::fold::run,
        &[("OriCopyProp", "it folds constants at their uses, which copies would hide")],
    )
    .keeps_flow(),
    optional(
        "GvnCse",
        phase::value_numbering::run,
        &[("OriFold", "folding gives equal values equal operands")],
    )
    .keeps_flow(),
    optional(
        "OriDropElections",
        phase::alone::run,
        &[
            ("OriFold", "folding removes conjunctions with constants"),
            ("GvnCse", "equal conjunctions have been merged"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriLiveDead",
        phase::dead_code::run,
        &[("OriCopyProp", "values that only copies read become dead")],
    )
    .keeps_flow(),
    optional(
        "OriReassociateAndCommon",
        phase::reassociate::run,
        &[
            ("OriFold", "it collects constants from sums, which folding exposes"),
            ("OriLiveDead", "a dead use as a number would prevent the change of an address"),
        ],
    )
    .keeps_flow(),
    optional(
        HOISTING,
        phase::hoist::run,
        &[
            ("GvnCse", "equal expressions have been merged, so each is hoisted once"),
            ("OriLiveDead", "an unused value is not worth a register"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriForwardMemory",
        phase::forward::run,
        &[
            ("GvnCse", "equal addresses have become one SSA value"),
            ("OriLiveDead", "a dead instruction must not count as a use of an address"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriLiveDead",
        phase::dead_code::run,
        &[("OriReassociateAndCommon", "sums become unused"), ("OriForwardMemory", "addresses become unused")],
    )
    .keeps_flow(),
    optional(
        "OriLoopSimplification",
        phase::unroll::rotate::run,
        &[("OriLiveDead", "dead code does not count for the length of a header")],
    ),
    optional(
        "OriLoopUnrolling",
        phase::unroll::run,
        &[("OriFold", "it needs constant loop bounds"), ("OriLiveDead", "dead code does not count")],
    )
    .at_level(2),
    optional("OriBranchOpt", phase::branches::run, &[]),
    optional("OriCopyProp", phase::copy_propagation::run, &[]).keeps_flow(),
    optional("OriFold", phase::fold::run, &[]).keeps_flow(),
    optional("GvnCse", phase::value_numbering::run, &[]).keeps_flow(),
    optional("OriLiveDead", phase::dead_code::run, &[]).keeps_flow(),
    optional(
        "OriReassociateAndCommon",
        phase::reassociate::run,
        &[
            ("OriLoopUnrolling", "the indices in copies of an iteration differ by constants"),
            ("OriLiveDead", "a dead use as a number would prevent the change of an address"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriExpandRoutines",
        phase::routines::place_single,
        &[("GvnCse", "equal requests have been merged"), ("OriLiveDead", "dead code does not count")],
    )
    .keeps_flow(),
    optional(
        "GeneralOptimize",
        phase::combine::run,
        &[
            ("OriCopyProp", "patterns are matched through definitions, not through copies"),
            ("GvnCse", "it fuses values with one use, so equal operations must have been merged"),
            ("OriLiveDead", "dead uses of a value must not count"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriAddressFold",
        phase::addresses::run,
        &[("GeneralOptimize", "a sum that becomes part of a multiply-add is a base, not an addend")],
    )
    .keeps_flow(),
    Phase {
        name: "OriFuseHalves",
        run: phase::halves::run,
        after: &[
            ("OriFold", "known halves have been folded"),
            ("OriAddressFold", "address folding moves sums of halves into offsets"),
            ("GeneralOptimize", "it fuses sums of halves with products and shifts"),
        ],
        level: 0,
        result: Stage::Built,
        keeps_flow: true,
    },
    optional(
        "OriSplitPhis",
        phase::split_phis::run,
        &[
            ("OriAddressFold", "an address whose sum became an offset is no longer read as a whole"),
            ("OriFuseHalves", "the pairs that it creates are read as a whole"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriPromoteArrays",
        phase::arrays::run,
        &[
            ("OriLoopUnrolling", "an index that unrolling makes constant needs no selection"),
            ("OriAddressFold", "address folding removes sums for offsets"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriForwardMemory",
        phase::forward::run,
        &[("OriAddressFold", "folded offsets can be compared")],
    )
    .keeps_flow(),
    optional(
        "LateVectorization",
        phase::join::run,
        &[
            ("OriAddressFold", "neighboring loads have one address and different offsets"),
            ("OriForwardMemory", "words that the thread has stored need no load"),
        ],
    )
    .keeps_flow(),
    optional("OriCopyProp", phase::copy_propagation::run, &[]).keeps_flow(),
    optional("OriFold", phase::fold::run, &[]).keeps_flow(),
    optional("GvnCse", phase::value_numbering::run, &[]).keeps_flow(),
    optional(
        "OriPropagateVarying",
        phase::uniform::run,
        &[("OriFold", "constant words need no move"), ("GvnCse", "equal values have become one SSA value")],
    )
    .keeps_flow(),
    optional("OriLiveDead", phase::dead_code::run, &[]).keeps_flow(),
    optional("OriBranchOpt", phase::branches::run, &[("OriFold", "folding makes predicates constant")]),
    optional(
        "OptimizeNestedCondBranches",
        phase::threading::run,
        &[
            ("GvnCse", "equal conditions have become one predicate"),
            ("OriBranchOpt", "loops over threads that have one iteration are gone"),
        ],
    ),
    optional(
        "OptimizeUniformAtomic",
        phase::atomics::run,
        &[
            ("OriBranchOpt", "an operation that is never executed needs no code"),
            ("OptimizeNestedCondBranches", "a copy of an operation of the warp is a different operation"),
        ],
    ),
    optional(
        "OriDoPredication",
        phase::predication::run,
        &[
            ("OriLiveDead", "dead code does not count for the length of a block"),
            ("OptimizeUniformAtomic", "operations of the warp are not predicated"),
        ],
    ),
    optional(
        "SinkRemat",
        phase::sink::run,
        &[
            ("OriLiveDead", "a dead use would keep an operation where it is"),
            ("OriDoPredication", "the sides that predication removes need no operations of their own"),
        ],
    )
    .keeps_flow(),
    optional(
        "LateReadPairs",
        phase::pairs::run,
        &[
            ("OriFuseHalves", "it creates the pairs"),
            ("OriCopyProp", "copies of halves have been removed, so the halves are read directly"),
            ("OriDoPredication", "selections that it creates also read halves"),
        ],
    )
    .keeps_flow(),
    Phase {
        name: "LateExpandRoutines",
        run: phase::routines::call,
        after: &[("OriDoPredication", "a call has fixed registers, and no instruction may move across it")],
        level: 0,
        result: Stage::Built,
        keeps_flow: true,
    },
    Phase {
        name: "LateExpandSyncInstructions",
        run: phase::convergence::run,
        after: &[("OriDoPredication", "predicated branches need no barrier")],
        level: 0,
        result: Stage::Built,
        keeps_flow: false,
    },
    optional(
        "OriPropagateVaryingFirst",
        phase::to_uniform::run_on_carried,
        &[("LateExpandSyncInstructions", "the convergence barriers determine where threads are together")],
    )
    .keeps_flow(),
    optional(
        "OriPropagateVaryingSecond",
        phase::to_uniform::run,
        &[("OriDoPredication", "predication adds guards")],
    )
    .keeps_flow(),
    optional(
        "LateFuseExtensions",
        phase::extensions::run,
        &[
            ("OriAddressFold", "a sum whose constant becomes an offset adds nothing to the high word"),
            ("OriPropagateVaryingSecond", "the uniform datapath extends uniform values at no cost"),
        ],
    )
    .keeps_flow(),
    optional(
        "LateScaleAddresses",
        phase::scale::run,
        &[
            ("OriAddressFold", "a constant that is added to the address has become an offset"),
            ("OriPropagateVaryingSecond", "a uniform address is read from a uniform register"),
        ],
    )
    .keeps_flow(),
    optional(
        "LateGuardSelections",
        phase::guard::run,
        &[
            ("OriDoPredication", "it leaves selections where it cannot guard an operation"),
            ("OriPropagateVaryingSecond", "a selection in the uniform datapath needs no guard"),
        ],
    )
    .keeps_flow(),
    optional(
        LITERALS,
        phase::literals::run,
        &[("OriFold", "numbers that are immediates have been folded into their uses")],
    )
    .keeps_flow(),
    Phase {
        name: "LateLegalization",
        run: crate::legalize::run,
        after: &[("LateExpandSyncInstructions", "the operations that it adds are legalized too")],
        level: 0,
        result: Stage::Legal,
        keeps_flow: true,
    },
    Phase {
        result: Stage::Legal,
        keeps_flow: true,
        ..optional(
            "LateJoinConstants",
            phase::constant_pairs::run,
            &[("LateLegalization", "it loads the constants that operations cannot read from their bank")],
        )
    },
];

/// Runs all phases that the options ask for. Returns the names of those that changed the function.
pub fn run(
    func: &mut Function,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<Vec<&'static str>, CodegenError> {
    run_all(PHASES, func, options, session)
}

fn run_all(
    phases: &[Phase],
    func: &mut Function,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<Vec<&'static str>, CodegenError> {
    let checks = cfg!(debug_assertions);
    let mut changed = Vec::new();
    let mut analyses = Analyses::default();
    if checks {
        check(func, "Build", Stage::Built)?;
    }
    for (i, phase) in phases.iter().enumerate() {
        if phase.level > options.opt_level || !options.switches.runs(i) {
            continue;
        }
        let change = run_with(func, phase, options, session, &analyses)?;
        if checks {
            check(func, phase.name, phase.result)?;
        }
        if change == Change::Something {
            changed.push(phase.name);
        }
        match change {
            Change::Nothing => {}
            Change::Something if phase.keeps_flow => analyses.drop_values(),
            Change::Something => analyses = Analyses::default(),
        }
        if checks && !analyses.hold(func) {
            let what = "it changed what it claims to keep";
            return Err(CodegenError::internal(Default::default(), phase.name, what));
        }
        session.over(phase.name, || text::print(func));
    }
    Ok(changed)
}

/// Runs one phase.
pub fn run_phase(
    func: &mut Function,
    phase: &Phase,
    options: &Options,
    session: &Session<'_>,
) -> Result<Change, CodegenError> {
    run_with(func, phase, options, session, &Analyses::default())
}

fn run_with(
    func: &mut Function,
    phase: &Phase,
    options: &Options,
    session: &Session<'_>,
    analyses: &Analyses,
) -> Result<Change, CodegenError> {
    let context =
        Context { sm: options.sm, switches: options.switches, checkpoint: session.checkpoint, analyses };
    (phase.run)(func, &context)
}

fn check(func: &Function, phase: &'static str, stage: Stage) -> Result<(), CodegenError> {
    let Err(errors) = verify(func, stage) else { return Ok(()) };
    let at = Default::default();
    let what = errors.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Err(CodegenError::internal(at, phase, what))
}

/// The phase of this name.
pub fn find(name: &str) -> Option<&'static Phase> {
    PHASES.iter().find(|phase| phase.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ori::ir::{BlockId, Dst, File, Inst, Src, Term};
    use crate::ori::op::Op;

    #[test]
    fn phases_come_after_what_they_need() {
        for (i, phase) in PHASES.iter().enumerate() {
            for (name, why) in phase.after {
                assert!(
                    PHASES[..i].iter().any(|earlier| earlier.name == *name),
                    "{} must come after {name}: {why}",
                    phase.name
                );
            }
        }
    }

    #[test]
    fn operands_are_legal_at_the_end() {
        assert!(PHASES.iter().any(|phase| phase.result == Stage::Legal && phase.level == 0));
        assert!(PHASES.last().is_some_and(|last| last.result == Stage::Legal));
    }

    /// Runs phases on a function in which `b0` jumps to `b2`, past `b1`.
    fn run_these(phases: &[Phase]) -> Result<Vec<&'static str>, CodegenError> {
        let mut func = text::parse("func \"f\" {\nb0:\nJUMP b2\nb1:\nJUMP b2\nb2:\nEXIT\n}").unwrap();
        let options = Options::new(Sm::new(90));
        run_all(phases, &mut func, &options, &mut Session::default())
    }

    fn jump_elsewhere(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
        assert!(context.analyses.cfg(func).is_reached(BlockId(2)));
        func.block_mut(BlockId(0)).term = Term::Jump(BlockId(1));
        Ok(Change::Something)
    }

    fn ask(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
        assert_eq!(context.analyses.cfg(func).preds(BlockId(2)), [BlockId(1)]);
        assert_eq!(context.analyses.dominators(func).parent(BlockId(2)), Some(BlockId(1)));
        Ok(Change::Nothing)
    }

    #[test]
    fn analyses_follow_the_flow() {
        let changed = run_these(&[optional("Jump", jump_elsewhere, &[]), optional("Ask", ask, &[])]);
        assert_eq!(changed.unwrap(), ["Jump"]);
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_phase_that_does_not_keep_the_flow_is_caught() {
        let wrong = optional("Jump", jump_elsewhere, &[]).keeps_flow();
        let error = run_these(&[wrong]).unwrap_err().to_string();
        assert!(error.contains("Jump") && error.contains("changed what it claims to keep"), "{error}");
    }

    fn add_value(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
        assert!(context.analyses.uses(func).is_empty());
        let (v, src) = (func.new_value(File::R, 1), Default::default());
        let insts = &mut func.block_mut(BlockId(0)).insts;
        insts.push(Inst::new(Op::Mov, &[Dst::Value(v)], &[Src::imm(1)], src));
        insts.push(Inst::new(Op::Mov, &[Dst::Sink], &[v.into()], src));
        Ok(Change::Something)
    }

    fn ask_uses(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
        assert_eq!(context.analyses.uses(func), [1]);
        Ok(Change::Nothing)
    }

    #[test]
    fn analyses_follow_the_instructions() {
        let phase = |name, run| optional(name, run, &[]).keeps_flow();
        run_these(&[phase("Add", add_value), phase("Ask", ask_uses), phase("AskAgain", ask_uses)]).unwrap();
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_phase_that_hides_a_change_is_caught() {
        fn hide(func: &mut Function, context: &Context<'_>) -> Result<Change, CodegenError> {
            add_value(func, context)?;
            Ok(Change::Nothing)
        }
        let error = run_these(&[optional("Hide", hide, &[]).keeps_flow()]).unwrap_err().to_string();
        assert!(error.contains("Hide") && error.contains("changed what it claims to keep"), "{error}");
    }
}
