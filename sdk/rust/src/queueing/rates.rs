//! What jobs ran at, or are predicted to run at.

use std::collections::BTreeMap;

use crate::cluster::{Cluster, Eligible, Job, Node};
use crate::id::{GpuKind, JobId};
use crate::policy::Cycle;
use crate::predict::Grid;

/// Iterations per second by job, for jobs that do not run now.
#[derive(Clone, Debug, Default)]
pub(super) struct Rates {
    by_job: BTreeMap<JobId, f64>,
}

/// Jobs with one question: GPU kind, GPUs, nodes spanned, CPU, memory.
type Question = (GpuKind, u32, u32, u32, u32);

impl Rates {
    pub(super) fn retain(&mut self, keep: impl Fn(JobId) -> bool) {
        self.by_job.retain(|job, _| keep(*job));
    }

    pub(super) fn get(&self, job: JobId) -> Option<f64> {
        self.by_job.get(&job).copied()
    }

    pub(super) fn remove(&mut self, job: JobId) {
        self.by_job.remove(&job);
    }

    /// Remembers the rate of a running job.
    pub(super) fn observe(&mut self, job: &Job, now_ns: u64) {
        let rate = job.progress(now_ns).iterations_per_s;
        if rate > 0.0 && rate.is_finite() {
            self.by_job.insert(job.id, rate);
        }
    }

    /// Asks for the rates of waiting jobs that never ran, or whose prediction changed, at what they request. Without an
    /// answer they keep what is known.
    pub(super) fn predict(&mut self, cycle: &mut Cycle<'_>) {
        let mut questions: BTreeMap<Question, Vec<JobId>> = BTreeMap::new();
        for id in cycle.changes.arrived.iter().chain(&cycle.changes.estimates) {
            let job = cycle.cluster.job(*id).filter(|job| job.is_waiting() && job.mine && job.restarts == 0);
            let known = |job: &&Job| job.kind.is_some() && job.work_iterations.is_some();
            if let Some(question) = job.filter(known).and_then(|job| question(cycle.cluster, job)) {
                questions.entry(question).or_default().push(*id);
            }
        }
        for ((gpu_kind, gpus, nodes, cpu, memory), jobs) in questions {
            let grid = Grid { gpu_kind, gpus: vec![(gpus, nodes)], cpu_milli: vec![cpu], memory_mib: vec![memory] };
            let Ok(speeds) = cycle.speeds(&jobs, &grid) else { continue };
            for (i, job) in jobs.iter().enumerate() {
                if let Some(speed) = speeds.get(i, 0, 0, 0) {
                    self.by_job.insert(*job, speed.mean);
                }
            }
        }
    }
}

/// The job's request, on the eligible node with the lowest id.
fn question(cluster: &Cluster, job: &Job) -> Option<Question> {
    let node: &Node = match &cluster.class(job.class)?.nodes {
        Eligible::All => cluster.nodes().next()?,
        Eligible::Nodes(nodes) => nodes.iter().find_map(|id| cluster.node(*id))?,
    };
    let gpus = u32::try_from(job.gpu_milli_min().div_ceil(1000)).ok()?;
    let nodes = if node.devices == 0 { 1 } else { gpus.div_ceil(node.devices).max(1) };
    let cpu = u32::try_from(job.cpu_milli_min()).ok()?;
    let memory = job.groups.iter().map(|group| u64::from(group.workers_min) * u64::from(group.memory_mib)).sum::<u64>();
    Some((node.gpu_kind, gpus, nodes, cpu, u32::try_from(memory).ok()?))
}
