//! The picture of the machine code's control-flow graph: blocks with their weights, loops, edges.

use super::Picture;
use super::canvas::Canvas;
use super::placement::{Placement, place};
use ptx_analysis::counted;
use ptx_analysis::ide::{Instruction, MachineBlock, Portrait};

const NODE: (f64, f64) = (196.0, 62.0);
/// The horizontal and vertical distance between nodes.
const GAP: (f64, f64) = (26.0, 44.0);
const MARGIN: f64 = 30.0;
/// The distance between back edges, which run up beside the blocks.
const LANE: f64 = 12.0;
/// The largest number of blocks that is drawn.
const MOST: usize = 250;
/// How often the body of a loop is assumed to run each time the loop is entered.
const TURNS: f64 = 10.0;

/// The text about a block.
struct Summary {
    /// The PTX lines that the instructions come from, sorted.
    lines: Vec<u32>,
    /// The issue cycles of one execution.
    cycles: u32,
    /// The share of the whole function's issue cycles.
    share: f64,
    /// "6 instructions, 24 cycles".
    size: String,
    /// "5 live registers, loop depth 1".
    weight: String,
}

impl Summary {
    fn new(portrait: &Portrait, block: &MachineBlock) -> Self {
        let instructions = &portrait.instructions[block.instructions.clone()];
        let mut lines: Vec<u32> = instructions.iter().filter_map(|one| one.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let cycles = instructions.iter().map(|one| u32::from(one.stall.max(1))).sum();
        let live = instructions.iter().map(|one| one.live).max().unwrap_or(0);
        let often = match block.loops.len() {
            0 => "once".to_owned(),
            depth => format!("loop depth {depth}"),
        };
        Self {
            lines,
            cycles,
            share: 0.0,
            size: format!(
                "{}, {}",
                counted(instructions.len(), "instruction"),
                counted(cycles as usize, "cycle")
            ),
            weight: format!("{}, {often}", counted(live.into(), "live register")),
        }
    }

    /// "lines 5–9": the first and the last line, even if not all lines between belong to the block.
    fn span(&self) -> String {
        match (self.lines.first(), self.lines.last()) {
            (Some(first), Some(last)) if first == last => format!("line {first}"),
            (Some(first), Some(last)) => format!("lines {first}–{last}"),
            _ => "no line".to_owned(),
        }
    }

    /// "lines 5, 7–9".
    fn all_lines(&self) -> String {
        let runs = self.lines.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
            [only] => only.to_string(),
            run => format!("{}–{}", run[0], run[run.len() - 1]),
        });
        let runs: Vec<String> = runs.collect();
        match self.lines.len() {
            0 => "no line".to_owned(),
            1 => format!("line {}", runs[0]),
            _ => format!("lines {}", runs.join(", ")),
        }
    }
}

fn summaries(portrait: &Portrait) -> Vec<Summary> {
    let mut all: Vec<Summary> = portrait.blocks.iter().map(|block| Summary::new(portrait, block)).collect();
    let expected = |summary: &Summary, block: &MachineBlock| {
        f64::from(summary.cycles) * TURNS.powi(block.loops.len().min(12) as i32)
    };
    let total: f64 = all.iter().zip(&portrait.blocks).map(|(summary, block)| expected(summary, block)).sum();
    for (summary, block) in all.iter_mut().zip(&portrait.blocks) {
        summary.share = expected(summary, block) / total.max(1.0);
    }
    all
}

/// The description of a block, for clients that do not show the drawing.
#[derive(serde::Serialize)]
pub struct Described {
    pub text: String,
    /// The first PTX line that the block comes from, counted from 1.
    pub line: Option<u32>,
}

/// The blocks of the graph, in code order.
pub fn blocks(portrait: &Portrait) -> Vec<Described> {
    let describe = |(number, (summary, block)): (usize, (Summary, &MachineBlock))| {
        let next: Vec<String> = block.successors.iter().map(|next| format!("B{next}")).collect();
        let next = if next.is_empty() { "end".to_owned() } else { next.join(", ") };
        let Summary { share, size, weight, .. } = &summary;
        let text = format!(
            "{:<4} {:>5.1}%  {} · {size} · {weight} → {next}",
            format!("B{number}"),
            100.0 * share,
            summary.all_lines()
        );
        Described { text, line: summary.lines.first().copied() }
    };
    summaries(portrait).into_iter().zip(&portrait.blocks).enumerate().map(describe).collect()
}

