//! What running jobs show of their true speed, as a monitor would report it.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_core::event::Event;
use coretuner_core::model::{JobId, KindId, TimeNs};

use super::job::{JobRun, Phase, seconds};
use super::sim::SimBackend;
use crate::workload::{TraceJob, Workload};

/// A speed counts as measured after so many iterations at it: single ones scatter too much in real clusters.
const ITERATIONS_MIN: f64 = 50.0;

/// A measured speed, in the units of a predictor's query: totals of the job.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What ran.
    pub kind: KindId,
    /// On which GPUs.
    pub gpu_kind: String,
    /// GPUs of the whole job.
    pub gpus: u32,
    /// Nodes that it spans.
    pub nodes_spanned: u32,
    /// CPU of the whole job.
    pub cpu_milli: u32,
    /// Memory of the whole job.
    pub memory_mib: u32,
    /// Iterations/s of the whole job.
    pub iterations_per_s: f64,
}

type Point = (KindId, String, [u32; 4]);

/// Jobs whose speed is yet to be measured, and the points that were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measurements {
    pub(crate) wanted: bool,
    due: BTreeSet<u32>,
    known: BTreeSet<Point>,
    /// Jobs in the cluster by kind.
    present: BTreeMap<KindId, BTreeSet<u32>>,
}

impl Measurements {
    pub(crate) fn came(&mut self, job: u32, kind: Option<KindId>) {
        if let Some(kind) = kind.filter(|_| self.wanted) {
            self.present.entry(kind).or_default().insert(job);
        }
    }

    pub(crate) fn left(&mut self, job: u32, kind: Option<KindId>) {
        self.due.remove(&job);
        if let Some(jobs) = kind.and_then(|kind| self.present.get_mut(&kind)) {
            jobs.remove(&job);
        }
    }

    /// What the job holds changed.
    pub(crate) fn placed(&mut self, job: u32) {
        if self.wanted {
            self.due.insert(job);
        }
    }
}

impl SimBackend<'_> {
    /// Asks for measurements to be reported.
    pub(crate) fn measure(&mut self) {
        self.measurements.wanted = true;
    }

    /// Measures what has run long enough; equal points are reported once.
    pub(crate) fn measured(&mut self, now_ns: TimeNs) -> Vec<Measured> {
        let mut found = Vec::new();
        let due: Vec<u32> = self.measurements.due.iter().copied().collect();
        for job in due {
            let (Some(run), Some(trace)) = (self.jobs.get(job as usize), self.workload.jobs.get(job as usize)) else {
                continue;
            };
            let waits = run.phase == Phase::Running && !ran_long_enough(run, now_ns);
            if waits {
                continue;
            }
            let measured = (run.phase == Phase::Running).then(|| of(self.workload, trace, run)).flatten();
            self.measurements.due.remove(&job);
            found.extend(measured.filter(|measured| self.measurements.known.insert(point(measured))));
        }
        found
    }

    /// Predictions of these kinds changed: says so about their jobs.
    pub(crate) fn estimates_changed(&self, kinds: BTreeSet<KindId>, events: &mut Vec<Event>) {
        let jobs = kinds.iter().filter_map(|kind| self.measurements.present.get(kind)).flatten();
        let mut jobs: Vec<JobId> = jobs.map(|job| JobId(*job)).collect();
        jobs.sort_unstable();
        if !jobs.is_empty() {
            events.push(Event::EstimatesChanged { jobs });
        }
    }
}

fn ran_long_enough(run: &JobRun, now_ns: TimeNs) -> bool {
    let active_s = seconds(run.segment_ns.max(run.resume_ns), now_ns);
    active_s >= ITERATIONS_MIN * run.speed.iteration_s
}

/// `None` for jobs of unknown kind, of several GPU kinds, or without progress.
fn of(workload: &Workload, trace: &TraceJob, run: &JobRun) -> Option<Measured> {
    let kind = trace.spec.kind?;
    let total = |of: fn(&coretuner_core::model::Allocation) -> u32| run.rows.iter().map(of).sum::<u32>();
    let nodes: BTreeSet<_> = run.rows.iter().map(|row| row.node).collect();
    let gpu_kinds: BTreeSet<&str> =
        nodes.iter().filter_map(|id| workload.nodes.get(id.0 as usize)).map(|node| node.gpu_kind.as_str()).collect();
    let gpu_kind = gpu_kinds.first().filter(|_| gpu_kinds.len() == 1)?;
    let iterations_per_s = 1.0 / run.speed.iteration_s;
    (iterations_per_s > 0.0).then(|| Measured {
        kind,
        gpu_kind: (*gpu_kind).to_owned(),
        gpus: total(|row| row.gpu_milli).div_ceil(1000),
        nodes_spanned: nodes.len() as u32,
        cpu_milli: total(|row| row.cpu_milli),
        memory_mib: total(|row| row.memory_mib),
        iterations_per_s,
    })
}

fn point(measured: &Measured) -> Point {
    let amounts = [measured.gpus, measured.nodes_spanned, measured.cpu_milli, measured.memory_mib];
    (measured.kind, measured.gpu_kind.clone(), amounts)
}
