//! Distribution of job completion times.

use coretuner_simulator::result::JobOutcome;

use super::plot::{Axis, Frame, Size, line_class};
use super::sampling::even_picks;

/// Points drawn per curve; longer ones keep evenly spaced quantiles.
const POINTS_MAX: usize = 400;

/// One curve: its label and its completion times in seconds, ascending.
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) times_s: Vec<f64>,
}

impl Curve {
    /// Completion times of all finished jobs.
    pub(crate) fn of<'a>(label: &str, jobs: impl Iterator<Item = &'a JobOutcome>) -> Self {
        let mut times_s: Vec<f64> = jobs.filter_map(|job| job.jct_s).filter(|time| *time > 0.0).collect();
        times_s.sort_by(f64::total_cmp);
        Self { label: label.to_owned(), times_s }
    }
}

/// Share of jobs done within a time, logarithmic in time.
pub(crate) fn draw(size: Size, curves: &[Curve]) -> String {
    let low = curves.iter().filter_map(|curve| curve.times_s.first()).copied().fold(f64::INFINITY, f64::min);
    let high = curves.iter().filter_map(|curve| curve.times_s.last()).copied().fold(0.0, f64::max);
    let x = Axis::log_time(low * 0.9, high * 1.05, size.ticks(), "job completion time");
    let y = Axis::numbers(100.0, 5, "share of finished jobs [%]");
    let mut frame = Frame::new(size, 340.0, 46.0, x, y);
    for (at, curve) in curves.iter().enumerate() {
        frame.line(&steps(&curve.times_s), &line_class(at), &curve.label);
    }
    frame.svg.finish("Distribution of job completion times")
}

fn steps(times_s: &[f64]) -> Vec<(f64, f64)> {
    let total = times_s.len() as f64;
    let mut points: Vec<(f64, f64)> = Vec::new();
    for at in even_picks(times_s.len(), POINTS_MAX) {
        let Some(time) = times_s.get(at) else { continue };
        let before = points.last().map_or(0.0, |(_, share)| *share);
        points.push((*time, before));
        points.push((*time, (at as f64 + 1.0) / total * 100.0));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbs_to_all_jobs() {
        assert_eq!(steps(&[1.0, 2.0]), [(1.0, 0.0), (1.0, 50.0), (2.0, 50.0), (2.0, 100.0)]);
        let many: Vec<f64> = (1..=5_000).map(f64::from).collect();
        let points = steps(&many);
        assert!(points.len() <= 2 * POINTS_MAX);
        assert_eq!(points.last(), Some(&(5_000.0, 100.0)));
    }
}
