//! Versions of the PTX language and of the hardware, and their order.

/// A PTX ISA version, as `.version` writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PtxVersion {
    pub major: u8,
    pub minor: u8,
}

impl PtxVersion {
    /// Newest version the table describes.
    pub const NEWEST: PtxVersion = PtxVersion::new(9, 0);

    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

impl std::fmt::Display for PtxVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The suffix of a target name: which instructions beyond the baseline it opens.
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
    /// Targets that code is generated for, oldest first.
    pub const COMPILED: [u16; 11] = [75, 80, 86, 87, 88, 89, 90, 100, 103, 120, 121];

    pub const fn new(number: u16) -> Self {
        Self { number, feature: Feature::None }
    }

    /// Reads `sm_90`, `sm_100a`, `compute_80`. `None` for anything else.
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
