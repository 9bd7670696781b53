//! Instruction names without a row in the table: their errors, and the names that were probably meant.
//!
//! A name is offered as a fix if it turns the statement into an instruction of the table, preferably one without other
//! errors in its operands, version and target.

use ptx_isa::{Form, Opcode, ResolveError, ScalarType, TypeKind};
use text_size::TextRange;

use super::lints::{BAD_MODIFIER, MISSING_MODIFIER, NOT_CHECKED, UNKNOWN_INSTRUCTION};
use super::types;
use crate::diagnostic::{Applicability, Diagnostic, Lint, TextEdit};

/// The lints for such names.
pub(crate) const LINTS: [&Lint; 3] = [&UNKNOWN_INSTRUCTION, &BAD_MODIFIER, &MISSING_MODIFIER];

/// A dotted instruction name as written.
struct Name<'t> {
    text: &'t str,
    /// The range of the whole name.
    range: TextRange,
    mnemonic: TextRange,
    /// The suffixes with their dots.
    suffixes: &'t [TextRange],
    /// Whether the instruction with a given opcode has no errors.
    is_right: &'t dyn Fn(&Opcode) -> bool,
}

impl<'t> Name<'t> {
    fn word(&self) -> &'t str {
        &self.text[self.mnemonic]
    }

    /// The name of the instruction in messages: the mnemonic, and the suffixes that are not modifiers.
    fn title(&self) -> String {
        let words = self.words();
        let count = ptx_isa::title(self.word(), &words);
        words[..count].iter().fold(self.word().to_owned(), |title, word| title + "." + word)
    }

    /// The range of the suffix, or of the whole name if it has no suffix.
    fn suffix(&self, index: usize) -> TextRange {
        self.suffixes.get(index).copied().unwrap_or(self.range)
    }

    fn spelled(&self, index: usize) -> &'t str {
        &self.text[self.suffix(index)]
    }

    /// The suffixes without dots.
    fn words(&self) -> Vec<&'t str> {
        self.suffixes.iter().map(|&suffix| &self.text[suffix][1..]).collect()
    }

    /// The outcome for the instruction after `edit` has changed the suffixes of its name.
    fn outcome(&self, edit: impl FnOnce(&mut Vec<&'t str>)) -> Outcome {
        let mut words = self.words();
        edit(&mut words);
        self.judge(self.word(), &words)
    }

    /// The outcome for the instruction with another word at `index`. A word that has no effect makes no instruction.
    fn replaced(&self, index: usize, new: &'static str) -> Outcome {
        let mut words = self.words();
        words[index] = new;
        let has_effect = |opcode: &Opcode| match ptx_isa::Suffix::parse(new) {
            Some(ptx_isa::Suffix::Mod(m)) => opcode.has(m),
            Some(ptx_isa::Suffix::Type(ty)) => opcode.types().any(|other| other == ty),
            None => false,
        };
        match ptx_isa::resolve(self.word(), &words) {
            Ok(opcode) if has_effect(&opcode) => self.judge(self.word(), &words),
            _ => Outcome::Nothing,
        }
    }

    fn judge(&self, mnemonic: &str, words: &[&str]) -> Outcome {
        match ptx_isa::resolve(mnemonic, words) {
            Ok(opcode) if (self.is_right)(&opcode) => Outcome::Right,
            Ok(_) => Outcome::Instruction,
            Err(_) => Outcome::Nothing,
        }
    }

    /// Offers to remove a suffix, if the rest is valid.
    fn without(&self, diagnostic: Diagnostic, index: usize) -> Diagnostic {
        match self.outcome(|words| _ = words.remove(index)) {
            Outcome::Right => {
                diagnostic.fix(format!("remove `{}`", self.spelled(index)), self.suffix(index), "")
            }
            Outcome::Instruction | Outcome::Nothing => diagnostic,
        }
    }

    /// Reports a name with words in upper case, if an instruction with the same words in lower case exists.
    fn lower_case(&self) -> Option<Diagnostic> {
        let lower =
            |word: &str, is_known: bool| if is_known { word.to_owned() } else { word.to_ascii_lowercase() };
        let mnemonic = lower(self.word(), ptx_isa::is_mnemonic(self.word()));
        let words: Vec<String> = self
            .words()
            .into_iter()
            .map(|word| lower(word, ptx_isa::Suffix::parse(word).is_some()))
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = self.judge(&mnemonic, &words);
        let new = words.iter().fold(mnemonic, |name, word| name + "." + word);
        let old = &self.text[self.range];
        if outcome == Outcome::Nothing || new == old {
            return None;
        }
        let message = format!("unknown instruction `{old}`");
        let edits = vec![TextEdit::new(self.range, new.as_str())];
        let title = format!("change to `{new}`");
        let diagnostic = Diagnostic::new(&UNKNOWN_INSTRUCTION, self.range, message);
        let diagnostic = diagnostic.note("instruction names are in lower case");
        Some(diagnostic.remedy(title, edits, outcome.applicability()))
    }

    /// Offers words that are similar to the one at `index`, from `candidates`.
    fn instead(
        &self,
        diagnostic: Diagnostic,
        index: usize,
        candidates: impl IntoIterator<Item = &'static str>,
        spelling: Spelling,
    ) -> Diagnostic {
        let found = &self.spelled(index)[1..];
        let candidates: Vec<&'static str> = candidates.into_iter().collect();
        // `.shared` for `.shared::cluster`, `.gpu` for the older `.gl`.
        let is_part = |word: &&str| word.strip_prefix(found).is_some_and(|rest| rest.starts_with("::"));
        let same = |word: &&str| SYNONYMS.contains(&(found, *word));
        let mut near: Vec<&str> =
            candidates.iter().copied().filter(|word| is_part(word) || same(word)).collect();
        near.extend(ptx_isa::suggestions(found, candidates.iter().copied()));
        let outcome = |near| self.replaced(index, near);
        let count = diagnostic.fixes.len();
        let diagnostic = suggest(diagnostic, self.suffix(index), ".", near, spelling, outcome);
        if spelling != Spelling::Misspelt || diagnostic.fixes.len() > count || found.len() < 2 {
            return diagnostic;
        }
        // An abbreviation such as `.glob`: words that start with it come first. Then words that are less similar, but only
        // if they make the instruction valid.
        let short: Vec<&str> = candidates.iter().copied().filter(|word| word.starts_with(found)).collect();
        let diagnostic = suggest(diagnostic, self.suffix(index), ".", short, spelling, outcome);
        if diagnostic.fixes.len() > count {
            return diagnostic;
        }
        let far = ptx_isa::suggestions_within(found, candidates, found.len() / 2);
        suggest(diagnostic, self.suffix(index), ".", far, Spelling::Known, outcome)
    }

    /// Offers to add one of the missing words.
    fn with(&self, diagnostic: Diagnostic, expected: &[&'static str]) -> Diagnostic {
        // Some appear right after the mnemonic.
        let ends = [(self.range.end(), self.suffixes.len()), (self.mnemonic.end(), 0)];
        let place = |word: &&'static str| {
            let (offset, _) = ends
                .into_iter()
                .find(|&(_, index)| self.outcome(|words| words.insert(index, word)) == Outcome::Right)?;
            Some((TextRange::empty(offset), *word))
        };
        expected.iter().filter_map(place).take(SUGGESTED).fold(diagnostic, |diagnostic, (place, word)| {
            diagnostic.fix(format!("add `.{word}`"), place, format!(".{word}"))
        })
    }

    /// Offers to replace one word by another, if that alone makes the instruction valid: `.rni` for `.rn`, or another
    /// shape of a matrix.
    fn exchanged(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let words = self.words();
        let fits = |index: usize, new: &'static str| {
            let old = words[index];
            let shaped =
                |word: &str| word.starts_with('m') && word.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
            let related = SYNONYMS.contains(&(old, new)) || shaped(old) && shaped(new);
            related && new != old && self.outcome(|words| words[index] = new) == Outcome::Right
        };
        let all =
            (0..words.len()).flat_map(|index| ptx_isa::Suffix::all().map(move |new| (index, new.text())));
        for (index, new) in all.filter(|&(index, new)| fits(index, new)).take(SUGGESTED) {
            diagnostic = diagnostic.fix(
                format!("change `.{}` to `.{new}`", words[index]),
                self.suffix(index),
                format!(".{new}"),
            );
        }
        diagnostic
    }

    /// The suffixes in the order of a row, if they then form an instruction.
    fn reordered(&self, form: &Form) -> Option<(String, Applicability)> {
        let place = |word: &str| match ptx_isa::Suffix::parse(word) {
            Some(ptx_isa::Suffix::Mod(m)) => form.groups.iter().position(|group| group.contains(m)),
            _ => None,
        };
        let mut words = self.words();
        words.sort_by_key(|word| place(word).unwrap_or(form.groups.len()));
        let outcome = self.judge(self.word(), &words);
        (outcome != Outcome::Nothing).then(|| (format!(".{}", words.join(".")), outcome.applicability()))
    }
}

