//! From a finished backend to the figures of a result.

use std::collections::BTreeMap;

use super::distribution::distribution;
use crate::backend::{JobRun, Phase, SimBackend};
use crate::result::{JobOutcome, Metrics};
use crate::workload::{TraceJob, Workload};

/// One outcome per job; `notes` say why jobs waited, by job.
pub(crate) fn collect_jobs(backend: &SimBackend<'_>, notes: &BTreeMap<u32, String>) -> Vec<JobOutcome> {
    let pairs = backend.workload.jobs.iter().zip(&backend.jobs).zip(0..);
    pairs.map(|((job, run), id)| outcome(backend.workload, job, run, id, notes.get(&id))).collect()
}

fn outcome(workload: &Workload, job: &TraceJob, run: &JobRun, id: u32, note: Option<&String>) -> JobOutcome {
    let seconds = |at_ns: u64| at_ns as f64 / 1e9;
    let jct_s = run.finish_ns.map(|finish| seconds(finish - job.spec.submit_ns));
    let end = match (run.phase, &job.never) {
        (_, Some(_)) => "never-schedulable",
        (Phase::Done | Phase::Ended, _) => "finished",
        (Phase::Running, _) => "running",
        (Phase::Waiting | Phase::Absent, _) => "waiting",
    };
    JobOutcome {
        id,
        name: job.spec.name.clone(),
        model: job.model.clone(),
        gpus: job.gpus(),
        submit_s: seconds(job.spec.submit_ns),
        first_start_s: run.first_start_ns.map(seconds),
        finish_s: run.finish_ns.map(seconds),
        jct_s,
        rho: jct_s.map(|jct_s| rho(workload, job, run, jct_s)),
        preemptions: run.preemptions,
        restarts: run.restarts,
        resizes: run.resizes,
        end: end.to_owned(),
        note: job.never.clone().or_else(|| if end == "waiting" { note.cloned() } else { None }),
    }
}

/// JCT / time alone on an equal share (Themis): the GPUs divided by the mean number of jobs in the cluster while this
/// one was there. A share smaller than the gang is had in turns.
fn rho(workload: &Workload, job: &TraceJob, run: &JobRun, jct_s: f64) -> f64 {
    let contenders = (run.crowd[1] - run.crowd[0]) / jct_s;
    let turns = f64::from(job.gpus()) * contenders / (workload.gpus() as f64).max(1.0);
    jct_s / (workload.alone_s(job) * turns.max(1.0))
}

/// Figures over the counted jobs, and over the time from the first counted submission to the last counted end.
pub(crate) fn collect_metrics(backend: &SimBackend<'_>, jobs: &[JobOutcome]) -> Metrics {
    let counted: Vec<&JobOutcome> =
        jobs.iter().filter(|job| backend.settings.counts(job.id as usize) && job.end != "never-schedulable").collect();
    let values = |of: fn(&JobOutcome) -> Option<f64>| counted.iter().filter_map(|job| of(job)).collect::<Vec<f64>>();
    let rhos = values(|job| job.rho);
    let unfair = rhos.iter().filter(|rho| **rho > 1.0).count() as f64 / (rhos.len() as f64).max(1.0);
    let last_s = values(|job| job.finish_s).into_iter().fold(0.0, f64::max);
    let first_s = values(|job| Some(job.submit_s)).into_iter().fold(f64::INFINITY, f64::min);
    let sum = |of: fn(&JobOutcome) -> u32| counted.iter().map(|job| u64::from(of(job))).sum::<u64>();
    let metrics = Metrics {
        jobs_counted: counted.len() as u64,
        jobs_finished: counted.iter().filter(|job| job.finish_s.is_some()).count() as u64,
        jct_s: distribution(values(|job| job.jct_s)),
        queueing_delay_s: distribution(values(|job| job.first_start_s.map(|start_s| start_s - job.submit_s))),
        makespan_s: (last_s - first_s).max(0.0),
        fairness_rho: distribution(rhos),
        fairness_unfair_share: unfair,
        preemptions: sum(|job| job.preemptions),
        restarts: sum(|job| job.restarts),
        resizes: sum(|job| job.resizes),
        ..Metrics::default()
    };
    with_utilisation(metrics, backend)
}

fn with_utilisation(metrics: Metrics, backend: &SimBackend<'_>) -> Metrics {
    let (start, end) = backend.ledger.window();
    let dt_s = (end.at_ns.saturating_sub(start.at_ns) as f64 / 1e9).max(f64::MIN_POSITIVE);
    let nodes = &backend.workload.nodes;
    let gpus = backend.workload.gpus() as f64;
    let cores = nodes.iter().map(|node| f64::from(node.cpu_milli)).sum::<f64>() / 1000.0;
    let memory_mib = nodes.iter().map(|node| f64::from(node.memory_mib)).sum::<f64>();
    let share = |used: f64, have: f64| if have > 0.0 { used / dt_s / have } else { 0.0 };
    Metrics {
        gpu_allocation: share(end.gpus - start.gpus, gpus),
        gpu_utilisation: share(end.gpus_effective - start.gpus_effective, gpus),
        cpu_allocation: share(end.cores - start.cores, cores),
        cpu_utilisation: share(end.cores_useful - start.cores_useful, cores),
        memory_allocation: share(end.memory_mib - start.memory_mib, memory_mib),
        gpus_stranded_by_cpu: (end.stranded - start.stranded) / dt_s,
        ..metrics
    }
}
