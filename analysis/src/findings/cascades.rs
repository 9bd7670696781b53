//! Removes findings that only repeat another finding of their statement in other words.
//!
//! Checks are independent of each other, and several may report the same statement. If one mistake causes several
//! findings, the most specific one is kept.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use ptx_isa::{PtxVersion, TargetSet};
use ptx_syntax::ItemKind;
use rustc_hash::{FxHashMap, FxHashSet};
use text_size::{TextRange, TextSize};

use crate::check::gates::TARGET_GATE;
use crate::check::lints::UNDEFINED_LABEL;
use crate::check::unassigned::{MAYBE_UNASSIGNED, UNASSIGNED_READ};
use crate::db::{Db, SourceFile};
use crate::declaration::BAD_DECLARATION;
use crate::diagnostic::{Diagnostic, Severity};
use crate::items::item_around;
use crate::lower::source_map;
use crate::module::{UNKNOWN_TARGET, VERSION_GATE, header};
use crate::scope::split_number;
use crate::syntax_errors::UNEXPECTED;

/// The number of findings of a statement that are compared with each other.
const COMPARED: usize = 16;

/// The maximum distance in bytes between findings of one declaration.
const NEAR: TextSize = TextSize::new(256);

/// Removes findings that follow from other findings. The findings are in text order.
pub(super) fn prune(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    if findings.len() < 2 {
        return;
    }
    let mut kept: Vec<bool> = vec![true; findings.len()];
    let mut first = 0;
    while first < findings.len() {
        let statement = statement(db, file, findings[first].range);
        let is_inside = |d: &Diagnostic| statement.contains_range(d.range);
        let count = findings[first..].iter().take(COMPARED).take_while(|d| is_inside(d)).count().max(1);
        let group = &findings[first..first + count];
        for (index, one) in group.iter().enumerate() {
            let follows = |other: &Diagnostic| other.severity == Severity::Error && follows(one, other);
            kept[first + index] = !group.iter().enumerate().any(|(at, other)| {
                // Of two equal findings, the first one stays.
                at != index && follows(other) && (at < index || !self::follows(other, one))
            });
        }
        first += count;
    }
    let mut kept = kept.into_iter();
    findings.retain(|_| kept.next().unwrap_or(true));
    header_first(db, file, findings);
    words_first(db, file, findings);
    bodies_first(db, file, findings);
    types_first(file.text(db), findings);
    declared_nonetheless(file.text(db), findings);
    labels_that_are_there(file.text(db), findings);
    merge(db, file, findings);
}

/// If a target requires a newer version, that is reported at the target; features of that version are not reported
/// again.
fn header_first(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    let header = header(db, file);
    let (Some(version), Some(sm)) = (header.version, header.target.sm) else { return };
    let is_too_old = version < sm.since() && findings.iter().any(|d| d.lint == &UNKNOWN_TARGET);
    if is_too_old {
        let is_brought =
            |d: &Diagnostic| d.gate.is_some_and(|gate| gate.late.is_none() && gate.ptx <= sm.since());
        findings.retain(|d| d.lint != &VERSION_GATE || !is_brought(d));
    }
}

/// An incomplete header directive has no value, so its value is not reported as wrong.
fn words_first(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    const VALUES: &[&str] = &["E0104", "E0403", "E0404"];
    if !findings.iter().any(|d| VALUES.contains(&d.lint.code)) {
        return;
    }
    let around = |d: &Diagnostic| {
        let item = item_around(db, file, d.range)?;
        let is_header = matches!(item.kind(db), ItemKind::Version | ItemKind::Target | ItemKind::AddressSize);
        is_header.then(|| item.offset(db))
    };
    let broken: Vec<TextSize> =
        findings.iter().filter(|d| d.lint == &UNEXPECTED).filter_map(around).collect();
    let is_value = |d: &Diagnostic| VALUES.contains(&d.lint.code);
    findings.retain(|d| !is_value(d) || around(d).is_none_or(|item| !broken.contains(&item)));
}

/// A function whose body cannot be parsed is not reported as a function without a body.
fn bodies_first(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    let around = |d: &Diagnostic| item_around(db, file, d.range).map(|item| item.offset(db));
    let undefined = findings.iter().filter(|d| d.lint.code == "E0207").count();
    if undefined == 0 {
        return;
    }
    let broken: FxHashSet<TextSize> =
        findings.iter().filter(|d| matches!(d.lint.code, "E0004" | "E0006")).filter_map(around).collect();
    findings.retain(|d| d.lint.code != "E0207" || around(d).is_none_or(|item| !broken.contains(&item)));
}

