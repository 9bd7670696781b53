//! A function's machine code as text, with each line linked to its statement.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use ptx_backend::CompiledFunction;
use ptx_backend::input::SrcId;
use ptx_isa::Sm;
use text_size::{TextRange, TextSize};

use crate::compile::{compile_function, functions};
use crate::db::{Database, Db, SourceFile};
use crate::ide::resources::{not_compiled, of_item};
use crate::ide::{Controls, Figures, Heat, SassStyle, SassView};
use crate::items::{Item, line_index, line_number};
use crate::locate::spot;
use crate::lower::lower;
use crate::module::architecture;
use crate::readable::readable;
use crate::text::counted;

/// The machine code of a function by name, or the reason why it has none.
pub fn sass_view(db: &Database, file: SourceFile, name: &str, style: SassStyle) -> Option<SassView> {
    let item = functions(db, file).find(|item| item.name(db) == name)?;
    view(db, file, item, style)
}

/// The machine code of the function around an offset, or the reason why it has none.
pub fn sass_view_at(db: &Database, file: SourceFile, offset: TextSize, style: SassStyle) -> Option<SassView> {
    view(db, file, spot(db, file, offset)?.item, style)
}

/// The text under construction, with the data for each line.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    ranges: Vec<Option<TextRange>>,
    heat: Vec<Option<Heat>>,
}

impl Lines {
    pub(super) fn push(&mut self, line: &str, range: Option<TextRange>, heat: Option<Heat>) {
        self.text.push_str(line);
        self.text.push('\n');
        self.ranges.push(range);
        self.heat.push(heat);
    }

    pub(super) fn finish(self, function: &str, figures: Option<Figures>) -> SassView {
        SassView {
            function: function.to_owned(),
            text: Arc::from(self.text),
            lines: self.ranges.into(),
            heat: self.heat.into(),
            has_code: figures.is_some(),
            figures,
        }
    }
}

fn view(db: &dyn Db, file: SourceFile, item: Item<'_>, style: SassStyle) -> Option<SassView> {
    let compiled = compile_function(db, item).as_deref().and_then(|compiled| compiled.as_ref().ok());
    let Some((compiled, sm)) = compiled.zip(architecture(db, file)) else {
        return lower(db, item).has_body.then(|| reason(db, file, item));
    };
    let (map, offset, text) = (&lower(db, item).map, item.offset(db), item.text(db));
    let mut out = Lines::default();
    let title = format!("// {} for {sm}: {} registers", compiled.name, compiled.resources.registers);
    out.push(&title, None, None);
    if let Some(readable) = readable(&compiled.name) {
        out.push(&format!("// {readable}"), None, None);
    }
    if let Some(legend) = style.legend() {
        out.push(legend, None, None);
    }
    let lines = line_index(db, file);
    let line_of = |src| Some(lines.line_col(map.statement(src)?.start() + offset).line + 1);
    let labels = if style.addresses { BTreeMap::new() } else { labels(compiled, sm) };
    let used = ptx_backend::assemble::used(table(sm), &compiled.code);
    let end = match style.addresses {
        true => compiled.code.len(),
        // The instructions after it are padding.
        false => used,
    };
    let mut previous = None;
    for index in 0..end {
        let src = compiled.lines.get(index).copied().flatten();
        let range = src.and_then(|src| map.statement(src));
        let place = range.map(|range| range + offset);
        if src != previous
            && let Some(range) = range
        {
            let statement = text[range].split_whitespace().collect::<Vec<_>>().join(" ");
            out.push(&format!("// {}", shortened(&statement)), place, None);
        }
        previous = src;
        if let Some(label) = labels.get(&(index as u64 * sass::INST_BYTES)) {
            out.push(&format!("{label}:"), None, None);
        }
        out.push(
            &line(compiled, sm, index, style, &labels, &line_of),
            place,
            (index < used).then(|| heat(compiled, index)),
        );
    }
    Some(out.finish(&compiled.name, Some(figures(db, file, item, compiled, used))))
}

/// Why there is no machine code, and the statement that causes it.
pub(super) fn reason(db: &dyn Db, file: SourceFile, item: Item<'_>) -> SassView {
    let (why, place) = not_compiled(db, file, item);
    let mut out = Lines::default();
    out.push(&format!("// {}: {why}", item.name(db)), place, None);
    if let Some(place) = place {
        let statement = file.text(db)[place].split_whitespace().collect::<Vec<_>>().join(" ");
        out.push(&format!("// {}", shortened(&statement)), Some(place), None);
    }
    out.finish(item.name(db), None)
}

