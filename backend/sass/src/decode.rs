//! Decodes an instruction word.
//!
//! The forms of one generation that share an opcode make a bucket. NVIDIA's disassembler ignores fixed bits that are
//! not needed to tell the forms of a bucket apart, and compilers leave these bits clear. If such a bit is set, it may
//! be a modifier that the table lacks. [`decode`] then rejects the word; [`decode_tolerant`] accepts it and keeps the
//! bit.

use crate::control::Control;
use crate::expand::{UNIFORM_BIT, table};
use crate::inst::Inst;
use crate::model::{FieldSpec, Form, FormId, Sm, Value};
use std::sync::OnceLock;

/// The instruction that a word encodes. `None` if no form of the generation matches.
///
/// Decoding is exact: every bit of the word has a meaning in the instruction, and the instruction encodes to the same
/// word.
pub fn decode(sm: Sm, word: u128) -> Option<Inst> {
    let rest = word & !Control::MASK;
    let strict = |candidate: &Candidate| candidate.later_checks.iter().all(|check| check.holds(rest));
    let form = table().bucket(sm, word)?.find(rest, |_, candidate| candidate.fixed_mask, strict)?;
    Some(Inst::from_word(form, Control::from_bits(word), rest))
}

/// As [`decode`], but ignores bits that no form of the opcode uses, as NVIDIA's disassembler does.
///
/// The ignored bits stay in the instruction, so that it encodes to the same word. [`Inst::stray`] returns them.
pub fn decode_tolerant(sm: Sm, word: u128) -> Option<Inst> {
    let rest = word & !Control::MASK;
    let bucket = table().bucket(sm, word)?;
    let telling = bucket.telling_masks();
    let form = bucket.find(rest, |i, _| telling[i], |_| true)?;
    Some(Inst::from_word(form, Control::from_bits(word), rest))
}

/// The forms of a generation that share an opcode.
pub(crate) struct Bucket {
    candidates: Vec<Candidate>,
    /// For each candidate, the fixed bits that distinguish it from the others. Only tolerant decoding needs them.
    telling: OnceLock<Box<[u128]>>,
}

struct Candidate {
    form: FormId,
    /// The values of the bits outside of all fields, and the mask of these bits.
    fixed: u128,
    fixed_mask: u128,
    checks: Vec<Check>,
    /// Checks of fields that only later generations have.
    later_checks: Vec<Check>,
}

/// A field some of whose bit patterns are invalid.
enum Check {
    /// A contiguous field, with its valid values as bits of `legal`.
    Small {
        lo: u8,
        mask: u8,
        legal: u64,
    },
    Large(FieldSpec),
}

impl Bucket {
    pub(crate) fn new<'a>(forms: impl Iterator<Item = (FormId, &'a Form)>) -> Bucket {
        let candidate = |(form, row): (FormId, &Form)| {
            let checks = |later| {
                let fields = row.fields.iter().filter(move |spec| spec.came_later() == later);
                fields.filter_map(Check::new).collect()
            };
            let (fixed, fixed_mask) = (row.fixed, row.fixed_mask);
            Candidate { form, fixed, fixed_mask, checks: checks(false), later_checks: checks(true) }
        };
        Bucket { candidates: forms.map(candidate).collect(), telling: OnceLock::new() }
    }

    fn telling_masks(&self) -> &[u128] {
        self.telling.get_or_init(|| {
            let forms: Vec<&Form> = self.candidates.iter().map(|one| table().form(one.form)).collect();
            let mask = |(i, form): (usize, &&Form)| {
                let others = forms.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, other)| other);
                others.fold(form.own_bits(), |mask, other| mask | form.telling_bits(other))
            };
            forms.iter().enumerate().map(mask).collect()
        })
    }

    /// The form of a word without its control bits. Compares only the fixed bits in `mask`.
    fn find(
        &self,
        word: u128,
        mask: impl Fn(usize, &Candidate) -> u128,
        also: impl Fn(&Candidate) -> bool,
    ) -> Option<FormId> {
        let fits = |&(i, candidate): &(usize, &Candidate)| {
            (word ^ candidate.fixed) & mask(i, candidate) == 0
                && candidate.checks.iter().all(|check| check.holds(word))
                && also(candidate)
        };
        self.candidates.iter().enumerate().find(fits).map(|(_, candidate)| candidate.form)
    }
}

impl Form {
    /// The fixed bits that every word of the form must match, whatever other forms exist: its ones, its reserved bits,
    /// and the bit for the uniform datapath, which acts as an opcode bit.
    fn own_bits(&self) -> u128 {
        (self.fixed | self.reserved | UNIFORM_BIT) & self.fixed_mask & !self.filled
    }

    /// The fixed bits that distinguish the form from another one: the bits that both forms fix to different values. If no
    /// bit is fixed differently, the two may differ in a field whose valid values the other form excludes. Otherwise, these
    /// are all bits that the other form uses: no word with all its fixed bits set correctly belongs to both forms.
    fn telling_bits(&self, other: &Form) -> u128 {
        let fixed_mask = self.fixed_mask & !self.filled;
        let opposed = (self.fixed ^ other.fixed) & fixed_mask & other.fixed_mask & !other.filled;
        if opposed != 0 {
            return opposed;
        }
        if self.fields.iter().any(|spec| other.lacks_values_of(spec)) {
            return 0;
        }
        match other.fields.iter().find(|spec| self.lacks_values_of(spec)) {
            Some(spec) => spec.mask() & fixed_mask,
            None => (other.fixed | !other.fixed_mask) & fixed_mask,
        }
    }

    /// Whether the form excludes all valid values of a field of another form.
    fn lacks_values_of(&self, spec: &FieldSpec) -> bool {
        let Some(check) = Check::new(spec) else { return false };
        (0..1 << spec.bits()).map(|raw| spec.insert(0, raw)).filter(|&word| check.holds(word)).all(|word| {
            let opposed = (word ^ self.fixed) & spec.mask() & self.fixed_mask & !self.filled;
            let mut inside = self.fields.iter().filter(|theirs| theirs.mask() & !spec.mask() == 0);
            opposed != 0 || inside.any(|theirs| !theirs.allows(theirs.extract(word)))
        })
    }
}

impl Check {
    /// `None` if all bit patterns of the field are valid.
    fn new(spec: &FieldSpec) -> Option<Check> {
        if !matches!(spec.value, Value::Choice(_)) && spec.limit == u64::MAX {
            return None;
        }
        if spec.high.1 != 0 || spec.width > 6 {
            return Some(Check::Large(*spec));
        }
        let values = 1u64 << spec.width;
        let legal = (0..values).filter(|&raw| spec.allows(raw)).fold(0, |set, raw| set | 1u64 << raw);
        (legal.count_ones() as u64 != values).then_some(Check::Small {
            lo: spec.lo,
            mask: (values - 1) as u8,
            legal,
        })
    }

    fn holds(&self, word: u128) -> bool {
        match self {
            Check::Small { lo, mask, legal } => legal >> ((word >> lo) as u8 & mask) & 1 != 0,
            Check::Large(spec) => spec.allows(spec.extract(word)),
        }
    }
}
