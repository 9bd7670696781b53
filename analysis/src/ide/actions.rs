//! Code actions: fixes of diagnostics, refactorings, and commands for functions.

use text_size::{TextRange, TextSize};

use crate::check::suppressions::BAD_SUPPRESSION;
use crate::db::{Database, SourceFile};
use crate::diagnostic::{Diagnostic, Lint, TextEdit};
use crate::ide::{ActionKind, Applicability, CodeAction, Command, diagnostics, refactor};
use crate::locate::items_in;
use crate::lower::lower;
use crate::pieces::IGNORE;

/// The code actions for a range. If no finding is at the range, the actions of the findings on its line are offered.
pub fn code_actions(db: &Database, file: SourceFile, range: TextRange) -> Vec<CodeAction> {
    let mut actions = Vec::new();
    let mut here = diagnostics(db, file);
    let is_at = |range: TextRange| move |d: &Diagnostic| range.intersect(d.range).is_some();
    let near = if here.iter().any(is_at(range)) { range } else { line_of(file.text(db), range) };
    here.retain(is_at(near));
    let mut ignored: Vec<&Lint> = Vec::new();
    for diagnostic in here {
        let code = diagnostic.lint.code;
        let ignore = is_ignorable(diagnostic.lint) && !ignored.contains(&diagnostic.lint);
        for fix in diagnostic.fixes {
            let kind = ActionKind::QuickFix;
            actions.push(CodeAction {
                title: fix.title,
                kind,
                edits: fix.edits,
                command: None,
                fixes: Some(code),
                preferred: fix.applicability == Applicability::MachineApplicable,
            });
        }
        if ignore {
            ignored.push(diagnostic.lint);
            actions.push(CodeAction {
                title: format!("Ignore {code} on this line"),
                kind: ActionKind::QuickFix,
                edits: vec![suppression(file.text(db), diagnostic.range.start(), code)],
                command: None,
                fixes: Some(code),
                preferred: false,
            });
        }
        let title = format!("Explain {code}");
        // A fix as far as clients know: they show other kinds only in menus of their own.
        actions.push(CodeAction { kind: ActionKind::QuickFix, ..shown(title, Command::Explain { code }) });
    }
    actions.extend(refactor::actions(db, file, range));
    for item in items_in(db, file, Some(range)) {
        if lower(db, item).has_body {
            let function = item.name(db).to_string();
            let title = format!("Show SASS of {function}");
            actions.push(shown(title, Command::ShowSass { function }));
        }
    }
    actions
}

/// The range, extended to the line if it is inside one.
fn line_of(text: &str, range: TextRange) -> TextRange {
    let (start, end) = (usize::from(range.start()).min(text.len()), usize::from(range.end()).min(text.len()));
    let bytes = text.as_bytes();
    if bytes[start..end].contains(&b'\n') {
        return range;
    }
    let first = bytes[..start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let last = bytes[end..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |at| end + at);
    TextRange::new(TextSize::new(first as u32), TextSize::new(last as u32))
}

/// The lints reported in a range that comments and settings can suppress.
pub fn ignorable(db: &Database, file: SourceFile, range: TextRange) -> Vec<&'static Lint> {
    let mut lints: Vec<&'static Lint> = diagnostics(db, file)
        .into_iter()
        .filter(|d| range.intersect(d.range).is_some() && is_ignorable(d.lint))
        .map(|d| d.lint)
        .collect();
    lints.sort_by_key(|lint| lint.code);
    lints.dedup();
    lints
}

fn is_ignorable(lint: &Lint) -> bool {
    !lint.is_error() && lint != &BAD_SUPPRESSION
}

/// The edit that suppresses a code on the line of an offset: in the comment of the line, in a new comment after it, or
/// above a line that already has another comment.
fn suppression(text: &str, at: TextSize, code: &str) -> TextEdit {
    let at = usize::from(at);
    let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
    let line = text[start..].lines().next().unwrap_or_default().trim_end();
    let mark = format!("// {IGNORE}:");
    let insert = |offset: usize, new: String| {
        TextEdit::new(TextRange::empty(TextSize::new((start + offset) as u32)), new)
    };
    if let Some(found) = line.find(&mark) {
        return insert(found + mark.len(), format!(" {code},"));
    }
    if !line.contains("//") && !line.contains("/*") && !line.contains("*/") {
        return insert(line.len(), format!(" {mark} {code}"));
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    insert(0, format!("{indent}{mark} {code}\n"))
}

/// An action that shows information and changes no text.
fn shown(title: String, command: Command) -> CodeAction {
    CodeAction {
        title,
        kind: ActionKind::Source,
        edits: Vec::new(),
        command: Some(command),
        fixes: None,
        preferred: false,
    }
}
