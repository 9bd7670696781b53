//! `textDocument/codeLens`: a line above each function with its resources.

use crate::handlers::code_action::protocol_command;
use crate::handlers::reference;
use crate::last_good::marked;
use crate::owner::Snapshot;
use crate::patience;
use ptx_analysis::{Code, ide};
use serde_json::json;
use tower_lsp::lsp_types::{CodeLens, Command};

/// The lens for the comparison with the reference compiler, which the client shows side by side.
fn reference(s: &Snapshot, function: &str) -> Option<Command> {
    let title = reference::title(s, function)?;
    Some(Command::new(title, "ptx.showReference".to_owned(), Some(vec![json!(s.uri), json!(function)])))
}

pub fn handle(s: &Snapshot) -> Option<Vec<CodeLens>> {
    if !s.config.code_lens {
        return None;
    }
    let lines = s.lines();
    let compiled = |wanted: &[usize]| s.compiled(s.file, wanted, patience::HINTS);
    let code = if s.patience.refreshes_lenses { Code::IfReady(&compiled) } else { Code::Awaited };
    let lenses = ide::code_lenses(&s.db, s.file, code)
        .into_iter()
        .flat_map(|lens| {
            let range = lines.range(lens.range);
            let compared = match &lens.command {
                // The lens compares with our figures, which may not exist yet.
                Some(ide::Command::ShowSass { function })
                    if s.compiled.is_some() || lens.standing == ide::Standing::Compiled =>
                {
                    reference(s, function)
                }
                _ => None,
            };
            let title = s.last_lenses.shown(&lens.function, lens.title, lens.standing, marked);
            let command = match &lens.command {
                Some(command) => protocol_command(&s.uri, title, command),
                None => Command::new(title, String::new(), None),
            };
            let commands = [Some(command), compared].into_iter().flatten();
            commands.map(move |command| CodeLens { range, command: Some(command), data: None })
        })
        .collect();
    Some(lenses)
}
