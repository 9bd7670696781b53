//! A function's machine code as text, each line tied to its statement.

use std::fmt::Write as _;
use std::sync::Arc;

use ptx_backend::CompiledFunction;
use ptx_backend::input::SrcId;
use ptx_isa::Sm;
use text_size::{TextRange, TextSize};

use crate::compile::{compile_function, functions};
use crate::db::{Database, Db, SourceFile};
use crate::ide::SassView;
use crate::ide::resources::not_compiled;
use crate::items::Item;
use crate::locate::spot;
use crate::lower::lower;
use crate::module::architecture;

/// The machine code of a function by name, or why it has none.
pub fn sass_view(db: &Database, file: SourceFile, name: &str) -> Option<SassView> {
    let item = functions(db, file).find(|item| item.name(db) == name)?;
    view(db, file, item)
}

/// The machine code of the function around an offset, or why it has none.
pub fn sass_view_at(db: &Database, file: SourceFile, offset: TextSize) -> Option<SassView> {
    view(db, file, spot(db, file, offset)?.item)
}

fn view(db: &dyn Db, file: SourceFile, item: Item<'_>) -> Option<SassView> {
    let compiled = compile_function(db, item).as_deref().and_then(|compiled| compiled.as_ref().ok());
    let Some((compiled, sm)) = compiled.zip(architecture(db, file)) else {
        return lower(db, item).has_body.then(|| reason(db, file, item));
    };
    let (map, offset, text) = (&lower(db, item).map, item.offset(db), item.text(db));
    let mut out = String::new();
    let mut lines: Vec<Option<TextRange>> = Vec::new();
    let _ = writeln!(out, "// {} for {sm}: {} registers", compiled.name, compiled.resources.registers);
    let _ = writeln!(
        out,
        "// B: scoreboards waited on; R, W: scoreboards set; Y: yield; S: stall cycles; live: live registers"
    );
    lines.extend([None, None]);
    let mut previous = None;
    for index in 0..compiled.code.len() {
        let src = compiled.lines.get(index).copied().flatten();
        let range = src.and_then(|src| map.statement(src));
        if src != previous
            && let Some(range) = range
        {
            let statement = text[range].split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(out, "// {}", shortened(&statement));
            lines.push(Some(range + offset));
        }
        previous = src;
        let _ = writeln!(out, "{}", line(compiled, sm, index));
        lines.push(range.map(|range| range + offset));
    }
    Some(SassView { function: compiled.name.clone(), text: Arc::from(out), lines: lines.into() })
}

/// Why there is no machine code, and the statement that causes it.
fn reason(db: &dyn Db, file: SourceFile, item: Item<'_>) -> SassView {
    let (why, place) = not_compiled(db, file, item);
    let mut text = format!("// {}: {why}\n", item.name(db));
    let mut lines = vec![None];
    if let Some(place) = place {
        let statement = file.text(db)[place].split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "// {}", shortened(&statement));
        lines = vec![Some(place); 2];
    }
    SassView { function: item.name(db).to_string(), text: Arc::from(text), lines: lines.into() }
}

/// Longest statement shown whole.
const WIDTH: usize = 160;

fn shortened(statement: &str) -> String {
    if statement.chars().count() <= WIDTH {
        return statement.to_owned();
    }
    let mut short: String = statement.chars().take(WIDTH).collect();
    short.push('…');
    short
}

/// One instruction: offset, control fields, live registers, text.
fn line(compiled: &CompiledFunction, sm: Sm, index: usize) -> String {
    let word = compiled.code[index];
    let address = index as u64 * sass::INST_BYTES;
    let live = compiled.live_registers.get(index).copied().unwrap_or(0);
    let table = sass::Sm(sm.number as u8);
    let Some(instruction) = sass::decode(table, word) else {
        return format!("/*{address:04x}*/ .inst {word:#034x}");
    };
    let text = sass::print(table, &instruction, address);
    format!("/*{address:04x}*/ {} live {live:3}  {text} ;", instruction.control)
}

/// The machine code of one statement, and the most registers live in it. `None` when the function is not compiled.
pub(super) fn statement_sass(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    src: SrcId,
) -> Option<(Vec<String>, u16)> {
    let compiled = compile_function(db, item).as_deref()?.as_ref().ok()?;
    let sm = architecture(db, file)?;
    let own =
        (0..compiled.code.len()).filter(|&index| compiled.lines.get(index).copied().flatten() == Some(src));
    let mut lines = Vec::new();
    let mut live = 0;
    for index in own {
        live = live.max(compiled.live_registers.get(index).copied().unwrap_or(0));
        lines.push(line(compiled, sm, index));
    }
    Some((lines, live))
}
