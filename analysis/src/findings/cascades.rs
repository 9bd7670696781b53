//! Findings that only repeat another one of their statement in other words.
//!
//! Checks do not know of each other, so that each stands alone and a statement may be judged by any of them. Where one
//! mistake makes several of them speak, the one that comes nearest to it stays.

use text_size::TextRange;

use crate::db::{Db, SourceFile};
use crate::diagnostic::{Diagnostic, Severity};
use crate::items::item_around;
use crate::lower::source_map;

/// Findings of a statement that are compared with each other.
const COMPARED: usize = 16;

/// Leaves out what follows from other findings, which are in text order.
pub(super) fn prune(db: &dyn Db, file: SourceFile, findings: &mut Vec<Diagnostic>) {
    if findings.len() < 2 {
        return;
    }
    let mut kept: Vec<bool> = vec![true; findings.len()];
    let mut first = 0;
    while first < findings.len() {
        let statement = statement(db, file, findings[first].range);
        let is_inside = |d: &Diagnostic| statement.contains_range(d.range);
        let count = findings[first..].iter().take(COMPARED).take_while(|d| is_inside(d)).count().max(1);
        let group = &findings[first..first + count];
        for (index, one) in group.iter().enumerate() {
            let follows = |other: &Diagnostic| other.severity == Severity::Error && follows(one, other);
            kept[first + index] = !group.iter().enumerate().any(|(at, other)| {
                // Of two equals the first stays.
                at != index && follows(other) && (at < index || !self::follows(other, one))
            });
        }
        first += count;
    }
    let mut kept = kept.into_iter();
    findings.retain(|_| kept.next().unwrap_or(true));
}

/// The statement around a finding; the finding itself where there is none.
fn statement(db: &dyn Db, file: SourceFile, range: TextRange) -> TextRange {
    let around = || {
        let item = item_around(db, file, range)?;
        let offset = item.offset(db);
        let map = source_map(db, item);
        let statement = map.statement_at((range - offset).start()).and_then(|src| map.statement(src))?;
        Some(statement + offset)
    };
    around().filter(|statement| statement.contains_range(range)).unwrap_or(range)
}

/// Names that nothing declares.
const NAMES: &[&str] = &["E0202", "E0203", "E0204"];
/// What an operand is, and what it is in another respect.
const SHAPE: &[&str] = &["E0302", "E0307"];
const NATURE: &[&str] = &["E0303", "E0304", "E0305", "E0306", "E0308"];

/// Whether a finding says nothing that another one of its statement does not say.
fn follows(one: &Diagnostic, other: &Diagnostic) -> bool {
    let (code, cause) = (one.lint.code, other.lint.code);
    let touches = one.range.intersect(other.range).is_some_and(|both| !both.is_empty());
    match cause {
        // What is no text cannot be understood either.
        "E0001" | "E0003" | "E0004" | "E0006" => {
            one.range == other.range && code != cause || NAMES.contains(&code) && code != "E0202"
        }
        // What is written behind a word of another language is of that language too.
        "E0210" => code == "E0004" || NAMES.contains(&code),
        // A call of something unknown has operands of any kind.
        "E0204" => code == "E0302" && !touches,
        "E0302" | "E0307" => other.range.contains_range(one.range) && NATURE.contains(&code),
        "E0308" => code == "E0308" && one.range == other.range,
        "E0301" => SHAPE.contains(&code) || NATURE.contains(&code),
        _ => false,
    }
}
