//! All sizes.

use super::stream::{Size, stream};
use super::timed::{Decision, Timed};
use crate::error::Error;
use crate::part::Part;
use crate::statistics::exponent;
use crate::synergy::{Stage, no_predictor};
use crate::value::Value;
use coretuner_policy_host::{Limits, Mode};
use coretuner_simulator::workload::Workload;
use coretuner_simulator::{Hooks, ProfilePredictor, RunLabels, Settings, distribution, simulate};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Four jobs a node take 95 % of the GPUs.
const JOBS_PER_NODE: u32 = 4;
const NODES: [u32; 6] = [16, 64, 250, 1_000, 5_000, 10_000];
/// Beside them, at the nodes of [`GOAL`].
const JOBS: [u32; 3] = [5_000, 10_000, 40_000];
const GOAL: Size = Size { nodes: 5_000, jobs: 20_000 };
const GOAL_MS: f64 = 20.0;
const EXPONENT_MAX: f64 = 1.1;

/// Decisions that come before those that count: the cluster fills and settles.
const SETTLING: usize = 400;
const COUNTED: usize = 2_000;
/// The same run so often; each decision counts with its fastest time, for what else runs here only ever adds.
const RUNS: usize = 3;

/// What decisions took, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Latency {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
}

/// Measures the whole figure, or a part of it.
pub(crate) fn measure(guests: &Path, part: &Part) -> Result<Vec<Value>, Error> {
    // Deadlines would cut a decision short where this machine is busy with something else.
    let limits = Limits { decide_deadline_ms: 60_000, predict_budget_ms: 60_000, ..Limits::default() };
    let stage = Stage::with_limits(guests, &["coretuner"], Mode::Production, limits)?;
    let mut measured = Vec::new();
    for size in sizes().into_iter().filter(|size| part.has(&name(*size))) {
        let latency = at(&stage, size)?;
        eprintln!("    {}: {latency:?}", name(size));
        measured.push((size, latency));
    }
    Ok(values(&measured))
}

fn sizes() -> Vec<Size> {
    let mut sizes: Vec<Size> = NODES.map(|nodes| Size { nodes, jobs: nodes * JOBS_PER_NODE }).to_vec();
    sizes.extend(JOBS.map(|jobs| Size { jobs, ..GOAL }));
    sizes
}

fn name(size: Size) -> String {
    format!("{} nodes, {} jobs", size.nodes, size.jobs)
}

fn at(stage: &Stage, size: Size) -> Result<Latency, Error> {
    let workload = stream(size, (SETTLING + COUNTED) as u32)?;
    // Each job that comes also ends: two decisions.
    let horizon_s = (SETTLING + COUNTED) as f64 / 2.0 / size.arrivals_per_h() * 3600.0;
    let settings = Settings { horizon_s: Some(horizon_s), segments_max: 0, ..Settings::default() };
    let mut best: Vec<Decision> = Vec::new();
    for run in 0..RUNS {
        let decisions = once(stage, &workload, &settings)?;
        if run == 0 {
            best = decisions;
            continue;
        }
        let same = |(one, other): (&Decision, &Decision)| one.actions == other.actions;
        if best.len() != decisions.len() || !best.iter().zip(&decisions).all(same) {
            let detail = format!("{} against {} decisions, or others", best.len(), decisions.len());
            return Err(Error::Differs { policy: format!("coretuner at {}", name(size)), detail });
        }
        for (best, other) in best.iter_mut().zip(&decisions) {
            best.time = best.time.min(other.time);
        }
    }
    let counted = best.iter().skip(SETTLING).filter(|decision| !decision.image);
    let times = distribution(counted.map(|decision| decision.time.as_secs_f64() * 1e3).collect());
    Ok(Latency { p50_ms: times.median, p99_ms: times.p99, max_ms: times.max })
}

fn once(stage: &Stage, workload: &Workload, settings: &Settings) -> Result<Vec<Decision>, Error> {
    let predictor = Arc::new(ProfilePredictor::new(workload));
    let policy = stage.instance("coretuner", &json!({}), predictor)?;
    let labels = RunLabels { policy_config: json!({}), predictor: no_predictor() };
    let mut hooks = Hooks { progress: &mut |_| {}, cycle: &mut |_| {} };
    let mut decisions = Vec::new();
    let timed = Timed { policy, decisions: &mut decisions };
    let result = simulate(workload, settings, timed, labels, &mut hooks)?;
    match result.cycles.first_fault {
        Some(detail) => Err(Error::Faulty { policy: result.policy.name, detail }),
        None => Ok(decisions),
    }
}

/// Goals first, then every size.
fn values(measured: &[(Size, Latency)]) -> Vec<Value> {
    let mut values = Vec::new();
    if let Some((size, latency)) = measured.iter().find(|(size, _)| *size == GOAL) {
        values.push(Value::new(format!("p99, {}", name(*size)), latency.p99_ms, "ms").at_most(GOAL_MS));
    }
    let along = |of: &dyn Fn(&Size) -> Option<f64>, time: fn(&Latency) -> f64| -> Vec<(f64, f64)> {
        measured.iter().filter_map(|(size, latency)| Some((of(size)?, time(latency)))).collect()
    };
    let nodes = |size: &Size| (size.jobs == size.nodes * JOBS_PER_NODE).then_some(f64::from(size.nodes));
    let jobs = |size: &Size| (size.nodes == GOAL.nodes).then_some(f64::from(size.jobs));
    if along(&nodes, |at| at.p99_ms).len() > 2 {
        let growth = |label: &str, points: &[(f64, f64)]| Value::new(label, exponent(points), "exponent");
        let p99 = along(&nodes, |at| at.p99_ms);
        values.push(growth("growth of p99 with nodes, 4 jobs each", &p99).at_most(EXPONENT_MAX));
        values.push(growth("growth of p50 with nodes, 4 jobs each", &along(&nodes, |at| at.p50_ms)));
        values.push(growth("growth of p99 with jobs on 5000 nodes", &along(&jobs, |at| at.p99_ms)));
        values.push(growth("growth of p50 with jobs on 5000 nodes", &along(&jobs, |at| at.p50_ms)));
    }
    for (size, latency) in measured {
        let name = name(*size);
        values.push(Value::new(format!("{name}: p50"), latency.p50_ms, "ms"));
        values.push(Value::new(format!("{name}: p99"), latency.p99_ms, "ms"));
        values.push(Value::new(format!("{name}: longest"), latency.max_ms, "ms"));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_along_each_axis() {
        let linear = |size: Size| {
            let p50_ms = f64::from(size.nodes) / 1_000.0;
            Latency { p50_ms, p99_ms: p50_ms * f64::from(size.jobs) / 20_000.0, max_ms: 100.0 }
        };
        let measured: Vec<_> = sizes().into_iter().map(|size| (size, linear(size))).collect();
        let values = values(&measured);
        let found: Vec<f64> = values[..5].iter().map(|value| (value.value * 1e9).round() / 1e9).collect();
        assert_eq!(found, [5.0, 2.0, 1.0, 1.0, 0.0]);
        assert_eq!((values[0].goal, values[1].goal, values.len()), (Some(20.0), Some(1.1), 5 + 3 * 9));
    }
}
