//! `textDocument/documentSymbol`: the outline.

use crate::document::Document;
use crate::owner::Snapshot;
use crate::written::{self, Written};
use ptx_analysis::ide;
use tower_lsp::lsp_types::{DocumentSymbol, SymbolKind};

pub fn handle(s: &Snapshot) -> Option<Written> {
    let lines = s.lines();
    let symbols = ide::document_symbols(&s.db, s.file);
    let symbols: Vec<_> = symbols.iter().map(|symbol| convert(lines, symbol)).collect();
    written::write(&symbols)
}

fn convert(lines: &Document, symbol: &ide::DocumentSymbol) -> DocumentSymbol {
    #[expect(deprecated, reason = "the protocol's struct still has the field")]
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: (!symbol.detail.is_empty()).then(|| symbol.detail.clone()),
        kind: kind(symbol.kind),
        tags: None,
        deprecated: None,
        range: lines.range(symbol.full),
        selection_range: lines.range(symbol.focus),
        children: (!symbol.children.is_empty())
            .then(|| symbol.children.iter().map(|child| convert(lines, child)).collect()),
    }
}

pub fn kind(kind: ide::SymbolKind) -> SymbolKind {
    match kind {
        ide::SymbolKind::Entry | ide::SymbolKind::Function => SymbolKind::FUNCTION,
        ide::SymbolKind::Prototype => SymbolKind::INTERFACE,
        ide::SymbolKind::Variable | ide::SymbolKind::Register => SymbolKind::VARIABLE,
        ide::SymbolKind::Constant => SymbolKind::CONSTANT,
        ide::SymbolKind::Parameter => SymbolKind::FIELD,
        ide::SymbolKind::Label => SymbolKind::KEY,
        ide::SymbolKind::Directive => SymbolKind::PROPERTY,
    }
}
