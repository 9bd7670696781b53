//! `ptx/compareTargets`: what a function takes on each target, as a table.
//!
//! Parameters: `{ textDocument, function | position }`. Result: `{ function, markdown, rows }`; each row has `target` and
//! either `registers`, `instructions`, `spilled`, `stack`, `shared` and `occupancy`, or the `reason` why there is no code.
//! Null where there is no function.

use std::fmt::Write as _;

use crate::handlers::sass_view::Place;
use crate::owner::Snapshot;
use crate::variant::{Change, variant};
use ptx_analysis::ide::{self, FunctionResources, SassStyle};
use ptx_analysis::module::effective_target;
use ptx_analysis::occupancy;
use ptx_isa::Sm;
use serde_json::{Value, json};

pub fn handle(s: &Snapshot, place: &Place) -> Option<Value> {
    let name = place.name(s)?;
    let own = effective_target(&s.db, s.file);
    let rows: Vec<Row> = targets(own).map(|target| row(s, &name, target)).collect();
    let objects: Vec<Value> = rows.iter().map(Row::object).collect();
    Some(json!({ "function": name, "markdown": markdown(&name, own, &rows), "rows": objects }))
}

/// The targets that code is made for: those without suffix, and those with the suffix of the file's own.
fn targets(own: Option<Sm>) -> impl Iterator<Item = Sm> {
    let feature = own.map_or(Sm::new(0).feature, |own| own.feature);
    let mut all: Vec<Sm> = Sm::KNOWN
        .into_iter()
        .filter(|target| target.feature == Sm::new(0).feature || target.feature == feature)
        // Not twice under its old name.
        .filter(|target| target.current() == *target)
        .filter(|&target| occupancy::limits(target).is_some())
        .collect();
    all.sort_by_key(|target| (target.number, target.to_string()));
    all.into_iter()
}

struct Row {
    target: Sm,
    found: Option<FunctionResources>,
    instructions: Option<u32>,
}

fn row(s: &Snapshot, name: &str, target: Sm) -> Row {
    let (db, file) = variant(s, Change::Target(target));
    let found = ide::resources_of(&db, file, name);
    let view = ide::sass_view(&db, file, name, SassStyle::BARE);
    Row {
        target,
        found,
        instructions: view.and_then(|view| view.figures).map(|figures| figures.instructions),
    }
}

impl Row {
    fn reason(&self) -> Option<&str> {
        match &self.found {
            Some(found) => found.resources.as_ref().err().map(String::as_str),
            None => Some("not compiled"),
        }
    }

    fn object(&self) -> Value {
        let target = self.target.to_string();
        let Some(found) = &self.found else { return json!({ "target": target, "reason": self.reason() }) };
        match &found.resources {
            Err(reason) => json!({ "target": target, "reason": reason }),
            Ok(resources) => json!({
                "target": target,
                "registers": resources.registers,
                "instructions": self.instructions,
                "spilled": resources.spill_store_bytes + resources.spill_load_bytes,
                "stack": resources.stack_bytes,
                "shared": resources.shared_bytes,
                "occupancy": found.occupancy.map(|occupancy| occupancy.percent()),
            }),
        }
    }
}

fn markdown(name: &str, own: Option<Sm>, rows: &[Row]) -> String {
    let mut out = format!("# `{name}` on all targets\n\n");
    out.push_str(
        "| target | registers | instructions | bytes spilled | bytes of stack | bytes shared | occupancy | limited by |\n\
         |---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows {
        let target = match own == Some(row.target) {
            true => format!("**{}**", row.target),
            false => row.target.to_string(),
        };
        let resources = row.found.as_ref().and_then(|found| Some((found, found.resources.as_ref().ok()?)));
        let Some((found, resources)) = resources else {
            let reason = row.reason().unwrap_or_default();
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, targets)) => targets.push(target),
                None => reasons.push((reason, vec![target])),
            }
            continue;
        };
        let (percent, limiter) = match found.occupancy {
            Some(occupancy) => (format!("{}%", occupancy.percent()), occupancy.limiter.to_string()),
            None => Default::default(),
        };
        let _ = writeln!(
            out,
            "| {target} | {} | {} | {} | {} | {} | {percent} | {limiter} |",
            resources.registers,
            row.instructions.unwrap_or_default(),
            resources.spill_store_bytes + resources.spill_load_bytes,
            resources.stack_bytes,
            resources.shared_bytes,
        );
    }
    let threads = rows.iter().find_map(|row| row.found.as_ref().filter(|found| found.occupancy.is_some()));
    if let Some(found) = threads {
        let _ = writeln!(out, "\nOccupancy with {} threads per block.", found.threads);
    }
    for (reason, targets) in reasons {
        let _ = writeln!(out, "\n{}: {reason}", targets.join(", "));
    }
    out
}
