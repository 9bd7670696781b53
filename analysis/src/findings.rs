//! All findings of a file, in file offsets, with levels and suppressions applied.

mod cascades;
mod remedies;
mod sizes;

use ptx_syntax::SyntaxKind;
use text_size::{TextRange, TextSize};

use crate::check::suppressions::Suppressions;
use crate::db::{Database, Db, Options, SourceFile};
use crate::diagnostic::{Diagnostic, Severity};
use crate::items::{item, parse};
use crate::locate::place_range;
use crate::lower::all_findings;
use crate::module::{DeclaredName, Noticed, module};

/// The findings of the checks. Compiles nothing.
pub fn diagnostics(db: &Database, file: SourceFile) -> Vec<Diagnostic> {
    diagnostics_for(db, file, &[])
}

/// The findings of the checks if code is generated only for these kernels; without names, for all. Errors in the text
/// of other functions count, but not the limits that they exceed.
pub fn diagnostics_for(db: &Database, file: SourceFile, entries: &[String]) -> Vec<Diagnostic> {
    let mut all = module_findings(db, file);
    let found = all_findings(db, file);
    for &(offset, found) in &found {
        let reported = found.diagnostics.iter().filter(|d| is_reported(db, d));
        all.extend(reported.map(|d| d.clone().shifted(offset)));
    }
    if all.iter().all(|diagnostic| diagnostic.lint.default != Severity::Error) {
        let exceeded = sizes::check(db, file, entries, &found);
        all.extend(exceeded.into_iter().map(|(item, d)| d.shifted(item.offset(db))));
    }
    let suppressions = Suppressions::of(db, file);
    all.extend(suppressions.check(file.text(db)));
    let mut all = finish(db, file, all, &suppressions);
    cascades::prune(db, file, &mut all);
    remedies::complete(db, file, &mut all);
    cascades::same_fix(&mut all, file.text(db));
    all
}

fn is_reported(db: &dyn Db, diagnostic: &Diagnostic) -> bool {
    Options::get(db).levels(db).level(diagnostic.lint) != Severity::Allow
}

fn module_findings(db: &dyn Db, file: SourceFile) -> Vec<Diagnostic> {
    let findings = module(db, file).findings.iter();
    let place = |place| place_range(db, file, place);
    findings
        .map(|finding| {
            let range = finding.at.and_then(place).unwrap_or_else(|| TextRange::empty(0.into()));
            let mut diagnostic = Diagnostic::new(finding.lint, range, finding.message.clone());
            diagnostic.reported = finding.at.and_then(|at| noticed(db, file, at, finding.noticed));
            diagnostic.notes.extend(finding.note.clone());
            if let Some((at, message)) = finding.related
                && let Some(range) = place(at)
            {
                diagnostic = diagnostic.related(range, message);
            }
            diagnostic
        })
        .collect()
}

fn noticed(db: &dyn Db, file: SourceFile, at: DeclaredName, noticed: Noticed) -> Option<TextSize> {
    let item = item(db, file, at.item)?;
    match noticed {
        Noticed::There => None,
        Noticed::Parameters => {
            let node = parse(db, item).syntax();
            let last = node.children().filter(|child| child.kind() == SyntaxKind::PARAM_LIST).last()?;
            Some(item.offset(db) + last.text_range().end() - TextSize::of(')'))
        }
        Noticed::NextItem => Some(item.offset(db) + TextSize::of(item.text(db))),
    }
}

pub(crate) fn finish(
    db: &dyn Db,
    file: SourceFile,
    mut all: Vec<Diagnostic>,
    suppressions: &Suppressions,
) -> Vec<Diagnostic> {
    let levels = Options::get(db).levels(db);
    let text = file.text(db);
    for diagnostic in &mut all {
        diagnostic.severity = levels.level(diagnostic.lint);
        // An error that is noticed after the end of a construct is reported at the next token, in whatever item it is.
        diagnostic.reported = diagnostic.reported.map(|at| ptx_syntax::next_token(text, at));
    }
    all.retain(|d| d.severity != Severity::Allow && !suppressions.hide(d));
    all.sort_by_key(|d| (d.range.start(), d.range.end(), d.lint.code));
    all
}