/// Modifiers with the same meaning in different instructions: the one that is not valid here, and the one that is.
const SYNONYMS: &[(&str, &str)] = &[
    ("gpu", "gl"),
    ("gl", "gpu"),
    ("cta", "shared::cta"),
    ("rn", "rni"),
    ("rz", "rzi"),
    ("rm", "rmi"),
    ("rp", "rpi"),
];

/// Instruction names of other assembly languages, with their names in PTX.
const FOREIGN: &[(&str, &str)] = &[
    ("__syncthreads", "bar.sync 0"),
    ("__syncwarp", "bar.warp.sync 0xffffffff"),
    ("__threadfence", "membar.gl"),
    ("__threadfence_block", "membar.cta"),
    ("__threadfence_system", "membar.sys"),
    ("__shfl_sync", "shfl.sync.idx.b32"),
    ("__ballot_sync", "vote.sync.ballot.b32"),
    ("__popc", "popc.b32"),
    ("__clz", "clz.b32"),
    ("__ldg", "ld.global.nc"),
    ("nop", ""),
    ("jmp", "bra"),
    ("branch", "bra"),
    ("load", "ld"),
    ("store", "st"),
    ("cmp", "setp"),
    ("select", "selp"),
    ("xchg", "atom.exch"),
    ("cmpxchg", "atom.cas"),
    ("mod", "rem"),
    ("return", "ret"),
    ("barrier_sync", "barrier.sync"),
    ("atomicAdd", "atom.add"),
    ("atomic", "atom"),
];

