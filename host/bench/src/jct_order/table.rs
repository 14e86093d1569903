//! What the outcomes say.

use super::measure::{ORDERS, Outcomes, RESTARTS_S};
use crate::statistics::{Estimate, of_ratios};
use crate::synergy::{Cell, Outcome};
use crate::value::Value;

/// Largest ratio of the best order's mean time to Synergy-Tune's.
const BEST_MAX: f64 = 0.75;

/// Every order, and the best one before them: that with the least mean ratio, not the best of each seed.
pub(super) fn values(cells: &[Cell], outcomes: &[Vec<Vec<Outcomes>>]) -> Vec<Value> {
    let (mut best, mut rows) = (Vec::new(), Vec::new());
    for (cell, seeds) in cells.iter().zip(outcomes) {
        for (at, restart_s) in RESTARTS_S.into_iter().enumerate() {
            let runs: Vec<&Outcomes> = seeds.iter().filter_map(|costs| costs.get(at)).collect();
            let name = format!("{}, restarts {restart_s} s", cell.jobs_name());
            let means: Vec<Estimate> = (0..ORDERS.len()).map(|order| ratio(&runs, order, |of| of.mean_h)).collect();
            let pairs = ORDERS.iter().zip(&means);
            if let Some((order, mean)) = pairs.clone().min_by(|one, other| one.1.mean.total_cmp(&other.1.mean)) {
                let label = format!("{name}, best order {}, mean / Tune-SRTF", order.name());
                let value = Value::estimate(label, *mean, "ratio");
                best.push(if restart_s == 0.0 { value.at_most(BEST_MAX) } else { value });
            }
            for (at, (order, mean)) in pairs.enumerate() {
                let row = format!("{name}, {}", order.name());
                let p99 = ratio(&runs, at, |of| of.p99_h);
                rows.push(Value::estimate(format!("{row}: mean / Tune-SRTF"), *mean, "ratio"));
                rows.push(Value::estimate(format!("{row}: p99 / Tune-SRTF"), p99, "ratio"));
                rows.push(Value::new(format!("{row}: mean, h"), hours(&runs, |run| run.ours.get(at)), "h"));
            }
            rows.push(Value::new(format!("{name}, Tune-SRTF: mean, h"), hours(&runs, |run| Some(&run.tune)), "h"));
        }
    }
    best.append(&mut rows);
    best
}

fn ratio(runs: &[&Outcomes], order: usize, of: fn(&Outcome) -> f64) -> Estimate {
    let ratios = runs.iter().filter_map(|run| Some(of(run.ours.get(order)?) / of(&run.tune)));
    of_ratios(&ratios.collect::<Vec<f64>>())
}

fn hours<'a>(runs: &[&'a Outcomes], of: impl Fn(&'a Outcomes) -> Option<&'a Outcome>) -> f64 {
    runs.iter().filter_map(|run| of(run)).map(|outcome| outcome.mean_h).sum::<f64>() / runs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synergy::Order;

    #[test]
    fn the_best_order_is_chosen_over_all_seeds() {
        let cells = &Cell::every(&[1.05], &[Order::Srtf])[..1];
        let outcome = |mean_h: f64| Outcome { mean_h, p99_h: 10.0 * mean_h };
        // Order 0 wins the second seed, order 2 both together.
        let seed = |ours: [f64; 4]| {
            let one = Outcomes { tune: outcome(20.0), ours: ours.map(outcome).to_vec() };
            vec![one.clone(), one]
        };
        let values = values(cells, &[vec![seed([18.0, 18.0, 12.0, 19.0]), seed([11.0, 18.0, 12.0, 19.0])]]);
        assert_eq!(values.len(), 2 + 2 * (4 * 3 + 1));
        assert_eq!(values[0].label, "(20,70,10), 1 GPU, restarts 0 s, best order SRTF, mean / Tune-SRTF");
        assert!((values[0].value - 0.6).abs() < 1e-12 && values[0].goal == Some(0.75) && values[1].goal.is_none());
        let hours = values.iter().find(|value| value.label.contains("restarts 60 s, FIFO: mean, h"));
        assert_eq!(hours.map(|value| value.value), Some(14.5));
    }
}