/// A declaration with a wrong word in place of its type is not reported as a declaration without a type.
fn types_first(text: &str, findings: &mut Vec<Diagnostic>) {
    let wrong: Vec<TextRange> = findings.iter().filter(|d| d.lint == &UNEXPECTED).map(|d| d.range).collect();
    let is_same = |start: TextSize, end: TextSize| {
        start <= end && end - start <= NEAR && !text[TextRange::new(start, end)].contains([';', '\n'])
    };
    findings.retain(|d| {
        let after = wrong.partition_point(|wrong| wrong.start() < d.range.end());
        let before = after.checked_sub(1).map(|before| wrong[before]);
        d.lint != &BAD_DECLARATION
            || !before.is_some_and(|wrong| is_same(wrong.end(), d.range.start()))
                && !wrong.get(after).is_some_and(|wrong| is_same(d.range.end(), wrong.start()))
    });
}

/// A name whose declaration cannot be parsed counts as declared.
fn declared_nonetheless(text: &str, findings: &mut Vec<Diagnostic>) {
    const BROKEN: &[&str] = &["E0003", "E0004", "E0101", "E0103", "E0109"];
    if !findings.iter().any(|d| NAMES.contains(&d.lint.code)) {
        return;
    }
    let mut broken: FxHashSet<&str> = FxHashSet::default();
    let mistakes = findings.iter().filter(|d| BROKEN.contains(&d.lint.code));
    for declaration in mistakes.filter_map(|d| register_declaration(text, d.range.start())) {
        for name in declaration.split(',').filter_map(declared_name) {
            // `%r8>` was to be `%r<8>`.
            broken.extend(split_number(name).map(|(prefix, _)| prefix));
            broken.insert(name);
        }
    }
    if !broken.is_empty() {
        let is_broken = |name: &str| {
            broken.contains(name) || split_number(name).is_some_and(|(prefix, _)| broken.contains(prefix))
        };
        findings.retain(|d| !NAMES.contains(&d.lint.code) || !is_broken(&text[d.range]));
    }
}

/// The `.reg` declaration around a place, without `.reg`, to its end or that of its last line.
fn register_declaration(text: &str, at: TextSize) -> Option<&str> {
    let before = &text[..at.into()];
    let start = before.rfind([';', '{', '}']).map_or(0, |end| end + 1);
    let declaration = text[start..].trim_start().strip_prefix(".reg")?;
    let end = (declaration.len() + usize::from(at)).saturating_sub(text.len());
    let length = declaration[end..].find([';', '\n']).map_or(declaration.len(), |length| end + length);
    Some(&declaration[..length])
}

/// The name in one part of a declaration: its first word that is not a type.
fn declared_name(part: &str) -> Option<&str> {
    let word = part.split_ascii_whitespace().find(|word| !word.starts_with('.'))?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%');
    let length = word.find(|c| !is_part(c)).unwrap_or(word.len());
    (length > 0).then_some(&word[..length])
}

/// A label in text that cannot be parsed counts as defined.
fn labels_that_are_there(text: &str, findings: &mut Vec<Diagnostic>) {
    const SYNTAX: &[&str] = &["E0002", "E0004", "E0005", "E0006"];
    if !findings.iter().any(|d| SYNTAX.contains(&d.lint.code)) {
        return;
    }
    let is_defined = |name: &str, after: TextSize| {
        let rest = &text[after.into()..];
        rest.lines().any(|line| {
            let label = line.trim_start().strip_prefix(name);
            label.is_some_and(|behind| behind.trim_start().starts_with(':'))
        })
    };
    let mut searched = 0;
    findings.retain(|d| {
        // Each search examines the whole text.
        if d.lint != &UNDEFINED_LABEL || searched == COMPARED {
            return true;
        }
        searched += 1;
        !is_defined(&text[d.range], d.range.end())
    });
}

/// Merges findings that the same fix resolves: registers beyond the end of one declaration.
pub(super) fn same_fix(findings: &mut Vec<Diagnostic>, text: &str) {
    let mut first: FxHashMap<(TextRange, String), usize> = FxHashMap::default();
    let mut kept: Vec<Diagnostic> = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        let edit = match finding.fixes.as_slice() {
            [only] if finding.lint.code == "E0202" => only.edits.first(),
            _ => None,
        };
        let Some(edit) = edit else {
            kept.push(finding);
            continue;
        };
        match first.entry((edit.range, edit.text.clone())) {
            Entry::Vacant(vacant) => {
                vacant.insert(kept.len());
                kept.push(finding);
            }
            Entry::Occupied(known) => {
                let known = &mut kept[*known.get()];
                if known.related.len() <= MARKED {
                    known.relate(finding.range, format!("`{}` is not declared either", &text[finding.range]));
                }
            }
        }
    }
    *findings = kept;
}

