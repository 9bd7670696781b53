//! The picture of the live registers and stall cycles along the code.

use super::Picture;
use super::canvas::{Canvas, Plot};
use ptx_analysis::counted;
use ptx_analysis::ide::Portrait;

const WIDTH: f64 = 920.0;
const LEFT: f64 = 60.0;
/// The number of columns. In longer functions, a column stands for several instructions.
const COLUMNS: usize = 840;

/// The largest values of several consecutive instructions.
struct Column {
    first: usize,
    last: usize,
    live: u16,
    stall: u8,
    lines: Option<(u32, u32)>,
}

fn columns(portrait: &Portrait) -> Vec<Column> {
    let all = &portrait.instructions;
    let per = all.len().div_ceil(COLUMNS).max(1);
    let column = |(i, some): (usize, &[ptx_analysis::ide::Instruction])| Column {
        first: i * per,
        last: i * per + some.len() - 1,
        live: some.iter().map(|one| one.live).max().unwrap_or(0),
        stall: some.iter().map(|one| one.stall).max().unwrap_or(0),
        lines: some.iter().filter_map(|one| one.line).min().zip(some.iter().filter_map(|one| one.line).max()),
    };
    all.chunks(per).enumerate().map(column).collect()
}

pub(super) fn draw(portrait: &Portrait) -> Picture {
    let mut canvas = Canvas::default();
    let registers = portrait.resources.registers;
    let count = portrait.instructions.len().max(1) as f64;
    let peak = portrait.instructions.iter().map(|one| one.live).max().unwrap_or(0);
    let most = f64::from(registers.max(u32::from(peak)).max(4)) * 1.15;
    let plot = Plot { left: LEFT, top: 26.0, width: WIDTH - LEFT - 20.0, height: 190.0, most: (count, most) };
    let stalls = Plot { top: plot.bottom() + 14.0, height: 60.0, most: (count, 16.0), ..plot };
    loops(&mut canvas, portrait, &plot, &stalls);
    plot.upwards(&mut canvas, 5, "live registers");
    stalls.upwards(&mut canvas, 2, "stall cycles");
    canvas.line("axis", (plot.left, plot.bottom()), (plot.right(), plot.bottom()));

    let columns = columns(portrait);
    let end = |column: &Column| plot.x(column.last as f64 + 1.0);
    let mut curve = String::new();
    for (i, column) in columns.iter().enumerate() {
        let (x, y) = (plot.x(column.first as f64), plot.y(f64::from(column.live)));
        curve += &format!("{}{x:.1} {y:.1}H{:.1}", if i == 0 { "M" } else { "L" }, end(column));
    }
    if !columns.is_empty() {
        canvas.path("area", &format!("{curve}V{:.1}H{:.1}Z", plot.bottom(), plot.left));
        canvas.path("line", &curve);
    }
    for column in &columns {
        let x = plot.x(column.first as f64);
        let width = end(column) - x;
        let gap = if width > 3.0 { 1.0 } else { 0.0 };
        let class = if column.stall > 8 { "hot" } else { "bar" };
        let top = stalls.y(f64::from(column.stall));
        canvas.rect(class, [x, top, width - gap, stalls.bottom() - top], "");
    }
    let limit = plot.y(f64::from(registers));
    canvas.line("limit", (plot.left, limit), (plot.right(), limit));
    canvas.text("marktext halo end", plot.right(), limit - 5.0, format!("{registers} registers allocated"));
    if let Some(at) = portrait.instructions.iter().position(|one| one.live == peak) {
        let (x, y) = (plot.x(at as f64 + 0.5), plot.y(f64::from(peak)));
        canvas.shape("circle", "hot", &format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\""), "");
        let line = portrait.instructions[at].line.map(|line| format!(", line {line}")).unwrap_or_default();
        let is_right = x > plot.left + plot.width * 0.7;
        let (class, x) = if is_right { ("bold halo end", x - 7.0) } else { ("bold halo", x + 7.0) };
        // The number is not placed on the line of the allocated registers.
        let y = if (y - limit).abs() < 18.0 { y + 16.0 } else { y - 6.0 };
        canvas.text(class, x, y, format!("peak: {peak} at {:#06x}{line}", at as u64 * sass::INST_BYTES));
    }
    let address = |index: f64| format!("{:#06x}", index as u64 * sass::INST_BYTES);
    stalls.sideways(&mut canvas, 10, "address of the instruction", address);
    tips(&mut canvas, portrait, &columns, &plot, stalls.bottom());
    let height = (stalls.bottom() + 44.0) as u32;
    let title = "Live registers and stall cycles along the code".to_owned();
    Picture { title, body: canvas.out, width: WIDTH as u32, height }
}

/// Draws a band behind each loop.
fn loops(canvas: &mut Canvas, portrait: &Portrait, plot: &Plot, stalls: &Plot) {
    for header in 0..portrait.blocks.len() {
        let Some(depth) = portrait.blocks[header].loops.iter().position(|&found| found == header) else {
            continue;
        };
        let body = portrait.blocks.iter().filter(|block| block.loops.contains(&header));
        let (mut first, mut last) = (usize::MAX, 0);
        for block in body {
            first = first.min(block.instructions.start);
            last = last.max(block.instructions.end);
        }
        let (x, top) = (plot.x(first as f64), plot.top - 4.0);
        canvas.rect("loop", [x, top, plot.x(last as f64) - x, stalls.bottom() - top], "");
        // The names of nested loops have different heights.
        let y = plot.top - 8.0 + 12.0 * depth as f64;
        canvas.text("looptext small", x + 3.0, y, format!("loop, depth {}", depth + 1));
    }
}

/// Adds a tooltip to each column.
fn tips(canvas: &mut Canvas, portrait: &Portrait, columns: &[Column], plot: &Plot, bottom: f64) {
    for column in columns {
        let x = plot.x(column.first as f64);
        let width = plot.x(column.last as f64 + 1.0) - x;
        let lines = match column.lines {
            Some((first, last)) if first == last => format!("line {first}"),
            Some((first, last)) => format!("lines {first} to {last}"),
            None => String::new(),
        };
        let text = match column.first == column.last {
            true => portrait.instructions[column.first].text.as_str(),
            false => "",
        };
        let live = counted(column.live.into(), "live register");
        let tip = format!("{text}\n{lines}\n{live}, {}", counted(column.stall as usize, "stall cycle"));
        canvas.rect("none", [x, plot.top, width, bottom - plot.top], tip.trim());
    }
}
