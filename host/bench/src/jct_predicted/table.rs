//! What the outcomes say.

use super::measure::Outcomes;
use crate::statistics::{geometric_mean, of_ratios};
use crate::synergy::Cell;
use crate::value::Value;

/// Largest geometric mean over cells of the ratio to Synergy-Tune.
const MEAN_MAX: f64 = 0.94;

/// A column: name and ratio.
type Column = (&'static str, fn(&Outcomes) -> f64);

const COLUMNS: [Column; 4] = [
    ("calibrated, mean / Tune", |at| at.calibrated.mean_h / at.tune.mean_h),
    ("calibrated, p99 / Tune", |at| at.calibrated.p99_h / at.tune.p99_h),
    ("as trained, mean / Tune", |at| at.as_trained.mean_h / at.tune.mean_h),
    ("as trained, p99 / Tune", |at| at.as_trained.p99_h / at.tune.p99_h),
];

/// Every cell, and the means over cells before it. A part of the figure has no goal.
pub(super) fn values(cells: &[Cell], outcomes: &[Vec<Outcomes>], is_all: bool) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut means = [const { Vec::new() }; COLUMNS.len()];
    for (cell, outcomes) in cells.iter().zip(outcomes) {
        for ((name, column), means) in COLUMNS.iter().zip(&mut means) {
            let estimate = of_ratios(&outcomes.iter().map(column).collect::<Vec<f64>>());
            means.push(estimate.mean);
            rows.push(Value::estimate(format!("{}: {name}", cell.name()), estimate, "ratio"));
        }
    }
    let mean =
        |at: usize| Value::new(format!("geometric mean, {}", COLUMNS[at].0), geometric_mean(&means[at]), "ratio");
    let calibrated = if is_all { mean(0).at_most(MEAN_MAX) } else { mean(0) };
    let mut values = vec![calibrated, mean(2)];
    values.append(&mut rows);
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synergy::{Order, Outcome};

    #[test]
    fn means_over_cells_come_first() {
        let cells = &Cell::every(&[0.95], &[Order::Fifo])[..2];
        let outcome = |mean_h: f64| Outcome { mean_h, p99_h: mean_h };
        let one =
            |ours: f64| vec![Outcomes { tune: outcome(10.0), calibrated: outcome(ours), as_trained: outcome(12.0) }; 2];
        let values = values(cells, &[one(8.0), one(9.8)], true);
        assert_eq!(values.len(), 2 + 2 * 4);
        assert!((values[0].value - libm::sqrt(0.8 * 0.98)).abs() < 1e-12 && values[0].goal == Some(0.94));
        assert!((values[1].value - 1.2).abs() < 1e-12 && values[1].goal.is_none());
    }
}
