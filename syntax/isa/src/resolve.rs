//! Finds the table row of an instruction's dotted name.
//!
//! As in ptxas, the order of modifiers is free, but the order of types is not. The first row of the mnemonic that
//! accepts the whole name wins. If no row does, the error is that of the row that accepted the most of the name.

use crate::lookup::NameIndex;
use crate::model::{Form, Place, Then};
use crate::opcode::{MAX_MODS, MAX_TYPES, Mod, Opcode, Suffix};
use crate::table::{self, FormId};
use crate::{Gate, PtxVersion, ScalarType, TypeKind, TypeSet, undescribed};
use std::sync::LazyLock;

/// The reason why a name has no row. Indices count the suffixes from 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResolveError {
    /// The mnemonic is not an instruction.
    UnknownMnemonic,
    /// The language has this instruction, but the table does not describe it. Only the version that introduced it is
    /// known.
    NoRow {
        since: PtxVersion,
    },
    /// The suffix is not a modifier or type of any instruction.
    UnknownSuffix {
        index: usize,
    },
    /// The suffix is a modifier of other instructions. `expected` holds the modifiers that this instruction could still
    /// take.
    NotAllowed {
        index: usize,
        form: FormId,
        expected: Vec<&'static str>,
    },
    /// The suffix is a modifier of this form, at a place where it is not allowed.
    Misplaced {
        index: usize,
        form: FormId,
    },
    /// Another suffix excludes this one: they are alternatives, the suffix is repeated, or a rule forbids the
    /// combination.
    Conflict {
        index: usize,
        with: usize,
        form: FormId,
    },
    /// One of `expected` is missing. `because` is the suffix that requires it, if one does.
    MissingModifier {
        form: FormId,
        because: Option<usize>,
        expected: Vec<&'static str>,
    },
    MissingType {
        form: FormId,
        expected: Vec<&'static str>,
    },
    /// The form does not have this type at this place. `because` is the modifier that restricts the types.
    WrongType {
        index: usize,
        form: FormId,
        because: Option<usize>,
        expected: Vec<&'static str>,
    },
}

impl ResolveError {
    /// The index of the wrong suffix; `None` for the whole name.
    pub fn index(&self) -> Option<usize> {
        match self {
            ResolveError::UnknownSuffix { index }
            | ResolveError::NotAllowed { index, .. }
            | ResolveError::Misplaced { index, .. }
            | ResolveError::Conflict { index, .. }
            | ResolveError::WrongType { index, .. } => Some(*index),
            _ => None,
        }
    }

    /// The names that are missing or could replace the suffix. Without dots, in table order.
    pub fn expected(&self) -> &[&'static str] {
        match self {
            ResolveError::NotAllowed { expected, .. }
            | ResolveError::MissingModifier { expected, .. }
            | ResolveError::MissingType { expected, .. }
            | ResolveError::WrongType { expected, .. } => expected,
            _ => &[],
        }
    }

    /// Adds the names that another row expects at the same place.
    fn widen(&mut self, other: &ResolveError) {
        let same =
            std::mem::discriminant(self) == std::mem::discriminant(other) && self.index() == other.index();
        if let ResolveError::NotAllowed { expected, .. }
        | ResolveError::MissingModifier { expected, .. }
        | ResolveError::MissingType { expected, .. }
        | ResolveError::WrongType { expected, .. } = self
            && same
        {
            for name in other.expected() {
                if !expected.contains(name) {
                    expected.push(name);
                }
            }
        }
    }

    /// The row that is nearest to the name.
    pub fn form(&self) -> Option<FormId> {
        match self {
            ResolveError::NotAllowed { form, .. }
            | ResolveError::Misplaced { form, .. }
            | ResolveError::Conflict { form, .. }
            | ResolveError::MissingModifier { form, .. }
            | ResolveError::MissingType { form, .. }
            | ResolveError::WrongType { form, .. } => Some(*form),
            _ => None,
        }
    }
}

/// Finds the row of `mnemonic` with `suffixes` (without dots, as written).
pub fn resolve(mnemonic: &str, suffixes: &[&str]) -> Result<Opcode, ResolveError> {
    described(mnemonic, suffixes).map_err(|error| {
        // A name with a word that the table does not describe is not judged by the rows.
        match undescribed::since(std::iter::once(mnemonic).chain(suffixes.iter().copied())) {
            Some(since) => ResolveError::NoRow { since },
            None => error,
        }
    })
}

