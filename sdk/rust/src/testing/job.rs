//! Jobs for tests.

use std::sync::Arc;

use crate::cluster::{Group, Job, Phase, Progress, ResizeRights};
use crate::id::{ClassId, JobId, KindId, QueueId};

/// A job in the making: one group of one-GPU workers with 1 core and 1,000 MiB each, preemptible, any node, unless said
/// otherwise.
#[derive(Clone, Debug)]
pub struct JobBuilder {
    pub(super) job: Job,
    pub(super) iterations_per_s: f64,
}

/// Starts describing a job.
pub fn job(id: u32) -> JobBuilder {
    let group = Group {
        role: Arc::from("worker"),
        workers_min: 1,
        workers_max: 1,
        gpu_milli: 1000,
        cpu_milli: 1000,
        memory_mib: 1000,
        cpu_milli_min: 1000,
        cpu_milli_max: 1000,
        memory_mib_min: 1000,
        memory_mib_max: 1000,
        resize: ResizeRights::default(),
    };
    let job = Job {
        id: JobId(id),
        name: Arc::from(format!("job-{id}")),
        user: Arc::from("user"),
        queue: QueueId(0),
        class: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: u64::from(id),
        groups: vec![group],
        work_iterations: None,
        estimated_duration_ns: None,
        deadline_ns: None,
        kind: Some(KindId(0)),
        phase: Phase::Waiting,
        mine: true,
        restarts: 0,
        allocations: Vec::new(),
        since_ns: 0,
        point: Progress::default(),
        hash: None,
    };
    JobBuilder { job, iterations_per_s: 1.0 }
}

impl JobBuilder {
    fn each_group(mut self, change: impl Fn(&mut Group)) -> Self {
        self.job.groups.iter_mut().for_each(change);
        self
    }

    /// Gang of so many one-GPU workers.
    pub fn gpus(self, gpus: u32) -> Self {
        self.each_group(|group| (group.workers_min, group.workers_max) = (gpus, gpus))
    }

    /// GPU of one worker in thousandths: 0, a share, or whole ones.
    pub fn gpu_milli(self, gpu_milli: u32) -> Self {
        self.each_group(|group| group.gpu_milli = gpu_milli)
    }

    /// Cores of one worker, not tunable.
    pub fn cores(self, cores: u32) -> Self {
        self.each_group(|group| {
            (group.cpu_milli, group.cpu_milli_min, group.cpu_milli_max) = (cores * 1000, cores * 1000, cores * 1000);
        })
    }

    /// Memory of one worker, not tunable.
    pub fn memory_mib(self, mib: u32) -> Self {
        self.each_group(|group| (group.memory_mib, group.memory_mib_min, group.memory_mib_max) = (mib, mib, mib))
    }

    /// CPU (cores) and memory of one worker may be tuned within these ranges while it runs.
    pub fn tunable(self, cores: (u32, u32), memory_mib: (u32, u32)) -> Self {
        self.each_group(|group| {
            (group.cpu_milli_min, group.cpu_milli_max) = (cores.0 * 1000, cores.1 * 1000);
            (group.memory_mib_min, group.memory_mib_max) = memory_mib;
            group.resize = ResizeRights { cpu: true, memory_grow: true, memory_shrink: true };
        })
    }

    /// Total iterations; 0 = unknown.
    pub fn work(mut self, iterations: u64) -> Self {
        self.job.work_iterations = (iterations > 0).then_some(iterations);
        self
    }

    /// Rate while it runs in the test bed; 1 unless said.
    pub fn speed(mut self, iterations_per_s: f64) -> Self {
        self.iterations_per_s = iterations_per_s;
        self
    }

    /// The submitter's estimate; 0 = none.
    pub fn estimate_s(mut self, seconds: u64) -> Self {
        self.job.estimated_duration_ns = (seconds > 0).then_some(seconds * 1_000_000_000);
        self
    }

    /// Kind for predictions; none = unknown model.
    pub fn kind(mut self, kind: Option<u32>) -> Self {
        self.job.kind = kind.map(KindId);
        self
    }

    /// Eligibility class.
    pub fn class(mut self, class: u32) -> Self {
        self.job.class = ClassId(class);
        self
    }

    /// Queue.
    pub fn queue(mut self, queue: u32) -> Self {
        self.job.queue = QueueId(queue);
        self
    }

    /// It may not be stopped.
    pub fn not_preemptible(mut self) -> Self {
        self.job.preemptible = false;
        self
    }

    /// Only visible: another instance's job.
    pub fn not_mine(mut self) -> Self {
        self.job.mine = false;
        self
    }

    /// Changes anything else.
    pub fn with(mut self, change: impl FnOnce(&mut Job)) -> Self {
        change(&mut self.job);
        self
    }

    /// The job itself.
    pub fn build(self) -> Job {
        self.job
    }
}
