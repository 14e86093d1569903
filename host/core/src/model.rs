//! Nodes, queues, jobs and allocations, as a backend describes them.

use serde::{Deserialize, Serialize};

/// Nanoseconds since the backend's epoch (virtual or wall).
pub type TimeNs = u64;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// The number has no meaning of its own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

id!(
    /// A node; given by the backend, never reused.
    NodeId
);
id!(
    /// A job; given by the backend, never reused.
    JobId
);
id!(
    /// A queue.
    QueueId
);
id!(
    /// An eligibility class: a set of nodes that its jobs may use.
    ClassId
);
id!(
    /// Jobs of one kind have the same throughput: model, batch, input pipeline (see [`crate::catalog::KindCatalog`]).
    KindId
);

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeSpec {
    pub name: String,
    /// GPU product, for example `V100`; empty without GPUs.
    pub gpu_kind: String,
    /// 1000 = one core.
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Storage or network read rate available to jobs; 0 = unknown.
    pub storage_mib_per_s: u32,
    /// GPU devices, at most [`crate::contract::DEVICES_MAX`].
    pub devices: u32,
    pub device_memory_mib: u32,
    pub zone: Option<String>,
    pub rack: Option<String>,
    pub link_domain: Option<String>,
}

/// Whether a node takes jobs; the discriminants are the contract's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum NodeState {
    #[default]
    Schedulable = 0,
    /// Keeps its jobs, takes no new ones.
    Cordoned = 1,
    /// Its jobs must leave.
    Draining = 2,
}

/// Fair-share settings of a queue. `None` = no such bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    pub name: String,
    pub parent: Option<QueueId>,
    pub weight_milli: u32,
    pub guaranteed_gpu_milli: Option<u32>,
    pub maximum_gpu_milli: Option<u32>,
    pub guaranteed_cpu_milli: Option<u32>,
    pub maximum_cpu_milli: Option<u32>,
}

/// Nodes of an eligibility class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Eligibility {
    /// Every node, present and future.
    All,
    /// These nodes, ascending.
    Nodes(Vec<NodeId>),
}

/// What the backend can change about a running worker; the bits are the contract's `resize-rights`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeRights {
    pub cpu: bool,
    pub memory_grow: bool,
    pub memory_shrink: bool,
}

impl ResizeRights {
    /// Nothing may change.
    pub const NONE: Self = Self { cpu: false, memory_grow: false, memory_shrink: false };
    /// CPU and memory, both ways (simulated clusters).
    pub const ALL: Self = Self { cpu: true, memory_grow: true, memory_shrink: true };

    /// The contract's bits.
    pub fn bits(self) -> u8 {
        u8::from(self.cpu) | u8::from(self.memory_grow) << 1 | u8::from(self.memory_shrink) << 2
    }
}

/// Equal workers of a job. Requests and ranges are per worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// `worker`, `master`, `ps`, `launcher`, …
    pub role: String,
    /// Gang size; `workers_max` is larger only for elastic groups.
    pub workers_min: u32,
    pub workers_max: u32,
    /// A multiple of 1000 for whole devices, or less than 1000 for a share of one.
    pub gpu_milli: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    pub cpu_milli_min: u32,
    pub cpu_milli_max: u32,
    pub memory_mib_min: u32,
    pub memory_mib_max: u32,
    pub resize_rights: ResizeRights,
}

/// A training job as submitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    pub name: String,
    pub user: String,
    pub queue: QueueId,
    pub eligibility: ClassId,
    pub priority: i32,
    /// 0 = best effort, larger = stronger service class.
    pub tier: u8,
    pub preemptible: bool,
    pub submit_ns: TimeNs,
    pub groups: Vec<GroupSpec>,
    /// 0 = unknown.
    pub work_iterations: u64,
    /// The submitter's estimate at the requested allocation; 0 = none.
    pub estimated_duration_ns: u64,
    /// 0 = none.
    pub deadline_ns: TimeNs,
    pub kind: Option<KindId>,
    /// Labels and annotations, sorted by key.
    pub labels: Vec<(String, String)>,
}

impl JobSpec {
    /// GPUs of the smallest gang, in thousandths.
    pub fn gpu_milli_min(&self) -> u64 {
        self.groups.iter().map(|group| u64::from(group.workers_min) * u64::from(group.gpu_milli)).sum()
    }
}

/// What a job's workers of one group hold (or shall hold) on one node, in total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Index into [`JobSpec::groups`].
    pub group: u32,
    pub node: NodeId,
    pub workers: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    pub gpu_milli: u32,
    /// Bit i = device i of the node: as many bits as whole GPUs, or the one device that is shared.
    pub device_mask: u32,
}

/// Between two change points: value(now) = value + rate × (now − since).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChangePoint {
    pub since_ns: TimeNs,
    pub iterations: f64,
    /// 0 while not running or while restarting.
    pub iterations_per_s: f64,
    /// GPU-seconds held so far.
    pub service_gpu_s: f64,
    /// GPUs held now.
    pub service_gpu_s_per_s: f64,
}

/// What a job is in; the discriminants of the first three are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum JobPhase {
    Waiting = 0,
    Running = 1,
    /// Told to stop, still holds its allocation.
    Stopping = 2,
}
