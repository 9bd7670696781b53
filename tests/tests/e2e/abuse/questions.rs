//! Requests of every kind about random places.

use super::{Document, position, somewhere};
use serde_json::{Value, json};

/// A request that has a document and a previous answer.
const OF_DOCUMENT: [&str; 8] = [
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/codeLens",
    "textDocument/diagnostic",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/full/delta",
    "textDocument/documentLink",
    "textDocument/formatting",
];

const OF_PLACE: [&str; 12] = [
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/definition",
    "textDocument/declaration",
    "textDocument/typeDefinition",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/linkedEditingRange",
    "textDocument/prepareCallHierarchy",
    "ptx/pictures",
    "ptx/reasons",
];

const OF_RANGE: [&str; 4] = [
    "textDocument/inlayHint",
    "textDocument/semanticTokens/range",
    "textDocument/rangeFormatting",
    "textDocument/codeAction",
];

const CALLS: [&str; 2] = ["callHierarchy/incomingCalls", "callHierarchy/outgoingCalls"];

/// Names of functions that a document may have or lack.
const FUNCTIONS: [&str; 5] = ["saxpy", "calls", "callee", "more", "none"];

/// Words of `ptx.explain`, the last of which have no page.
const EXPLAINED: [&str; 6] = ["E0303", "unused-register", "mma", "%tid", "E9999", ""];

/// A request about a random place in a document.
pub(super) fn question(document: &Document, random: &mut fastrand::Rng) -> (&'static str, Value) {
    let text = &document.text;
    let mut place = || position(text, somewhere(random, text));
    let (here, there) = (place(), place());
    let mut params = json!({ "textDocument": document.identifier() });
    let mut with = |name: &str, value: Value| params[name] = value;
    let method = match random.usize(..32) {
        n @ 0..8 => {
            let previous = document.tokens.as_ref().map_or("none", |(id, _)| id);
            with("previousResultId", previous.into());
            with("options", json!({ "tabSize": 4, "insertSpaces": true }));
            OF_DOCUMENT[n]
        }
        n @ 8..19 => {
            with("position", here);
            OF_PLACE[n - 8]
        }
        n @ 19..23 => {
            with("range", json!({ "start": here, "end": there }));
            with("options", json!({ "tabSize": 8, "insertSpaces": false }));
            with("context", json!({ "diagnostics": [] }));
            OF_RANGE[n - 19]
        }
        23 => {
            with("position", here);
            with("context", json!({ "includeDeclaration": random.bool() }));
            "textDocument/references"
        }
        24 => {
            with("position", here);
            with("newName", ["%other", "other", "1"][random.usize(..3)].into());
            "textDocument/rename"
        }
        25 => {
            with("position", here);
            with("ch", [";", "}", "\n"][random.usize(..3)].into());
            with("options", json!({ "tabSize": 4, "insertSpaces": true }));
            "textDocument/onTypeFormatting"
        }
        26 => {
            with("positions", json!([here, there]));
            "textDocument/selectionRange"
        }
        27 => {
            let name = FUNCTIONS[random.usize(..FUNCTIONS.len())];
            let range = json!({ "start": here, "end": here });
            let item = json!({ "name": name, "kind": 12, "uri": document.uri, "range": range, "selectionRange": range });
            return (CALLS[random.usize(..2)], json!({ "item": item }));
        }
        28 => {
            let query = ["", "c", "sxp", "é"][random.usize(..4)];
            return ("workspace/symbol", json!({ "query": query }));
        }
        29 => {
            // The client shows the page itself.
            let word = EXPLAINED[random.usize(..EXPLAINED.len())];
            return (
                "workspace/executeCommand",
                json!({ "command": "ptx.explain", "arguments": [word, true] }),
            );
        }
        _ => {
            match random.bool() {
                true => with("position", here),
                false => with("function", FUNCTIONS[random.usize(..FUNCTIONS.len())].into()),
            }
            match random.usize(..12) {
                0 => "ptx/compareTargets",
                1..4 => {
                    let other = [
                        json!({ "saved": true }),
                        json!({ "target": "sm_100" }),
                        json!({ "target": "sm_1" }),
                        json!({ "optLevel": random.u8(..5) }),
                        json!({ "maxRegisters": random.u32(..300) }),
                    ];
                    with("with", other[random.usize(..other.len())].clone());
                    "ptx/sassDifference"
                }
                4 => {
                    with("function", "saxpy".into());
                    "ptx/reference"
                }
                _ => {
                    with("controls", ["codes", "words", "hidden"][random.usize(..3)].into());
                    "ptx/sassView"
                }
            }
        }
    };
    (method, params)
}
