use std::sync::Arc;

use crate::contract::plan::Reason;
use crate::contract::rules;
use crate::model::{Allocation, ChangePoint, JobId, JobPhase, JobSpec, TimeNs};

/// Which policy instance may act on a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner(pub u32);

impl Owner {
    /// The active policy, which owns every job at first.
    pub const ACTIVE: Self = Self(0);
}

/// Last report of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Latest {
    pub metric: Arc<str>,
    pub at_ns: TimeNs,
    pub value: f64,
}

/// A job and what it holds.
#[derive(Clone, Debug)]
pub struct JobView {
    pub id: JobId,
    /// As submitted; CPU and memory ranges that were left out (0) are the request.
    pub spec: JobSpec,
    pub phase: JobPhase,
    pub owner: Owner,
    /// Starts after the first one, and rescales.
    pub restarts: u32,
    /// Chosen by the last rescale; 0 = as submitted.
    pub batch_per_gpu: u32,
    /// Ascending by (group, node).
    pub allocations: Vec<Allocation>,
    pub progress: ChangePoint,
    /// Reason of the last accepted action about this job: why it waits, or why it was started where it is.
    pub reason: Option<Arc<Reason>>,
    /// Last value of each metric, in order of first report.
    pub latest: Vec<Latest>,
    /// Whether it ever ran.
    pub(crate) started: bool,
    /// Checksum part of this job at the last touch, as seen by those who do not own it.
    pub(crate) hash_visible: u32,
    /// What ownership adds to it.
    pub(crate) hash_mine: u32,
}

impl JobView {
    pub(crate) fn new(id: JobId, spec: JobSpec) -> Self {
        Self {
            id,
            spec,
            phase: JobPhase::Waiting,
            owner: Owner::ACTIVE,
            restarts: 0,
            batch_per_gpu: 0,
            allocations: Vec::new(),
            progress: ChangePoint::default(),
            reason: None,
            latest: Vec::new(),
            started: false,
            hash_visible: 0,
            hash_mine: 0,
        }
    }

    /// GPUs held now, in thousandths.
    pub fn gpu_milli(&self) -> u64 {
        self.allocations.iter().map(|row| u64::from(row.gpu_milli)).sum()
    }

    /// CPU held now, in thousandths of a core.
    pub fn cpu_milli(&self) -> u64 {
        self.allocations.iter().map(|row| u64::from(row.cpu_milli)).sum()
    }

    /// Finished iterations at `now_ns`.
    pub fn iterations_at(&self, now_ns: TimeNs) -> f64 {
        let point = &self.progress;
        rules::value_at(point.iterations, point.iterations_per_s, point.since_ns, now_ns)
    }

    /// Attained service in GPU-seconds at `now_ns`.
    pub fn service_gpu_s_at(&self, now_ns: TimeNs) -> f64 {
        let point = &self.progress;
        rules::value_at(point.service_gpu_s, point.service_gpu_s_per_s, point.since_ns, now_ns)
    }

    /// Checksum parts: as visible, and what being mine adds.
    pub(crate) fn row_hashes(&self) -> (u32, u32) {
        let own = |mine| rules::job_hash([self.id.0, self.phase as u32, mine, self.restarts]);
        let (visible, mine) = (own(0), own(1));
        let rows = self.allocations.iter().map(|row| allocation_hash(self.id, row));
        (rows.fold(visible, u32::wrapping_add), mine.wrapping_sub(visible))
    }
}

fn allocation_hash(job: JobId, row: &Allocation) -> u32 {
    rules::allocation_hash([
        job.0,
        row.group,
        row.node.0,
        row.workers,
        row.cpu_milli,
        row.memory_mib,
        row.gpu_milli,
        row.device_mask,
    ])
}
