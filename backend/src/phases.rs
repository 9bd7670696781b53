//! The phases between construction and register allocation, as data, and their runner.
//!
//! Phases have the names that ptxas's own carry where there is a counterpart.

use crate::ori::ir::Function;
use crate::ori::text;
use crate::ori::verify::{Stage, verify};
use crate::phase;
use crate::session::Session;
use crate::{CodegenError, Options};
use ptx_isa::Sm;

/// What a phase may know besides the function.
pub struct Context<'a> {
    pub sm: Sm,
    pub checkpoint: &'a dyn Fn(),
}

pub struct Phase {
    pub name: &'static str,
    pub run: fn(&mut Function, &Context<'_>) -> Result<(), CodegenError>,
    /// Phases that must have run before, and why.
    pub after: &'static [(&'static str, &'static str)],
    /// The lowest `-O` at which it runs; zero for the phases that code needs.
    pub level: u8,
    /// What the verifier asks of the result.
    pub result: Stage,
}

const fn optional(
    name: &'static str,
    run: fn(&mut Function, &Context<'_>) -> Result<(), CodegenError>,
    after: &'static [(&'static str, &'static str)],
) -> Phase {
    Phase { name, run, after, level: 1, result: Stage::Built }
}

/// In the order in which they run. A name may come again: `after` then asks for one earlier run.
pub const PHASES: &[Phase] = &[
    optional("OriBranchOpt", phase::branches::run, &[]),
    optional("OriCopyProp", phase::copy_propagation::run, &[]),
    optional("OriFold", phase::fold::run, &[("OriCopyProp", "it looks at constants where they are used")]),
    optional("GvnCse", phase::value_numbering::run, &[("OriFold", "equal values get equal operands there")]),
    optional(
        "OriLiveDead",
        phase::dead_code::run,
        &[("OriCopyProp", "values that only copies read are dead after it")],
    ),
    optional(
        "GeneralOptimize",
        phase::combine::run,
        &[
            ("OriCopyProp", "patterns are looked for through definitions, not through copies"),
            ("GvnCse", "what is read once is taken in; equal operations must have become one before"),
            ("OriLiveDead", "what reads a value must be alive to count"),
        ],
    ),
    optional(
        "OriAddressFold",
        phase::addresses::run,
        &[("GeneralOptimize", "sums that become part of a multiply-add are bases then, not addends")],
    ),
    optional(
        "OriSplitPhis",
        phase::split_phis::run,
        &[("OriAddressFold", "addresses that an offset takes in are not read whole any more")],
    ),
    optional("OriCopyProp", phase::copy_propagation::run, &[]),
    optional("OriFold", phase::fold::run, &[]),
    optional("GvnCse", phase::value_numbering::run, &[]),
    optional("OriLiveDead", phase::dead_code::run, &[]),
    optional("OriBranchOpt", phase::branches::run, &[("OriFold", "it makes predicates known")]),
    optional(
        "OriDoPredication",
        phase::predication::run,
        &[("OriLiveDead", "the length of a block is that of the code that stays")],
    ),
    optional("OriBranchOpt", phase::branches::run, &[]),
    Phase {
        name: "LateExpandSyncInstructions",
        run: phase::convergence::run,
        after: &[("OriDoPredication", "branches that are predicated away need no barrier")],
        level: 0,
        result: Stage::Built,
    },
    Phase {
        name: "LateLegalization",
        run: crate::legalize::run,
        after: &[("LateExpandSyncInstructions", "its operations are legalised too")],
        level: 0,
        result: Stage::Legal,
    },
];

/// Runs all phases that the options ask for.
pub fn run(func: &mut Function, options: &Options, session: &mut Session<'_>) -> Result<(), CodegenError> {
    let checks = cfg!(debug_assertions);
    if checks {
        check(func, "Build", Stage::Built)?;
    }
    for phase in PHASES {
        if phase.level > options.opt_level {
            continue;
        }
        run_phase(func, phase, options, session)?;
        if checks {
            check(func, phase.name, phase.result)?;
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
    let context = Context { sm: options.sm, checkpoint: session.checkpoint };
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
}
