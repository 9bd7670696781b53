//! Conversions of pairs to narrower formats and back, as `F2FP` encodes them.

use super::rounding;
use crate::float::{BF16, F16, F32, Format, Rounding};
use crate::narrow::{self, Narrow, scale};
use sass::{Field, Inst};

/// A conversion, and how its results are placed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::machine) struct Pack {
    pub(in crate::machine) what: What,
    pub(in crate::machine) mode: Rounding,
    relu: bool,
    finite: bool,
}

/// The sources and the results.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::machine) enum What {
    /// Two halves from A and B, or one from B joined with a half of C.
    Halves {
        format: Format,
        both: bool,
    },
    /// The same, rounded with the random bits of C.
    HalvesRandomly {
        format: Format,
    },
    Tf32,
    /// Two small numbers from A and B or from the halves of B, joined with a half of C.
    Small {
        to: Small,
        from: Option<Format>,
    },
    /// Two small numbers from A and B, rounded with the upper half of C and joined with its lower half.
    SmallRandomly {
        to: Narrow,
    },
    /// Two halves from two small numbers in B.
    Widen {
        from: Small,
    },
}

/// A format of at most eight bits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in crate::machine) enum Small {
    Number(Narrow),
    /// Powers of two.
    Scale,
}

impl Small {
    fn named(text: &str) -> Option<Small> {
        match text {
            ".E8" => Some(Small::Scale),
            name => Narrow::named(&name.strip_prefix('.')?.to_ascii_lowercase()).map(Small::Number),
        }
    }

    /// The distance in bits between the two numbers of a pair.
    pub(in crate::machine) fn bits(self) -> u32 {
        if self == Small::named(".E2M1").unwrap_or(self) && self != Small::Scale { 4 } else { 8 }
    }
}

impl Pack {
    /// `None` if the emulator does not execute the instruction.
    pub(super) fn of(name: &str, inst: &Inst) -> Option<Pack> {
        let text = |field| inst.text(field).unwrap_or("");
        let flag = |field| inst.get(field) == Some(1);
        let what = match name {
            "F2FP.PACK_AB" | "F2FP.MERGE_C" | "F2FP.PACK_AB.RS" => {
                let format = match text(Field::Type) {
                    "" | ".F16" => F16,
                    ".BF16" => BF16,
                    _ => return None,
                };
                match name {
                    "F2FP.PACK_AB.RS" => What::HalvesRandomly { format },
                    _ => What::Halves { format, both: name == "F2FP.PACK_AB" },
                }
            }
            "F2FP.PACK_B" => What::Tf32,
            "F2FP.PACK_AB_MERGE_C" if text(Field::Round) == ".RS" => match Small::named(text(Field::Type))? {
                // The distribution of the random bits is unknown.
                Small::Number(narrow::E2M1) | Small::Scale => return None,
                Small::Number(to) => What::SmallRandomly { to },
            },
            "F2FP.PACK_AB_MERGE_C" => What::Small { to: Small::named(text(Field::Type))?, from: None },
            "F2FP.UNPACK_B_MERGE_C" => {
                let from = if text(Field::SrcType) == ".BF16" { BF16 } else { F16 };
                What::Small { to: Small::named(text(Field::Type))?, from: Some(from) }
            }
            "F2FP.UNPACK_B" => What::Widen { from: Small::named(text(Field::SrcType))? },
            "F2FP.UNPACK_B.E2M1" => What::Widen { from: Small::named(".E2M1")? },
            "F2FP.UNPACK_B.E8" => What::Widen { from: Small::Scale },
            _ => return None,
        };
        let finite = flag(Field::Sat);
        // Narrow formats without infinities always saturate.
        let is_narrow = matches!(what, What::Small { to: Small::Number(_), .. } | What::SmallRandomly { .. });
        if is_narrow && !finite {
            return None;
        }
        let mode = match inst.get(Field::Round).unwrap_or(0) {
            // Random bits are a part of the conversion.
            _ if matches!(what, What::SmallRandomly { .. }) => Rounding::Zero,
            round @ 0..4 => rounding(round),
            _ => return None,
        };
        Some(Pack { what, mode, relu: flag(Field::Relu), finite })
    }

    /// A number of a format, limited as the instruction requires.
    pub(in crate::machine) fn limit(self, format: Format, bits: u64) -> u64 {
        match () {
            () if self.relu && format.is_negative(bits) && !format.is_nan(bits) => 0,
            () if self.finite && bits & (format.sign() - 1) == format.infinity() => {
                bits & format.sign() | format.greatest()
            }
            () => bits,
        }
    }

    pub(in crate::machine) fn small_pair(self, to: Narrow, singles: [u64; 2], random: u16) -> u64 {
        let [high, low] = to.random_pair(singles.map(|single| F32.to_f64(single)), random, self.relu);
        u64::from(high) << 8 | u64::from(low)
    }

    pub(in crate::machine) fn small(self, to: Small, single: u64) -> u64 {
        match to {
            Small::Number(format) => format.limited(F32.to_f64(single), self.relu).into(),
            Small::Scale => scale::from_single(single, self.mode, self.finite).into(),
        }
    }
}