/// `link` is the address of a PTX line, with `{line}` in place of its number.
pub(super) fn draw(portrait: &Portrait, link: Option<&str>) -> Option<Picture> {
    let count = portrait.blocks.len();
    let title =
        format!("Control flow: share of the issue cycles, assuming {TURNS:.0} iterations of each loop");
    let mut canvas = Canvas::default();
    if count == 0 {
        return None;
    }
    if count > MOST {
        canvas.text("soft", 0.0, 14.0, format!("not drawn: {count} blocks"));
        return Some(Picture { title, body: canvas.out, width: 400, height: 24 });
    }
    let successors: Vec<Vec<usize>> = portrait.blocks.iter().map(|block| block.successors.clone()).collect();
    let placed = place(&successors);
    let geometry = Geometry::new(&placed);
    rings(&mut canvas, portrait, &geometry);
    for ((from, to), bends) in &placed.bends {
        let mut points = vec![geometry.bottom(*from)];
        let first = placed.nodes[*from].1;
        for (i, &bend) in bends.iter().enumerate() {
            let (x, y) = (geometry.x(bend), geometry.y(first + 1 + i));
            points.extend([(x, y), (x, y + NODE.1)]);
        }
        points.push(geometry.top(*to));
        edge(&mut canvas, &points);
    }
    let lanes = lanes(&placed);
    for (&(from, to), &lane) in placed.back.iter().zip(&lanes) {
        back(&mut canvas, &geometry, &placed, (from, to), lane);
    }
    for (number, (summary, block)) in summaries(portrait).iter().zip(&portrait.blocks).enumerate() {
        let instructions = &portrait.instructions[block.instructions.clone()];
        let link =
            link.zip(summary.lines.first()).map(|(link, line)| link.replace("{line}", &line.to_string()));
        canvas.linked(link.as_deref(), |canvas| {
            node(canvas, number, summary, instructions, geometry.corner(number));
        });
    }
    let beside = lanes.iter().max().map_or(0.0, |&last| (last + 1) as f64 * LANE);
    let width = geometry.width + beside + 2.0 * MARGIN + 20.0;
    let height = geometry.y(placed.layers) + MARGIN - GAP.1 + 14.0;
    Some(Picture { title, body: canvas.out, width: width as u32, height: height as u32 })
}

/// The lane of each back edge. Edges that pass the same layers get different lanes, the shorter edges the inner ones.
fn lanes(placed: &Placement) -> Vec<usize> {
    let passes = |&(from, to): &(usize, usize)| placed.nodes[to].1..=placed.nodes[from].1;
    let mut order: Vec<usize> = (0..placed.back.len()).collect();
    order.sort_by_key(|&edge| passes(&placed.back[edge]).count());
    let mut lanes: Vec<Option<usize>> = vec![None; placed.back.len()];
    for &edge in &order {
        let own = passes(&placed.back[edge]);
        let taken = |lane: usize| {
            placed.back.iter().zip(&lanes).any(|(other, &found)| {
                let other = passes(other);
                found == Some(lane) && own.start() <= other.end() && other.start() <= own.end()
            })
        };
        lanes[edge] = (0..).find(|&lane| !taken(lane));
    }
    lanes.into_iter().map(Option::unwrap_or_default).collect()
}

struct Geometry {
    nodes: Vec<(f64, usize)>,
    width: f64,
}

impl Geometry {
    fn new(placed: &Placement) -> Self {
        let bends = placed.bends.iter().flat_map(|(_, bends)| bends.iter().map(|&at| at + 0.2));
        let right = placed.nodes.iter().map(|node| node.0 + 0.5).chain(bends).fold(0.0, f64::max);
        Self { nodes: placed.nodes.clone(), width: right * (NODE.0 + GAP.0) }
    }

    fn x(&self, middle: f64) -> f64 {
        MARGIN + middle * (NODE.0 + GAP.0)
    }

    fn y(&self, layer: usize) -> f64 {
        14.0 + layer as f64 * (NODE.1 + GAP.1)
    }

    fn corner(&self, node: usize) -> (f64, f64) {
        (self.x(self.nodes[node].0) - NODE.0 / 2.0, self.y(self.nodes[node].1))
    }

    fn top(&self, node: usize) -> (f64, f64) {
        (self.x(self.nodes[node].0), self.y(self.nodes[node].1))
    }

    fn bottom(&self, node: usize) -> (f64, f64) {
        (self.x(self.nodes[node].0), self.y(self.nodes[node].1) + NODE.1)
    }
}

/// Draws a frame around each loop, unless the frame would contain a block outside of the loop.
fn rings(canvas: &mut Canvas, portrait: &Portrait, geometry: &Geometry) {
    for header in 0..portrait.blocks.len() {
        let is_in = |node: usize| portrait.blocks[node].loops.contains(&header);
        if !is_in(header) {
            continue;
        }
        let body: Vec<usize> = (0..portrait.blocks.len()).filter(|&node| is_in(node)).collect();
        let corners = || body.iter().map(|&node| geometry.corner(node));
        // Inner loops have smaller frames.
        let depth = portrait.blocks[header].loops.len() as f64;
        let pad = (13.0 - 3.0 * depth).max(4.0);
        let left = corners().map(|at| at.0).fold(f64::INFINITY, f64::min) - pad;
        let top = corners().map(|at| at.1).fold(f64::INFINITY, f64::min) - pad;
        let right = corners().map(|at| at.0 + NODE.0).fold(0.0, f64::max) + pad;
        let bottom = corners().map(|at| at.1 + NODE.1).fold(0.0, f64::max) + pad;
        let is_other = |node: usize| {
            let (x, y) = geometry.corner(node);
            !is_in(node) && x < right && x + NODE.0 > left && y < bottom && y + NODE.1 > top
        };
        if (0..portrait.blocks.len()).any(is_other) {
            continue;
        }
        let attributes = format!(
            "x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"8\"",
            right - left,
            bottom - top
        );
        canvas.shape("rect", "loop", &attributes, "");
        canvas.shape("rect", "ring", &attributes, "");
    }
}

