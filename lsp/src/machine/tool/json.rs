//! Prints one JSON object per line and instruction.

use super::{Out, addressed};
use gpu_files::cubin::Function;
use sass::{Control, Field, INST_BYTES, Inst, RegUse, Sm};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

pub(super) fn function(out: &mut Out<impl Write>, sm: Sm, function: &Function<'_>) -> io::Result<()> {
    let mut name = String::new();
    push_string(&mut name, function.name);
    let mut places = BTreeMap::new();
    for place in &function.relocations {
        places.entry(place.offset / INST_BYTES).or_insert(place);
    }
    for (address, word) in addressed(function.code) {
        let text = &mut out.text;
        push(text, format_args!("{{\"function\":{name},\"address\":{address},\"word\":\"{word:#034x}\""));
        match sass::decode_tolerant(sm, word) {
            Some(inst) => instruction(text, sm, &inst, address),
            None => text.push_str(",\"text\":null"),
        }
        if let Some(place) = places.get(&(address / INST_BYTES)) {
            push(text, format_args!(",\"relocation\":{{\"kind\":{},\"symbol\":", place.kind));
            push_string(text, place.symbol);
            push(text, format_args!(",\"addend\":{}}}", place.addend));
        }
        text.push_str("}\n");
        out.pause()?;
    }
    Ok(())
}

fn instruction(out: &mut String, sm: Sm, inst: &Inst, address: u64) {
    let form = inst.form();
    out.push_str(",\"text\":");
    push_string(out, &sass::print(sm, inst, address));
    out.push_str(",\"form\":");
    push_string(out, form.name);
    out.push_str(",\"shape\":");
    push_string(out, form.shape);
    push(out, format_args!(",\"class\":\"{:?}\"", inst.class(sm)));
    control(out, &inst.control);
    // Enumerated fields are printed as text and all others as numbers. Signed fields are printed with their sign.
    out.push_str(",\"fields\":{");
    let mut separator = "";
    for spec in &form.fields {
        push(out, format_args!("{separator}\"{:?}\":", spec.field));
        separator = ",";
        match inst.text(spec.field) {
            Some(text) => push_string(out, text),
            None => push(out, format_args!("{}", inst.get(spec.field).unwrap_or_default() as i64)),
        }
    }
    out.push_str("},\"operands\":[");
    let mut separator = "";
    for used in inst.writes(sm).chain(inst.reads(sm)) {
        let RegUse { file, index, count, role } = used;
        push(
            out,
            format_args!(
                "{separator}{{\"role\":\"{role:?}\",\"file\":\"{file:?}\",\"index\":{index},\"count\":{count}}}"
            ),
        );
        separator = ",";
    }
    out.push(']');
    if let Some(target) = inst.target(address) {
        push(out, format_args!(",\"target\":{target}"));
    }
    if inst.get(Field::Guard) == Some(7) && inst.get(Field::GuardNot) == Some(0) {
        out.push_str(",\"guarded\":false");
    } else {
        out.push_str(",\"guarded\":true");
    }
    if inst.stray() != 0 {
        push(out, format_args!(",\"stray\":\"{:#x}\"", inst.stray()));
    }
}

fn control(out: &mut String, control: &Control) {
    let scoreboard = |sb: Option<u8>| sb.map_or("null".to_owned(), |sb| sb.to_string());
    push(
        out,
        format_args!(
            ",\"control\":{{\"stall\":{},\"yield\":{},\"write\":{},\"read\":{},\"wait\":{},\"reuse\":{}}}",
            control.stall,
            control.yield_,
            scoreboard(control.write_sb),
            scoreboard(control.read_sb),
            control.wait,
            control.reuse
        ),
    );
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => push(out, format_args!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
