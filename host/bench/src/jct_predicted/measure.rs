//! Calibrated and as trained, on every cell at one load.

use super::held_out::HeldOutModels;
use super::table::values;
use crate::error::Error;
use crate::part::Part;
use crate::synergy::{Cell, Contender, Costs, ORDERS, Outcome, Stage, Time, all, job_times, job_times_predicted};
use crate::value::Value;
use coretuner_policy_host::Mode;
use coretuner_simulator::Measured;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

const RHO: f64 = 0.95;
const SEEDS: u64 = 6;

/// What each needed, on the same jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outcomes {
    /// With exact demands, as after Synergy's profiling of every job.
    pub(super) tune: Outcome,
    /// Ours, learning from the speeds of running jobs.
    pub(super) calibrated: Outcome,
    /// Ours, learning nothing.
    pub(super) as_trained: Outcome,
}

/// Measures the whole figure, or a part of it.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    let cells: Vec<Cell> = Cell::every(&[RHO], &ORDERS).into_iter().filter(|cell| part.has(&cell.name())).collect();
    let stage = Stage::new(guests, &["coretuner", "synergy-tune"], Mode::Metered)?;
    let models = HeldOutModels::open()?;
    let outcomes = all(&cells, part.seeds(SEEDS), |task, workload| {
        let order = task.cell.order;
        // As shipped: predictions do not know what too little memory costs.
        let shipped = json!({ "memory_levels": [1, 2, 3, 4] });
        let ours = Contender::coretuner(order, Time::Events, 0.0).with(&shipped);
        let teacher = Arc::new(models.for_run(workload));
        let learn = &mut |measured: &Measured| teacher.learn(measured);
        let calibrated = job_times_predicted(&stage, &ours, workload, (teacher.clone(), Some(learn)))?;
        // What cannot learn has no use for probes.
        let ours = ours.with(&json!({ "probes_max": 0 }));
        let as_trained = job_times_predicted(&stage, &ours, workload, (Arc::new(models.for_run(workload)), None))?;
        let tune = job_times(&stage, &Contender::tune(order), workload, Costs::default())?;
        Ok(Outcomes { tune, calibrated, as_trained })
    })?;
    Ok(values(&cells, &outcomes, part.is_all()))
}
