//! The picture of matrix fragments: which lane and which register holds which element.

use super::Picture;
use super::canvas::Canvas;
use ptx_analysis::counted;
use ptx_analysis::ide::{Fragments, Portrait};
use ptx_isa::fragment::{Fragment, Place};

const LEFT: f64 = 34.0;
const TOP: f64 = 40.0;
const ROW: f64 = 20.0;
const WIDEST: f64 = 860.0;
/// The width of the narrowest cell with text, and the width of a cell with one element.
const WITH_TEXT: f64 = 34.0;
/// The lane whose cells are highlighted.
const EXAMPLE: usize = 5;
/// The largest number of instruction kinds that are drawn.
const MOST: usize = 6;

pub(super) fn draw(portrait: &Portrait) -> Vec<Picture> {
    portrait.fragments.iter().take(MOST).flat_map(of).collect()
}

fn of(fragments: &Fragments) -> Vec<Picture> {
    let all = &fragments.all;
    let picture = |fragment: &Fragment| {
        let twin = all
            .iter()
            .find(|other| other.is_like(fragment))
            .filter(|other| other.operand != fragment.operand);
        match twin {
            Some(twin) => note(fragment, twin, &fragments.name),
            None => grid(fragment, &fragments.name),
        }
    };
    all.iter().map(picture).collect()
}

fn title(fragment: &Fragment, name: &str) -> String {
    let is_parted = fragment.warps > 1;
    let many = match fragment.count {
        count if count > 1 && !is_parted => format!(", {count} times"),
        _ => String::new(),
    };
    // The groups of columns of a matrix that several warps hold are adjacent.
    let width = if is_parted { fragment.count } else { 1 };
    let (rows, columns, ty) = (fragment.rows * fragment.warps, fragment.columns * width, fragment.ty.text());
    format!("Fragment {} of {name}: {rows} × {columns} elements of .{ty}{many}", fragment.operand)
}

fn note(fragment: &Fragment, twin: &Fragment, name: &str) -> Picture {
    let mut canvas = Canvas::default();
    canvas.text("soft", 0.0, 14.0, format!("laid out like {}", twin.operand));
    Picture { title: title(fragment, name), body: canvas.out, width: 300, height: 22 }
}

/// The color of a register. Neighbors have different colors.
fn color(register: usize) -> String {
    let hue = (register * 137 + 205) % 360;
    format!("fill:hsl({hue} 70% 55% / .28);stroke:var(--grid)")
}

fn grid(fragment: &Fragment, name: &str) -> Picture {
    let (rows, columns) = (fragment.rows, fragment.columns);
    let per = fragment.per_register();
    // Adjacent elements in the same register are drawn as one cell.
    let register = |row: usize, column: usize| {
        let Place { lane, index } = fragment.place(row, column);
        (lane, index / per)
    };
    let run =
        (1..=columns).find(|&length| length == columns || register(0, length) != register(0, 0)).unwrap_or(1);
    let unit = (WITH_TEXT / run as f64).max(3.0).min(WIDEST / columns as f64).max(1.5);
    let mut canvas = Canvas::default();
    canvas.text("soft small", LEFT, 12.0, format!("column of {}", fragment.operand));
    for column in (0..columns).step_by(run.max((16.0 / unit).ceil() as usize)) {
        canvas.text("soft small", LEFT + column as f64 * unit + 2.0, TOP - 6.0, column);
    }
    for row in 0..rows {
        let y = TOP + row as f64 * ROW;
        canvas.text("soft small end", LEFT - 6.0, y + 14.0, row);
        let mut start = 0;
        while start < columns {
            let (lane, held) = register(row, start);
            let mut end = start + 1;
            while end < columns && register(row, end) == (lane, held) {
                end += 1;
            }
            cell(&mut canvas, fragment, (row, start..end), (lane, held), unit, y);
            start = end;
        }
    }
    let below = TOP + rows as f64 * ROW + 18.0;
    let lanes = if fragment.is_quad() { "lane of one of the four products" } else { "lane" };
    let legend = format!(
        "each cell: {lanes}, register; framed: lane {EXAMPLE}; {} in a register",
        counted(per, "element")
    );
    canvas.text("soft", LEFT, below, legend);
    let mut below = below;
    if fragment.warps > 1 {
        below += 16.0;
        canvas.text("soft", LEFT, below, drawn_part(fragment));
    }
    let width = (LEFT + columns as f64 * unit + 10.0).max(460.0);
    Picture {
        title: title(fragment, name),
        body: canvas.out,
        width: width as u32,
        height: (below + 12.0) as u32,
    }
}

/// The part of a matrix that is drawn if several warps hold it.
fn drawn_part(fragment: &Fragment) -> String {
    let Fragment { rows, columns, warps, .. } = *fragment;
    let mut text = format!("rows of warp 0; warp w holds the rows from {rows} × (w mod {warps}) on");
    if fragment.count > 1 {
        let registers = rows * columns / 32 / fragment.per_register();
        text += &format!("; each {registers} further registers hold the next {columns} columns");
    }
    text
}

fn cell(
    canvas: &mut Canvas,
    fragment: &Fragment,
    (row, elements): (usize, std::ops::Range<usize>),
    (lane, register): (usize, usize),
    unit: f64,
    y: f64,
) {
    let (x, width) = (LEFT + elements.start as f64 * unit, elements.len() as f64 * unit);
    let style = match lane == EXAMPLE {
        true => color(register).replace("stroke:var(--grid)", "stroke:var(--hot);stroke-width:2"),
        false => color(register),
    };
    let indices: Vec<String> =
        elements.clone().map(|column| fragment.place(row, column).index.to_string()).collect();
    let name = format!("{}{register}", fragment.operand);
    let tip = format!(
        "row {row}, columns {} to {}: lane {lane}, register {name}, elements {}",
        elements.start,
        elements.end - 1,
        indices.join(" ")
    );
    let attributes =
        format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{ROW:.1}\" style=\"{style}\"");
    canvas.shape("rect", "cell", &attributes, &tip);
    if width >= WITH_TEXT - 1.0 {
        canvas.text("small mono middle", x + width / 2.0, y + 14.0, format!("{lane} {name}"));
    }
}
