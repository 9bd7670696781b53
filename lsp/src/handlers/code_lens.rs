//! `textDocument/codeLens`: a line above each function with its resources, and the number of references to functions and
//! labels.

use crate::handlers::code_action::protocol_command;
use crate::handlers::reference;
use crate::last_good::marked;
use crate::owner::Snapshot;
use crate::patience;
use ptx_analysis::{Code, ide};
use serde_json::json;
use tower_lsp::lsp_types::{CodeLens, Command, Location};

/// The lens for the comparison with the reference compiler, which the client shows side by side.
fn reference(s: &Snapshot, function: &str) -> Option<Command> {
    let title = reference::title(s, function)?;
    Some(Command::new(title, "ptx.showReference".to_owned(), Some(vec![json!(s.uri), json!(function)])))
}

pub fn handle(s: &Snapshot) -> Option<Vec<CodeLens>> {
    if !s.config.code_lens && !s.config.reference_lens {
        return None;
    }
    let mut lenses = if s.config.code_lens { resources(s) } else { Vec::new() };
    if s.config.reference_lens {
        lenses.extend(ide::referenced(&s.db, s.file).iter().map(|found| counted(s, found)));
    }
    Some(lenses)
}

/// The number of references. A click lists them; the client shows the list.
fn counted(s: &Snapshot, found: &ide::Referenced) -> CodeLens {
    let lines = s.lines();
    let locations = found.references.iter().map(|&range| Location::new(s.uri.clone(), lines.range(range)));
    let locations: Vec<Location> = locations.collect();
    let command = match locations.is_empty() {
        true => Command::new(found.title(), String::new(), None),
        false => {
            let place = lines.range(found.focus).start;
            let arguments = vec![json!(s.uri), json!(place), json!(locations)];
            Command::new(found.title(), "ptx.showReferences".to_owned(), Some(arguments))
        }
    };
    CodeLens { range: lines.range(found.range), command: Some(command), data: None }
}

fn resources(s: &Snapshot) -> Vec<CodeLens> {
    let lines = s.lines();
    let compiled = |wanted: &[usize]| s.compiled(s.file, wanted, patience::HINTS);
    let code = if s.patience.refreshes_lenses { Code::IfReady(&compiled) } else { Code::Awaited };
    ide::code_lenses(&s.db, s.file, code)
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
        .collect()
}
