//! A plot's frame: axes, grid and the mapping from values to pixels.

use super::scale::{Scale, linear_time_ticks, log_time_ticks};
use super::{Anchor, Size, Svg};
use crate::format::plain;

/// One axis.
pub(crate) struct Axis {
    pub(crate) scale: Scale,
    pub(crate) ticks: Vec<(f64, String)>,
    /// With the unit in brackets.
    pub(crate) label: String,
}

impl Axis {
    /// Numbers from zero to `high`.
    pub(crate) fn numbers(high: f64, most: usize, label: &str) -> Self {
        let scale = Scale::from_zero(high);
        let ticks = scale.ticks(most).into_iter().map(|tick| (tick, plain(tick))).collect();
        Self { scale, ticks, label: label.to_owned() }
    }

    /// Times from zero to `high_s`, in the unit that suits; the label gets it in brackets.
    pub(crate) fn time(high_s: f64, most: usize, label: &str) -> Self {
        let (unit, ticks) = linear_time_ticks(high_s, most);
        Self { scale: Scale::from_zero(high_s), ticks, label: format!("{label} [{}]", unit.symbol()) }
    }

    /// Times on a logarithmic axis.
    pub(crate) fn log_time(low_s: f64, high_s: f64, most: usize, label: &str) -> Self {
        let scale = Scale::log(low_s, high_s);
        let low = if let Scale::Log { low, .. } = scale { low } else { low_s };
        Self { scale, ticks: log_time_ticks(low, high_s, most), label: label.to_owned() }
    }
}

/// Room around the plot in pixels.
const TOP: f64 = 26.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 44.0;

/// A drawing with axes.
pub(crate) struct Frame {
    pub(crate) svg: Svg,
    x: Axis,
    y: Axis,
    left: f64,
    width: f64,
    height: f64,
}

impl Frame {
    /// Draws axes and grid. `height` is that of the whole drawing, `left` the room for labels.
    pub(crate) fn new(size: Size, height: f64, left: f64, x: Axis, y: Axis) -> Self {
        let svg = Svg::new(size.width(), height);
        let mut frame = Self { svg, x, y, left, width: size.width() - left - RIGHT, height: height - TOP - BOTTOM };
        frame.draw_grid();
        frame
    }

    /// Pixel column of a value.
    pub(crate) fn px(&self, value: f64) -> f64 {
        self.left + self.x.scale.at(value) * self.width
    }

    /// Pixel row of a value.
    pub(crate) fn py(&self, value: f64) -> f64 {
        TOP + (1.0 - self.y.scale.at(value)) * self.height
    }

    /// Left, right, top and bottom of the plotting area.
    pub(crate) fn edges(&self) -> (f64, f64, f64, f64) {
        (self.left, self.left + self.width, TOP, TOP + self.height)
    }

    /// A line through values.
    pub(crate) fn line(&mut self, values: &[(f64, f64)], class: &str, title: &str) {
        let points: Vec<_> = values
            .iter()
            .map(
                |(x, y)| if x.is_finite() && y.is_finite() { (self.px(*x), self.py(*y)) } else { (f64::NAN, f64::NAN) },
            )
            .collect();
        self.svg.polyline(&points, &format!("line {class}"), Some(title));
    }

    fn draw_grid(&mut self) {
        let (left, right, top, bottom) = self.edges();
        let marks: Vec<_> = self.y.ticks.iter().map(|(at, label)| (self.py(*at), label.clone())).collect();
        for (row, label) in marks {
            self.svg.line((left, row), (right, row), "grid");
            self.svg.text((left - 7.0, row + 4.0), Anchor::End, "tick", &label);
        }
        let marks: Vec<_> = self.x.ticks.iter().map(|(at, label)| (self.px(*at), label.clone())).collect();
        for (column, label) in marks {
            self.svg.line((column, top), (column, bottom), "grid faint");
            self.svg.text((column, bottom + 17.0), Anchor::Middle, "tick", &label);
        }
        self.svg.line((left, bottom), (right, bottom), "axis");
        self.svg.text((left.min(8.0), 14.0), Anchor::Start, "axis-label", &self.y.label.clone());
        self.svg.text((right, bottom + 36.0), Anchor::End, "axis-label", &self.x.label.clone());
    }
}
