//! Applies all safe fixes.
//!
//! Fixes are applied in rounds, because one fix may reveal another. A round applies fixes whose edits do not touch each
//! other, and checks the result: a fix that causes a new error is not applied. So the result has no new errors, and
//! applying the fixes again changes nothing.

use rustc_hash::FxHashMap;
use text_size::{TextRange, TextSize};

use crate::db::{Database, Db as _};
use crate::diagnostic::{Applicability, Diagnostic, Fix, Severity, TextEdit};

/// The maximum number of rounds.
const ROUNDS: usize = 256;
/// The total number of fixes that are tried one by one after failed rounds.
const TRIALS: usize = 1_000;

/// A text with its fixes made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fixed {
    pub text: String,
    /// The code and the title of each applied fix, in order.
    pub made: Vec<(&'static str, String)>,
}

/// A fix and the code of its finding.
type Chosen<'d> = (&'static str, &'d Fix);

impl Fixed {
    /// The edit that changes `before` to the fixed text; `None` if they are the same.
    pub fn edit(&self, before: &str) -> Option<TextEdit> {
        let common = |pairs: &mut dyn Iterator<Item = (char, char)>| {
            pairs.take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>()
        };
        let start = common(&mut before.chars().zip(self.text.chars()));
        let (old, new) = (&before[start..], &self.text[start..]);
        let rest = common(&mut old.chars().rev().zip(new.chars().rev()));
        let (old, new) = (&old[..old.len() - rest], &new[..new.len() - rest]);
        let at = TextSize::try_from(start).ok()?;
        let range = TextRange::at(at, TextSize::of(old));
        (old != new).then(|| TextEdit { range, text: new.into() })
    }
}

/// Applies the machine-applicable fixes of a text, with the options of `db`. A write to `db` cancels it.
pub fn fix_all(db: &Database, text: &str) -> Fixed {
    let scratch = db.scratch();
    let check = |text: &str| {
        db.unwind_if_revision_cancelled();
        super::diagnostics(&scratch, scratch.add_frozen_file(text))
    };
    let mut fixed = Fixed { text: text.to_owned(), made: Vec::new() };
    let mut found = check(&fixed.text);
    let mut trials = TRIALS;
    for _ in 0..ROUNDS {
        let chosen = choose(&found);
        let Some((text, after, made)) = round(&check, &fixed.text, &found, &chosen, &mut trials) else {
            break;
        };
        fixed.text = text;
        fixed.made.extend(made);
        found = after;
    }
    fixed
}

/// A better text, its findings, and the applied fixes.
type Better = (String, Vec<Diagnostic>, Vec<(&'static str, String)>);

/// Applies all of the fixes, or those that are good individually, or the first of these.
fn round(
    check: &dyn Fn(&str) -> Vec<Diagnostic>,
    text: &str,
    found: &[Diagnostic],
    chosen: &[Chosen<'_>],
    trials: &mut usize,
) -> Option<Better> {
    let attempt = |fixes: &[Chosen<'_>]| {
        let text = apply(text, fixes.iter().flat_map(|(_, fix)| &fix.edits))?;
        let after = check(&text);
        let made = fixes.iter().map(|(code, fix)| (*code, fix.title.clone())).collect();
        is_better(found, &after).then_some((text, after, made))
    };
    if chosen.is_empty() {
        return None;
    }
    let all = attempt(chosen);
    if all.is_some() || chosen.len() == 1 {
        return all;
    }
    let tried = chosen.len().min(*trials);
    *trials -= tried;
    let good: Vec<Chosen<'_>> =
        chosen[..tried].iter().copied().filter(|&one| attempt(&[one]).is_some()).collect();
    attempt(&good).or_else(|| attempt(good.get(..1)?))
}

/// The first safe fix of each finding, except fixes that touch the edits of an earlier one. A fix that several findings
/// share counts once.
fn choose(found: &[Diagnostic]) -> Vec<Chosen<'_>> {
    let mut chosen: Vec<Chosen<'_>> = Vec::new();
    for diagnostic in found {
        let mut fixes = diagnostic.fixes.iter();
        let Some(fix) = fixes.find(|fix| fix.applicability == Applicability::MachineApplicable) else {
            continue;
        };
        let is_free = chosen.iter().all(|(_, other)| !touches(&fix.edits, &other.edits));
        if is_free && !touches_itself(&fix.edits) {
            chosen.push((diagnostic.lint.code, fix));
        }
    }
    chosen
}

fn touches(one: &[TextEdit], other: &[TextEdit]) -> bool {
    one.iter().any(|a| other.iter().any(|b| a.range.intersect(b.range).is_some()))
}

fn touches_itself(edits: &[TextEdit]) -> bool {
    edits.iter().enumerate().any(|(i, edit)| touches(&edits[..i], std::slice::from_ref(edit)))
}

/// Applies edits; `None` if they touch each other or are outside of the text.
pub fn apply<'e>(text: &str, edits: impl IntoIterator<Item = &'e TextEdit>) -> Option<String> {
    let mut edits: Vec<&TextEdit> = edits.into_iter().collect();
    edits.sort_by_key(|edit| (edit.range.start(), edit.range.end()));
    let mut out = String::with_capacity(text.len());
    let mut done = TextSize::new(0);
    for edit in edits {
        if edit.range.start() < done {
            return None;
        }
        out.push_str(text.get(done.into()..edit.range.start().into())?);
        out.push_str(&edit.text);
        done = edit.range.end();
    }
    out.push_str(text.get(done.into()..)?);
    Some(out)
}

/// Whether there are fewer errors or fewer findings, and no new error.
fn is_better(before: &[Diagnostic], after: &[Diagnostic]) -> bool {
    let measure =
        |found: &[Diagnostic]| (found.iter().filter(|d| d.severity == Severity::Error).count(), found.len());
    measure(after) < measure(before) && new_errors(before, after) == 0
}

/// The number of errors of `after` that are not in `before`, at any position.
pub fn new_errors(before: &[Diagnostic], after: &[Diagnostic]) -> usize {
    let mut known: FxHashMap<(&str, &str), usize> = FxHashMap::default();
    for diagnostic in before {
        *known.entry((diagnostic.lint.code, &diagnostic.message)).or_default() += 1;
    }
    let errors = after.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut new = 0;
    for diagnostic in errors {
        match known.get_mut(&(diagnostic.lint.code, diagnostic.message.as_str())) {
            Some(count) if *count > 0 => *count -= 1,
            _ => new += 1,
        }
    }
    new
}
