//! `textDocument/codeLens`: a line with a function's resources above it.

use crate::handlers::code_action::protocol_command;
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{CodeLens, Command};

pub fn handle(s: &Snapshot) -> Option<Vec<CodeLens>> {
    if !s.config.code_lens {
        return None;
    }
    let lines = s.lines();
    let lenses = ide::code_lenses(&s.db, s.file)
        .into_iter()
        .map(|lens| {
            let title = s.last_lenses.shown(&lens.function, lens.title, lens.standing);
            let command = match &lens.command {
                Some(command) => protocol_command(&s.uri, title, command),
                None => Command::new(title, String::new(), None),
            };
            CodeLens { range: lines.range(lens.range), command: Some(command), data: None }
        })
        .collect();
    Some(lenses)
}
