//! Both policies on every mix.

use super::saturated::{RHO, Saturated, saturated};
use crate::error::Error;
use crate::part::Part;
use crate::statistics::of_ratios;
use crate::synergy::{Cell, Contender, Order, Stage, Time, all};
use crate::value::Value;
use coretuner_policy_host::Mode;
use coretuner_simulator::workload::Gangs;
use std::path::Path;

const SEEDS: u64 = 4;
/// Least share of the bound with one-GPU jobs, and with gangs.
const SINGLE_MIN: f64 = 0.99;
const GANGS_MIN: f64 = 0.955;

/// Ours and Synergy-Tune's, on the same jobs.
type Pair = [Saturated; 2];

/// Measures the whole figure, or a part of it.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    let cells: Vec<Cell> =
        Cell::every(&[RHO], &[Order::Fifo]).into_iter().filter(|cell| part.has(&cell.name())).collect();
    let stage = Stage::new(guests, &["coretuner", "synergy-tune"], Mode::Metered)?;
    let outcomes = all(&cells, part.seeds(SEEDS), |_, workload| {
        let ours = saturated(&stage, &Contender::coretuner(Order::Fifo, Time::Events, 0.0), workload)?;
        Ok([ours, saturated(&stage, &Contender::tune(Order::Fifo), workload)?])
    })?;
    Ok(cells.iter().zip(&outcomes).flat_map(|(cell, pairs)| rows(cell, pairs)).collect())
}

fn rows(cell: &Cell, pairs: &[Pair]) -> [Value; 3] {
    let over = |of: &dyn Fn(&Pair) -> f64| of_ratios(&pairs.iter().map(of).collect::<Vec<f64>>());
    let name = cell.jobs_name();
    let goal = if cell.gangs == Gangs::Single { SINGLE_MIN } else { GANGS_MIN };
    [
        Value::estimate(format!("{name}: coretuner"), over(&|[ours, _]| ours.lp_share), "of bound").at_least(goal),
        Value::estimate(format!("{name}: Synergy-Tune"), over(&|[_, tune]| tune.lp_share), "of bound"),
        Value::estimate(
            format!("{name}: throughput, coretuner / Synergy-Tune"),
            over(&|[ours, tune]| ours.throughput / tune.throughput),
            "ratio",
        ),
    ]
}
