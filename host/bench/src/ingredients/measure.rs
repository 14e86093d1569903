//! Throughput at saturation and job completion times of each variant.

use super::variants::VARIANTS;
use crate::error::Error;
use crate::lp_share::{RHO as SATURATED_RHO, Saturated, saturated};
use crate::part::Part;
use crate::statistics::of_ratios;
use crate::synergy::{Cell, Contender, Costs, Order, Outcome, Stage, all, job_times};
use crate::value::Value;
use coretuner_policy_host::Mode;
use std::path::Path;

const RHO: f64 = 0.95;
const SEEDS: u64 = 5;

/// Both measures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Worth {
    saturated: Saturated,
    running: Outcome,
}

/// Measures the whole figure, or a part of it. `cells` chooses among GPUs per job.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    let cells = |rho: f64, order: Order| -> Vec<Cell> {
        let cells = Cell::every(&[rho], &[order]).into_iter();
        cells.filter(|cell| cell.is_balanced() && part.has(&cell.jobs_name())).collect()
    };
    let (full, running) = (cells(SATURATED_RHO, Order::Fifo), cells(RHO, Order::Srtf));
    let stage = Stage::new(guests, &["coretuner", "synergy-tune"], Mode::Metered)?;
    let contenders = |order: Order| -> Vec<Contender> {
        let ours = VARIANTS.iter().map(|variant| variant.contender(order));
        std::iter::once(Contender::tune(order)).chain(ours).collect()
    };
    let full = all(&full, part.seeds(SEEDS), |_, workload| {
        let of = |contender: &Contender| saturated(&stage, contender, workload);
        contenders(Order::Fifo).iter().map(of).collect::<Result<Vec<_>, Error>>()
    })?;
    let times = all(&running, part.seeds(SEEDS), |_, workload| {
        let of = |contender: &Contender| job_times(&stage, contender, workload, Costs::default());
        contenders(Order::Srtf).iter().map(of).collect::<Result<Vec<_>, Error>>()
    })?;
    let pairs = full.iter().zip(&times).zip(&running);
    Ok(pairs.flat_map(|((full, times), cell)| rows(cell, &join(full, times))).collect())
}

/// By seed, then by contender.
fn join(full: &[Vec<Saturated>], times: &[Vec<Outcome>]) -> Vec<Vec<Worth>> {
    let one = |(full, times): (&Vec<Saturated>, &Vec<Outcome>)| {
        full.iter().zip(times).map(|(&saturated, &running)| Worth { saturated, running }).collect()
    };
    full.iter().zip(times).map(one).collect()
}

/// Rows of one cell; the first contender is Synergy-Tune.
fn rows(cell: &Cell, seeds: &[Vec<Worth>]) -> Vec<Value> {
    let names = std::iter::once("Synergy-Tune").chain(VARIANTS.iter().map(|variant| variant.name));
    names.enumerate().flat_map(|(at, name)| row(&format!("{}, {name}", cell.jobs_name()), at, seeds)).collect()
}

fn row(name: &str, at: usize, seeds: &[Vec<Worth>]) -> Vec<Value> {
    let pairs: Vec<(&Worth, &Worth)> = seeds.iter().filter_map(|seed| Some((seed.get(at)?, seed.first()?))).collect();
    let over =
        |of: fn(&Worth, &Worth) -> f64| of_ratios(&pairs.iter().map(|(own, tune)| of(own, tune)).collect::<Vec<f64>>());
    let moves = pairs.iter().map(|(own, _)| own.saturated.moves).sum::<f64>() / pairs.len() as f64;
    let throughput = over(|own, tune| own.saturated.throughput / tune.saturated.throughput);
    vec![
        Value::estimate(format!("{name}: throughput / Tune"), throughput, "ratio"),
        Value::estimate(format!("{name}: of bound"), over(|own, _| own.saturated.lp_share), "of bound"),
        Value::estimate(
            format!("{name}: mean / Tune"),
            over(|own, tune| own.running.mean_h / tune.running.mean_h),
            "ratio",
        ),
        Value::new(format!("{name}: moves per job"), moves, "moves"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_compared_with_synergy_tune() {
        let worth = |throughput: f64, mean_h: f64| Worth {
            saturated: Saturated { throughput, lp_share: 0.9, moves: 2.0 },
            running: Outcome { mean_h, p99_h: 100.0 },
        };
        let cell = Cell::every(&[RHO], &[Order::Srtf])[2];
        let mut seed = vec![worth(1.0, 10.0)];
        seed.extend(VARIANTS.iter().map(|_| worth(1.1, 9.0)));
        let values = rows(&cell, &vec![seed; 3]);
        assert_eq!(values.len(), 4 * (1 + VARIANTS.len()));
        let found: Vec<f64> = values[..8].iter().map(|value| (value.value * 1e6).round() / 1e6).collect();
        assert_eq!(found, [1.0, 0.9, 1.0, 2.0, 1.1, 0.9, 0.9, 2.0]);
        assert_eq!(values[4].label, "(33,33,33), 1 GPU, in rounds, no swaps: throughput / Tune");
    }
}
