//! From values to the interval 0..1, and the marks along it.

use crate::format::{TimeUnit, plain};

/// A mapping of values onto 0..1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear { low: f64, high: f64 },
    Log { low: f64, high: f64 },
}

impl Scale {
    /// Linear from zero to a little above `high`.
    pub(crate) fn from_zero(high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        Self::Linear { low: 0.0, high }
    }

    /// Logarithmic over the positive part of `low..high`.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let high = if high.is_finite() && high > 0.0 { high } else { 1.0 };
        let low = if low.is_finite() && low > 0.0 { low.min(high / 2.0) } else { high / 1e6 };
        Self::Log { low, high }
    }

    /// Where `value` stands; values outside are clamped.
    pub(crate) fn at(self, value: f64) -> f64 {
        let share = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        };
        share.clamp(0.0, 1.0)
    }

    /// Round values for at most about `most` labels, ascending.
    pub(crate) fn ticks(self, most: usize) -> Vec<f64> {
        match self {
            Self::Linear { low, high } => linear_ticks(low, high, most),
            Self::Log { low, high } => log_ticks(low, high, most),
        }
    }
}

/// Labels of round times on a logarithmic axis: 1 s, 10 s, 1 min, …; closer ones where few would show.
pub(crate) fn log_time_ticks(low_s: f64, high_s: f64, most: usize) -> Vec<(f64, String)> {
    const COARSE: [f64; 10] = [0.1, 1.0, 10.0, 60.0, 600.0, 3_600.0, 36_000.0, 86_400.0, 864_000.0, 8_640_000.0];
    const FINE: [f64; 32] = [
        0.1,
        0.2,
        0.5,
        1.0,
        2.0,
        5.0,
        10.0,
        20.0,
        30.0,
        60.0,
        120.0,
        300.0,
        600.0,
        1_200.0,
        1_800.0,
        3_600.0,
        7_200.0,
        10_800.0,
        21_600.0,
        43_200.0,
        86_400.0,
        172_800.0,
        259_200.0,
        604_800.0,
        864_000.0,
        1_728_000.0,
        2_592_000.0,
        5_184_000.0,
        8_640_000.0,
        17_280_000.0,
        34_560_000.0,
        86_400_000.0,
    ];
    let inside =
        |marks: &[f64]| -> Vec<f64> { marks.iter().copied().filter(|at| (low_s..=high_s).contains(at)).collect() };
    let fine = inside(&FINE);
    let marks = if fine.len() <= most { fine } else { inside(&COARSE) };
    let every = marks.len().div_ceil(most.max(1)).max(1);
    marks.into_iter().step_by(every).map(|at| (at, round_time(at))).collect()
}

/// A round time in its largest unit.
fn round_time(seconds: f64) -> String {
    let units = [TimeUnit::Days, TimeUnit::Hours, TimeUnit::Minutes];
    let unit = units.into_iter().find(|unit| seconds >= unit.seconds()).unwrap_or(TimeUnit::Seconds);
    format!("{} {}", plain(seconds / unit.seconds()), unit.symbol())
}

/// Labels of round times on a linear axis, in one unit that the axis label names.
pub(crate) fn linear_time_ticks(high_s: f64, most: usize) -> (TimeUnit, Vec<(f64, String)>) {
    let unit = TimeUnit::for_max(high_s);
    let marks = linear_ticks(0.0, high_s / unit.seconds(), most);
    (unit, marks.into_iter().map(|mark| (mark * unit.seconds(), plain(mark))).collect())
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let span = high - low;
    if !(span.is_finite() && span > 0.0) {
        return vec![low];
    }
    let rough = span / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step * 1.000_001).floor() as i64;
    (first..=last).map(|n| n as f64 * step).collect()
}

fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let first = low.log10().ceil() as i32;
    let last = high.log10().floor() as i32;
    let decades: Vec<f64> = (first..=last).map(|n| 10f64.powi(n)).collect();
    let every = decades.len().div_ceil(most.max(1)).max(1);
    decades.into_iter().step_by(every).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_round_marks() {
        let check = |low: f64, high: f64, most: usize, expected: &[f64]| {
            let ticks = Scale::Linear { low, high }.ticks(most);
            assert_eq!(ticks.len(), expected.len(), "{ticks:?}");
            assert!(ticks.iter().zip(expected).all(|(tick, want)| (tick - want).abs() < 1e-9), "{ticks:?}");
        };
        check(0.0, 10.0, 5, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check(0.0, 1.0, 5, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
        check(0.0, 96.0, 4, &[0.0, 50.0]);
        check(0.0, 0.0, 4, &[0.0]);
    }

    #[test]
    fn maps_values() {
        let check = |scale: Scale, value: f64, expected: f64| {
            let at = scale.at(value);
            assert!((at - expected).abs() < 1e-12, "{at}");
        };
        check(Scale::from_zero(10.0), 5.0, 0.5);
        check(Scale::from_zero(10.0), 20.0, 1.0);
        check(Scale::log(1.0, 100.0), 10.0, 0.5);
        check(Scale::log(1.0, 100.0), 0.0, 0.0);
        check(Scale::log(0.0, 0.0), 1.0, 1.0);
    }

    #[test]
    fn names_times() {
        let labels = |low, high, most| -> Vec<String> {
            log_time_ticks(low, high, most).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(
            labels(30.0, 7_200.0, 10),
            ["30 s", "1 min", "2 min", "5 min", "10 min", "20 min", "30 min", "1 h", "2 h"]
        );
        assert_eq!(labels(30.0, 7_200.0, 4), ["1 min", "10 min", "1 h"]);
        let (unit, ticks) = linear_time_ticks(36_000.0, 5);
        assert_eq!((unit.symbol(), ticks.len(), ticks[1].1.as_str()), ("h", 6, "2"));
    }
}
