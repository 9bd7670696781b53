//! Diagnostics as JSON, one object per line.

use line_index::LineIndex;
use ptx_analysis::ide::{Diagnostic, FunctionResources};
use serde_json::{Value, json};
use text_size::{TextRange, TextSize};

/// Line and column, both from 1, columns in bytes.
fn place(index: &LineIndex, offset: TextSize) -> (u32, u32) {
    let line_col = index.line_col(offset.min(index.len()));
    (line_col.line + 1, line_col.col + 1)
}

pub(super) fn span(index: &LineIndex, range: TextRange) -> [u32; 4] {
    let (line, column) = place(index, range.start());
    let (end_line, end_column) = place(index, range.end());
    [line, column, end_line, end_column]
}

/// The object of a diagnostic: `file, line, column, end_line, end_column, severity, code, message`, and `notes`,
/// `related` and `fixes` if the diagnostic has any. The position is the one that ptxas reports. If the cause lies
/// elsewhere, its position is the first entry of `related`.
pub fn object(file: &str, index: &LineIndex, d: &Diagnostic) -> Value {
    let reported = d.reported.map_or(d.range, TextRange::empty);
    let [line, column, end_line, end_column] = span(index, reported);
    let mut object = json!({
        "file": file, "line": line, "column": column, "end_line": end_line, "end_column": end_column,
        "severity": d.severity.text(), "code": d.code(), "message": d.message,
    });
    if !d.notes.is_empty() {
        object["notes"] = json!(d.notes);
    }
    let related = d.related.iter().map(|r| (r.range, r.message.as_str()));
    let cause = d.reported.map(|_| (d.range, "the cause"));
    let related: Vec<Value> = cause
        .into_iter()
        .chain(related)
        .map(|(range, message)| {
            let [line, column, end_line, end_column] = span(index, range);
            json!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column,
                    "message": message })
        })
        .collect();
    if !related.is_empty() {
        object["related"] = related.into();
    }
    if !d.fixes.is_empty() {
        let fixes = d.fixes.iter().map(|fix| {
            let edits = fix.edits.iter().map(|e| {
                let [line, column, end_line, end_column] = span(index, e.range);
                json!({ "line": line, "column": column, "end_line": end_line, "end_column": end_column,
                        "text": e.text })
            });
            json!({ "title": fix.title, "applicability": fix.applicability.text(), "edits": edits.collect::<Value>() })
        });
        object["fixes"] = fixes.collect();
    }
    object
}

/// The object of a function: its resources and occupancy, or the reason why there are none.
pub fn resources(function: &FunctionResources) -> Value {
    match &function.resources {
        Ok(r) => json!({
            "function": function.name, "entry": function.entry, "registers": r.registers,
            "stack_bytes": r.stack_bytes, "spill_store_bytes": r.spill_store_bytes,
            "spill_load_bytes": r.spill_load_bytes, "shared_bytes": r.shared_bytes, "barriers": r.barriers,
            "occupancy": function.occupancy.map(|o| json!({
                "threads_per_block": function.threads, "blocks": o.blocks, "warps": o.warps,
                "percent": o.percent(), "limiter": o.limiter.to_string(),
            })),
        }),
        Err(_) => json!({
            "function": function.name, "entry": function.entry, "not_compiled": function.summary(),
        }),
    }
}