fn arrow(canvas: &mut Canvas, class: &str, (x, y): (f64, f64)) {
    canvas.path(class, &format!("M{x:.1} {y:.1}l-4 -7h8Z"));
}

fn edge(canvas: &mut Canvas, points: &[(f64, f64)]) {
    let mut d = format!("M{:.1} {:.1}", points[0].0, points[0].1);
    for (i, pair) in points.windows(2).enumerate() {
        let [(x1, y1), (x2, y2)] = [pair[0], pair[1]];
        // Edges run straight through layers and bend between them.
        if i % 2 == 1 && i + 1 < points.len() - 1 {
            d += &format!("L{x2:.1} {y2:.1}");
        } else {
            let half = (y1 + y2) / 2.0;
            d += &format!("C{x1:.1} {half:.1} {x2:.1} {half:.1} {x2:.1} {y2:.1}");
        }
    }
    canvas.path("edge", &d);
    arrow(canvas, "tip", points[points.len() - 1]);
}

/// Draws a back edge, to the right of all blocks that it passes.
fn back(
    canvas: &mut Canvas,
    geometry: &Geometry,
    placed: &Placement,
    (from, to): (usize, usize),
    number: usize,
) {
    let (first, last) = (placed.nodes[to].1, placed.nodes[from].1);
    let passed = placed.nodes.iter().filter(|node| (first..=last).contains(&node.1)).map(|node| node.0 + 0.5);
    let bends = placed.bends.iter().flat_map(|((above, _), bends)| {
        let start = placed.nodes[*above].1 + 1;
        bends
            .iter()
            .enumerate()
            .filter(move |(i, _)| (first..=last).contains(&(start + i)))
            .map(|(_, &at)| at + 0.1)
    });
    let right =
        geometry.x(passed.chain(bends).fold(0.0, f64::max)) - GAP.0 / 2.0 + 14.0 + number as f64 * LANE;
    let (x1, y1) = geometry.bottom(from);
    let (x2, y2) = geometry.top(to);
    let (x1, x2) = (x1 + NODE.0 / 4.0, x2 + NODE.0 / 4.0);
    let (low, high) = (y1 + 14.0, y2 - 14.0);
    let d = format!(
        "M{x1:.1} {y1:.1}V{:.1}Q{x1:.1} {low:.1} {:.1} {low:.1}H{:.1}Q{right:.1} {low:.1} {right:.1} {:.1}V{:.1}\
         Q{right:.1} {high:.1} {:.1} {high:.1}H{:.1}Q{x2:.1} {high:.1} {x2:.1} {:.1}V{y2:.1}",
        low - 8.0,
        x1 + 8.0,
        right - 8.0,
        low - 8.0,
        high + 8.0,
        right - 8.0,
        x2 + 8.0,
        high + 8.0
    );
    canvas.path("back", &d);
    arrow(canvas, "backtip", (x2, y2));
}

fn node(
    canvas: &mut Canvas,
    number: usize,
    summary: &Summary,
    instructions: &[Instruction],
    (x, y): (f64, f64),
) {
    let tip = format!("B{number}: {}", summary.all_lines());
    let listing = instructions.iter().take(40).map(|one| one.text.as_str());
    let tip: Vec<&str> = std::iter::once(tip.as_str()).chain(listing).collect();
    let frame =
        format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"5\"", NODE.0, NODE.1);
    canvas.group(&tip.join("\n"), |canvas| {
        canvas.shape("rect", "node", &frame, "");
        // The larger the share of the time spent in the block, the redder its color.
        let heat = format!("{frame} style=\"fill-opacity:{:.2}\"", 0.5 * summary.share.sqrt());
        canvas.shape("rect", "hot", &heat, "");
        canvas.text("bold", x + 10.0, y + 18.0, format!("B{number}"));
        canvas.text("bold end", x + NODE.0 - 10.0, y + 18.0, format!("{:.1}%", 100.0 * summary.share));
        canvas.text("soft", x + 40.0, y + 18.0, summary.span());
        canvas.text("", x + 10.0, y + 36.0, &summary.size);
        canvas.text("soft", x + 10.0, y + 53.0, &summary.weight);
    });
}
