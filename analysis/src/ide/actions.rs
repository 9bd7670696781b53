//! Code actions: the fixes of diagnostics, and what can be asked of a function.

use text_size::TextRange;

use crate::db::{Database, SourceFile};
use crate::ide::{ActionKind, Applicability, CodeAction, Command, diagnostics};
use crate::locate::items_in;
use crate::lower::lower;

/// What can be done about a range.
pub fn code_actions(db: &Database, file: SourceFile, range: TextRange) -> Vec<CodeAction> {
    let mut actions = Vec::new();
    let here = diagnostics(db, file).into_iter().filter(|d| range.intersect(d.range).is_some());
    for diagnostic in here {
        let code = diagnostic.lint.code;
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
        let title = format!("Explain {code}");
        actions.push(shown(title, Command::Explain { code }));
    }
    for item in items_in(db, file, Some(range)) {
        if lower(db, item).function.is_some() {
            let function = item.name(db).to_string();
            let title = format!("Show SASS of {function}");
            actions.push(shown(title, Command::ShowSass { function }));
        }
    }
    actions
}

/// An action that shows something and changes no text.
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
