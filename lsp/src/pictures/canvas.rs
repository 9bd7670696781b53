//! Basic shapes and axes.

use std::fmt::{Display, Write as _};

pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A drawing under construction. Classes are those of the style sheet.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) out: String,
}

impl Canvas {
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: impl Display) {
        let text = escape(&text.to_string());
        let _ = writeln!(self.out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>");
    }

    /// `tip` is the tooltip of the rectangle.
    pub(super) fn rect(&mut self, class: &str, [x, y, width, height]: [f64; 4], tip: &str) {
        self.shape(
            "rect",
            class,
            &format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\""),
            tip,
        );
    }

    pub(super) fn shape(&mut self, tag: &str, class: &str, attributes: &str, tip: &str) {
        let _ = write!(self.out, "<{tag} class=\"{class}\" {attributes}");
        match tip.is_empty() {
            true => self.out.push_str("/>\n"),
            false => drop(writeln!(self.out, "><title>{}</title></{tag}>", escape(tip))),
        }
    }

    /// A group of shapes with a common tooltip.
    pub(super) fn group(&mut self, tip: &str, shapes: impl FnOnce(&mut Self)) {
        let _ = writeln!(self.out, "<g><title>{}</title>", escape(tip));
        shapes(self);
        self.out.push_str("</g>\n");
    }

    /// Shapes that link to an address, if there is one.
    pub(super) fn linked(&mut self, address: Option<&str>, shapes: impl FnOnce(&mut Self)) {
        if let Some(address) = address {
            let _ = writeln!(self.out, "<a href=\"{}\">", escape(address));
        }
        shapes(self);
        if address.is_some() {
            self.out.push_str("</a>\n");
        }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.shape(
            "line",
            class,
            &format!("x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\""),
            "",
        );
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        self.shape("path", class, &format!("d=\"{d}\""), "");
    }
}

/// A rectangle of the drawing with a horizontal and a vertical scale.
#[derive(Clone, Copy)]
pub(super) struct Plot {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The values at the right and at the top edge. At the left and at the bottom edge the values are zero.
    pub(super) most: (f64, f64),
}

impl Plot {
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.width * value / self.most.0
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom() - self.height * value / self.most.1
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    /// Draws about `about` grid lines with numbers for the vertical axis, and the name of the axis with its unit.
    pub(super) fn upwards(&self, canvas: &mut Canvas, about: u32, name: &str) {
        for value in ticks(self.most.1, about) {
            let y = self.y(value);
            canvas.line("grid", (self.left, y), (self.right(), y));
            canvas.text("soft small end", self.left - 6.0, y + 3.5, value);
        }
        let (x, y) = (self.left - 38.0, self.top + self.height / 2.0);
        let place = format!("transform=\"rotate(-90 {x:.1} {y:.1})\" x=\"{x:.1}\" y=\"{y:.1}\"");
        let _ = writeln!(canvas.out, "<text class=\"soft middle\" {place}>{}</text>", escape(name));
    }

    /// The same for the horizontal axis. `label` formats a value.
    pub(super) fn sideways(
        &self,
        canvas: &mut Canvas,
        about: u32,
        name: &str,
        label: impl Fn(f64) -> String,
    ) {
        for value in ticks(self.most.0, about) {
            let x = self.x(value);
            canvas.line("axis", (x, self.bottom()), (x, self.bottom() + 4.0));
            canvas.text("soft small middle", x, self.bottom() + 16.0, label(value));
        }
        canvas.line("axis", (self.left, self.bottom()), (self.right(), self.bottom()));
        canvas.text("soft middle", self.left + self.width / 2.0, self.bottom() + 32.0, name);
    }
}

/// About `about` round values from zero to `most`.
pub(super) fn ticks(most: f64, about: u32) -> Vec<f64> {
    let rough = (most / f64::from(about.max(1))).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor()).max(1.0);
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|&step| step >= rough)
        .unwrap_or(10.0 * power);
    (0..).map(|i| f64::from(i) * step).take_while(|&value| value <= most * 1.0001).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(10.0, 5), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(ticks(255.0, 5), [0.0, 100.0, 200.0]);
        assert_eq!(ticks(3.0, 5), [0.0, 1.0, 2.0, 3.0]);
    }
}
