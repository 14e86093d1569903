//! A cluster that has been at work for long: its jobs are in the midst of their work, and others come as they end.

use crate::error::Error;
use coretuner_simulator::workload::{Gangs, GenerateOptions, TraceJob, Workload, generate, jobs_per_hour_for};

/// The longest job, hours (see the workload's definition): what came before is gone.
const HISTORY_H: f64 = 10_000.0 / 60.0;
/// GPUs per job in the mean.
const GPUS_PER_JOB: f64 = 1.9;
/// Most of the cluster's GPU time that arrivals ask for: jobs beyond it wait from the start, and the queue stays.
const UTILISATION_MAX: f64 = 0.95;

/// A size to measure at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Size {
    pub(super) nodes: u32,
    /// Running or waiting.
    pub(super) jobs: u32,
}

impl Size {
    /// Share of the cluster's GPUs that so many jobs ask for.
    fn utilisation(self) -> f64 {
        f64::from(self.jobs) * GPUS_PER_JOB / (8.0 * f64::from(self.nodes))
    }

    /// Arrivals per hour that keep the number of jobs where it is.
    pub(super) fn arrivals_per_h(self) -> f64 {
        jobs_per_hour_for(self.utilisation().min(UTILISATION_MAX), self.nodes, Gangs::Published)
    }
}

/// Jobs that are there at time 0 with the work that they still have, and `later` more. Who is there is drawn by running a
/// history without a limit on GPUs, as in a queue of type M/G/∞: exact for a cluster where nobody waits for long.
pub(super) fn stream(size: Size, later: u32) -> Result<Workload, Error> {
    let past_per_h = jobs_per_hour_for(size.utilisation(), size.nodes, Gangs::Published);
    let past = (past_per_h * HISTORY_H).round() as u32;
    let options = GenerateOptions {
        jobs: past + later,
        load_jobs_per_hour: past_per_h,
        servers: size.nodes,
        ..GenerateOptions::default()
    };
    let mut workload = generate(&options)?;
    let jobs = std::mem::take(&mut workload.jobs);
    let now_s = jobs.get(past as usize).map_or(0.0, |job| job.spec.submit_ns as f64 / 1e9);
    let pace = past_per_h / size.arrivals_per_h();
    let placed = jobs.into_iter().filter_map(|mut job| {
        let alone_s = workload.alone_s(&job);
        place(&mut job, alone_s, now_s, pace).then_some(job)
    });
    workload.jobs = placed.collect();
    Ok(workload)
}

/// Moves a job's submission to where it is seen from `now_s`; whether it is there then or later.
fn place(job: &mut TraceJob, alone_s: f64, now_s: f64, pace: f64) -> bool {
    let since_s = now_s - job.spec.submit_ns as f64 / 1e9;
    if since_s <= 0.0 {
        job.spec.submit_ns = (-since_s * pace * 1e9) as u64;
        return true;
    }
    let left = 1.0 - since_s / alone_s;
    job.spec.work_iterations = (job.spec.work_iterations as f64 * left).ceil().max(1.0) as u64;
    job.spec.submit_ns = 0;
    left > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(size: Size) {
        let later = 500;
        let workload = stream(size, later).expect("valid");
        let there = workload.jobs.iter().filter(|job| job.spec.submit_ns == 0).count();
        assert_eq!(workload.jobs.len(), there + later as usize - 1, "the first that comes later comes at 0");
        assert!((there as f64 / f64::from(size.jobs) - 1.0).abs() < 0.15, "{there} of {}", size.jobs);
        let last_h = workload.jobs.last().expect("jobs").spec.submit_ns as f64 / 3.6e12;
        assert!((f64::from(later) / last_h / size.arrivals_per_h() - 1.0).abs() < 0.15, "{last_h}");
        let ordered = workload.jobs.windows(2).all(|pair| pair[0].spec.submit_ns <= pair[1].spec.submit_ns);
        assert!(ordered && workload.jobs.iter().all(|job| job.spec.work_iterations > 0));
    }

    #[test]
    fn as_many_jobs_are_there_as_asked_for() {
        check(Size { nodes: 100, jobs: 400 });
        check(Size { nodes: 100, jobs: 800 });
    }
}
