//! All contenders on every cell.

use super::table::values;
use crate::error::Error;
use crate::part::Part;
use crate::synergy::{Cell, Contender, Costs, ORDERS, Outcome, Stage, Time, all, job_times};
use crate::value::Value;
use coretuner_policy_host::Mode;
use std::path::Path;

const RHOS: [f64; 4] = [0.5, 0.85, 0.95, 1.02];
/// Durations are heavy-tailed: fewer seeds would leave wide intervals.
const SEEDS: u64 = 6;

/// What each contender needed, on the same jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcomes {
    pub(super) tune: Outcome,
    pub(super) proportional: Outcome,
    pub(super) events: Outcome,
    pub(super) rounds: Outcome,
}

/// Measures the whole figure, or a part of it.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    let cells: Vec<Cell> = Cell::every(&RHOS, &ORDERS).into_iter().filter(|cell| part.has(&cell.name())).collect();
    let stage = Stage::new(guests, &["coretuner", "synergy-tune", "proportional"], Mode::Metered)?;
    let outcomes = all(&cells, part.seeds(SEEDS), |task, workload| {
        let order = task.cell.order;
        let of = |contender: Contender| job_times(&stage, &contender, workload, Costs::default());
        Ok(Outcomes {
            tune: of(Contender::tune(order))?,
            proportional: of(Contender::proportional(order))?,
            events: of(Contender::coretuner(order, Time::Events, 0.0))?,
            rounds: of(Contender::coretuner(order, Time::Rounds, 0.0))?,
        })
    })?;
    Ok(values(&cells, &outcomes, part.is_all()))
}
