//! `textDocument/documentSymbol`: the outline.

use crate::document::Document;
use crate::owner::Snapshot;
use crate::written::{self, Written};
use ptx_analysis::ide;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use text_size::TextSize;
use tower_lsp::lsp_types::SymbolKind;

pub fn handle(s: &Snapshot) -> Option<Written> {
    let placed = |(offset, symbol)| Placed { lines: s.lines(), offset, symbol };
    written::write_all(ide::outline(&s.db, s.file).map(placed))
}

/// A symbol, serialized directly in the protocol's form: a large file has tens of thousands of symbols.
struct Placed<'a> {
    lines: &'a Document,
    /// The start of the item that the symbol belongs to.
    offset: TextSize,
    symbol: &'a ide::DocumentSymbol,
}

impl Serialize for Placed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { lines, offset, symbol } = *self;
        let mut fields = serializer.serialize_struct("DocumentSymbol", 6)?;
        fields.serialize_field("name", &symbol.name)?;
        if !symbol.detail.is_empty() {
            fields.serialize_field("detail", &symbol.detail)?;
        }
        fields.serialize_field("kind", &kind(symbol.kind))?;
        let range = lines.range(symbol.full + offset);
        fields.serialize_field("range", &range)?;
        let focus = if symbol.focus == symbol.full { range } else { lines.range(symbol.focus + offset) };
        fields.serialize_field("selectionRange", &focus)?;
        if !symbol.children.is_empty() {
            let placed = |symbol| Placed { lines, offset, symbol };
            fields.serialize_field("children", &symbol.children.iter().map(placed).collect::<Vec<_>>())?;
        }
        fields.end()
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