/// The names of branch targets, by address.
fn labels(compiled: &CompiledFunction, sm: Sm) -> BTreeMap<u64, String> {
    let target = |(index, &word): (usize, &u128)| {
        sass::decode(table(sm), word)?.target(index as u64 * sass::INST_BYTES)
    };
    let targets: BTreeSet<u64> = compiled.code.iter().enumerate().filter_map(target).collect();
    targets.into_iter().enumerate().map(|(i, address)| (address, format!(".L_x_{i}"))).collect()
}

fn heat(compiled: &CompiledFunction, index: usize) -> Heat {
    let control = sass::Control::from_bits(compiled.code[index]);
    Heat { live: compiled.live_registers.get(index).copied().unwrap_or(0), stall: control.stall }
}

fn figures(
    db: &dyn Db,
    file: SourceFile,
    item: Item<'_>,
    compiled: &CompiledFunction,
    used: usize,
) -> Figures {
    let resources = compiled.resources;
    Figures {
        registers: resources.registers,
        instructions: used as u32,
        spilled: resources.spill_store_bytes + resources.spill_load_bytes,
        stack: resources.stack_bytes,
        shared: resources.shared_bytes,
        occupancy: of_item(db, file, item, true)
            .and_then(|found| found.occupancy)
            .map(|found| found.percent()),
    }
}

/// Longer statements are shortened.
const WIDTH: usize = 160;

fn shortened(statement: &str) -> String {
    if statement.chars().count() <= WIDTH {
        return statement.to_owned();
    }
    let mut short: String = statement.chars().take(WIDTH).collect();
    short.push('…');
    short
}

/// The generation whose table contains the instructions of a target.
pub(super) fn table(sm: Sm) -> sass::Sm {
    sass::Sm(sm.number as u8)
}

/// The width of an instruction's text before its control fields in words.
const CODE_WIDTH: usize = 44;

/// One instruction: offset, control fields, live registers, text. `line_of` returns the line of a statement in the
/// file.
fn line(
    compiled: &CompiledFunction,
    sm: Sm,
    index: usize,
    style: SassStyle,
    labels: &BTreeMap<u64, String>,
    line_of: &dyn Fn(SrcId) -> Option<u32>,
) -> String {
    let word = compiled.code[index];
    let address = index as u64 * sass::INST_BYTES;
    let mut out = if style.addresses { format!("/*{address:04x}*/ ") } else { "    ".to_owned() };
    let Some(instruction) = sass::decode(table(sm), word) else {
        let _ = write!(out, ".inst {word:#034x}");
        return out;
    };
    if style.controls == Controls::Codes {
        let _ = write!(out, "{} ", instruction.control);
    }
    if style.live {
        let live = compiled.live_registers.get(index).copied().unwrap_or(0);
        let _ = write!(out, "live {live:3}  ");
    }
    let mut text = sass::print(table(sm), &instruction, address);
    if let Some(target) = instruction.target(address)
        && let Some(label) = labels.get(&target)
        && let Some(rest) = text.strip_suffix(&format!("{target:#x}"))
    {
        text = format!("{rest}{label}");
    }
    let _ = write!(out, "{text} ;");
    if style.controls == Controls::Words {
        let width = CODE_WIDTH.saturating_sub(text.chars().count());
        let _ = write!(
            out,
            "{:width$} // {}",
            "",
            in_words(instruction.control, |sb| awaited(compiled, sm, index, sb, line_of))
        );
    }
    out
}

/// The number of instructions that are searched for those that a wait is for.
const REACH: usize = 1000;
/// The maximum number of instructions that are named.
const NAMED: usize = 3;

/// The instructions that a wait for a scoreboard is for, in text order: `LDG on line 12, LDG on line 13`. They are
/// searched backwards in text order, so instructions on other paths may be missing.
fn awaited(
    compiled: &CompiledFunction,
    sm: Sm,
    index: usize,
    scoreboard: u8,
    line_of: &dyn Fn(SrcId) -> Option<u32>,
) -> String {
    let count = compiled.code.len();
    let mut found = Vec::new();
    // After the start, the search continues at the end: the wait may be for an earlier iteration of a loop.
    for back in (1..=count.min(REACH)).map(|distance| (index + count - distance) % count) {
        let control = sass::Control::from_bits(compiled.code[back]);
        let is_read = control.read_sb == Some(scoreboard);
        if is_read || control.write_sb == Some(scoreboard) {
            let name = sass::decode(table(sm), compiled.code[back])
                .map(|instruction| sass::print(table(sm), &instruction, 0))
                .and_then(|text| {
                    let word = text.split(' ').find(|word| !word.starts_with('@'))?;
                    word.split('.').next().map(str::to_owned)
                })
                .unwrap_or_default();
            let line = compiled.lines.get(back).copied().flatten().and_then(line_of);
            let place = line.map_or(String::new(), |line| format!(" on line {line}"));
            let what = if is_read { " to read its operands" } else { "" };
            found.push(format!("{name}{place}{what}"));
        }
        if control.wait >> scoreboard & 1 == 1 {
            break;
        }
    }
    found.dedup();
    let rest = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    found.reverse();
    let names = found.join(", ");
    if rest > 0 { format!("{names} and {rest} more") } else { names }
}