fn described(mnemonic: &str, suffixes: &[&str]) -> Result<Opcode, ResolveError> {
    let forms = match forms_of(mnemonic) {
        [] => return Err(ResolveError::UnknownMnemonic),
        forms => forms,
    };
    let name = Name::read(suffixes)?;
    for &id in forms {
        let form = table::form(id);
        if name.has_types_of(form)
            && let Ok(opcode) = place(form, &name)
        {
            return Ok(opcode);
        }
    }
    // Explain the failure with the nearest row, or with all rows that are equally near.
    let failures: Vec<Failure> = forms.iter().filter_map(|&id| place(table::form(id), &name).err()).collect();
    let nearest = failures.iter().map(|failure| failure.score).max().unwrap_or(0);
    let mut errors =
        failures.into_iter().filter(|failure| failure.score == nearest).map(|failure| failure.explain(&name));
    let mut error = errors.next().expect("the mnemonic has a row and none took the name");
    for other in errors {
        error.widen(&other);
    }
    Err(error)
}

/// The rows of a mnemonic in table order. Empty if there is none.
pub fn forms_of(mnemonic: &str) -> &'static [FormId] {
    let index = &*BY_MNEMONIC;
    index.names.get(mnemonic).map_or(&[], |i| &index.forms[i])
}

/// How many of the suffixes are part of the instruction's title instead of modifying it: two in
/// `cp.async.bulk.shared::cluster`, `async` and `bulk`.
pub fn title(mnemonic: &str, suffixes: &[&str]) -> usize {
    let words = |id: &FormId| {
        let groups = table::form(*id).groups.iter();
        let leading = groups.filter(|group| group.required && group.place == Place::Leading);
        leading
            .zip(suffixes)
            .take_while(|(group, word)| matches!(group.names, [name] if name.text() == **word))
            .count()
    };
    forms_of(mnemonic).iter().map(words).max().unwrap_or_default()
}

/// Whether the word is a mnemonic of the language, with or without a row.
pub fn is_mnemonic(word: &str) -> bool {
    BY_MNEMONIC.names.get(word).is_some()
}

/// All mnemonics of the language, sorted.
pub fn mnemonics() -> &'static [&'static str] {
    table::MNEMONICS
}

/// The mnemonics that most programs consist of, the most frequent first.
pub fn frequent() -> &'static [&'static str] {
    table::FREQUENT
}

/// The requirements of an instruction: those of its form, its modifiers and its types.
pub fn gates(opcode: &Opcode) -> Gate {
    let form = table::form(opcode.form);
    form.rules.iter().fold(form.gate, |gate, rule| match rule.then {
        Then::Gate(more) if rule.when.holds(opcode) => gate.and(more),
        _ => gate,
    })
}

struct ByMnemonic {
    names: NameIndex,
    forms: Box<[Box<[FormId]>]>,
}

static BY_MNEMONIC: LazyLock<ByMnemonic> = LazyLock::new(|| {
    let names = NameIndex::new(table::MNEMONICS.iter().copied());
    let mut forms = vec![Vec::new(); table::MNEMONICS.len()];
    for &id in FormId::ALL {
        if let Some(i) = names.get(id.mnemonic()) {
            forms[i].push(id);
        }
    }
    ByMnemonic { names, forms: forms.into_iter().map(Vec::into_boxed_slice).collect() }
});

/// A name with more suffixes than this is too long for any row.
const MAX_SUFFIXES: usize = MAX_MODS + MAX_TYPES;

/// The parsed suffixes.
struct Name {
    types: usize,
    first_type: Option<ScalarType>,
    /// Whether the name has types that some forms ignore.
    has_passed: bool,
    parts: [Suffix; MAX_SUFFIXES],
    len: usize,
}

impl Name {
    fn read(suffixes: &[&str]) -> Result<Self, ResolveError> {
        let parts = [Suffix::Mod(Mod::Rn); MAX_SUFFIXES];
        let mut name = Name { types: 0, first_type: None, has_passed: false, parts, len: 0 };
        for (index, text) in suffixes.iter().enumerate() {
            let part = Suffix::parse(text).ok_or(ResolveError::UnknownSuffix { index })?;
            // A name longer than any row repeats or contradicts itself. The suffix at the limit is rejected.
            if index >= MAX_SUFFIXES {
                return Err(ResolveError::UnknownSuffix { index });
            }
            if let Suffix::Type(ty) = part {
                name.first_type = name.first_type.or(Some(ty));
                name.has_passed |= is_passed_somewhere(ty);
                name.types += 1;
            }
            name.parts[index] = part;
            name.len += 1;
        }
        Ok(name)
    }

