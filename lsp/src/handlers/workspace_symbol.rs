//! `workspace/symbol`: functions and variables of the open documents and of the other files of the folder.

use crate::handlers::document_symbol::kind;
use crate::owner::Snapshot;
use ptx_analysis::ide;
use tower_lsp::lsp_types::{Location, SymbolInformation};

/// The symbols of one document whose names contain the letters of a query in the same order.
pub fn handle(s: &Snapshot, query: &str) -> Vec<SymbolInformation> {
    let lines = s.lines();
    let is_wanted =
        |symbol: &ide::DocumentSymbol| matches(&symbol.name, query) || matches(&symbol.detail, query);
    let symbols = ide::document_symbols(&s.db, s.file).into_iter().filter(is_wanted);
    let convert = |symbol: ide::DocumentSymbol| {
        #[expect(deprecated, reason = "the protocol's struct still has the field")]
        SymbolInformation {
            name: symbol.name,
            kind: kind(symbol.kind),
            tags: None,
            deprecated: None,
            location: Location::new(s.uri.clone(), lines.range(symbol.focus)),
            container_name: None,
        }
    };
    symbols.map(convert).collect()
}

/// Whether a name contains the letters of a query in the same order.
pub fn matches(name: &str, query: &str) -> bool {
    let mut letters = name.chars().map(|c| c.to_ascii_lowercase());
    query.chars().all(|wanted| letters.any(|letter| letter == wanted.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn letters_in_order() {
        assert!(matches("_Z5saxpyif", "saxpy") && matches("saxpy", "SPY") && matches("x", ""));
        assert!(!matches("saxpy", "yx"));
    }
}
