//! Checks files and prints the findings and the time.
//!
//! `stats [--quiet | --json | --ranges | --edits] FILE...` prints only errors, one JSON object per error, all findings
//! with their columns, or the time from an edit of each file to all its diagnostics.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::time::{Duration, Instant};

use ptx_analysis::{Database, ide};

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let mode = paths.first().filter(|arg| arg.starts_with("--")).cloned().unwrap_or_default();
    if !mode.is_empty() {
        paths.remove(0);
    }
    let (mut bytes, mut total) = (0, 0.0);
    for path in paths {
        let Ok(text) = std::fs::read(&path) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        if mode == "--edits" {
            edits(&path, text);
            continue;
        }
        let db = Database::default();
        bytes += text.len();
        let start = Instant::now();
        let file = db.add_frozen_file(text);
        let found = ide::diagnostics(&db, file);
        total += start.elapsed().as_secs_f64();
        let lines = ide::line_index(&db, file);
        for diagnostic in found
            .iter()
            .filter(|d| matches!(mode.as_str(), "" | "--ranges") || d.severity == ide::Severity::Error)
        {
            let (start, end) =
                (lines.line_col(diagnostic.range.start()), lines.line_col(diagnostic.range.end()));
            let line = start.line + 1;
            if mode == "--json" {
                let (severity, code) = (diagnostic.severity.text(), diagnostic.code());
                let name = path.rsplit('/').next().unwrap_or(&path);
                let message = diagnostic.message.replace('\\', "\\\\").replace('"', "\\\"");
                let message: String = message.chars().filter(|c| !c.is_control()).collect();
                println!(
                    r#"{{"file":"{name}","line":{line},"severity":"{severity}","code":"{code}","message":"{message}"}}"#
                );
            } else {
                println!("{path}:{line}: {diagnostic}");
                if mode == "--ranges" {
                    println!("  {}..{}:{}", start.col, end.line + 1, end.col);
                }
            }
        }
    }
    if matches!(mode.as_str(), "" | "--quiet") {
        println!("{bytes} bytes, {total:.3} s, {:.1} MB/s", bytes as f64 / total / 1e6);
    }
}

/// Inserts a statement at several places of the file, one at a time.
fn edits(path: &str, text: String) {
    const EDITS: usize = 21;
    let mut db = Database::default();
    let start = Instant::now();
    let file = db.add_file(text.as_str());
    let count = ide::diagnostics(&db, file).len();
    let cold = start.elapsed();
    let mut times: Vec<Duration> = Vec::new();
    for i in 0..EDITS {
        let from = text.len() / (EDITS + 1) * (i + 1);
        let Some(at) = text[from..].find(";\n").map(|at| from + at + 2) else { continue };
        let edited = format!("{}\tmov.u32 %nothing, 1;\n{}", &text[..at], &text[at..]);
        let start = Instant::now();
        db.set_text(file, edited);
        let _ = ide::diagnostics(&db, file);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let last = times.last().copied().unwrap_or_default();
    println!(
        "{path}: {} bytes, {count} findings, cold {cold:.1?}, edit {median:.1?} median, {last:.1?} worst",
        text.len()
    );
}
