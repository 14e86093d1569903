//! The cluster over time: GPUs and CPU cores, held and put to use.

use coretuner_simulator::result::Sample;

use super::plot::{Axis, Frame, Size, line_class};
use super::sampling::{Step, step_line};

/// One line over time.
pub(crate) struct Line {
    pub(crate) label: String,
    /// Style classes: a series, and how it is drawn.
    pub(crate) class: String,
    pub(crate) steps: Vec<Step>,
}

impl Line {
    /// `value` of every sample.
    pub(crate) fn of(label: &str, class: &str, series: &[Sample], value: fn(&Sample) -> f64) -> Self {
        let steps = series.iter().map(|sample| (sample.t_s, value(sample))).collect();
        Self { label: label.to_owned(), class: class.to_owned(), steps }
    }

    /// The same in the style of series `at`.
    pub(crate) fn series(label: &str, at: usize, series: &[Sample], value: fn(&Sample) -> f64) -> Self {
        Self::of(label, &line_class(at), series, value)
    }
}

/// Lines against time with the cluster's capacity as a ceiling.
pub(crate) fn draw(size: Size, lines: &[Line], capacity: f64, end_s: f64, label: &str) -> String {
    let x = Axis::time(end_s, size.ticks(), "time");
    let mut frame = Frame::new(size, 300.0, 54.0, x, Axis::numbers(capacity * 1.06, 5, label));
    frame.line(&[(0.0, capacity), (end_s, capacity)], "capacity", "capacity");
    let bins = if size == Size::Wide { 360 } else { 120 };
    for line in lines {
        let points = step_line(&line.steps, end_s, bins);
        frame.line(&points, &line.class, &line.label);
    }
    frame.svg.finish(label)
}