    /// The name with a different suffix at `index`, which may be its end.
    fn with(&self, index: usize, part: Suffix) -> Option<Self> {
        let mut name = Name { len: self.len.max(index + 1), ..*self };
        *name.parts.get_mut(index)? = part;
        Some(name)
    }

    fn parts(&self) -> &[Suffix] {
        &self.parts[..self.len]
    }

    /// Whether the number of types and the first type fit. This excludes most rows of `add` or `cvt` early.
    fn has_types_of(&self, form: &Form) -> bool {
        (form.required_types as usize..=form.types.len()).contains(&self.types)
            && self.first_type.is_none_or(|ty| form.types[0].contains(ty))
            || self.has_passed
    }

    fn position(&self, m: Mod) -> Option<usize> {
        self.parts().iter().position(|&p| p == Suffix::Mod(m))
    }

    /// The index of the `i`-th type.
    fn type_index(&self, i: u8) -> Option<usize> {
        let types = self.parts().iter().enumerate().filter(|(_, p)| matches!(p, Suffix::Type(_)));
        types.map(|(index, _)| index).nth(i as usize)
    }
}

/// How much of a name a row accepts. Small, because most rows of a mnemonic reject most names.
struct Failure {
    form: &'static Form,
    /// A larger score is nearer.
    score: u32,
    kind: FailureKind,
}

#[derive(Clone, Copy)]
enum FailureKind {
    Modifier(usize),
    Misplaced(usize),
    Repeated { index: usize, with: usize },
    Type { index: usize, position: u8 },
    MissingGroup(usize),
    MissingType(u8),
    Rule(usize),
}

/// Flags that ptxas allows to be repeated.
const REPEATABLE: &[Mod] = &[
    Mod::Sync,
    Mod::Approx,
    Mod::Sat,
    Mod::Relu,
    Mod::Satfinite,
    Mod::Cc,
    Mod::Nan,
    Mod::Shiftamt,
    Mod::Uni,
];

/// Modifiers that ptxas accepts on every instruction, and ignores if the instruction does not have them: tensor map
/// fields, number classes, accumulator precisions. An instruction may have one of each kind.
const READ_EVERYWHERE: [&[Mod]; 3] = [
    &[
        Mod::GlobalAddress,
        Mod::Rank,
        Mod::BoxDim,
        Mod::GlobalDim,
        Mod::GlobalStride,
        Mod::ElementStride,
        Mod::Elemtype,
        Mod::InterleaveLayout,
        Mod::SwizzleMode,
        Mod::SwizzleAtomicity,
        Mod::FillMode,
    ],
    &[Mod::Finite, Mod::Infinite, Mod::Number, Mod::NotANumber, Mod::Normal, Mod::Subnormal],
    &[Mod::AccF16, Mod::AccF32],
];

/// Whether `m` is the first of its kind in the name, and of a kind that every instruction accepts.
fn is_read_everywhere(name: &Name, index: usize, m: Mod) -> bool {
    let kind = READ_EVERYWHERE.iter().find(|kind| kind.contains(&m));
    kind.is_some_and(|kind| {
        !name.parts()[..index].iter().any(|part| matches!(part, Suffix::Mod(other) if kind.contains(other)))
    })
}

/// Whether ptxas accepts a vector count on a matrix product. It does so once, if all of the product's vectors have this
/// many elements.
fn takes_count(form: &Form, name: &Name, index: usize) -> bool {
    let is_count = |part: &Suffix| matches!(part, Suffix::Mod(Mod::V2 | Mod::V4 | Mod::V8));
    // The operation of `wmma` comes first.
    let may_be_first = form.mnemonic() != "wmma" || index > 0;
    let is_matrix = matches!(form.mnemonic(), "mma" | "wmma" | "wgmma");
    is_matrix && may_be_first && !name.parts()[..index].iter().any(is_count)
}

/// Whether ptxas ignores the type on some or all instructions that do not have it.
const fn is_passed_somewhere(ty: ScalarType) -> bool {
    matches!(ty.kind(), TypeKind::Pred | TypeKind::Opaque) || is_passed_everywhere(ty)
}

