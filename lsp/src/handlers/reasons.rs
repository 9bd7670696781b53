//! `ptx/reasons`: why a function needs its registers and its time.
//!
//! Parameters: `{ textDocument, function | position }`. Result: `{ function, markdown, peak, spilled, loops }`. `peak` is
//! the point with most live registers, `{ range, registers, live }`, and `live` lists the statements that compute them,
//! `{ range, registers }`. `spilled` lists statements, `{ range, registers, at, needed, available }`: before the
//! statement `at`, so many registers are needed and available. `loops` lists the loops of the text,
//! `{ label, markdown, code }`: what limits each, and why it was not unrolled. `code` is the loop of the machine code,
//! `{ instructions, cycles, waits, unit, unitCycles }`, or null. The answer is null outside of a function and for a function
//! that is not compiled.

use crate::handlers::sass_view::Place;
use crate::owner::Snapshot;
use ptx_analysis::ide::{self, LoopCode, LoopPlace, PeakPlace, SpilledPlace};
use serde_json::{Value, json};
use text_size::TextRange;

pub fn handle(s: &Snapshot, place: &Place) -> Option<Value> {
    let found = ide::reasons(&s.db, s.file, &place.name(s)?)?;
    let at = |range: TextRange| json!(s.lines().range(range));
    let peak = found.peak.map(|PeakPlace { at: place, registers, live }| {
        let live: Vec<Value> =
            live.iter().map(|(of, registers)| json!({ "range": at(*of), "registers": registers })).collect();
        json!({ "range": at(place), "registers": registers, "live": live })
    });
    let spilled = |one: &SpilledPlace| {
        json!({
            "range": at(one.of),
            "registers": one.registers,
            "at": at(one.at),
            "needed": one.needed,
            "available": one.available,
        })
    };
    let code = |code: &LoopCode| {
        let waits: Vec<Value> =
            code.waits.iter().map(|(of, cycles)| json!({ "range": at(*of), "cycles": cycles })).collect();
        json!({
            "instructions": code.instructions,
            "cycles": code.cycles,
            "waits": waits,
            "unit": code.unit,
            "unitCycles": code.unit_cycles,
        })
    };
    let one_loop = |LoopPlace { label, markdown, code: of }: &LoopPlace| json!({ "label": at(*label), "markdown": markdown, "code": of.as_ref().map(code) });
    Some(json!({
        "function": found.function,
        "markdown": found.markdown,
        "peak": peak,
        "spilled": found.spilled.iter().map(spilled).collect::<Vec<_>>(),
        "loops": found.loops.iter().map(one_loop).collect::<Vec<_>>(),
    }))
}
