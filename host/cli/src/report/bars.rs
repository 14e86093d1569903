//! Comparison bars: a mean per policy, its interval, and each seed as a dot.

use super::plot::{Anchor, Axis, Frame, Scale, Size, fill_class};
use crate::format::{TimeUnit, digits, percent};

/// One bar.
pub(crate) struct Bar {
    pub(crate) label: String,
    pub(crate) mean: f64,
    /// Half of the 95 % interval.
    pub(crate) half: Option<f64>,
    /// Value of each seed.
    pub(crate) dots: Vec<f64>,
    /// Series number, for the colour.
    pub(crate) series: usize,
}

/// What the bars measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Time,
    Percent,
    Number,
}

const ROW: f64 = 30.0;

/// Horizontal bars from zero.
pub(crate) fn draw(size: Size, title: &str, unit: Unit, bars: &[Bar]) -> String {
    let high = bars.iter().flat_map(reach).filter(|value| value.is_finite()).fold(0.0, f64::max);
    // Letters of half a label, and room to the right for the value.
    let (width, room) = if size == Size::Wide { (12, 1.18) } else { (8, 1.6) };
    let left =
        bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0).clamp(4, 2 * width) as f64 * 7.4 + 12.0;
    let y = Axis { scale: Scale::from_zero(1.0), ticks: Vec::new(), label: String::new() };
    let mut frame = Frame::new(size, bars.len() as f64 * ROW + 84.0, left, axis(size, title, unit, high * room), y);
    for (at, bar) in bars.iter().enumerate() {
        let row = frame.edges().2 + 8.0 + at as f64 * ROW;
        draw_bar(&mut frame, row, bar, unit, high, width);
    }
    frame.svg.finish(title)
}

fn draw_bar(frame: &mut Frame, row: f64, bar: &Bar, unit: Unit, high: f64, letters: usize) {
    let (left, right, ..) = frame.edges();
    let label: String = bar.label.chars().take(2 * letters).collect();
    frame.svg.text((left - 7.0, row + 14.0), Anchor::End, "bar-label", &label);
    if !bar.mean.is_finite() {
        frame.svg.text((left + 6.0, row + 14.0), Anchor::Start, "bar-value", "no value");
        return;
    }
    let tip = frame.px(bar.mean);
    let shown = show(unit, bar.mean, high);
    let class = format!("bar {}", fill_class(bar.series));
    frame.svg.rect((left, row), (tip - left, 20.0), &class, Some(&format!("{}: {shown}", bar.label)));
    let mut end = tip;
    if let Some(half) = bar.half {
        let (low, top) = (frame.px(bar.mean - half), frame.px(bar.mean + half));
        frame.svg.line((low, row + 10.0), (top, row + 10.0), "whisker");
        frame.svg.line((low, row + 5.0), (low, row + 15.0), "whisker");
        frame.svg.line((top, row + 5.0), (top, row + 15.0), "whisker");
        end = end.max(top);
    }
    if bar.dots.len() > 1 {
        for dot in &bar.dots {
            let at = frame.px(*dot);
            frame.svg.circle((at, row + 10.0), 3.0, "dot", Some(&show(unit, *dot, high)));
            end = end.max(at);
        }
    }
    frame.svg.text(((end + 8.0).min(right - 40.0), row + 14.0), Anchor::Start, "bar-value", &shown);
}

fn axis(size: Size, title: &str, unit: Unit, high: f64) -> Axis {
    match unit {
        Unit::Time => Axis::time(high, size.ticks(), title),
        Unit::Percent => {
            let scale = Scale::from_zero(high);
            let ticks =
                scale.ticks(size.ticks()).into_iter().map(|tick| (tick, format!("{:.0}", tick * 100.0))).collect();
            Axis { scale, ticks, label: format!("{title} [%]") }
        }
        Unit::Number => Axis::numbers(high, size.ticks(), title),
    }
}

fn show(unit: Unit, value: f64, high: f64) -> String {
    match unit {
        Unit::Time => {
            let unit = TimeUnit::for_max(high);
            format!("{} {}", unit.show(value), unit.symbol())
        }
        Unit::Percent => format!("{} %", percent(value)),
        Unit::Number => digits(value),
    }
}

fn reach(bar: &Bar) -> Vec<f64> {
    let mut ends = bar.dots.clone();
    ends.push(bar.mean + bar.half.unwrap_or(0.0));
    ends
}