/// Whether every instruction accepts the type, like the words of [`READ_EVERYWHERE`]. These types are formats of
/// copies.
const fn is_passed_everywhere(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::B8x16 | ScalarType::B6x16P32 | ScalarType::B4x16P64)
}

/// Whether ptxas ignores `.pred` or `.texref` among the types of a form that has none of them. It does so for forms
/// that read floating-point values, whatever types the name gives.
fn passes_over(form: &Form) -> bool {
    match form.mnemonic() {
        "abs" | "add" | "atom" | "cos" | "cvt" | "ex2" | "fma" | "lg2" | "max" | "min" | "multimem"
        | "neg" | "rcp" | "rsqrt" | "set" | "setp" | "sin" | "sqrt" | "sub" | "tanh" => true,
        "mul" => form.id != FormId::MulInt,
        "red" => !form.fixed().any(|m| m == Mod::Async),
        "cp" => form.fixed().any(|m| m == Mod::Reduce),
        "wmma" | "wgmma" => form.types.len() > 1,
        _ => false,
    }
}

fn place(form: &'static Form, name: &Name) -> Result<Opcode, Failure> {
    let mut mods = [Mod::Rn; MAX_MODS];
    let mut types = [ScalarType::B32; MAX_TYPES];
    let (mut mod_count, mut type_count) = (0, 0);
    // Bit i is set if group i has its modifier.
    let mut taken = 0u32;
    // Whether all suffixes so far were leading modifiers.
    let mut leading = true;
    // The index of the last ordered group that had its modifier.
    let mut ordered = 0;
    // The first suffix that does not fit. The remaining ones are still counted, to find the nearest row.
    let mut first = None;
    let mut fitting = 0u32;
    for (index, &part) in name.parts().iter().enumerate() {
        let failure = match part {
            Suffix::Mod(m) => {
                let free = |i: usize| taken >> i & 1 == 0;
                match form.groups.iter().enumerate().find(|(i, g)| free(*i) && g.contains(m)) {
                    Some((i, group)) if mod_count < MAX_MODS => {
                        taken |= 1 << i;
                        mods[mod_count] = m;
                        mod_count += 1;
                        let fits = match group.place {
                            Place::Free => true,
                            Place::Leading => leading && i >= std::mem::replace(&mut ordered, i),
                            Place::Ordered => i >= std::mem::replace(&mut ordered, i),
                        };
                        leading &= group.place == Place::Leading;
                        (!fits).then_some(FailureKind::Misplaced(index))
                    }
                    _ if matches!(m, Mod::V2 | Mod::V4 | Mod::V8) && takes_count(form, name, index) => None,
                    _ if is_read_everywhere(name, index, m) => {
                        leading = false;
                        None
                    }
                    _ => match rival(form, name, index, m) {
                        Some(with) if REPEATABLE.contains(&m) && name.parts()[with] == part => None,
                        Some(with) => Some(FailureKind::Repeated { index, with }),
                        None => Some(FailureKind::Modifier(index)),
                    },
                }
            }
            Suffix::Type(ty) => {
                let position = type_count as u8;
                leading = false;
                let fits = form.types.get(type_count).is_some_and(|set| set.contains(ty));
                if fits {
                    types[type_count] = ty;
                    type_count += 1;
                }
                let passes = is_passed_everywhere(ty) || is_passed_somewhere(ty) && passes_over(form);
                (!fits && !passes).then_some(FailureKind::Type { index, position })
            }
        };
        match failure {
            // A type is better evidence than a flag for which row was meant: `add.ftz.f64` has a flag too many.
            None => fitting += if matches!(part, Suffix::Type(_)) { 2 } else { 1 },
            Some(kind) => first = first.or(Some(kind)),
        }
    }
    let fail = |kind: FailureKind, stage: u32| {
        // Modifiers that all names of the form have (`.async`, `.sync`) are better evidence than options.
        let fixed = form.fixed().filter(|&m| name.position(m).is_some()).count() as u32;
        let absent = form.fixed().count() as u32 - fixed;
        Failure { form, score: (64 + 3 * fitting + 2 * fixed - (2 * absent).min(32)) * 4 + stage, kind }
    };
    if let Some(kind) = first {
        return Err(fail(kind, 0));
    }
    if let Some(i) = (0..form.groups.len()).find(|&i| form.groups[i].required && taken >> i & 1 == 0) {
        return Err(fail(FailureKind::MissingGroup(i), 1));
    }
    if type_count < form.required_types as usize {
        return Err(fail(FailureKind::MissingType(type_count as u8), 2));
    }
    let opcode = Opcode::new(form.id, &mods[..mod_count], &types[..type_count]).expect("both fit the limits");
    match form.rules.iter().position(|rule| !rule.allows(&opcode)) {
        Some(i) => Err(fail(FailureKind::Rule(i), 3)),
        None => Ok(opcode),
    }
}