/// The result of a changed name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The name is invalid.
    Nothing,
    /// The name is valid, but the instruction has another error.
    Instruction,
    Right,
}

impl Outcome {
    fn applicability(self) -> Applicability {
        match self {
            Outcome::Right => Applicability::MachineApplicable,
            Outcome::Instruction | Outcome::Nothing => Applicability::MaybeIncorrect,
        }
    }
}

/// The kind of word that a suggestion replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// A word that does not exist in PTX.
    Misspelt,
    /// A word that is valid in other instructions.
    Known,
}

/// Reports a dotted name without a row. `is_right` tells whether the instruction would have no errors with a given
/// opcode.
pub(crate) fn unresolved(
    text: &str,
    range: TextRange,
    mnemonic: TextRange,
    suffixes: &[TextRange],
    error: &ResolveError,
    is_right: &dyn Fn(&Opcode) -> bool,
) -> Diagnostic {
    let name = Name { text, range, mnemonic, suffixes, is_right };
    let word = name.title();
    let reason = |because: &Option<usize>| {
        because.map_or(String::new(), |because| format!(" with `{}`", name.spelled(because)))
    };
    if matches!(error, ResolveError::UnknownMnemonic | ResolveError::UnknownSuffix { .. })
        && let Some(diagnostic) = name.lower_case()
    {
        return diagnostic;
    }
    match error {
        ResolveError::UnknownMnemonic => {
            let diagnostic =
                Diagnostic::new(&UNKNOWN_INSTRUCTION, mnemonic, format!("unknown instruction `{word}`"));
            if let Some((_, here)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
                return diagnostic.note(match *here {
                    "" => "PTX has no such instruction; remove it".to_owned(),
                    here => format!("the PTX instruction is `{here}`"),
                });
            }
            let near = ptx_isa::suggestions(&word, ptx_isa::mnemonics().iter().copied());
            let words = name.words();
            suggest(diagnostic.rule(), mnemonic, "", near, Spelling::Misspelt, |near| {
                name.judge(near, &words)
            })
        }
        ResolveError::NoRow { .. } => Diagnostic::new(
            &NOT_CHECKED,
            range,
            format!("`{word}` is not checked: the instruction table does not describe this form"),
        )
        .rule(),
        ResolveError::UnknownSuffix { index } => {
            let message = format!("`{}` is not a modifier or type of any instruction", name.spelled(*index));
            let note =
                format!("`ptx-check --explain {0}` lists the modifiers and types of `{0}`", name.word());
            let diagnostic = Diagnostic::new(&BAD_MODIFIER, name.suffix(*index), message).note(note);
            let words = ptx_isa::Suffix::all().map(ptx_isa::Suffix::text);
            let diagnostic = name.instead(diagnostic, *index, words, Spelling::Misspelt);
            if diagnostic.fixes.is_empty() { name.without(diagnostic, *index) } else { diagnostic }
        }
        ResolveError::NotAllowed { index, expected, .. } => {
            let message = format!("`{word}` does not take `{}`", name.spelled(*index));
            let diagnostic = Diagnostic::new(&BAD_MODIFIER, name.suffix(*index), message);
            let diagnostic = if expected.is_empty() {
                diagnostic.note(format!("`{}` takes no further modifiers", rest(&name, *index)))
            } else {
                alternatives(diagnostic, expected)
            };
            let others = expected.iter().copied();
            name.without(name.instead(diagnostic, *index, others, Spelling::Known), *index)
        }
        ResolveError::Misplaced { index, form } => {
            let message = format!("`{}` is out of order in `{word}`", name.spelled(*index));
            let form = ptx_isa::form(*form);
            let order: Vec<&str> =
                form.groups.iter().flat_map(|group| group.names.first()).map(|m| m.text()).collect();
            let diagnostic = Diagnostic::new(&BAD_MODIFIER, name.suffix(*index), message)
                .note(format!("the order is `{word}.{}`", order.join(".")));
            match (name.reordered(form), suffixes) {
                (Some((ordered, applicability)), [first, .., last]) => {
                    let title = format!("change to `{word}{ordered}`");
                    let edits = vec![TextEdit::new(first.cover(*last), ordered)];
                    diagnostic.remedy(title, edits, applicability)
                }
                _ => diagnostic,
            }
        }
        ResolveError::Conflict { index, with, .. } => {
            let (one, other) = (name.spelled(*index), name.spelled(*with));
            let diagnostic = |message| Diagnostic::new(&BAD_MODIFIER, name.suffix(*index), message);
            if one == other {
                let repeated = diagnostic(format!("duplicate `{one}`"))
                    .note(format!("`{word}` takes it only once"))
                    .related(name.suffix(*with), "first used here");
                let outcome = name.outcome(|words| _ = words.remove(*index));
                if outcome == Outcome::Nothing {
                    return repeated;
                }
                let edits = vec![TextEdit::new(name.suffix(*index), "")];
                return repeated.remedy(format!("remove `{one}`"), edits, outcome.applicability());
            }
            let excluded = diagnostic(format!("`{one}` cannot be combined with `{other}`"))
                .note(format!("no form of `{word}` has both"))
                .related(name.suffix(*with), "conflicts with this");
            name.without(name.without(excluded, *index), *with)
        }
        ResolveError::WrongType { index, because, expected, .. } => {
            let found = name.spelled(*index);
            let message = format!("`{word}` does not take type `{found}`{}", reason(because));
            let diagnostic = Diagnostic::new(&BAD_MODIFIER, name.suffix(*index), message);
            let diagnostic = match because {
                Some(because) => diagnostic.related(name.suffix(*because), "because of this modifier"),
                None => diagnostic,
            };
            let others = expected.iter().copied();
            name.instead(alternatives(diagnostic, expected), *index, others, Spelling::Known)
        }
        ResolveError::MissingModifier { because, expected, .. } => {
            let needed = one_of(expected).unwrap_or("a modifier".to_owned());
            let message = format!("`{word}` requires {needed}{}", reason(because));
            let diagnostic = Diagnostic::new(&MISSING_MODIFIER, range, message);
            let diagnostic =
                if expected.len() > NAMED { alternatives(diagnostic, expected) } else { diagnostic };
            let diagnostic = name.with(diagnostic, expected);
            let diagnostic = match because {
                Some(because) if diagnostic.fixes.is_empty() => name.without(diagnostic, *because),
                _ => diagnostic,
            };
            if diagnostic.fixes.is_empty() { name.exchanged(diagnostic) } else { diagnostic }
        }
        ResolveError::MissingType { expected, .. } => {
            let diagnostic = Diagnostic::new(&MISSING_MODIFIER, range, format!("`{word}` requires a type"));
            name.with(alternatives(diagnostic, expected), expected)
        }
    }
}

