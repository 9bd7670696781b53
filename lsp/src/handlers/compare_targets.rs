//! `ptx/compareTargets`: the resources of a function on each target, as a table.
//!
//! Parameters: `{ textDocument, function | position }`. Result: `{ function, markdown, rows }`; each row has `target` and
//! either `registers`, `instructions`, `spilled`, `stack`, `shared` and `occupancy`, or the `reason` why there is no code.
//! The answer is null outside of a function.

use std::fmt::Write as _;

use crate::handlers::sass_view::Place;
use crate::owner::Snapshot;
use crate::variant::{Change, variant};
use ptx_analysis::ide::{self, FunctionResources, SassStyle};
use ptx_analysis::module::effective_target;
use ptx_analysis::occupancy::Occupancy;
use ptx_isa::Sm;
use serde_json::{Value, json};

pub fn handle(s: &Snapshot, place: &Place) -> Option<Value> {
    let name = place.name(s)?;
    let own = effective_target(&s.db, s.file);
    let rows: Vec<Row> = ide::targets(own).into_iter().map(|target| row(s, &name, target)).collect();
    let objects: Vec<Value> = rows.iter().map(Row::object).collect();
    Some(json!({ "function": name, "markdown": markdown(&name, own, &rows), "rows": objects }))
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
        "| target | registers | instructions | spilled | stack | shared | occupancy |\n\
         |---|--:|--:|--:|--:|--:|---|\n",
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
        let limited = |occupancy: Occupancy| format!("{}% ({})", occupancy.percent(), occupancy.limiter);
        let occupancy = found.occupancy.map(limited).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {target} | {} | {} | {} | {} | {} | {occupancy} |",
            resources.registers,
            row.instructions.unwrap_or_default(),
            resources.spill_store_bytes + resources.spill_load_bytes,
            resources.stack_bytes,
            resources.shared_bytes,
        );
    }
    out.push_str("\nSpilled, stack and shared memory are in bytes.");
    let threads = rows.iter().find_map(|row| row.found.as_ref().filter(|found| found.occupancy.is_some()));
    if let Some(found) = threads {
        let _ = write!(
            out,
            " The occupancy, and what limits it, are those of {} threads per CTA.",
            found.threads
        );
    }
    out.push('\n');
    for (reason, targets) in reasons {
        let _ = writeln!(out, "\n{}: {reason}", targets.join(", "));
    }
    out
}
