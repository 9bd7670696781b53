//! `textDocument/documentSymbol`: the outline.

use crate::by_item::Writer;
use crate::owner::Snapshot;
use crate::written::Written;
use ptx_analysis::ide;
use tower_lsp::lsp_types::SymbolKind;

pub fn handle(s: &Snapshot) -> Option<Written> {
    Some(s.answers.symbols.answer(ide::outline(&s.db, s.file), s.encoding, symbol))
}

/// Writes a `DocumentSymbol` of the protocol.
fn symbol(writer: &mut Writer<'_>, symbol: &ide::DocumentSymbol) {
    writer.text("{\"name\":");
    writer.value(&symbol.name);
    if !symbol.detail.is_empty() {
        writer.text(",\"detail\":");
        writer.value(&symbol.detail);
    }
    writer.text(",\"kind\":");
    writer.value(&kind(symbol.kind));
    writer.text(",\"range\":");
    writer.range(symbol.full);
    writer.text(",\"selectionRange\":");
    writer.range(symbol.focus);
    for (index, child) in symbol.children.iter().enumerate() {
        writer.text(if index == 0 { ",\"children\":[" } else { "," });
        self::symbol(writer, child);
    }
    writer.text(if symbol.children.is_empty() { "}" } else { "]}" });
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