/// The earlier suffix that took the place of `m`.
fn rival(form: &Form, name: &Name, index: usize, m: Mod) -> Option<usize> {
    let group = form.groups.iter().find(|g| g.contains(m))?;
    (0..index).find(|&i| matches!(name.parts()[i], Suffix::Mod(other) if group.contains(other)))
}

impl Failure {
    fn explain(self, name: &Name) -> ResolveError {
        let (form, id) = (self.form, self.form.id);
        match self.kind {
            FailureKind::Modifier(index) => {
                ResolveError::NotAllowed { index, form: id, expected: open(form, name) }
            }
            FailureKind::Misplaced(index) => ResolveError::Misplaced { index, form: id },
            FailureKind::Repeated { index, with } => ResolveError::Conflict { index, with, form: id },
            FailureKind::Type { index, position } => match form.types.get(position as usize) {
                None => ResolveError::NotAllowed { index, form: id, expected: open(form, name) },
                Some(_) => ResolveError::WrongType {
                    index,
                    form: id,
                    because: None,
                    expected: types(form, name, index, position),
                },
            },
            FailureKind::MissingGroup(i) => {
                let names: Vec<Suffix> = form.groups[i].names.iter().map(|&m| Suffix::Mod(m)).collect();
                let expected = viable(form, name, name.len, &names);
                ResolveError::MissingModifier { form: id, because: None, expected }
            }
            FailureKind::MissingType(position) => {
                ResolveError::MissingType { form: id, expected: types(form, name, name.len, position) }
            }
            FailureKind::Rule(i) => self.explain_rule(i, name),
        }
    }

    fn explain_rule(&self, rule: usize, name: &Name) -> ResolveError {
        let (form, rule) = (self.form.id, &self.form.rules[rule]);
        let cause = rule.when.any.iter().find_map(|&m| name.position(m));
        let type_cause = || {
            let second = rule.when.second != TypeSet::ALL;
            name.type_index(u8::from(second))
        };
        match rule.then {
            Then::Types(position, set) => {
                let expected = set.iter().map(|t| t.text()).collect();
                match name.type_index(position) {
                    Some(index) => ResolveError::WrongType { index, form, because: cause, expected },
                    None => ResolveError::MissingType { form, expected },
                }
            }
            Then::SameType(a, b) => ResolveError::WrongType {
                index: name.type_index(b).unwrap_or(0),
                form,
                because: name.type_index(a),
                expected: name.type_index(a).map(|i| name.parts()[i].text()).into_iter().collect(),
            },
            Then::Excludes(mods) => {
                let index = mods.iter().find_map(|&m| name.position(m)).unwrap_or(0);
                match cause.or_else(type_cause) {
                    Some(with) => ResolveError::Conflict { index, with, form },
                    None => ResolveError::NotAllowed { index, form, expected: open(self.form, name) },
                }
            }
            Then::Needs(mods) => ResolveError::MissingModifier {
                form,
                because: cause.or_else(type_cause),
                expected: mods.iter().map(|m| m.text()).collect(),
            },
            Then::Gate(_) | Then::Operand(..) => unreachable!("it allows every name"),
        }
    }
}

/// The modifiers of groups that have none in the name.
fn open(form: &Form, name: &Name) -> Vec<&'static str> {
    let groups = form.groups.iter().filter(|g| g.names.iter().all(|&m| name.position(m).is_none()));
    groups.flat_map(|g| g.names).map(|m| m.text()).collect()
}

