//! A job as an author sees it.

use std::sync::Arc;

use coretuner_contract::rules::value_at;

use crate::id::{ClassId, JobId, KindId, NodeId, QueueId};

/// What a job is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Waiting,
    Running,
    /// Told to stop, still holds its allocation.
    Stopping,
}

/// What the backend can change about a worker while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResizeRights {
    /// CPU, both ways.
    pub cpu: bool,
    pub memory_grow: bool,
    pub memory_shrink: bool,
}

impl ResizeRights {
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self { cpu: bits & 1 != 0, memory_grow: bits & 2 != 0, memory_shrink: bits & 4 != 0 }
    }
}

/// Equal workers of a job. Requests and ranges are of one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `worker`, `master`, `ps`, `launcher`, …
    pub role: Arc<str>,
    /// Gang size; `workers_max` is larger only for elastic groups.
    pub workers_min: u32,
    pub workers_max: u32,
    /// A multiple of 1000 for whole devices, or less than 1000 for a share of one.
    pub gpu_milli: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Range in which the CPU of one worker may be tuned; min = max = request when it may not.
    pub cpu_milli_min: u32,
    pub cpu_milli_max: u32,
    pub memory_mib_min: u32,
    pub memory_mib_max: u32,
    pub resize: ResizeRights,
}

impl Group {
    /// Whole devices of one worker.
    pub fn gpus(&self) -> u32 {
        self.gpu_milli / coretuner_contract::GPU_MILLI
    }

    /// Whether a worker uses a part of one device.
    pub fn is_share(&self) -> bool {
        self.gpu_milli > 0 && self.gpu_milli < coretuner_contract::GPU_MILLI
    }
}

/// What a job's workers of one group hold, or shall hold, on one node, in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Index into [`Job::groups`].
    pub group: u32,
    pub node: NodeId,
    pub workers: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    pub gpu_milli: u32,
    /// Bit i = device i of the node: as many bits as whole GPUs, or the one device that is shared. In a plan, 0 lets the
    /// SDK pick.
    pub device_mask: u32,
}

/// A job's progress at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Finished iterations.
    pub iterations: f64,
    /// Rate; 0 while not running or while restarting.
    pub iterations_per_s: f64,
    /// Attained service, GPU-seconds.
    pub service_gpu_s: f64,
    /// GPUs held now.
    pub service_gpu_s_per_s: f64,
}

/// A training job. Everything in it is what the host last said.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: JobId,
    pub name: Arc<str>,
    pub user: Arc<str>,
    pub queue: QueueId,
    pub class: ClassId,
    pub priority: i32,
    /// 0 = best effort, larger = stronger service class.
    pub tier: u8,
    pub preemptible: bool,
    pub submit_ns: u64,
    pub groups: Vec<Group>,
    /// Total work, where known.
    pub work_iterations: Option<u64>,
    /// The submitter's estimate of the run time at the requested allocation.
    pub estimated_duration_ns: Option<u64>,
    pub deadline_ns: Option<u64>,
    /// Jobs of one kind have the same predictions; none = unknown model.
    pub kind: Option<KindId>,
    pub phase: Phase,
    /// Whether this instance may act on it.
    pub mine: bool,
    pub restarts: u32,
    /// Whole present allocation, in the host's order.
    pub allocations: Vec<Allocation>,
    pub(crate) since_ns: u64,
    pub(crate) point: Progress,
    /// Hash of its state rows; none before the first.
    pub(crate) hash: Option<u32>,
}

impl Job {
    /// Progress at `now_ns`, by the contract's change-point rule.
    pub fn progress(&self, now_ns: u64) -> Progress {
        let at = |value, rate| value_at(value, rate, self.since_ns, now_ns);
        Progress {
            iterations: at(self.point.iterations, self.point.iterations_per_s),
            service_gpu_s: at(self.point.service_gpu_s, self.point.service_gpu_s_per_s),
            ..self.point
        }
    }

    /// Iterations still to do at `now_ns`; none when the total work is unknown.
    pub fn remaining_iterations(&self, now_ns: u64) -> Option<f64> {
        let total = self.work_iterations? as f64;
        Some((total - self.progress(now_ns).iterations).max(0.0))
    }

    /// GPUs of the smallest gang, in thousandths.
    pub fn gpu_milli_min(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.workers_min) * u64::from(group.gpu_milli)).sum()
    }

    /// CPU request of the smallest gang.
    pub fn cpu_milli_min(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.workers_min) * u64::from(group.cpu_milli)).sum()
    }

    /// GPUs held, in thousandths.
    pub fn gpu_milli_held(&self) -> u64 {
        self.allocations.iter().map(|row| u64::from(row.gpu_milli)).sum()
    }

    /// Whether it waits for a place.
    pub fn is_waiting(&self) -> bool {
        self.phase == Phase::Waiting
    }

    /// Whether it runs and was not told to stop.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }
}
