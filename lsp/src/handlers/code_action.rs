//! `textDocument/codeAction`: quick fixes, and "Show SASS for this function".

use std::collections::HashMap;

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, ActionKind};
use serde_json::json;
use tower_lsp::lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionResponse, Command, Range, Url, WorkspaceEdit,
};

pub fn handle(s: &Snapshot, range: Range) -> Option<CodeActionResponse> {
    let lines = s.lines();
    let actions = ide::code_actions(&s.db, s.file, lines.text_range(range));
    let convert = |action: ide::CodeAction| {
        let edits: Vec<_> = action.edits.iter().map(|e| lines.edit(e)).collect();
        CodeActionOrCommand::CodeAction(CodeAction {
            kind: Some(match action.kind {
                ActionKind::QuickFix => CodeActionKind::QUICKFIX,
                ActionKind::Rewrite => CodeActionKind::REFACTOR_REWRITE,
                ActionKind::Source => CodeActionKind::SOURCE,
            }),
            edit: (!edits.is_empty()).then(|| WorkspaceEdit {
                changes: Some(HashMap::from([(s.uri.clone(), edits)])),
                ..Default::default()
            }),
            command: action.command.as_ref().map(|c| protocol_command(&s.uri, action.title.clone(), c)),
            is_preferred: action.fixes.map(|_| action.preferred),
            title: action.title,
            ..Default::default()
        })
    };
    Some(actions.into_iter().map(convert).collect())
}

/// A command as the clients know it: they open what the server renders.
pub fn protocol_command(uri: &Url, title: String, command: &ide::Command) -> Command {
    let (name, arguments) = match command {
        ide::Command::ShowSass { function } => ("ptx.showSass", vec![json!(uri), json!(function)]),
        ide::Command::Explain { code } => ("ptx.explain", vec![json!(code)]),
    };
    Command::new(title, name.into(), Some(arguments))
}
