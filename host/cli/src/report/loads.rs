//! A figure against the load.

use super::page;
use super::plot::{Axis, Frame, Scale, Size, fill_class, line_class, stroke_class};
use crate::comparison::Comparison;
use crate::format::plain;
use crate::metric::by_key;

/// Mean JCT of each policy against jobs per hour.
pub(crate) fn section(comparison: &Comparison) -> String {
    page::figure(
        "Mean JCT against load",
        "Mean over seeds with its 95 % interval; lines only join the points.",
        &page::series_legend(&comparison.labels),
        |size| draw(size, comparison),
    )
}

/// Load, mean and half width of one policy.
type Point = (f64, f64, Option<f64>);

fn points(comparison: &Comparison, policy: usize) -> Vec<Point> {
    let Some(metric) = by_key("jct_mean_s") else { return Vec::new() };
    let known = comparison.loads.iter().enumerate().filter_map(|(at, load)| load.map(|load| (at, load)));
    let mut points: Vec<Point> = known
        .map(|(at, load)| {
            let summary = comparison.summary(metric, policy, at);
            (load, summary.mean, summary.half_width)
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn draw(size: Size, comparison: &Comparison) -> String {
    let all: Vec<Vec<Point>> = (0..comparison.labels.len()).map(|policy| points(comparison, policy)).collect();
    let flat = || all.iter().flatten();
    let high = flat().map(|(_, mean, half)| mean + half.unwrap_or(0.0)).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let (low_x, high_x) = flat().fold((f64::INFINITY, 0.0f64), |(low, high), (x, ..)| (low.min(*x), high.max(*x)));
    let room = ((high_x - low_x) * 0.05).max(high_x * 0.01);
    let ticks = all.first().map_or(Vec::new(), |points| points.iter().map(|(x, ..)| (*x, plain(*x))).collect());
    let x = Axis {
        scale: Scale::Linear { low: low_x - room, high: high_x + room },
        ticks,
        label: "load [jobs/h]".to_owned(),
    };
    let mut frame = Frame::new(size, 320.0, 54.0, x, Axis::time(high * 1.08, 5, "mean JCT"));
    for (policy, points) in all.iter().enumerate() {
        let label = comparison.labels.get(policy).map_or("", String::as_str);
        let line: Vec<_> = points.iter().map(|(x, y, _)| (*x, *y)).collect();
        frame.line(&line, &line_class(policy), label);
        for (x, mean, half) in points {
            let (column, row) = (frame.px(*x), frame.py(*mean));
            if let Some(half) = half {
                let (bottom, top) = (frame.py(mean - half), frame.py(mean + half));
                frame.svg.line((column, bottom), (column, top), &stroke_class(policy));
            }
            frame.svg.circle((column, row), 3.5, &fill_class(policy), Some(label));
        }
    }
    frame.svg.finish("Mean JCT against load")
}