fn types(form: &'static Form, name: &Name, index: usize, position: u8) -> Vec<&'static str> {
    let set = form.types.get(position as usize).copied().unwrap_or_default();
    viable(form, name, index, &set.iter().map(Suffix::Type).collect::<Vec<_>>())
}

/// The candidates at `index` that the form's rules allow together with the rest of the name. All candidates if the
/// rules allow none of them.
fn viable(form: &'static Form, name: &Name, index: usize, candidates: &[Suffix]) -> Vec<&'static str> {
    let allowed = |part: &Suffix| {
        let Some(trial) = name.with(index, *part) else { return true };
        !matches!(place(form, &trial), Err(Failure { kind: FailureKind::Rule(_), .. }))
    };
    let viable: Vec<_> = candidates.iter().copied().filter(allowed).map(Suffix::text).collect();
    if viable.is_empty() { candidates.iter().map(|part| part.text()).collect() } else { viable }
}

/// The candidates that are similar to a misspelled word, nearest first. Equally near candidates keep their order.
pub fn suggestions(word: &str, candidates: impl IntoIterator<Item = &'static str>) -> Vec<&'static str> {
    suggestions_within(word, candidates, (word.len() / 3).max(1))
}

/// The candidates within an edit distance of a word, the nearest first.
pub fn suggestions_within(
    word: &str,
    candidates: impl IntoIterator<Item = &'static str>,
    limit: usize,
) -> Vec<&'static str> {
    let mut near: Vec<(usize, &'static str)> = Vec::new();
    for candidate in candidates {
        let distance = edit_distance(word, candidate, limit);
        if let Some(distance) = distance {
            near.push((distance, candidate));
        }
    }
    // Few words are misspelled in their first letter.
    let first = |word: &str| word.bytes().next().map(|byte| byte.to_ascii_lowercase());
    near.sort_by_key(|&(distance, candidate)| (distance, first(candidate) != first(word)));
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The number of insertions, deletions, replacements and exchanges of neighbors that turn one word into another,
/// ignoring case. `None` if it exceeds `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    // A misspelled word is compared with hundreds of words. Nearly all comparisons end here or in the third row.
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let is_same = |i: usize, j: usize| a[i].eq_ignore_ascii_case(&b[j]);
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        // The rows of the distance matrix: two above, above, current.
        rows[2][0] = i;
        for j in 1..=b.len() {
            let same = usize::from(!is_same(i - 1, j - 1));
            let mut best = (rows[1][j] + 1).min(rows[2][j - 1] + 1).min(rows[1][j - 1] + same);
            if i > 1 && j > 1 && is_same(i - 1, j - 2) && is_same(i - 2, j - 1) {
                best = best.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = best;
        }
        // No later row can have a value below the minimum of the last two rows.
        if rows[1..].iter().flatten().all(|&distance| distance > limit) {
            return None;
        }
        rows.rotate_left(1);
    }
    Some(rows[1][b.len()]).filter(|&distance| distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One in this many suffixes is tried with every mnemonic.
    const STEP: usize = 7;

    fn read(name: &str) -> Result<Opcode, ResolveError> {
        let mut parts = name.split('.');
        let mnemonic = parts.next().unwrap();
        resolve(mnemonic, &parts.collect::<Vec<_>>())
    }

    fn form_of(name: &str) -> FormId {
        read(name).unwrap_or_else(|e| panic!("{name}: {e:?}")).form
    }

    #[test]
    fn the_first_row_that_takes_the_whole_name_wins() {
        assert_eq!(form_of("add.s32"), FormId::AddInt);
        assert_eq!(form_of("add.cc.u32"), FormId::AddCc);
        assert_eq!(form_of("add.rn.f32"), FormId::AddF32);
        assert_eq!(form_of("add.f16x2"), FormId::AddHalf);
        assert_eq!(form_of("cvt.rn.f16x2.f32"), FormId::CvtPair);
        assert_eq!(form_of("vote.sync.ballot.b32"), FormId::VoteSync);
    }

    #[test]
    fn modifiers_stand_in_any_order() {
        assert_eq!(form_of("ld.u32.global"), FormId::Ld);
        assert_eq!(form_of("add.f32.rn"), FormId::AddF32);
        let opcode = read("setp.lt.and.s32").unwrap();
        assert_eq!(opcode.mods().collect::<Vec<_>>(), [Mod::Lt, Mod::And]);
        assert_eq!(opcode.ty(0), Some(ScalarType::S32));
    }

    #[test]
    fn full_divisions_say_so_first() {
        assert_eq!(form_of("div.full.ftz.f32"), FormId::DivFull);
        assert_eq!(form_of("div.ftz.approx.f32"), FormId::DivF32);
        assert_eq!(read("div.ftz.full.f32").unwrap_err().index(), Some(1));
        assert_eq!(read("div.f32").unwrap_err().expected(), ["approx", "rn", "rz", "rm", "rp"]);
    }

    #[test]
    fn flags_may_be_repeated_and_choices_may_not() {
        assert_eq!(read("add.sat.sat.s32").unwrap().mods().count(), 1);
        let conflict = |index, with, form| Err(ResolveError::Conflict { index, with, form });
        assert_eq!(read("add.rn.rz.f32"), conflict(1, 0, FormId::AddF32));
        assert_eq!(read("ld.global.global.u32"), conflict(1, 0, FormId::Ld));
    }

    #[test]
    fn products_of_matrices_may_count_the_elements() {
        let name = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16";
        assert_eq!(read(&format!("{name}.v2")), read(name));
        assert!(
            read(&format!("{name}.v2.v2")).is_err() && read("ldmatrix.sync.aligned.m8n8.x2.v2.b16").is_err()
        );
    }

    #[test]
    fn predicates_are_passed_over_where_floats_are_read() {
        assert_eq!(read("add.pred.s32"), read("add.s32"));
        assert_eq!(read("setp.eq.pred.pred.u32"), read("setp.eq.u32"));
        assert_eq!(read("mul.f16x2.pred"), read("mul.f16x2"));
        for wrong in ["mul.lo.pred.u32", "ld.pred.u32", "add.pred", "red.async.pred.u32", "addc.pred.u32"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_say_which_part_is_wrong_and_what_is_right() {
        assert_eq!(read("ad.s32"), Err(ResolveError::UnknownMnemonic));
        assert_eq!(read("add.foo.s32"), Err(ResolveError::UnknownSuffix { index: 0 }));
        let error = read("add.ftz.f64").unwrap_err();
        assert_eq!(error.index(), Some(0));
        let error = read("mul.s32").unwrap_err();
        assert_eq!(error.expected(), ["hi", "lo", "wide"]);
        let error = read("fma.f32").unwrap_err();
        assert_eq!(error.expected(), ["rn", "rz", "rm", "rp"]);
        let error = read("shl.u32").unwrap_err();
        assert_eq!((error.index(), error.expected()), (Some(0), ["b16", "b32", "b64"].as_slice()));
        let error = read("setp.s32").unwrap_err();
        assert_eq!(error.expected(), ["eq", "ne", "lt", "le", "gt", "ge"]);
        let error = read("mbarrier.b64").unwrap_err();
        assert!(error.expected().contains(&"init") && error.expected().contains(&"try_wait"));
        let error = read("add").unwrap_err();
        assert!(error.expected().contains(&"s32") && error.expected().contains(&"f32"));
        let error = read("ld.global").unwrap_err();
        assert!(matches!(error, ResolveError::MissingType { .. }) && error.expected().contains(&"u32"));
        let error = read("setp.lo.s32").unwrap_err();
        assert_eq!(error, ResolveError::Conflict { index: 0, with: 1, form: FormId::SetpInt });
        let error = read("ld.relaxed.global.u32").unwrap_err();
        assert_eq!(error.expected(), ["cta", "cluster", "gpu", "sys"]);
    }

    #[test]
    fn names_of_any_length_are_answered() {
        let many = vec!["sat"; 1000];
        assert!(resolve("add", &many).is_err());
        assert!(resolve("", &[]).is_err());
        assert!(resolve("add", &[""]).is_err());
        for mnemonic in mnemonics() {
            for part in Suffix::all().step_by(STEP).map(Suffix::text) {
                let _ = (
                    resolve(mnemonic, &[part]),
                    resolve(mnemonic, &[part, "u32", part]),
                    resolve(mnemonic, &[part; 18]),
                );
            }
        }
    }

    #[test]
    fn gates_are_those_of_the_form_and_of_everything_named() {
        let gate = |name: &str| gates(&read(name).unwrap());
        assert_eq!(gate("add.s32"), Gate::BASE);
        assert_eq!(gate("ld.relaxed.gpu.global.u32"), Gate::since(6, 0, 70));
        assert_eq!(gate("ld.relaxed.cluster.global.u32"), Gate::since(7, 8, 90));
    }

    #[test]
    fn misspelt_words_have_suggestions() {
        assert_eq!(suggestions("gobal", Mod::ALL.iter().map(|m| m.text()))[0], "global");
        assert_eq!(suggestions("st.", mnemonics().iter().copied())[0], "st");
        assert_eq!(suggestions("SYNC", Mod::ALL.iter().map(|m| m.text()))[0], "sync");
        assert!(suggestions("zzzzzz", mnemonics().iter().copied()).is_empty());
    }
}
