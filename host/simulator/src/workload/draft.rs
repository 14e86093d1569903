//! What a reader found in a trace, before the gaps are filled.

use coretuner_core::model::{GroupSpec, NodeSpec, QueueSpec, TimeNs};

/// A trace as read.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// For a person.
    pub name: String,
    /// Reader, as in [`crate::result::WorkloadInfo::format`].
    pub format: String,
    pub digest: String,
    /// Empty = the trace says nothing about the cluster.
    pub nodes: Vec<NodeSpec>,
    /// By name; jobs name theirs. A queue that is only named by jobs is added with weight 1000.
    pub queues: Vec<QueueSpec>,
    pub jobs: Vec<DraftJob>,
    /// Jobs without a model get one that runs alike on every GPU kind and with any memory.
    pub portable_models: bool,
    /// Rules that the reader itself applied.
    pub rules: Vec<String>,
}

/// How much a job has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Iterations(u64),
    /// Run time with the requested allocation, nanoseconds.
    Duration(TimeNs),
}

/// A request with the range in which it may be re-tuned; `None` = not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub request: Option<u32>,
    pub min: Option<u32>,
    pub max: Option<u32>,
}

impl Extent {
    /// May not be re-tuned.
    pub fn rigid(request: u32) -> Self {
        Self { request: Some(request), min: Some(request), max: Some(request) }
    }
}

/// A job as read. Requests are per worker.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftJob {
    /// Line of the file, for messages.
    pub line: u64,
    pub name: String,
    pub user: String,
    /// Empty = the default queue.
    pub queue: String,
    pub submit_ns: TimeNs,
    pub workers: u32,
    /// More than `workers` for an elastic job.
    pub workers_max: u32,
    pub gpu_milli: u32,
    pub cpu_milli: Extent,
    pub memory_mib: Extent,
    /// Worker groups beside the first one, complete.
    pub more_groups: Vec<GroupSpec>,
    /// Key of the ground truth; `None` = not said.
    pub model: Option<String>,
    pub work: Work,
    /// Empty = any.
    pub gpu_kinds: Vec<String>,
    pub priority: i32,
    pub tier: u8,
    pub preemptible: bool,
    pub estimate_ns: TimeNs,
    pub deadline_ns: TimeNs,
}

impl DraftJob {
    /// A preemptible job of `gpus` one-GPU workers, all else unsaid.
    pub fn of_gpus(line: u64, name: String, submit_ns: TimeNs, gpus: u32, work: Work) -> Self {
        Self {
            line,
            name,
            user: String::new(),
            queue: String::new(),
            submit_ns,
            workers: gpus,
            workers_max: gpus,
            gpu_milli: 1000,
            cpu_milli: Extent::default(),
            memory_mib: Extent::default(),
            more_groups: Vec::new(),
            model: None,
            work,
            gpu_kinds: Vec::new(),
            priority: 0,
            tier: 1,
            preemptible: true,
            estimate_ns: 0,
            deadline_ns: 0,
        }
    }

    /// GPUs of the first group, rounded up.
    pub fn gpus(&self) -> u64 {
        (u64::from(self.workers) * u64::from(self.gpu_milli)).div_ceil(1000)
    }
}
