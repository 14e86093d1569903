//! What one job may hold, and what it holds at given prices.

use coretuner_simulator::truth::{GroundTruth, Share, TruthId};

/// A server: GPUs, cores, and memory in units of a 24th of it.
const GPUS: u32 = 8;
const CORES: u32 = 24;
const UNITS: u32 = 24;
const MEMORY_MIB: u32 = 512_000;
/// Columns of Synergy's table, memory units per GPU.
const COLUMNS: [u32; 5] = [1, 3, 6, 9, 12];

/// Cores, memory units, and the value: GPUs times the speed relative to the proportional share. Of one job or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) cores: f64,
    pub(super) units: f64,
    pub(super) value: f64,
}

impl Point {
    /// Value less what it costs.
    pub(super) fn net(&self, prices: (f64, f64)) -> f64 {
        self.value - prices.0 * self.cores - prices.1 * self.units
    }

    /// `self` + `times` × `other`.
    pub(super) fn plus(&self, times: f64, other: &Self) -> Self {
        Self {
            cores: self.cores + times * other.cores,
            units: self.units + times * other.units,
            value: self.value + times * other.value,
        }
    }
}

/// Jobs of one model and number of GPUs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Class {
    /// What one job may hold on one server; none holds more for less.
    points: Vec<Point>,
    /// No job may be slower in the mean: that of the proportional share.
    floor: f64,
}

impl Class {
    /// Every whole number of cores from one per GPU, and every column of memory.
    pub(super) fn of(truth: &GroundTruth, model: TruthId, gpu_kind: &str, gpus: u32) -> Option<Self> {
        let seconds = |cores: u32, units_per_gpu: u32| {
            let cores_per_gpu = f64::from(cores) / f64::from(gpus);
            let memory_mib_per_gpu = units_per_gpu * MEMORY_MIB / UNITS;
            truth.iteration_s(model, &Share { gpu_kind, gpus, nodes: 1, cores_per_gpu, memory_mib_per_gpu })
        };
        let share_s = seconds(gpus * CORES / GPUS, UNITS / GPUS)?;
        let mut points = Vec::new();
        for cores in gpus..=CORES {
            for units in COLUMNS.into_iter().filter(|units| units * gpus <= UNITS) {
                let value = f64::from(gpus) * share_s / seconds(cores, units)?;
                points.push(Point { cores: f64::from(cores), units: f64::from(units * gpus), value });
            }
        }
        Some(Self::new(points, f64::from(gpus)))
    }

    pub(super) fn new(points: Vec<Point>, floor: f64) -> Self {
        let beats = |one: &Point, other: &Point| {
            one != other && one.cores <= other.cores && one.units <= other.units && one.value >= other.value
        };
        let kept = points.iter().filter(|point| !points.iter().any(|other| beats(other, point))).copied().collect();
        Self { points: kept, floor }
    }

    /// The best mixture at these prices that is not below the floor: one point, or two that meet on it. Optima of a
    /// linear programme with two rows have no more.
    pub(super) fn response(&self, prices: (f64, f64)) -> Option<Point> {
        let (high, low): (Vec<&Point>, Vec<&Point>) =
            self.points.iter().partition(|point| point.value >= self.floor - 1e-9);
        let mixed = low.iter().flat_map(|below| high.iter().map(|above| self.mixture(below, above)));
        let all = high.iter().map(|point| **point).chain(mixed);
        all.max_by(|one, other| one.net(prices).total_cmp(&other.net(prices)))
    }

    /// Of two points, one below and one above the floor, what is just on it.
    fn mixture(&self, below: &Point, above: &Point) -> Point {
        let part = ((above.value - self.floor) / (above.value - below.value)).max(0.0);
        Point::default().plus(part, below).plus(1.0 - part, above)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn points(list: &[(f64, f64, f64)]) -> Vec<Point> {
        list.iter().map(|&(cores, units, value)| Point { cores, units, value }).collect()
    }

    #[test]
    fn what_costs_more_for_less_is_left_out() {
        let class = Class::new(points(&[(1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (3.0, 3.0, 2.0), (3.0, 4.0, 2.0)]), 1.0);
        assert_eq!(class.points, points(&[(1.0, 1.0, 1.0), (3.0, 3.0, 2.0)]));
    }

    #[test]
    fn responses_are_the_best_of_all_mixtures() {
        let class = Class::new(
            points(&[(1.0, 1.0, 0.3), (2.0, 1.0, 0.7), (3.0, 3.0, 1.0), (6.0, 3.0, 1.6), (6.0, 6.0, 2.0)]),
            1.0,
        );
        for prices in [(0.0, 0.0), (0.1, 0.0), (0.4, 0.05), (0.2, 0.3), (1.0, 1.0), (3.0, 0.1)] {
            let found = class.response(prices).expect("points").net(prices);
            let mut best = f64::NEG_INFINITY;
            for (one, other) in class.points.iter().flat_map(|one| class.points.iter().map(move |other| (one, other))) {
                for step in 0..=10_000 {
                    let part = f64::from(step) / 10_000.0;
                    let mixed = Point::default().plus(part, one).plus(1.0 - part, other);
                    if mixed.value >= 1.0 - 1e-9 {
                        best = best.max(mixed.net(prices));
                    }
                }
            }
            assert!(found >= best - 1e-9 && found <= best + 2e-3, "{prices:?}: {found}, not {best}");
        }
    }

    #[test]
    fn published_models_have_the_options_of_their_table() {
        let kinds = coretuner_core::catalog::KindCatalog::default();
        let mut truth = GroundTruth::default();
        let mut class = |name: &str, gpus| {
            let (model, _) = truth.intern(name, &kinds).expect("known");
            Class::of(&truth, model, "V100", gpus).expect("measured")
        };
        let gnmt = class("gnmt", 1);
        assert_eq!(gnmt.points, points(&[(1.0, 1.0, 1.0)]));
        let best = class("alexnet", 8).response((0.0, 0.0)).expect("points");
        assert!((best.value - 8.0).abs() < 1e-9 && best.cores == 24.0, "{best:?}");
        let best = class("m5", 1).response((0.0, 0.0)).expect("points");
        assert!((best.value - 2.5).abs() < 1e-6 && (best.cores, best.units) == (6.0, 9.0), "{best:?}");
    }
}
