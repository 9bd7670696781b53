//! Checks files and prints what was found and how long it took: `stats [--quiet] FILE...`.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::time::Instant;

use ptx_analysis::{Database, ide};

fn main() {
    let mut paths: Vec<String> = std::env::args().skip(1).collect();
    let quiet = paths.first().is_some_and(|arg| arg == "--quiet");
    if quiet {
        paths.remove(0);
    }
    let (mut bytes, mut total) = (0, 0.0);
    for path in paths {
        let Ok(text) = std::fs::read(&path) else { continue };
        let text = String::from_utf8_lossy(&text).into_owned();
        let db = Database::default();
        bytes += text.len();
        let start = Instant::now();
        let file = db.add_frozen_file(text);
        let found = ide::diagnostics(&db, file);
        total += start.elapsed().as_secs_f64();
        let lines = ide::line_index(&db, file);
        for diagnostic in found.iter().filter(|d| !quiet || d.severity == ide::Severity::Error) {
            let line = lines.line_col(diagnostic.range.start()).line + 1;
            println!("{path}:{line}: {diagnostic}");
        }
    }
    println!("{bytes} bytes, {total:.3} s, {:.1} MB/s", bytes as f64 / total / 1e6);
}
