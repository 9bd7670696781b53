//! Versions of the PTX language and of the hardware, and their order.

/// A PTX ISA version, as `.version` writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PtxVersion {
    pub major: u8,
    pub minor: u8,
}

impl PtxVersion {
    /// The newest version that the table describes.
    pub const NEWEST: PtxVersion = PtxVersion::new(9, 5);

    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }

    /// Whether a version with this number was published, up to [`Self::NEWEST`]. Versions are decimal numbers: 8.10
    /// means 8.1.
    pub const fn is_published(self) -> bool {
        /// The last minor version of each major version, from 1 on. Version 5.1 was never published, but ptxas accepts
        /// it.
        const LAST: [u8; 9] = [5, 3, 2, 3, 1, 5, 8, 8, PtxVersion::NEWEST.minor];
        let minor = if self.minor.is_multiple_of(10) { self.minor / 10 } else { self.minor };
        self.major >= 1 && self.major as usize <= LAST.len() && minor <= LAST[self.major as usize - 1]
    }
}

impl std::fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The suffix of a target name, which decides what instructions beyond the baseline are available.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Feature {
    /// `sm_90`: portable to every later target.
    #[default]
    None,
    /// `sm_100f`: portable within the family.
    Family,
    /// `sm_90a`: this architecture alone.
    Arch,
}

/// A target, as `.target` writes it: `sm_90`, `sm_100a`, `sm_120f`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sm {
    pub number: u16,
    pub feature: Feature,
}

impl Sm {
    /// The targets that code is generated for, oldest first.
    pub const COMPILED: [u16; 12] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121];

    /// All targets of the language: first those without suffix, then those with each suffix, each group oldest first.
    pub const KNOWN: [Sm; 47] = {
        const PLAIN: [u16; 32] = [
            10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89,
            90, 100, 101, 103, 107, 110, 120, 121,
        ];
        const ARCH: [u16; 8] = [90, 100, 101, 103, 107, 110, 120, 121];
        const FAMILY: [u16; 7] = [100, 101, 103, 107, 110, 120, 121];
        let mut known = [Sm::new(0); 47];
        let mut i = 0;
        while i < known.len() {
            known[i] = if i < PLAIN.len() {
                Sm { number: PLAIN[i], feature: Feature::None }
            } else if i < PLAIN.len() + ARCH.len() {
                Sm { number: ARCH[i - PLAIN.len()], feature: Feature::Arch }
            } else {
                Sm { number: FAMILY[i - PLAIN.len() - ARCH.len()], feature: Feature::Family }
            };
            i += 1;
        }
        known
    };

    pub fn is_known(self) -> bool {
        Self::KNOWN.contains(&self)
    }

    /// Whether code is generated for the target or for newer ones. The assembler checks older targets less strictly.
    pub const fn is_compiled(self) -> bool {
        self.number >= Self::COMPILED[0]
    }

    /// Whether the target has `.f64` arithmetic.
    pub const fn has_f64(self) -> bool {
        self.number >= 13
    }

    /// The maximum size of a CTA's static shared memory in bytes.
    pub const fn static_shared_limit(self) -> u64 {
        match (self.number, self.feature) {
            (120.., Feature::Arch) => 99 << 10,
            (_, Feature::Arch) => 227 << 10,
            _ => 48 << 10,
        }
    }

    pub const fn new(number: u16) -> Self {
        Self { number, feature: Feature::None }
    }

    /// The number of the family. Targets of one family accept each other's `f` features: 100, 103 and 107; 110 and its
    /// old name 101; 120 and 121.
    pub const fn family(self) -> u16 {
        match self.number {
            101 | 110 => 110,
            number => number / 10 * 10,
        }
    }

    /// The lowest `.version` that has the target.
    pub const fn since(self) -> PtxVersion {
        let (major, minor) = match (self.number, self.feature) {
            (90, Feature::Arch) => (8, 0),
            (100 | 101, Feature::Arch) => (8, 6),
            (120, Feature::Arch) => (8, 7),
            (110, _) => (9, 0),
            (107, _) => (9, 4),
            (_, Feature::Family | Feature::Arch) => (8, 8),
            (0..=11, _) => (1, 0),
            (12..=13, _) => (1, 2),
            (14..=20, _) => (2, 0),
            (21..=30, _) => (3, 0),
            (31..=35, _) => (3, 1),
            (36..=37, _) => (4, 1),
            (38..=52, _) => (4, 0),
            (53, _) => (4, 2),
            (54..=62, _) => (5, 0),
            (63..=70, _) => (6, 0),
            (71..=72, _) => (6, 1),
            (73..=75, _) => (6, 3),
            (76..=80, _) => (7, 0),
            (81..=86, _) => (7, 1),
            (87, _) => (7, 4),
            // The manual says 9.0, but ptxas accepts it from 7.3 on.
            (88, _) => (7, 3),
            (89..=90, _) => (7, 8),
            (91..=101, _) => (8, 6),
            (103, _) => (8, 8),
            (120, _) => (8, 7),
            (121, _) => (8, 8),
            _ => (9, 0),
        };
        PtxVersion::new(major, minor)
    }

    /// The target under its current name: sm_101 is called sm_110 since PTX ISA 9.0.
    pub const fn current(self) -> Self {
        match self.number {
            101 => Self { number: 110, ..self },
            _ => self,
        }
    }

    /// Whether code for this target can run on an architecture. Targets without suffix run on every later architecture;
    /// those with a suffix run on their own architecture or within their family.
    pub fn runs_on(self, architecture: Self) -> Result<(), Mismatch> {
        let is_later = architecture.number >= self.number;
        match self.feature {
            _ if !is_later => Err(Mismatch::Older),
            Feature::None => Ok(()),
            Feature::Arch
                if self.current().number == architecture.current().number
                    && architecture.feature == Feature::Arch =>
            {
                Ok(())
            }
            Feature::Arch => Err(Mismatch::OneArchitecture),
            Feature::Family if self.family() == architecture.family() => Ok(()),
            Feature::Family => Err(Mismatch::Family),
        }
    }

    /// Parses a target that the user chose.
    ///
    /// # Errors
    /// The target does not exist. The message lists the existing ones.
    pub fn known(text: &str) -> Result<Self, String> {
        Self::parse(text).filter(|sm| Self::KNOWN.contains(sm)).ok_or_else(|| {
            let known: Vec<String> = Self::KNOWN.iter().map(Self::to_string).collect();
            format!("unknown target `{text}`; the targets are {}", known.join(", "))
        })
    }

    /// Parses `sm_90`, `sm_100a` or `compute_80`, whether or not the number exists. `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_"))?;
        let (digits, feature) = match rest.as_bytes().last()? {
            b'a' => (&rest[..rest.len() - 1], Feature::Arch),
            b'f' => (&rest[..rest.len() - 1], Feature::Family),
            _ => (rest, Feature::None),
        };
        if digits.is_empty() || digits.len() > 3 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        Some(Self { number: digits.parse().ok()?, feature })
    }
}

