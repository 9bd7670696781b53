//! Measures the quality of fixes. For each code, prints the number of fixes offered in some files, of those that
//! resolve their finding, and of those that cause no new error.
//!
//! `cargo run --release -p ptx-analysis --example fixes -- FILE...`, or `@LIST` for a file with one path per line. With
//! `FIXES_SHOW` in the environment, prints the fixes that fail.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;

use ptx_analysis::Database;
use ptx_analysis::ide::{self, Applicability};

/// The numbers of fixes of a code: offered, resolving, harmless.
#[derive(Default)]
struct Count([usize; 3]);

fn main() {
    let mut counts: BTreeMap<(&str, &str), Count> = BTreeMap::new();
    let (mut files, mut fixable, mut all_fixed) = (0, 0, [0; 3]);
    let arguments = std::env::args().skip(1).flat_map(|argument| match argument.strip_prefix('@') {
        Some(list) => std::fs::read_to_string(list).unwrap_or_default().lines().map(str::to_owned).collect(),
        None => vec![argument],
    });
    for path in arguments {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        files += 1;
        let db = Database::default();
        let found = ide::diagnostics(&db, db.add_frozen_file(text.as_str()));
        for diagnostic in &found {
            for fix in &diagnostic.fixes {
                let Some(fixed) = ide::apply(&text, &fix.edits) else {
                    println!("{path}: `{}` has edits that touch", fix.title);
                    continue;
                };
                let after = ide::diagnostics(&db, db.add_frozen_file(fixed));
                let same = |all: &[ide::Diagnostic]| {
                    all.iter()
                        .filter(|d| d.lint == diagnostic.lint && d.message == diagnostic.message)
                        .count()
                };
                let count =
                    &mut counts.entry((diagnostic.lint.code, fix.applicability.text())).or_default().0;
                count[0] += 1;
                count[1] += usize::from(same(&after) < same(&found));
                let new = ide::new_errors(&found, &after);
                count[2] += usize::from(new == 0);
                if (new > 0 || same(&after) >= same(&found)) && std::env::var_os("FIXES_SHOW").is_some() {
                    println!("{path}: {diagnostic}: `{}` is not enough", fix.title);
                }
            }
        }
        if found.iter().any(|d| d.fixes.iter().any(|f| f.applicability == Applicability::MachineApplicable)) {
            fixable += 1;
            let fixed = ide::fix_all(&db, &text);
            let after = ide::diagnostics(&db, db.add_frozen_file(fixed.text.as_str()));
            all_fixed[0] += usize::from(!fixed.made.is_empty());
            all_fixed[1] += usize::from(ide::new_errors(&found, &after) == 0);
            all_fixed[2] += usize::from(ide::fix_all(&db, &fixed.text).text == fixed.text);
        }
    }
    for ((code, applicability), Count([offered, resolving, harmless])) in counts {
        println!(
            "{code} {applicability:18} {offered:6} offered {resolving:6} resolve {harmless:6} bring no error"
        );
    }
    let [changed, harmless, stable] = all_fixed;
    println!(
        "{files} files, {fixable} with sure fixes: {changed} changed, {harmless} without new errors, {stable} stable"
    );
}