/// The control word of an instruction in words, given its code: `B--2---:R-:W0:-:S04`.
pub fn control_in_words(code: &str) -> Option<String> {
    let is_code = code.len() == sass::Control::default().to_string().len();
    let control = is_code.then(|| sass::Control::parse(code).ok()).flatten()?;
    Some(in_words(control, |_| String::new()))
}

/// The control word in words, in the order of events. `awaited` names the instructions that a scoreboard wait is for.
fn in_words(control: sass::Control, awaited: impl Fn(u8) -> String) -> String {
    let mut parts = Vec::new();
    let waits = (0..8).filter(|sb| control.wait >> sb & 1 == 1);
    let waits: Vec<String> = waits
        .map(|sb| match awaited(sb) {
            names if names.is_empty() => format!("SB{sb}"),
            names => format!("SB{sb} ({names})"),
        })
        .collect();
    if !waits.is_empty() {
        parts.push(format!("waits for {}", waits.join(" ")));
    }
    parts.push(counted(control.stall.into(), "cycle"));
    if control.yield_ {
        parts.push("may yield".to_owned());
    }
    if let Some(sb) = control.read_sb {
        parts.push(format!("SB{sb} when read"));
    }
    if let Some(sb) = control.write_sb {
        parts.push(format!("SB{sb} when written"));
    }
    parts.join(", ")
}

/// The machine code of one statement, and its maximum number of live registers. `None` if the function is not compiled.
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
    let map = &lower(db, item).map;
    let line_of = |src| Some(line_number(db, file, map.statement(src)?.start() + item.offset(db)));
    let style = SassStyle { controls: Controls::Words, live: false, addresses: true };
    let mut lines = Vec::new();
    let mut live = 0;
    for index in own {
        live = live.max(compiled.live_registers.get(index).copied().unwrap_or(0));
        lines.push(line(compiled, sm, index, style, &BTreeMap::new(), &line_of));
    }
    Some((close_up(&lines), live))
}

/// The lines with their comments as far left as possible, because hovers are narrow.
fn close_up(lines: &[String]) -> Vec<String> {
    let parts = lines.iter().map(|line| match line.split_once(" // ") {
        Some((code, words)) => (code.trim_end(), words),
        None => (line.as_str(), ""),
    });
    let width = parts.clone().map(|(code, _)| code.chars().count()).max().unwrap_or(0);
    let joined = parts.map(|(code, words)| match words {
        "" => code.to_owned(),
        words => format!("{code:width$} // {words}"),
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_words_in_words() {
        let control = sass::Control {
            stall: 1,
            yield_: true,
            write_sb: Some(2),
            read_sb: Some(0),
            wait: 0b1001,
            reuse: 0,
        };
        let words = "waits for SB0 SB3, 1 cycle, may yield, SB0 when read, SB2 when written";
        assert_eq!(in_words(control, |_| String::new()), words);
        let named = in_words(control, |sb| if sb == 3 { "LDG on line 7".to_owned() } else { String::new() });
        assert!(named.starts_with("waits for SB0 SB3 (LDG on line 7), "), "{named}");
        assert_eq!(
            in_words(sass::Control { stall: 4, ..sass::Control::default() }, |_| String::new()),
            "4 cycles"
        );
    }

    #[test]
    fn differences_in_a_line() {
        let old = Figures { registers: 30, instructions: 64, occupancy: Some(100), ..Figures::default() };
        assert_eq!(old.difference(&old), "no difference in registers, instructions or occupancy");
        let new = Figures { registers: 32, instructions: 50, spilled: 8, occupancy: Some(75), ..old };
        let text = "+2 registers, −14 instructions, +8 bytes spilled, occupancy 100% → 75%";
        assert_eq!(new.difference(&old), text);
        assert_eq!(Figures { registers: 29, ..old }.difference(&old), "−1 register");
    }
}
