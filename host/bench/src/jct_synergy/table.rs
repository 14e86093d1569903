//! What the outcomes say.

use super::measure::Outcomes;
use crate::statistics::{geometric_mean, of_ratios};
use crate::synergy::{Cell, Outcome};
use crate::value::Value;

/// Largest ratio of mean times to Synergy-Tune in any cell.
const WORST_MAX: f64 = 1.00;
/// The load at which the geometric mean has a goal.
const RHO: f64 = 0.95;
const MEAN_MAX: f64 = 0.90;

/// A column: name, what is compared, with what.
type Column = (&'static str, fn(&Outcomes) -> f64);

const COLUMNS: [Column; 6] = [
    ("mean / Tune", |at| ratio(at.events, at.tune, |of| of.mean_h)),
    ("p99 / Tune", |at| ratio(at.events, at.tune, |of| of.p99_h)),
    ("mean / proportional", |at| ratio(at.events, at.proportional, |of| of.mean_h)),
    ("p99 / proportional", |at| ratio(at.events, at.proportional, |of| of.p99_h)),
    ("in rounds, mean / Tune", |at| ratio(at.rounds, at.tune, |of| of.mean_h)),
    ("in rounds, p99 / Tune", |at| ratio(at.rounds, at.tune, |of| of.p99_h)),
];

fn ratio(ours: Outcome, theirs: Outcome, of: fn(Outcome) -> f64) -> f64 {
    of(ours) / of(theirs)
}

/// Every cell, and what has a goal before it. A part of the figure has no goals.
pub(super) fn values(cells: &[Cell], outcomes: &[Vec<Outcomes>], is_all: bool) -> Vec<Value> {
    let (mut rows, mut at_rho, mut worst) = (Vec::new(), Vec::new(), f64::NEG_INFINITY);
    for (cell, outcomes) in cells.iter().zip(outcomes) {
        for (at, (name, column)) in COLUMNS.iter().enumerate() {
            let ratios: Vec<f64> = outcomes.iter().map(column).collect();
            let estimate = of_ratios(&ratios);
            rows.push(Value::estimate(format!("{}: {name}", cell.name()), estimate, "ratio"));
            if at == 0 {
                worst = worst.max(estimate.mean);
                at_rho.extend((cell.rho == RHO).then_some(estimate.mean));
            }
        }
    }
    if is_all {
        let mean = Value::new("geometric mean of mean / Tune at rho 0.95", geometric_mean(&at_rho), "ratio");
        rows.insert(0, mean.at_most(MEAN_MAX));
        rows.insert(0, Value::new("largest mean / Tune of any cell", worst, "ratio").at_most(WORST_MAX));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synergy::ORDERS;

    fn outcome(mean_h: f64, p99_h: f64) -> Outcome {
        Outcome { mean_h, p99_h }
    }

    #[test]
    fn cells_are_summed_up_and_judged() {
        let cells = Cell::every(&[0.5, 0.95], &ORDERS);
        let of = |cell: &Cell| {
            let ours = if cell.rho == 0.95 { 8.0 } else { 10.2 };
            let events = outcome(ours, 90.0);
            let one = Outcomes {
                tune: outcome(10.0, 100.0),
                proportional: outcome(20.0, 100.0),
                events,
                rounds: outcome(11.0, 120.0),
            };
            vec![one; 3]
        };
        let outcomes: Vec<_> = cells.iter().map(of).collect();
        let values = values(&cells, &outcomes, true);
        assert_eq!(values.len(), 2 + 36 * 6);
        let found = |at: usize| ((values[at].value * 1e6).round() / 1e6, values[at].goal);
        assert_eq!((found(0), found(1)), ((1.02, Some(1.0)), (0.8, Some(0.9))));
        assert_eq!(values[2].label, "(20,70,10), 1 GPU, rho 0.5, FIFO: mean / Tune");
        let row: Vec<f64> = values[2..8].iter().map(|value| (value.value * 1e6).round() / 1e6).collect();
        assert_eq!(row, [1.02, 0.9, 0.51, 0.9, 1.1, 1.2]);
    }
}
