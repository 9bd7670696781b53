//! SARIF 2.1.0: one document for the whole run, for code scanning services and editors.

use line_index::LineIndex;
use ptx_analysis::diagnostic::Lint;
use ptx_analysis::ide::{Diagnostic, Severity};
use serde_json::{Value, json};
use text_size::TextRange;

use super::json::span;

/// The result of a finding.
pub fn result(file: &str, index: &LineIndex, d: &Diagnostic) -> Value {
    let reported = d.reported.map_or(d.range, TextRange::empty);
    let mut text = d.message.clone();
    for note in &d.notes {
        text.push('\n');
        text.push_str(note);
    }
    let mut result = json!({
        "ruleId": d.code(),
        "level": level(d.severity),
        "message": { "text": text },
        "locations": [location(file, index, reported)],
    });
    if let Some(rule) = ptx_analysis::lints().iter().position(|lint| lint.code == d.code()) {
        result["ruleIndex"] = rule.into();
    }
    let mut related: Vec<Value> = d
        .related
        .iter()
        .map(|related| {
            let mut place = location(file, index, related.range);
            place["message"] = json!({ "text": related.message });
            place
        })
        .collect();
    if d.reported.is_some() {
        let mut cause = location(file, index, d.range);
        cause["message"] = json!({ "text": "the cause" });
        related.insert(0, cause);
    }
    if !related.is_empty() {
        result["relatedLocations"] = related.into();
    }
    if !d.fixes.is_empty() {
        let fixes = d.fixes.iter().map(|fix| {
            let replacements: Vec<Value> = fix
                .edits
                .iter()
                .map(|edit| {
                    json!({ "deletedRegion": region(index, edit.range),
                            "insertedContent": { "text": edit.text } })
                })
                .collect();
            json!({
                "description": { "text": fix.title },
                "artifactChanges": [{ "artifactLocation": artifact(file), "replacements": replacements }],
            })
        });
        result["fixes"] = fixes.collect();
    }
    result
}

/// The document around the results.
pub fn document(results: Vec<Value>) -> Value {
    let rules: Vec<Value> = ptx_analysis::lints().iter().map(|lint| rule(lint)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "ptx-check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(lint: &Lint) -> Value {
    json!({
        "id": lint.code,
        "name": lint.name,
        "shortDescription": { "text": lint.summary.trim() },
        "fullDescription": { "text": lint.rule() },
        "help": { "text": lint.page, "markdown": lint.page },
        "defaultConfiguration": {
            "enabled": lint.default != Severity::Allow,
            "level": level(lint.default),
        },
    })
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Information => "note",
        Severity::Allow => "none",
    }
}

fn location(file: &str, index: &LineIndex, range: TextRange) -> Value {
    json!({ "physicalLocation": { "artifactLocation": artifact(file), "region": region(index, range) } })
}

/// The SARIF region of a range. Columns are byte columns, which equal character columns because PTX is ASCII.
fn region(index: &LineIndex, range: TextRange) -> Value {
    let [line, column, end_line, end_column] = span(index, range);
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// A file name as a URI reference. Relative paths stay relative to the working directory.
fn artifact(file: &str) -> Value {
    let mut uri = String::with_capacity(file.len());
    for byte in file.replace('\\', "/").bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    if uri.starts_with('/') {
        uri.insert_str(0, "file://");
    }
    json!({ "uri": uri })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptx_analysis::Database;
    use ptx_analysis::ide;

    #[test]
    fn a_result_has_its_rule_its_places_and_its_fixes() {
        let text = ".version 7.0\n.target sm_90\n";
        let db = Database::default();
        let file = db.add_file(text);
        let found = ide::diagnostics(&db, file);
        let result = result("a b.ptx", ide::line_index(&db, file), &found[0]);
        let document = document(vec![result]);
        let run = &document["runs"][0];
        let result = &run["results"][0];
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(rule["help"]["markdown"].as_str().unwrap().starts_with("# E0403"));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b.ptx");
        assert_eq!(place["region"]["startLine"], 2);
        let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
        assert_eq!(change["insertedContent"]["text"], "7.8");
        assert_eq!(change["deletedRegion"]["startColumn"], 10);
        assert_eq!(result["relatedLocations"][0]["physicalLocation"]["region"]["startLine"], 1);
    }
}