/// The name without the suffix at `index`.
fn rest(name: &Name<'_>, index: usize) -> String {
    let others = name.suffixes.iter().enumerate().filter(|&(i, _)| i != index);
    others.fold(name.word().to_owned(), |rest, (_, &suffix)| rest + &name.text[suffix])
}

/// The maximum number of words that a message itself lists; longer lists are in a note.
const NAMED: usize = 6;

/// `.hi`, `.lo` or `.wide`
fn one_of(expected: &[&'static str]) -> Option<String> {
    let names: Vec<String> = expected.iter().map(|word| format!("`.{word}`")).collect();
    match names.as_slice() {
        [only] => Some(only.clone()),
        [first @ .., last] if names.len() <= NAMED => Some(format!("{} or {last}", first.join(", "))),
        _ => None,
    }
}

/// The maximum number of alternatives that a message lists.
const LISTED: usize = 12;

fn alternatives(diagnostic: Diagnostic, expected: &[&'static str]) -> Diagnostic {
    let listed: Vec<String> = expected.iter().take(LISTED).map(|word| format!("`.{word}`")).collect();
    match expected.len() {
        0 => diagnostic,
        1..=LISTED => diagnostic.note(format!("expected {}", listed.join(", "))),
        more => diagnostic.note(format!("expected {} or {} others", listed.join(", "), more - LISTED)),
    }
}

/// The maximum number of words that are offered in place of a wrong one.
const SUGGESTED: usize = 3;

/// Offers the most similar words that make the instruction valid. For a misspelled word, a single similar word is taken
/// as the intended one. If there is none, all words that form an instruction are offered.
fn suggest(
    diagnostic: Diagnostic,
    range: TextRange,
    dot: &str,
    near: Vec<&'static str>,
    spelling: Spelling,
    outcome: impl Fn(&'static str) -> Outcome,
) -> Diagnostic {
    let title = |near: &str| format!("change to `{dot}{near}`");
    let near: Vec<(&str, Outcome)> = near.into_iter().map(|near| (near, outcome(near))).collect();
    let of = |wanted| near.iter().filter(move |(_, outcome)| *outcome == wanted).map(|&(near, _)| near);
    let right: Vec<&str> = of(Outcome::Right).collect();
    let offered: Vec<&str> = match (right.as_slice(), spelling) {
        ([only], Spelling::Misspelt) => {
            return diagnostic.sure_fix(title(only), range, format!("{dot}{only}"));
        }
        ([], Spelling::Misspelt) => of(Outcome::Instruction).collect(),
        _ => right,
    };
    offered
        .into_iter()
        .take(SUGGESTED)
        .fold(diagnostic, |diagnostic, near| diagnostic.fix(title(near), range, format!("{dot}{near}")))
}

/// Modifiers for the width or the number of operands.
const RELATED: &[&[&str]] = &[&["lo", "wide"], &["v2", "v4", "v8"], &["x1", "x2", "x4"]];

/// Offers another type for the instruction, if the type is its only error. Returns whether there is one.
pub(crate) fn retyped(
    text: &str,
    mnemonic: &str,
    suffixes: &[TextRange],
    is_right: &dyn Fn(&Opcode) -> bool,
    diagnostic: &mut Diagnostic,
) -> bool {
    let words: Vec<&str> = suffixes.iter().map(|&suffix| &text[suffix][1..]).collect();
    let mut offered = 0;
    for (index, word) in words.iter().enumerate() {
        let fits = |new: &&str| {
            let mut words = words.clone();
            words[index] = new;
            *new != *word && ptx_isa::resolve(mnemonic, &words).is_ok_and(|opcode| is_right(&opcode))
        };
        let related = RELATED.iter().filter(|related| related.contains(word)).copied().flatten().copied();
        for new in related.filter(fits).take(1) {
            offered += 1;
            let edits = vec![TextEdit::new(suffixes[index], format!(".{new}"))];
            diagnostic.offer(format!("change `.{word}` to `.{new}`"), edits, Applicability::MaybeIncorrect);
        }
        let Some(ptx_isa::Suffix::Type(found)) = ptx_isa::Suffix::parse(word) else { continue };
        let all = ptx_isa::Suffix::all().filter_map(|suffix| match suffix {
            ptx_isa::Suffix::Type(ty) if ty != found && is_alike(found, ty) => Some(ty),
            _ => None,
        });
        let mut right: Vec<ScalarType> = all.filter(|ty| fits(&ty.text())).collect();
        right.sort_by_key(|ty| ty.kind() != found.kind());
        for ty in right.into_iter().take(2) {
            offered += 1;
            if offered > SUGGESTED {
                return true;
            }
            let title = format!("change `.{word}` to `.{}`", ty.text());
            let edits = vec![TextEdit::new(suffixes[index], format!(".{}", ty.text()))];
            diagnostic.offer(title, edits, Applicability::MaybeIncorrect);
        }
    }
    offered > 0
}

/// Whether one type may have been written by mistake for the other. Untyped bits are similar to every type.
fn is_alike(one: ScalarType, other: ScalarType) -> bool {
    let is_packed = |ty: ScalarType| ty.kind() == TypeKind::Packed;
    let is_untyped = |ty: ScalarType| ty.kind() == TypeKind::Bits;
    let is_narrow = types::is_untyped_only(one) || types::is_untyped_only(other);
    let is_number = other != ScalarType::Pred && (is_packed(one) || !is_packed(other));
    !is_narrow && (is_untyped(one) || is_number)
}