/// A cause: one change resolves all findings that have it.
#[derive(PartialEq, Eq, Hash)]
enum Cause<'t> {
    /// The version that the function requires.
    Version(TextSize, PtxVersion),
    /// The targets that the function requires.
    Target(TextSize, TargetSet),
    /// A statement that reads several unwritten registers.
    Unwritten(TextSize, &'static str),
    /// The undeclared name that the function uses.
    Undeclared(TextSize, &'t str),
}

fn cause<'db>(db: &'db dyn Db, file: SourceFile, finding: &Diagnostic) -> Option<Cause<'db>> {
    let function = || item_around(db, file, finding.range).map(|item| item.offset(db));
    match finding.lint {
        lint if lint == &VERSION_GATE => {
            let gate = finding.gate.filter(|gate| gate.late.is_none())?;
            Some(Cause::Version(function()?, gate.ptx))
        }
        lint if lint == &TARGET_GATE => {
            let gate = finding.gate.filter(|gate| gate.removed.is_none())?;
            Some(Cause::Target(function()?, gate.targets))
        }
        lint if lint == &UNASSIGNED_READ || lint == &MAYBE_UNASSIGNED => {
            Some(Cause::Unwritten(statement(db, file, finding.range).start(), lint.code))
        }
        lint if NAMES.contains(&lint.code) => {
            Some(Cause::Undeclared(function()?, &file.text(db)[finding.range]))
        }
        _ => None,
    }
}

/// The number of places of merged findings that a finding marks.
const MARKED: usize = 8;

/// Merges all findings of a cause into the first one.
fn merge(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    let mut first: FxHashMap<Cause<'_>, usize> = FxHashMap::default();
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    let mut merged: Vec<Diagnostic> = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        let Some(cause) = cause(db, file, &finding) else {
            merged.push(finding);
            continue;
        };
        let label = match cause {
            Cause::Version(..) | Cause::Target(..) => "same requirement".to_owned(),
            Cause::Unwritten(..) => format!("same for `{}`", &file.text(db)[finding.range]),
            Cause::Undeclared(_, name) => format!("`{name}` is also used here"),
        };
        match first.entry(cause) {
            Entry::Vacant(vacant) => {
                vacant.insert(merged.len());
                merged.push(finding);
            }
            Entry::Occupied(known) => {
                let count = counts.entry(*known.get()).or_default();
                *count += 1;
                let known = &mut merged[*known.get()];
                // The fix changes all uses of a name.
                for fix in &mut known.fixes {
                    let same = finding.fixes.iter().find(|other| other.title == fix.title);
                    let edits = same.into_iter().flat_map(|same| &same.edits);
                    let new: Vec<_> = edits.filter(|edit| !fix.edits.contains(edit)).cloned().collect();
                    fix.edits.extend(new);
                }
                if *count <= MARKED {
                    known.relate(finding.range, label);
                }
            }
        }
    }
    for (index, count) in counts {
        if count > MARKED {
            merged[index].notes.push(format!("and {} more", count - MARKED));
        }
    }
    *findings = merged;
}

/// The statement around a finding; the range of the finding itself if there is none.
fn statement(db: &dyn Db, file: SourceFile, range: TextRange) -> TextRange {
    let around = || {
        let item = item_around(db, file, range)?;
        let offset = item.offset(db);
        let map = source_map(db, item);
        let statement = map.statement_at((range - offset).start()).and_then(|src| map.statement(src))?;
        Some(statement + offset)
    };
    around().filter(|statement| statement.contains_range(range)).unwrap_or(range)
}

/// Lints about undeclared names.
const NAMES: &[&str] = &["E0202", "E0203", "E0204"];
/// Lints about the kind of an operand and its number of elements.
const SHAPE: &[&str] = &["E0302", "E0307"];
const NATURE: &[&str] = &["E0303", "E0304", "E0305", "E0306", "E0308"];

/// Whether a finding says nothing beyond another finding of its statement.
fn follows(one: &Diagnostic, other: &Diagnostic) -> bool {
    let (code, cause) = (one.lint.code, other.lint.code);
    let touches = one.range.intersect(other.range).is_some_and(|both| !both.is_empty());
    match cause {
        // Text with invalid characters cannot be parsed either.
        "E0001" | "E0003" | "E0004" | "E0006" => {
            one.range == other.range && code != cause
                || NAMES.contains(&code) && code != "E0202"
                || cause == "E0004" && matches!(code, "E0103" | "E0212")
        }
        // The text after an unknown word of another language is in that language too.
        "E0210" => code == "E0004" || NAMES.contains(&code),
        // A removed instruction is written with operands that the current form does not have.
        "E0402" => code == "E0301" && other.gate.is_some_and(|gate| gate.removed.is_some()),
        // A call of an unknown name may have operands of any kind.
        "E0204" => code == "E0302" && !touches,
        // Only vectors have elements, and the elements of a vector that is not allowed do not matter.
        "E0302" if other.range.contains_range(one.range) => {
            NATURE.contains(&code) || matches!(code, "E0302" | "E0307")
        }
        "E0307" => other.range.contains_range(one.range) && NATURE.contains(&code),
        // `@%tid.x`
        "E0305" => code == "E0004" && one.range.start() == other.range.end(),
        "E0308" => code == "E0308" && one.range == other.range,
        "E0301" => SHAPE.contains(&code) || NATURE.contains(&code),
        _ => false,
    }
}
