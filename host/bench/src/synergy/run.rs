//! One simulated run.

use super::contender::Contender;
use super::stage::Stage;
use crate::error::Error;
use coretuner_core::port::{Predictor, PredictorIdentity};
use coretuner_simulator::result::RunResult;
use coretuner_simulator::workload::Workload;
use coretuner_simulator::{Hooks, Measured, ProfilePredictor, RunLabels, Settings, simulate, simulate_with_feedback};
use std::sync::Arc;

/// The jobs that count, by index of submission: those before fill the cluster.
pub(crate) const WINDOW: (u64, u64) = (2_000, 2_999);

/// What moving costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Costs {
    /// Without progress after each start but the first and each move.
    pub(crate) restart_s: f64,
}

/// Job completion times of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) mean_h: f64,
    pub(crate) p99_h: f64,
}

/// What answers the policy, and what learns from measured speeds.
pub(crate) type Predictions<'a> = (Arc<dyn Predictor>, Option<&'a mut dyn FnMut(&Measured) -> bool>);

/// Runs one contender with the workload's own truth as predictions until the window's last job has ended.
pub(crate) fn job_times(
    stage: &Stage,
    contender: &Contender,
    workload: &Workload,
    costs: Costs,
) -> Result<Outcome, Error> {
    outcome(&run(stage, contender, workload, &to_the_end_of_the_window(contender, costs))?)
}

/// The same with other predictions, where moves are free.
pub(crate) fn job_times_predicted(
    stage: &Stage,
    contender: &Contender,
    workload: &Workload,
    predictions: Predictions<'_>,
) -> Result<Outcome, Error> {
    let settings = to_the_end_of_the_window(contender, Costs::default());
    outcome(&run_predicted(stage, contender, workload, &settings, predictions)?)
}

fn to_the_end_of_the_window(contender: &Contender, costs: Costs) -> Settings {
    Settings {
        mode: contender.mode(),
        restart_s: costs.restart_s,
        window: Some(WINDOW),
        stop_after_window: true,
        segments_max: 0,
        ..Settings::default()
    }
}

fn outcome(result: &RunResult) -> Result<Outcome, Error> {
    let (counted, finished) = (result.metrics.jobs_counted, result.metrics.jobs_finished);
    if finished < counted || counted == 0 {
        return Err(Error::Unfinished { policy: result.policy.name.clone(), finished, counted });
    }
    let times = result.metrics.jct_s;
    Ok(Outcome { mean_h: times.mean / 3600.0, p99_h: times.p99 / 3600.0 })
}

/// Runs one contender with the workload's own truth as predictions.
pub(crate) fn run(
    stage: &Stage,
    contender: &Contender,
    workload: &Workload,
    settings: &Settings,
) -> Result<RunResult, Error> {
    let predictions: Predictions<'_> = (Arc::new(ProfilePredictor::new(workload)), None);
    run_predicted(stage, contender, workload, settings, predictions)
}

fn run_predicted(
    stage: &Stage,
    contender: &Contender,
    workload: &Workload,
    settings: &Settings,
    (answers, learn): Predictions<'_>,
) -> Result<RunResult, Error> {
    let policy = stage.instance(contender.policy, &contender.config, answers)?;
    let labels = RunLabels { policy_config: contender.config.clone(), predictor: no_predictor() };
    let mut hooks = Hooks { progress: &mut |_| {}, cycle: &mut |_| {} };
    let result = match learn {
        Some(learn) => simulate_with_feedback(workload, settings, policy, labels, &mut hooks, learn),
        None => simulate(workload, settings, policy, labels, &mut hooks),
    }?;
    // A cycle that the fallback answered is not the policy's.
    if let Some(detail) = &result.cycles.first_fault {
        return Err(Error::Faulty { policy: result.policy.name.clone(), detail: detail.clone() });
    }
    Ok(result)
}

/// Figures say themselves what predicts.
pub(crate) fn no_predictor() -> PredictorIdentity {
    PredictorIdentity { name: "-".into(), digest: "-".into(), engine: "-".into() }
}
