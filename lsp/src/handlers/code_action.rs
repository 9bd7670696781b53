//! `textDocument/codeAction`: quick fixes, refactorings, the action that applies all safe fixes, and "Show SASS for this
//! function".

use std::collections::HashMap;

use crate::handlers::{embedded, explain};
use crate::owner::Snapshot;
use crate::project::{NAME, ProjectFile};
use ptx_analysis::diagnostic::Lint;
use ptx_analysis::ide::{self, ActionKind};
use serde_json::json;
use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionResponse, Command, Range, TextEdit, Url,
    WorkspaceEdit,
};

/// The action that applies all safe fixes of a document.
pub const FIX_ALL: CodeActionKind = CodeActionKind::new("source.fixAll.ptx");

pub fn handle(
    s: &Snapshot,
    range: Range,
    only: Option<&[CodeActionKind]>,
    project: Option<&ProjectFile>,
) -> Option<CodeActionResponse> {
    if let Some(embedded) = &s.embedded {
        return embedded::actions(s, embedded, range);
    }
    // Finding all fixes checks the document several times, so this action is only made on request.
    let fixes_all = only.is_some_and(|kinds| kinds.iter().any(includes_fix_all));
    let mut response = actions(s, range);
    response.extend(project.into_iter().flat_map(|project| ignored(s, range, project)));
    response.extend(fixes_all.then(|| fix_all(s)).flatten());
    Some(response)
}

/// Whether a kind is `source.fixAll.ptx` or a parent of it.
fn includes_fix_all(kind: &CodeActionKind) -> bool {
    let own = FIX_ALL;
    let rest = own.as_str().strip_prefix(kind.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// One action for each lint that has findings in a range. The action sets the level of the lint in the project's file
/// to `allow`.
fn ignored(s: &Snapshot, range: Range, project: &ProjectFile) -> Vec<CodeActionOrCommand> {
    let lints = ide::ignorable(&s.db, s.file, s.lines().text_range(range));
    let action = |lint: &'static Lint| {
        Some(CodeActionOrCommand::CodeAction(CodeAction {
            title: format!("Ignore {} in this project ({NAME})", lint.code),
            kind: Some(CodeActionKind::QUICKFIX),
            edit: Some(project.allowing(lint)?),
            ..Default::default()
        }))
    };
    lints.into_iter().filter_map(action).collect()
}

fn fix_all(s: &Snapshot) -> Option<CodeActionOrCommand> {
    let text = s.file.text(&s.db);
    let fixed = ide::fix_all(&s.db, text);
    let edits = vec![s.lines().edit(&fixed.edit(text)?)];
    Some(CodeActionOrCommand::CodeAction(CodeAction {
        title: format!("Apply all {} safe fixes", fixed.made.len()),
        kind: Some(FIX_ALL),
        edit: Some(changes(s, edits)),
        ..Default::default()
    }))
}

pub(super) fn changes(s: &Snapshot, edits: Vec<TextEdit>) -> WorkspaceEdit {
    WorkspaceEdit { changes: Some(HashMap::from([(s.uri.clone(), edits)])), ..Default::default() }
}

fn actions(s: &Snapshot, range: Range) -> CodeActionResponse {
    let lines = s.lines();
    let actions = ide::code_actions(&s.db, s.file, lines.text_range(range));
    let convert = |action: ide::CodeAction| {
        let edits: Vec<_> = action.edits.iter().map(|e| lines.edit(e)).collect();
        CodeActionOrCommand::CodeAction(CodeAction {
            kind: Some(kind(action.kind)),
            edit: (!edits.is_empty()).then(|| changes(s, edits)),
            command: action.command.as_ref().map(|c| protocol_command(&s.uri, action.title.clone(), c)),
            is_preferred: action.fixes.map(|_| action.preferred),
            title: action.title,
            ..Default::default()
        })
    };
    actions.into_iter().map(convert).collect()
}

pub(super) fn kind(kind: ActionKind) -> CodeActionKind {
    match kind {
        ActionKind::QuickFix => CodeActionKind::QUICKFIX,
        ActionKind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
        ActionKind::Inline => CodeActionKind::REFACTOR_INLINE,
        ActionKind::Extract => CodeActionKind::REFACTOR_EXTRACT,
        ActionKind::Source => CodeActionKind::SOURCE,
    }
}

/// A command as clients know it. The client opens the text that the server returns.
pub fn protocol_command(uri: &Url, title: String, command: &ide::Command) -> Command {
    let (name, arguments) = match command {
        ide::Command::ShowSass { function } => ("ptx.showSass", vec![json!(uri), json!(function)]),
        ide::Command::Explain { code } => (explain::COMMAND, vec![json!(code)]),
    };
    Command::new(title, name.into(), Some(arguments))
}
