//! `textDocument/prepareCallHierarchy`, and the incoming and outgoing calls of its items. Items are found by name.

use crate::owner::Snapshot;
use ptx_analysis::ide::{self, CallNode, Calls};
use tower_lsp::lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, Position, Range, SymbolKind,
};

pub fn prepare(s: &Snapshot, position: Position) -> Option<Vec<CallHierarchyItem>> {
    let node = ide::call_node(&s.db, s.file, s.lines().offset(position))?;
    Some(vec![item(s, &node)])
}

pub fn incoming(s: &Snapshot, name: &str) -> Option<Vec<CallHierarchyIncomingCall>> {
    let convert = |calls: Calls| CallHierarchyIncomingCall {
        from: item(s, &calls.function),
        from_ranges: ranges(s, &calls),
    };
    Some(ide::callers(&s.db, s.file, name).into_iter().map(convert).collect())
}

pub fn outgoing(s: &Snapshot, name: &str) -> Option<Vec<CallHierarchyOutgoingCall>> {
    let convert = |calls: Calls| CallHierarchyOutgoingCall {
        to: item(s, &calls.function),
        from_ranges: ranges(s, &calls),
    };
    Some(ide::callees(&s.db, s.file, name).into_iter().map(convert).collect())
}

fn ranges(s: &Snapshot, calls: &Calls) -> Vec<Range> {
    calls.places.iter().map(|&place| s.lines().range(place)).collect()
}

fn item(s: &Snapshot, node: &CallNode) -> CallHierarchyItem {
    CallHierarchyItem {
        name: node.name.clone(),
        kind: SymbolKind::FUNCTION,
        tags: None,
        detail: node.is_entry.then(|| ".entry".to_owned()),
        uri: s.uri.clone(),
        range: s.lines().range(node.full),
        selection_range: s.lines().range(node.focus),
        data: None,
    }
}
