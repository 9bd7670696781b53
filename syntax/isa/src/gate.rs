//! The requirements of an instruction, a modifier, a directive or a register: a language version and targets.

use crate::{Feature, PtxVersion, Sm};
use std::fmt;

/// A set of targets, one bit each in the order of [`Sm::KNOWN`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TargetSet(u64);

impl TargetSet {
    pub const ALL: TargetSet = TargetSet::since(0);

    /// All targets with the number `number` or higher, with and without suffix.
    pub const fn since(number: u16) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < Sm::KNOWN.len() {
            if Sm::KNOWN[i].number >= number {
                bits |= 1 << i;
            }
            i += 1;
        }
        Self(bits)
    }

    /// Only the architecture-specific target `sm_<number>a`.
    pub const fn arch(number: u16) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < Sm::KNOWN.len() {
            if Sm::KNOWN[i].number == number && matches!(Sm::KNOWN[i].feature, Feature::Arch) {
                bits |= 1 << i;
            }
            i += 1;
        }
        Self(bits)
    }

    /// The targets with suffix `a` or `f` in the family of `number`, from `number` on.
    pub const fn family(number: u16) -> Self {
        let (mut bits, mut i) = (0, 0);
        while i < Sm::KNOWN.len() {
            let sm = Sm::KNOWN[i];
            if sm.number >= number
                && sm.family() == Sm::new(number).family()
                && !matches!(sm.feature, Feature::None)
            {
                bits |= 1 << i;
            }
            i += 1;
        }
        Self(bits)
    }

    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set contains a target. A target newer than the table counts as the newest known one with the same
    /// suffix.
    pub fn contains(self, sm: Sm) -> bool {
        let known = Sm::KNOWN.iter().rposition(|k| *k == sm).or_else(|| {
            let older = |k: &Sm| k.feature == Feature::None && k.number < sm.number;
            Sm::KNOWN.iter().rposition(older)
        });
        known.is_some_and(|i| self.0 >> i & 1 != 0)
    }

    /// The lowest number in the set.
    pub fn lowest(self) -> Option<u16> {
        self.iter().map(|sm| sm.number).min()
    }

    /// In the order of [`Sm::KNOWN`].
    pub fn iter(self) -> impl Iterator<Item = Sm> {
        Sm::KNOWN.iter().enumerate().filter(move |(i, _)| self.0 >> i & 1 != 0).map(|(_, &sm)| sm)
    }
}

impl fmt::Display for TargetSet {
    /// "sm_80 or higher", or a list of names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(lowest) = self.lowest()
            && *self == TargetSet::since(lowest)
        {
            return write!(f, "sm_{lowest} or higher");
        }
        for (i, sm) in self.iter().enumerate() {
            write!(f, "{}{sm}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

/// The removal of a feature: for some targets, it is rejected from a language version on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Removal {
    pub since: PtxVersion,
    pub targets: TargetSet,
}

/// The requirements of a feature.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Gate {
    pub ptx: PtxVersion,
    pub targets: TargetSet,
    pub removed: Option<Removal>,
    /// Targets that got the feature in a later version than the other targets.
    pub late: Option<Late>,
}

/// Targets that got a feature in a later version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Late {
    pub since: PtxVersion,
    pub targets: TargetSet,
}

impl Gate {
    /// No requirements.
    pub const BASE: Gate = Gate::since(1, 0, 10);

    /// Requires a language version and a lowest target.
    pub const fn since(major: u8, minor: u8, sm: u16) -> Self {
        Self { ptx: PtxVersion::new(major, minor), targets: TargetSet::since(sm), removed: None, late: None }
    }

    /// Requires a language version and one of these targets.
    pub const fn only(major: u8, minor: u8, targets: TargetSet) -> Self {
        Self { ptx: PtxVersion::new(major, minor), targets, removed: None, late: None }
    }

    /// Adds a removal: rejected from this version on for targets with the number `sm` or higher.
    pub const fn until(mut self, major: u8, minor: u8, sm: u16) -> Self {
        self.removed = Some(Removal { since: PtxVersion::new(major, minor), targets: TargetSet::since(sm) });
        self
    }

    /// Restricts these targets to this version and later ones.
    pub const fn late(mut self, major: u8, minor: u8, targets: TargetSet) -> Self {
        self.late = Some(Late { since: PtxVersion::new(major, minor), targets });
        self
    }

    /// The requirements of two features together.
    pub fn and(self, other: Self) -> Self {
        Self {
            ptx: self.ptx.max(other.ptx),
            targets: self.targets.and(other.targets),
            removed: self.removed.or(other.removed),
            late: self.late.or(other.late),
        }
    }

    /// Checks whether a module with this `.version` and `.target` has the feature.
    pub fn check(&self, version: PtxVersion, sm: Sm) -> Result<(), GateError> {
        if !self.targets.contains(sm) {
            return Err(GateError::Target(self.targets));
        }
        // Version 5.1 was never published. ptxas treats it as 6.0.
        let version = if version == PtxVersion::new(5, 1) { PtxVersion::new(6, 0) } else { version };
        let since = match self.late {
            Some(late) if late.targets.contains(sm) => late.since.max(self.ptx),
            _ => self.ptx,
        };
        if version < since {
            return Err(GateError::Version(since));
        }
        match self.removed {
            Some(removed) if version >= removed.since && removed.targets.contains(sm) => {
                Err(GateError::Removed(removed))
            }
            _ => Ok(()),
        }
    }
}

/// The first requirement of a [`Gate`] that a module does not meet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GateError {
    Target(TargetSet),
    Version(PtxVersion),
    Removed(Removal),
}

impl fmt::Display for GateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateError::Target(targets) => match targets.to_string() {
                several if several.contains(", ") => write!(f, "requires one of {several}"),
                only => write!(f, "requires {only}"),
            },
            GateError::Version(version) => write!(f, "requires PTX ISA {version}"),
            GateError::Removed(removal) => {
                write!(f, "was removed in PTX ISA {} for {}", removal.since, removal.targets)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sm(text: &str) -> Sm {
        Sm::parse(text).unwrap()
    }

    #[test]
    fn families_are_closed_under_suffixes() {
        let names = |set: TargetSet| set.to_string();
        assert_eq!(names(TargetSet::family(100)), "sm_100a, sm_103a, sm_107a, sm_100f, sm_103f, sm_107f");
        assert_eq!(names(TargetSet::arch(90)), "sm_90a");
        assert_eq!(names(TargetSet::since(80)), "sm_80 or higher");
    }

    #[test]
    fn unknown_newer_targets_count_as_the_newest_known() {
        assert!(TargetSet::since(90).contains(sm("sm_130")));
        assert!(!TargetSet::since(90).contains(sm("sm_89")));
        assert!(!TargetSet::arch(90).contains(sm("sm_130a")));
    }

    #[test]
    fn gates_name_what_is_missing() {
        let gate = Gate::since(8, 0, 90);
        assert_eq!(
            gate.check(PtxVersion::new(7, 8), sm("sm_90")),
            Err(GateError::Version(PtxVersion::new(8, 0)))
        );
        assert_eq!(
            gate.check(PtxVersion::new(8, 0), sm("sm_80")).unwrap_err().to_string(),
            "requires sm_90 or higher"
        );
        assert_eq!(gate.check(PtxVersion::new(8, 0), sm("sm_90a")), Ok(()));
        let gone = Gate::BASE.until(6, 4, 70);
        assert!(gone.check(PtxVersion::new(6, 4), sm("sm_70")).is_err());
        assert!(gone.check(PtxVersion::new(6, 4), sm("sm_60")).is_ok());
    }
}
