//! The picture of the occupancy: how many warps fit on a multiprocessor, as a function of each limiting resource, with
//! the kernel's current value marked.

use super::Picture;
use super::canvas::{Canvas, Plot};
use ptx_analysis::ide::Portrait;
use ptx_analysis::occupancy::{BlockUse, MAX_THREADS_PER_BLOCK, WARP, limits, occupancy};

const CHART: f64 = 270.0;
const GAP: f64 = 50.0;

/// A resource that limits the occupancy.
struct Axis {
    name: &'static str,
    unit: &'static str,
    today: u32,
    least: u32,
    most: u32,
    step: u32,
    with: fn(BlockUse, u32) -> BlockUse,
    label: fn(f64) -> String,
}

pub(super) fn draw(portrait: &Portrait) -> Option<Picture> {
    let found = portrait.occupancy?;
    let today = BlockUse {
        threads: portrait.threads,
        registers: portrait.resources.registers,
        shared: portrait.resources.shared_bytes,
    };
    let limits = limits(portrait.target)?;
    let whole = |value: f64| format!("{value:.0}");
    let axes = [
        Axis {
            name: "registers per thread",
            unit: "registers",
            today: today.registers,
            least: 1,
            most: 255,
            step: 1,
            with: |block, registers| BlockUse { registers, ..block },
            label: whole,
        },
        Axis {
            name: "shared memory per CTA, KiB",
            unit: "bytes of shared memory",
            today: today.shared,
            least: 0,
            most: limits.shared_per_block,
            step: 256,
            with: |block, shared| BlockUse { shared, ..block },
            label: |bytes| format!("{:.0}", bytes / 1024.0),
        },
        Axis {
            name: "threads per CTA",
            unit: "threads",
            today: today.threads,
            least: WARP,
            most: MAX_THREADS_PER_BLOCK,
            step: WARP,
            with: |block, threads| BlockUse { threads, ..block },
            label: whole,
        },
    ];
    let mut canvas = Canvas::default();
    for (i, axis) in axes.iter().enumerate() {
        let left = 60.0 + i as f64 * (CHART + GAP);
        let scale = if axis.unit.contains("bytes") { 1024.0 } else { 1.0 };
        let plot = Plot { left, top: 20.0, width: CHART, height: 170.0, most: (f64::from(axis.most), 108.0) };
        chart(&mut canvas, portrait, axis, today, &plot, i == 0);
        let step = Plot { most: (plot.most.0 / scale, plot.most.1), ..plot };
        step.sideways(&mut canvas, 5, axis.name, |value| (axis.label)(value * scale));
    }
    let title = format!(
        "Occupancy: {} of {} warps per multiprocessor, limited by {} ({} threads per CTA)",
        found.warps, found.max_warps, found.limiter, portrait.threads
    );
    let width = 60.0 + 3.0 * CHART + 2.0 * GAP + 30.0;
    Some(Picture { title, body: canvas.out, width: width as u32, height: 262 })
}

fn chart(
    canvas: &mut Canvas,
    portrait: &Portrait,
    axis: &Axis,
    today: BlockUse,
    plot: &Plot,
    is_first: bool,
) {
    let at = |value: u32| {
        let found = occupancy(portrait.target, (axis.with)(today, value));
        found.map_or(0.0, |found| f64::from(found.percent()))
    };
    plot.upwards(canvas, 5, if is_first { "occupancy, %" } else { "" });
    let values: Vec<(u32, f64)> =
        (axis.least..=axis.most).step_by(axis.step as usize).map(|value| (value, at(value))).collect();
    let mut curve = String::new();
    for (i, &(value, percent)) in values.iter().enumerate() {
        let (x, y) = (plot.x(f64::from(value)), plot.y(percent));
        match i {
            0 => curve += &format!("M{x:.1} {y:.1}"),
            _ if values[i - 1].1 != percent => curve += &format!("H{x:.1}V{y:.1}"),
            _ => {}
        }
    }
    curve += &format!("H{:.1}", plot.right());
    let start = plot.x(f64::from(axis.least));
    canvas.path("area", &format!("{curve}V{:.1}H{start:.1}Z", plot.bottom()));
    canvas.path("line", &curve);
    let own = at(axis.today);
    let (x, y) = (plot.x(f64::from(axis.today).min(plot.most.0)), plot.y(own));
    canvas.line("limit", (x, plot.bottom()), (x, y));
    let tip = format!("current: {} {}, {own:.0}%", axis.today, axis.unit);
    canvas.shape("circle", "hot", &format!("cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\""), &tip);
    let is_right = x > plot.left + plot.width / 2.0;
    let class = if is_right { "bold halo end" } else { "bold halo" };
    // The curve may run above the point, but there is room beside it.
    let y = if own > 60.0 { y + 18.0 } else { y - 10.0 };
    let side = if is_right { -8.0 } else { 8.0 };
    canvas.text(class, x + side, y, format!("current: {}, {own:.0}%", amount(axis, axis.today)));
    let step = match next(&values, axis.today, own) {
        Some((value, percent)) => {
            let word = if value < axis.today { "at most" } else { "at least" };
            format!("{percent:.0}% requires {word} {}", amount(axis, value))
        }
        None if own > 99.0 => "all warps fit".to_owned(),
        None => "no other value gives more".to_owned(),
    };
    canvas.text("soft middle", plot.left + plot.width / 2.0, plot.bottom() + 50.0, step);
}

fn amount(axis: &Axis, value: u32) -> String {
    match axis.unit.contains("bytes") {
        true => format!("{value} B"),
        false => value.to_string(),
    }
}

/// The nearest value that gives a higher occupancy than the current one.
fn next(values: &[(u32, f64)], today: u32, own: f64) -> Option<(u32, f64)> {
    let better = values.iter().copied().filter(|&(_, percent)| percent > own + 0.01);
    better.min_by_key(|&(value, _)| value.abs_diff(today))
}
