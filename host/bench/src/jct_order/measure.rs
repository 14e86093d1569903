//! Every order of ours and Synergy-Tune's best one, with free moves and with restarts that cost.

use super::table::values;
use crate::error::Error;
use crate::part::Part;
use crate::synergy::{Cell, Contender, Costs, Order, Outcome, Stage, Time, all, job_times};
use crate::value::Value;
use coretuner_policy_host::Mode;
use std::path::Path;

const RHO: f64 = 1.05;
const SEEDS: u64 = 6;
/// Orders of ours that are tried.
pub(super) const ORDERS: [Order; 4] = [Order::Fifo, Order::Las, Order::Srtf, Order::Srsf];
/// What each restart costs, seconds.
pub(super) const RESTARTS_S: [f64; 2] = [0.0, 60.0];

/// At one restart cost, on the same jobs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcomes {
    /// Synergy-Tune with shortest remaining time first.
    pub(super) tune: Outcome,
    /// Ours, by [`ORDERS`].
    pub(super) ours: Vec<Outcome>,
}

/// Measures the whole figure, or a part of it.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    let cells: Vec<Cell> = Cell::every(&[RHO], &[Order::Srtf])
        .into_iter()
        .filter(|cell| cell.is_balanced() && part.has(&cell.jobs_name()))
        .collect();
    let stage = Stage::new(guests, &["coretuner", "synergy-tune"], Mode::Metered)?;
    let outcomes = all(&cells, part.seeds(SEEDS), |_, workload| {
        let at = |restart_s: f64| {
            let of = |contender: Contender| job_times(&stage, &contender, workload, Costs { restart_s });
            let ours = ORDERS.map(|order| of(Contender::coretuner(order, Time::Events, restart_s)));
            Ok(Outcomes {
                tune: of(Contender::tune(Order::Srtf))?,
                ours: ours.into_iter().collect::<Result<_, Error>>()?,
            })
        };
        RESTARTS_S.map(at).into_iter().collect::<Result<Vec<_>, Error>>()
    })?;
    Ok(values(&cells, &outcomes))
}
