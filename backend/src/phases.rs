//! The phases between construction and register allocation, as data, and their runner.
//!
//! Phases have the names that ptxas's own carry where there is a counterpart.

use crate::ori::analyses::Analyses;
use crate::ori::ir::Function;
use crate::ori::text;
use crate::ori::verify::{Stage, verify};
use crate::phase;
use crate::session::Session;
use crate::switches::Switches;
use crate::{CodegenError, Options};
use ptx_isa::Sm;

/// What a phase may know besides the function.
pub struct Context<'a> {
    pub sm: Sm,
    pub switches: Switches,
    pub checkpoint: &'a dyn Fn(),
    /// Of the function as the phase gets it.
    pub analyses: &'a Analyses,
}

#[cfg(test)]
impl<'a> Context<'a> {
    pub(crate) fn of(sm: u16, analyses: &'a Analyses) -> Context<'a> {
        Context { sm: Sm::new(sm), switches: Switches::ALL_ON, checkpoint: &|| (), analyses }
    }
}

pub struct Phase {
    pub name: &'static str,
    pub run: fn(&mut Function, &Context<'_>) -> Result<(), CodegenError>,
    /// Phases whose place is before this one's, and why. It says what they gain here, not what is right: every phase takes
    /// any valid function, so leaving out one costs what the reason says and nothing else.
    pub after: &'static [(&'static str, &'static str)],
    /// The lowest `-O` at which it runs; zero for the phases that code needs.
    pub level: u8,
    /// What the verifier asks of the result.
    pub result: Stage,
    /// Blocks that control reaches, and the edges between them, stay as they are.
    pub keeps_flow: bool,
}

impl Phase {
    const fn keeps_flow(self) -> Phase {
        Phase { keeps_flow: true, ..self }
    }
}

const fn optional(
    name: &'static str,
    run: fn(&mut Function, &Context<'_>) -> Result<(), CodegenError>,
    after: &'static [(&'static str, &'static str)],
) -> Phase {
    Phase { name, run, after, level: 1, result: Stage::Built, keeps_flow: false }
}

/// The phase that `--fmad=false` leaves out.
pub const CONTRACTION: &str = "OriContractProducts";

/// In the order in which they run. A name may come again: `after` then asks for one earlier run.
pub const PHASES: &[Phase] = &[
    optional(CONTRACTION, phase::contract::run, &[]).keeps_flow(),
    optional("OriCopyProp", phase::copy_propagation::run, &[]).keeps_flow(),
    optional("OriFold", phase::fold::run, &[("OriCopyProp", "it looks at constants where they are used")])
        .keeps_flow(),
    optional("GvnCse", phase::value_numbering::run, &[("OriFold", "equal values get equal operands there")])
        .keeps_flow(),
    optional(
        "OriDropElections",
        phase::alone::run,
        &[
            ("OriFold", "conjunctions with what is known are gone after it"),
            ("GvnCse", "equal conjunctions are one after it"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriLiveDead",
        phase::dead_code::run,
        &[("OriCopyProp", "values that only copies read are dead after it")],
    )
    .keeps_flow(),
    optional(
        "OriReassociateAndCommon",
        phase::reassociate::run,
        &[
            ("OriFold", "it looks at constants where they are added"),
            ("OriLiveDead", "an address that is also read as a number stays as it is"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriHoistInvariantsEarly",
        phase::hoist::run,
        &[
            ("GvnCse", "equal expressions are one after it"),
            ("OriLiveDead", "what nothing reads is not worth a register"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriForwardMemory",
        phase::forward::run,
        &[
            ("GvnCse", "equal addresses have one name after it"),
            ("OriLiveDead", "a dead instruction must not count as a use of an address"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriLoopSimplification",
        phase::unroll::rotate::run,
        &[("OriLiveDead", "the length of a header is that of the code that stays")],
    ),
    optional(
        "OriLoopUnrolling",
        phase::unroll::run,
        &[
            ("OriFold", "it looks at constants where loops begin and end"),
            ("OriLiveDead", "what nothing reads does not count"),
        ],
    ),
    optional("OriBranchOpt", phase::branches::run, &[]),
    optional("OriCopyProp", phase::copy_propagation::run, &[]).keeps_flow(),
    optional("OriFold", phase::fold::run, &[]).keeps_flow(),
    optional("GvnCse", phase::value_numbering::run, &[]).keeps_flow(),
    optional("OriLiveDead", phase::dead_code::run, &[]).keeps_flow(),
    optional(
        "OriExpandRoutines",
        phase::routines::place_single,
        &[
            ("GvnCse", "what is asked for twice with the same operands is asked for once after it"),
            ("OriLiveDead", "what nothing reads does not count"),
        ],
    )
    .keeps_flow(),
    optional(
        "GeneralOptimize",
        phase::combine::run,
        &[
            ("OriCopyProp", "patterns are looked for through definitions, not through copies"),
            ("GvnCse", "what is read once is taken in; equal operations must have become one before"),
            ("OriLiveDead", "what reads a value must be alive to count"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriAddressFold",
        phase::addresses::run,
        &[("GeneralOptimize", "sums that become part of a multiply-add are bases then, not addends")],
    )
    .keeps_flow(),
    Phase {
        name: "OriFuseHalves",
        run: phase::halves::run,
        after: &[
            ("OriFold", "what is known of a half is taken in before"),
            ("OriAddressFold", "it takes sums of halves into offsets"),
            ("GeneralOptimize", "it takes sums of halves into products and shifts"),
        ],
        level: 0,
        result: Stage::Built,
        keeps_flow: true,
    },
    optional(
        "OriSplitPhis",
        phase::split_phis::run,
        &[
            ("OriAddressFold", "addresses that an offset takes in are not read whole any more"),
            ("OriFuseHalves", "pairs that it makes are read whole"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriPromoteArrays",
        phase::arrays::run,
        &[
            ("OriLoopUnrolling", "indices that it makes constant need no selection"),
            ("OriAddressFold", "offsets that it takes in need no sums"),
        ],
    )
    .keeps_flow(),
    optional(
        "OriForwardMemory",
        phase::forward::run,
        &[("OriAddressFold", "offsets that it takes in compare")],
    )
    .keeps_flow(),
    optional(
        "LateVectorization",
        phase::join::run,
        &[
            ("OriAddressFold", "loads by one address with several offsets are neighbors"),
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
        &[
            ("OriFold", "words that are known need no move"),
            ("GvnCse", "what is computed of one value is found by that value's name"),
        ],
    )
    .keeps_flow(),
    optional("OriLiveDead", phase::dead_code::run, &[]).keeps_flow(),
    optional("OriBranchOpt", phase::branches::run, &[("OriFold", "it makes predicates known")]),
    optional(
        "OriDoPredication",
        phase::predication::run,
        &[("OriLiveDead", "the length of a block is that of the code that stays")],
    ),
    optional(
        "LateReadPairs",
        phase::pairs::run,
        &[
            ("OriFuseHalves", "it makes the pairs"),
            ("OriCopyProp", "it reads the halves"),
            ("OriDoPredication", "what it selects is read too"),
        ],
    )
    .keeps_flow(),
    Phase {
        name: "LateExpandRoutines",
        run: phase::routines::call,
        after: &[("OriDoPredication", "a call has registers of its own, which nothing may move")],
        level: 0,
        result: Stage::Built,
        keeps_flow: true,
    },
    Phase {
        name: "LateExpandSyncInstructions",
        run: phase::convergence::run,
        after: &[("OriDoPredication", "branches that are predicated away need no barrier")],
        level: 0,
        result: Stage::Built,
        keeps_flow: false,
    },
    optional(
        "OriPropagateVaryingFirst",
        phase::to_uniform::run_on_carried,
        &[("LateExpandSyncInstructions", "where threads are together is known after it")],
    )
    .keeps_flow(),
    optional(
        "OriPropagateVaryingSecond",
        phase::to_uniform::run,
        &[("OriDoPredication", "guards come after it")],
    )
    .keeps_flow(),
    Phase {
        name: "LateLegalization",
        run: crate::legalize::run,
        after: &[("LateExpandSyncInstructions", "its operations are legalised too")],
        level: 0,
        result: Stage::Legal,
        keeps_flow: true,
    },
];

/// Runs all phases that the options ask for.
pub fn run(func: &mut Function, options: &Options, session: &mut Session<'_>) -> Result<(), CodegenError> {
    run_all(PHASES, func, options, session)
}

fn run_all(
    phases: &[Phase],
    func: &mut Function,
    options: &Options,
    session: &mut Session<'_>,
) -> Result<(), CodegenError> {
    let checks = cfg!(debug_assertions);
    let mut analyses = Analyses::default();
    if checks {
        check(func, "Build", Stage::Built)?;
    }
    for (i, phase) in phases.iter().enumerate() {
        if phase.level > options.opt_level || !options.switches.runs(i) {
            continue;
        }
        run_with(func, phase, options, session, &analyses)?;
        if checks {
            check(func, phase.name, phase.result)?;
        }
        if !phase.keeps_flow {
            analyses = Analyses::default();
        } else if checks && !analyses.hold(func) {
            return Err(CodegenError::internal(Default::default(), phase.name, "it changed control flow"));
        }
        session.over(phase.name, || text::print(func));
    }
    Ok(())
}

/// Runs one phase.
pub fn run_phase(
    func: &mut Function,
    phase: &Phase,
    options: &Options,
    session: &Session<'_>,
) -> Result<(), CodegenError> {
    run_with(func, phase, options, session, &Analyses::default())
}

fn run_with(
    func: &mut Function,
    phase: &Phase,
    options: &Options,
    session: &Session<'_>,
    analyses: &Analyses,
) -> Result<(), CodegenError> {
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
    use crate::ori::ir::{BlockId, Term};

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
        assert!(PHASES.last().is_some_and(|last| last.result == Stage::Legal && last.level == 0));
    }

    /// Runs phases on `b0` jumping to `b2` past `b1`.
    fn run_these(phases: &[Phase]) -> Result<(), CodegenError> {
        let mut func = text::parse("func \"f\" {\nb0:\nJUMP b2\nb1:\nJUMP b2\nb2:\nEXIT\n}").unwrap();
        let options = Options::new(Sm::new(90));
        run_all(phases, &mut func, &options, &mut Session::default())
    }

    fn jump_elsewhere(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
        assert!(context.analyses.cfg(func).is_reached(BlockId(2)));
        func.block_mut(BlockId(0)).term = Term::Jump(BlockId(1));
        Ok(())
    }

    fn ask(func: &mut Function, context: &Context<'_>) -> Result<(), CodegenError> {
        assert_eq!(context.analyses.cfg(func).preds(BlockId(2)), [BlockId(1)]);
        assert_eq!(context.analyses.dominators(func).parent(BlockId(2)), Some(BlockId(1)));
        Ok(())
    }

    #[test]
    fn analyses_follow_the_flow() {
        run_these(&[optional("Jump", jump_elsewhere, &[]), optional("Ask", ask, &[])]).unwrap();
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_phase_that_does_not_keep_the_flow_is_caught() {
        let wrong = optional("Jump", jump_elsewhere, &[]).keeps_flow();
        let error = run_these(&[wrong]).unwrap_err().to_string();
        assert!(error.contains("Jump") && error.contains("changed control flow"), "{error}");
    }
}
