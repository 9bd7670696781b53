//! Which optional parts of the compiler run: phases, and steps before and after the phases.
//!
//! Disabling a part makes the code slower or longer, but never wrong.

use crate::phases::PHASES;
use std::fmt;

/// An optional step that is not a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Replace calls of small functions by their bodies.
    InlineFunctions,
    /// Load constants that instructions cannot read before loops.
    HoistConstants,
    /// Keep constants in uniform registers, on targets whose arithmetic cannot read constant banks.
    UniformConstants,
    /// Schedule instructions before register allocation.
    PreSched,
    /// If values spill, try instruction orders with fewer live values.
    RetrySpills,
    /// If fewer warps fit than an order was made for, try orders for fewer registers.
    RetryOccupancy,
    /// Assign the same register to values that a copy joins.
    Coalesce,
    /// Let values take any register of an allocation unit that is in use anyway, so that registers are not overwritten
    /// while late reads are pending.
    WholeUnits,
    /// Recompute constants and cheap values instead of spilling them.
    Remat,
    /// Schedule instructions after register allocation.
    PostSched,
}

use Step::*;

/// A step has the name of the phase of ptxas that does the same work, if there is one.
const STEPS: [(Step, &str); 10] = [
    (InlineFunctions, "InlineFunctions"),
    (HoistConstants, "OriHoistInvariantsLate"),
    (UniformConstants, "ConvertToUniformReg"),
    (PreSched, "AdvancedPhasePreSched"),
    (RetrySpills, "RetryForSpills"),
    (RetryOccupancy, "RetryForOccupancy"),
    (Coalesce, "CoalesceCopies"),
    (WholeUnits, "TakeWholeUnits"),
    (Remat, "OriDoRemat"),
    (PostSched, "AdvancedPhasePostSched"),
];

/// The name for all of them.
const ALL: &str = "all";
/// Separates a name from the number of a run.
const RUN: char = '#';
/// The bit of the first step; the bits of the phases come before it.
const FIRST_STEP: usize = 64;
const _: () = assert!(PHASES.len() <= FIRST_STEP && FIRST_STEP + STEPS.len() <= 128);

/// A selection of the optional parts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Switches {
    /// A bit per phase, by its index in [`PHASES`], and per step.
    off: u128,
}

impl Switches {
    /// All parts are enabled.
    pub const ALL_ON: Switches = Switches { off: 0 };

    /// Whether the phase at an index of [`PHASES`] runs.
    pub(crate) fn runs(self, phase: usize) -> bool {
        self.off >> phase & 1 == 0
    }

    /// The same parts without a phase.
    pub(crate) fn without(self, name: &str) -> Switches {
        let runs = PHASES.iter().enumerate().filter(|(_, phase)| phase.name == name);
        Switches { off: runs.fold(self.off, |off, (i, _)| off | 1 << i) }
    }

    /// Whether a step is enabled.
    pub fn takes(self, step: Step) -> bool {
        self.off >> (FIRST_STEP + step as usize) & 1 == 0
    }

    /// Reads a list of `-NAME` and `+NAME`, which disable and enable parts, in this order. `NAME#2` is the second run
    /// of a phase that runs more than once, and `all` stands for all optional parts.
    ///
    /// # Errors
    /// Says which name is wrong, and lists the right ones.
    pub fn parse(text: &str) -> Result<Switches, String> {
        let mut switches = Switches::ALL_ON;
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match (word.strip_prefix('-'), word.strip_prefix('+')) {
                (Some(name), _) => switches.off |= bits(name)?,
                (_, Some(name)) => switches.off &= !bits(name)?,
                _ => return Err(format!("'{word}' is not '-NAME' or '+NAME' with the name of a phase")),
            }
        }
        Ok(switches)
    }
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off: Vec<String> =
            singles().into_iter().filter(|(_, one)| self.off & one.off != 0).map(|(name, _)| name).collect();
        write!(f, "without {off:?}")
    }
}

/// The names that [`Switches::parse`] accepts, each with the number of its runs.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    let optional = PHASES.iter().enumerate().filter(|(_, phase)| phase.level > 0);
    let first = optional.filter(|(i, phase)| PHASES[..*i].iter().all(|earlier| earlier.name != phase.name));
    let phases = first.map(|(_, phase)| (phase.name, runs_of(phase.name).count()));
    phases.chain(STEPS.map(|(_, name)| (name, 1)))
}

