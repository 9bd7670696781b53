//! Document notifications. The transport passes them to the owner itself, in the order of the messages: if handlers
//! passed them on, a later edit might overtake an earlier one.

use std::path::Path;

use crate::owner::Event;
use crate::transport::Load;
use ptx_embed::Language;
use serde_json::Value;
use tower_lsp::jsonrpc::Request;
use tower_lsp::lsp_types::{
    DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    DidSaveTextDocumentParams, Url,
};

/// Whether this is a notification of [`event`].
pub fn is_of_a_document(request: &Request) -> bool {
    matches!(
        request.method(),
        "textDocument/didOpen" | "textDocument/didChange" | "textDocument/didSave" | "textDocument/didClose"
    )
}

/// The event of a document notification. `None` if its parameters are invalid.
pub fn event(request: Request, load: Load) -> Option<Event> {
    let (method, _, params) = request.into_parts();
    let event = read(&method, params.unwrap_or_default(), load);
    if event.is_none() {
        tracing::warn!("malformed {method} ignored");
    }
    event
}

/// The language of a document that may hold embedded PTX, from the language's name or else from the file name.
fn language(name: &str, uri: &Url) -> Option<Language> {
    let by_path = || Language::of_path(Path::new(uri.path()));
    if name == "ptx" { None } else { Language::of_editor(name).or_else(by_path) }
}

fn read(method: &str, params: Value, load: Load) -> Option<Event> {
    Some(match method {
        "textDocument/didOpen" => {
            let p: DidOpenTextDocumentParams = serde_json::from_value(params).ok()?;
            let d = p.text_document;
            let language = language(&d.language_id, &d.uri);
            Event::Open { uri: d.uri, version: d.version, text: d.text, language, load }
        }
        "textDocument/didChange" => {
            let p: DidChangeTextDocumentParams = serde_json::from_value(params).ok()?;
            let d = p.text_document;
            Event::Change { uri: d.uri, version: d.version, changes: p.content_changes, load }
        }
        "textDocument/didSave" => {
            let p: DidSaveTextDocumentParams = serde_json::from_value(params).ok()?;
            Event::Save { uri: p.text_document.uri }
        }
        "textDocument/didClose" => {
            let p: DidCloseTextDocumentParams = serde_json::from_value(params).ok()?;
            Event::Close { uri: p.text_document.uri }
        }
        _ => return None,
    })
}
