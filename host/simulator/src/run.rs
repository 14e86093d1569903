//! One simulated run: workload, policy, controller, result.

use std::collections::BTreeMap;

use coretuner_controller::{Controller, CycleError, Observed, RunError};
use coretuner_core::event::{Batch, Command, Event};
use coretuner_core::model::{JobId, TimeNs};
use coretuner_core::port::{Backend, Policy, PolicyFault, PredictorIdentity};

use crate::backend::{Measured, Settings, SimBackend, SimError};
use crate::metrics::{collect_jobs, collect_metrics, distribution};
use crate::result::{CycleStats, FORMAT, PolicyInfo, RunResult};
use crate::workload::Workload;

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulateError {
    #[error(transparent)]
    Backend(#[from] SimError),
    #[error(transparent)]
    Cycle(#[from] CycleError),
}

impl From<RunError<SimError>> for SimulateError {
    fn from(error: RunError<SimError>) -> Self {
        match error {
            RunError::Cycle(error) => Self::Cycle(error),
            RunError::Backend(error) => Self::Backend(error),
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Jobs that have ended.
    pub finished: u64,
    /// Jobs that can run at all.
    pub total: u64,
    /// Virtual time.
    pub now_s: f64,
}

/// What the caller wants to see during a run.
pub struct Hooks<'a> {
    /// After each cycle.
    pub progress: &'a mut dyn FnMut(Progress),
    /// Each cycle, for journals and measurements.
    pub cycle: &'a mut dyn FnMut(&Observed<'_>),
}

/// What a result says about policy and predictor beyond the policy's own identity.
#[derive(Clone, Debug)]
pub struct RunLabels {
    /// The policy's configuration as given.
    pub policy_config: serde_json::Value,
    /// What answers `predict`.
    pub predictor: PredictorIdentity,
}

/// Runs `policy` on `workload` until nothing will happen any more. Two runs of the same inputs give the same result.
pub fn simulate<P: Policy>(
    workload: &Workload,
    settings: &Settings,
    policy: P,
    labels: RunLabels,
    hooks: &mut Hooks<'_>,
) -> Result<RunResult, SimulateError> {
    run(workload, settings, policy, labels, hooks, None)
}

/// The same, where `learn` hears of each new point at which a kind's true speed was measured, and says whether
/// predictions of that kind changed by it; policies are told with the next cycle.
pub fn simulate_with_feedback<P: Policy>(
    workload: &Workload,
    settings: &Settings,
    policy: P,
    labels: RunLabels,
    hooks: &mut Hooks<'_>,
    learn: &mut dyn FnMut(&Measured) -> bool,
) -> Result<RunResult, SimulateError> {
    run(workload, settings, policy, labels, hooks, Some(learn))
}

type Learn<'a> = &'a mut dyn FnMut(&Measured) -> bool;

fn run<P: Policy>(
    workload: &Workload,
    settings: &Settings,
    policy: P,
    labels: RunLabels,
    hooks: &mut Hooks<'_>,
    learn: Option<Learn<'_>>,
) -> Result<RunResult, SimulateError> {
    let mut backend = Learning { backend: SimBackend::new(workload, settings.clone())?, learn };
    if backend.learn.is_some() {
        backend.backend.measure();
    }
    let identity = policy.identity().clone();
    let mut controller = Controller::new(policy);
    let mut watch = Watch::new(workload);
    controller.run(&mut backend, &mut |observed: &Observed<'_>| watch.cycle(observed, hooks))?;
    let mut backend = backend.backend;
    backend.close_segments();
    let policy = PolicyInfo {
        name: identity.name,
        version: identity.version,
        digest: identity.digest,
        config: labels.policy_config,
    };
    let jobs = collect_jobs(&backend, &watch.notes);
    Ok(RunResult {
        format: FORMAT,
        workload: workload.info.clone(),
        policy,
        predictor: labels.predictor,
        settings: settings.info(&workload.truth),
        metrics: collect_metrics(&backend, &jobs),
        cycles: watch.stats(),
        jobs,
        series: backend.ledger.samples(),
        segments: backend.segments.finish(),
    })
}

/// A backend whose measurements teach a predictor before the next cycle.
struct Learning<'w, 'l> {
    backend: SimBackend<'w>,
    learn: Option<Learn<'l>>,
}

impl Backend for Learning<'_, '_> {
    type Error = SimError;

    fn next(&mut self, wake_at_ns: Option<TimeNs>) -> Result<Option<Batch>, SimError> {
        let Some(mut batch) = self.backend.next(wake_at_ns)? else { return Ok(None) };
        let Some(learn) = &mut self.learn else { return Ok(Some(batch)) };
        let measured = self.backend.measured(batch.now_ns);
        let kinds = measured.iter().filter(|measured| learn(measured)).map(|measured| measured.kind);
        self.backend.estimates_changed(kinds.collect(), &mut batch.events);
        Ok(Some(batch))
    }

    fn execute(&mut self, now_ns: TimeNs, commands: &[Command]) -> Result<Vec<(JobId, String)>, SimError> {
        self.backend.execute(now_ns, commands)
    }
}

/// Counts what cycles did.
#[derive(Default)]
struct Watch {
    stats: CycleStats,
    fuel: Vec<f64>,
    /// Last reason why a job waits.
    notes: BTreeMap<u32, String>,
    total: u64,
    finished: u64,
}

impl Watch {
    fn new(workload: &Workload) -> Self {
        Self { total: workload.info.jobs - workload.info.never_schedulable, ..Self::default() }
    }

    fn cycle(&mut self, observed: &Observed<'_>, hooks: &mut Hooks<'_>) {
        let report = &observed.outcome.report;
        self.stats.cycles += 1;
        self.stats.actions_accepted += u64::from(report.accepted);
        for (reason, count) in &report.refused {
            *self.stats.refused.entry(reason.name().to_owned()).or_insert(0) += u64::from(*count);
        }
        for verdict in observed.backend_verdicts {
            *self.stats.refused.entry(verdict.reason.name().to_owned()).or_insert(0) += 1;
        }
        if let Some(fault) = &report.fault {
            *self.stats.faults.entry(fault.kind.name().to_owned()).or_insert(0) += 1;
            self.stats.first_fault.get_or_insert_with(|| in_words(fault));
        }
        self.stats.fallback_cycles += u64::from(report.fallback);
        self.stats.guest_memory_bytes_max = self.stats.guest_memory_bytes_max.max(report.memory_bytes);
        self.fuel.extend(report.fuel.map(|fuel| fuel as f64));
        for hold in &report.holds {
            let code =
                hold.reason.as_ref().map_or_else(|| "held by the policy".to_owned(), |reason| reason.code.clone());
            self.notes.insert(hold.job.0, code);
        }
        let ended = observed.batch.events.iter().filter(|event| matches!(event, Event::JobRemoved { .. }));
        self.finished += ended.count() as u64;
        let now_s = observed.batch.now_ns as f64 / 1e9;
        (hooks.progress)(Progress { finished: self.finished, total: self.total, now_s });
        (hooks.cycle)(observed);
    }

    fn stats(&mut self) -> CycleStats {
        let fuel = distribution(std::mem::take(&mut self.fuel));
        CycleStats { fuel, ..std::mem::take(&mut self.stats) }
    }
}

/// The fault and what the policy said last: a panic's text is there, the fault itself names only the trap.
fn in_words(fault: &PolicyFault) -> String {
    match fault.output_tail.last() {
        Some(line) => format!("{fault}; the policy's last words: {line}"),
        None => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use coretuner_contract::cluster::Delta;
    use coretuner_core::port::{Answer, FaultKind, PolicyIdentity};

    use super::*;
    use crate::profile::ProfilePredictor;
    use crate::workload::{GenerateOptions, generate};
    use coretuner_core::port::Predictor;

    /// Never answers, so that the built-in fallback (first in, first out with backfill) does.
    struct Silent(PolicyIdentity);

    impl Silent {
        fn new() -> Self {
            Self(PolicyIdentity { name: "silent".into(), version: "0".into(), digest: "native".into() })
        }

        fn fault() -> PolicyFault {
            let message = "says nothing".to_owned();
            PolicyFault { kind: FaultKind::Trap, message, backtrace: Vec::new(), output_tail: Vec::new() }
        }
    }

    impl Policy for Silent {
        fn identity(&self) -> &PolicyIdentity {
            &self.0
        }
        fn decide(&mut self, _: &Delta) -> Result<Answer, PolicyFault> {
            Err(Self::fault())
        }
        fn reset(&mut self) -> Result<(), PolicyFault> {
            Ok(())
        }
    }

    fn run(workload: &Workload, settings: &Settings) -> RunResult {
        let labels =
            RunLabels { policy_config: serde_json::Value::Null, predictor: ProfilePredictor::new(workload).identity() };
        let hooks = &mut Hooks { progress: &mut |_| {}, cycle: &mut |_| {} };
        simulate(workload, settings, Silent::new(), labels, hooks).expect("result")
    }

    fn generated(jobs: u32, load_jobs_per_hour: f64) -> Workload {
        generate(&GenerateOptions { jobs, load_jobs_per_hour, servers: 2, ..GenerateOptions::default() })
            .expect("valid")
    }

    #[test]
    fn two_runs_give_the_same_bytes() {
        let text =
            |workload: &Workload| serde_json::to_string(&run(workload, &Settings::default())).expect("serialisable");
        let first = text(&generated(200, 1.0));
        assert!(first == text(&generated(200, 1.0)), "two runs differ");
        let back: RunResult = serde_json::from_str(&first).expect("the same format");
        assert_eq!((back.jobs.len(), back.format), (200, FORMAT));
    }

    #[test]
    fn every_job_ends_and_nothing_is_lost() {
        let workload = generated(300, 1.2);
        let result = run(&workload, &Settings::default());
        assert_eq!((result.metrics.jobs_finished, result.jobs.len()), (300, 300));
        assert_eq!(result.cycles.fallback_cycles, result.cycles.cycles);
        assert_eq!(result.cycles.faults.get("trap"), Some(&result.cycles.cycles));
        // Work is conserved: GPU time held is what the jobs need at their request.
        let needed: f64 =
            workload.jobs.iter().map(|job| workload.alone_s(job) * f64::from(job.gpus())).sum::<f64>() / 16.0;
        let span_s = result.metrics.makespan_s;
        assert!((result.metrics.gpu_allocation * span_s / needed - 1.0).abs() < 1e-6, "{:?}", result.metrics);
        let segments: f64 = result.segments.iter().map(|part| part.gpus * (part.to_s - part.from_s)).sum();
        assert!((segments / (needed * 16.0) - 1.0).abs() < 1e-6, "{segments}");
        for (job, trace) in result.jobs.iter().zip(&workload.jobs) {
            let alone_s = workload.alone_s(trace);
            let (start_s, jct_s) = (job.first_start_s.expect("started"), job.jct_s.expect("finished"));
            assert!(start_s >= job.submit_s && jct_s >= alone_s - 1e-6, "{job:?}");
        }
        let metrics = &result.metrics;
        for share in [metrics.gpu_allocation, metrics.gpu_utilisation, metrics.cpu_allocation, metrics.cpu_utilisation]
        {
            assert!((0.0..=1.0).contains(&share), "{metrics:?}");
        }
        assert!(metrics.gpu_utilisation < metrics.gpu_allocation && metrics.cpu_utilisation < metrics.cpu_allocation);
    }

    #[test]
    fn a_job_larger_than_the_cluster_is_reported_and_the_rest_goes_on() {
        let mut workload = generated(20, 5.0);
        let group = &mut workload.jobs[7].spec.groups[0];
        (group.workers_min, group.workers_max) = (64, 64);
        crate::workload::mark_never_schedulable(&mut workload);
        let result = run(&workload, &Settings::default());
        assert_eq!((result.metrics.jobs_finished, result.workload.never_schedulable), (19, 1));
        assert_eq!(result.jobs[7].end, "never-schedulable");
        assert!(result.jobs[7].note.as_deref().is_some_and(|note| note.contains("64 workers")));
    }

    #[test]
    fn each_point_is_measured_once_and_policies_hear_of_it() {
        let workload = generated(60, 2.0);
        let labels = RunLabels {
            policy_config: serde_json::Value::Null,
            predictor: ProfilePredictor::new(&workload).identity(),
        };
        let mut told = 0;
        let mut count = |observed: &Observed<'_>| {
            told +=
                observed.batch.events.iter().filter(|event| matches!(event, Event::EstimatesChanged { .. })).count();
        };
        let hooks = &mut Hooks { progress: &mut |_| {}, cycle: &mut count };
        let mut points = Vec::new();
        let learn = &mut |measured: &Measured| {
            points.push(measured.clone());
            true
        };
        simulate_with_feedback(&workload, &Settings::default(), Silent::new(), labels, hooks, learn).expect("result");
        let distinct: std::collections::BTreeSet<String> = points.iter().map(|point| format!("{point:?}")).collect();
        assert!(points.len() > 10 && distinct.len() == points.len(), "{points:?}");
        assert!(told > 5, "{told}");
        let gnmt = points.iter().find(|point| (point.iterations_per_s * 0.12 - 1.0).abs() < 1e-9);
        assert_eq!(gnmt.map(|point| point.cpu_milli), gnmt.map(|point| point.gpus * 3000));
    }

    #[test]
    fn segments_reach_to_the_horizon() {
        let workload = generated(40, 40.0);
        let settings = Settings { horizon_s: Some(7_200.0), ..Settings::default() };
        let result = run(&workload, &settings);
        let running: Vec<u32> = result.jobs.iter().filter(|job| job.end == "running").map(|job| job.id).collect();
        let open = result.segments.iter().filter(|segment| segment.to_s == 7_200.0);
        let open: std::collections::BTreeSet<u32> = open.map(|segment| segment.job).collect();
        assert!(running.len() > 5 && open.iter().eq(&running), "{running:?} {open:?}");
    }

    #[test]
    fn a_window_counts_its_jobs_only() {
        let workload = generated(100, 1.0);
        let settings = Settings { window: Some((20, 39)), ..Settings::default() };
        let (all, part) = (run(&workload, &Settings::default()), run(&workload, &settings));
        assert_eq!((part.metrics.jobs_counted, all.metrics.jobs_counted), (20, 100));
        assert_eq!(all.jobs, part.jobs);
        assert!(part.metrics.makespan_s < all.metrics.makespan_s);
        let early = run(&workload, &Settings { stop_after_window: true, ..settings });
        assert_eq!(early.metrics, part.metrics);
        assert!(early.cycles.cycles < part.cycles.cycles);
        let ends = |of: &RunResult| of.jobs[20..40].iter().map(|job| job.finish_s).collect::<Vec<_>>();
        assert_eq!(ends(&early), ends(&part));
    }
}