/// The reason why code for a target does not run on an architecture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// The architecture is older than the target.
    Older,
    /// The target has the suffix `a`.
    OneArchitecture,
    /// The target has the suffix `f`, and the architecture belongs to another family.
    Family,
}

impl std::fmt::Display for Sm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.feature {
            Feature::None => "",
            Feature::Family => "f",
            Feature::Arch => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_do_not_exist_are_refused_with_a_list() {
        assert_eq!(Sm::known("sm_90a"), Sm::parse("sm_90a").ok_or_else(String::new));
        assert_eq!(Sm::known("compute_80"), Ok(Sm::new(80)));
        for text in ["sm_999", "sm_80a", "sm_91", "90", ""] {
            let error = Sm::known(text).unwrap_err();
            assert!(error.starts_with(&format!("unknown target `{text}`; ")) && error.contains(", sm_120f"));
        }
    }

    #[test]
    fn targets_run_on_later_architectures_suffixes_permitting() {
        let runs =
            |target, architecture| Sm::parse(target).unwrap().runs_on(Sm::parse(architecture).unwrap());
        assert_eq!(runs("sm_80", "sm_90a"), Ok(()));
        assert_eq!(runs("sm_90", "sm_80"), Err(Mismatch::Older));
        assert_eq!(runs("sm_90a", "sm_90a"), Ok(()));
        assert_eq!(runs("sm_90a", "sm_90"), Err(Mismatch::OneArchitecture));
        assert_eq!(runs("sm_90a", "sm_100a"), Err(Mismatch::OneArchitecture));
        assert_eq!(runs("sm_101a", "sm_110a"), Ok(()));
        assert_eq!(runs("sm_100f", "sm_103"), Ok(()));
        assert_eq!(runs("sm_100f", "sm_120f"), Err(Mismatch::Family));
    }
}