/// Every selection in which a single part is disabled: a run of a phase, or a step.
pub fn singles() -> Vec<(String, Switches)> {
    let one = |(name, count): (&str, usize)| -> Vec<String> {
        match count {
            1 => vec![name.to_owned()],
            _ => (1..=count).map(|run| format!("{name}{RUN}{run}")).collect(),
        }
    };
    let all = names().flat_map(one);
    all.filter_map(|name| Some((Switches { off: bits(&name).ok()? }, name)))
        .map(|(one, name)| (name, one))
        .collect()
}

/// The indices in [`PHASES`] of the runs of a phase.
fn runs_of(name: &str) -> impl Iterator<Item = usize> {
    PHASES.iter().enumerate().filter(move |(_, phase)| phase.name == name).map(|(i, _)| i)
}

fn bits(text: &str) -> Result<u128, String> {
    if text == ALL {
        return names().map(|(name, _)| bits(name)).try_fold(0, |all, one| Ok(all | one?));
    }
    let (name, run) = match text.split_once(RUN) {
        Some((name, run)) => (name, Some(run)),
        None => (text, None),
    };
    let step = STEPS.iter().find(|(_, known)| *known == name).map(|(step, _)| FIRST_STEP + *step as usize);
    let found: Vec<usize> = step.into_iter().chain(runs_of(name)).collect();
    if found.is_empty() {
        let names: Vec<&str> = names().map(|(name, _)| name).collect();
        return Err(format!("Unknown phase '{name}'; the optional phases are {}", names.join(", ")));
    }
    if found.iter().any(|&i| PHASES.get(i).is_some_and(|phase| phase.level == 0)) {
        return Err(format!("Phase '{name}' cannot be disabled: correct code requires it"));
    }
    let runs = match run.map(str::parse::<usize>) {
        None => &found[..],
        Some(Ok(run)) if (1..=found.len()).contains(&run) => &found[run - 1..run],
        Some(_) => {
            let count = found.len();
            return Err(format!("Unknown run '{text}'; phase '{name}' runs {count} times"));
        }
    };
    Ok(runs.iter().fold(0, |all, run| all | 1 << run))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn off(text: &str) -> Vec<String> {
        let switches = Switches::parse(text).unwrap();
        singles().into_iter().filter(|(_, one)| switches.off & one.off != 0).map(|(name, _)| name).collect()
    }

    #[test]
    fn phases_are_left_out_by_name_and_by_run() {
        assert_eq!(off(""), [""; 0]);
        assert_eq!(off("-OriAddressFold, -OriDoRemat"), ["OriAddressFold", "OriDoRemat"]);
        assert_eq!(off("-GvnCse#2"), ["GvnCse#2"]);
        assert_eq!(off("-GvnCse,+GvnCse"), [""; 0]);
        assert_eq!(Switches::ALL_ON.without("GvnCse"), Switches::parse("-GvnCse").unwrap());
        let all = off("-all");
        assert_eq!(all, singles().into_iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_eq!(off("-all,+GvnCse#1").len(), all.len() - 1);
        assert!(!Switches::parse("-AdvancedPhasePreSched").unwrap().takes(PreSched));
        assert!(Switches::parse("-AdvancedPhasePreSched").unwrap().takes(PostSched));
    }

    #[test]
    fn steps_have_the_bits_of_their_places() {
        assert!(STEPS.iter().enumerate().all(|(i, (step, _))| *step as usize == i));
    }

    #[test]
    fn wrong_names_are_told() {
        let wrong = |text| Switches::parse(text).unwrap_err();
        assert!(
            wrong("-Gvn").starts_with("Unknown phase 'Gvn'; the optional phases are OriContractProducts, ")
        );
        assert_eq!(
            wrong("-LateLegalization"),
            "Phase 'LateLegalization' cannot be disabled: correct code requires it"
        );
        assert!(wrong("-GvnCse#99").starts_with("Unknown run 'GvnCse#99'; phase 'GvnCse' runs "));
        assert!(wrong("-GvnCse#0").starts_with("Unknown run 'GvnCse#0'; phase 'GvnCse' runs "));
        assert_eq!(wrong("GvnCse"), "'GvnCse' is not '-NAME' or '+NAME' with the name of a phase");
    }
}
