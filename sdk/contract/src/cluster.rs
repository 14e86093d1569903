//! What the host says: the tables of `coretuner:policy/cluster` as plain Rust.
//!
//! Field names are those of the WIT file, so that generated bindings can use these types directly. Every `…Rows` table
//! holds columns of one length; row `i` is one thing.

/// Why a cycle runs; several may hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Trigger(u16);

impl Trigger {
    /// The tables are a full image.
    pub const IMAGE: Self = Self(1);
    /// Jobs were submitted.
    pub const ARRIVAL: Self = Self(1 << 1);
    /// Jobs left: done, failed or withdrawn.
    pub const COMPLETION: Self = Self(1 << 2);
    /// Nodes, queues or classes changed, or the backend stopped jobs: what is free is different.
    pub const CAPACITY: Self = Self(1 << 3);
    /// Progress or other reports about jobs came in.
    pub const OBSERVATION: Self = Self(1 << 4);
    /// Predictions of some jobs changed.
    pub const ESTIMATE: Self = Self(1 << 5);
    /// Actions of the plan before were refused.
    pub const VERDICT: Self = Self(1 << 6);
    /// A wake-up that was asked for, or a round.
    pub const TIMER: Self = Self(1 << 7);
    /// The configuration was changed.
    pub const CONFIGURATION: Self = Self(1 << 8);

    /// No reason.
    pub const fn empty() -> Self {
        Self(0)
    }
    /// Bit i = flag i of the WIT file.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// From bits as sent, unknown ones kept.
    pub const fn from_bits_retain(bits: u16) -> Self {
        Self(bits)
    }
    /// Whether all of `other` hold.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether none holds.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::ops::BitOr for Trigger {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Trigger {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Why an action was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Refusal {
    UnknownId,
    NotMine,
    NotEligible,
    NoCpu,
    NoMemory,
    NoGpu,
    GangIncomplete,
    OutOfRange,
    WrongState,
    GroupBroken,
    Quota,
    Superseded,
    BackendRefused,
    PlanTooLong,
}

impl Refusal {
    /// Every reason in the order of the WIT file, which is that of the discriminants.
    pub const ALL: [Self; 14] = [
        Self::UnknownId,
        Self::NotMine,
        Self::NotEligible,
        Self::NoCpu,
        Self::NoMemory,
        Self::NoGpu,
        Self::GangIncomplete,
        Self::OutOfRange,
        Self::WrongState,
        Self::GroupBroken,
        Self::Quota,
        Self::Superseded,
        Self::BackendRefused,
        Self::PlanTooLong,
    ];

    /// Kebab-case name, as in the WIT file and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownId => "unknown-id",
            Self::NotMine => "not-mine",
            Self::NotEligible => "not-eligible",
            Self::NoCpu => "no-cpu",
            Self::NoMemory => "no-memory",
            Self::NoGpu => "no-gpu",
            Self::GangIncomplete => "gang-incomplete",
            Self::OutOfRange => "out-of-range",
            Self::WrongState => "wrong-state",
            Self::GroupBroken => "group-broken",
            Self::Quota => "quota",
            Self::Superseded => "superseded",
            Self::BackendRefused => "backend-refused",
            Self::PlanTooLong => "plan-too-long",
        }
    }

    /// Called by generated bindings with a discriminant that the canonical ABI has checked.
    #[doc(hidden)]
    pub fn _lift(value: u8) -> Self {
        Self::ALL[value as usize % Self::ALL.len()]
    }
}

/// New or re-described nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeRows {
    pub id: Vec<u32>,
    pub name: Vec<u32>,
    pub gpu_kind_name: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
    /// Storage or network read rate available to jobs, MiB/s; 0 = unknown.
    pub storage_mib_per_s: Vec<u32>,
    /// GPU devices (at most 32), each with `gpu-milli` 1000 and this memory.
    pub device_count: Vec<u32>,
    pub device_memory_mib: Vec<u32>,
    /// Topology domains, widest first (zone, rack, link domain); `none` = unknown.
    pub zone_name: Vec<u32>,
    pub rack_name: Vec<u32>,
    pub link_domain_name: Vec<u32>,
}

/// What is free now on nodes where it changed (others' use included).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeStateRows {
    pub id: Vec<u32>,
    /// 0 = schedulable, 1 = cordoned (keeps its jobs), 2 = draining (jobs must leave).
    pub state: Vec<u8>,
    pub cpu_milli_free: Vec<u32>,
    pub memory_mib_free: Vec<u32>,
    /// Bit i = device i is wholly free.
    pub devices_free_mask: Vec<u32>,
}

/// Devices that are partly used (shares); a device without a row is wholly free or wholly used as the mask says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceShareRows {
    pub node: Vec<u32>,
    pub device: Vec<u8>,
    pub gpu_milli_free: Vec<u32>,
}

/// Eligibility classes: which nodes a job may use. A row replaces what was said of that class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EligibilityRows {
    pub id: Vec<u32>,
    /// Ranges into `nodes`; `all` = 1 means every node, present and future.
    pub all: Vec<u8>,
    pub node_start: Vec<u32>,
    pub node_count: Vec<u32>,
    pub nodes: Vec<u32>,
}

/// New or re-described queues.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueRows {
    pub id: Vec<u32>,
    pub name: Vec<u32>,
    pub parent: Vec<u32>,
    pub weight_milli: Vec<u32>,
    /// Guarantee and ceiling; 0xffff_ffff = none.
    pub guaranteed_gpu_milli: Vec<u32>,
    pub maximum_gpu_milli: Vec<u32>,
    pub guaranteed_cpu_milli: Vec<u32>,
    pub maximum_cpu_milli: Vec<u32>,
}

/// New or re-described jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRows {
    pub id: Vec<u32>,
    pub name: Vec<u32>,
    pub user_name: Vec<u32>,
    pub queue: Vec<u32>,
    pub eligibility: Vec<u32>,
    pub priority: Vec<i32>,
    /// 0 = best effort, larger = stronger service class.
    pub tier: Vec<u8>,
    pub preemptible: Vec<u8>,
    pub submit_ns: Vec<u64>,
    /// Rows of `group-rows`.
    pub group_start: Vec<u32>,
    pub group_count: Vec<u32>,
    /// Total work in iterations; 0 = unknown.
    pub work_iterations: Vec<u64>,
    /// The submitter's estimate of the run time at the requested allocation; 0 = none given.
    pub estimated_duration_ns: Vec<u64>,
    /// 0 = none.
    pub deadline_ns: Vec<u64>,
    /// Jobs of one kind have the same predictions; `none` = unknown model.
    pub kind: Vec<u32>,
}

/// Jobs whose state or allocation changed (a new job has a row too).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobStateRows {
    pub id: Vec<u32>,
    /// 0 = waiting, 1 = running, 2 = stopping.
    pub state: Vec<u8>,
    /// 1 = this instance may act on it, 0 = only visible.
    pub mine: Vec<u8>,
    pub restarts: Vec<u32>,
    /// Rows of `allocation-rows`: the whole present allocation.
    pub allocation_start: Vec<u32>,
    pub allocation_count: Vec<u32>,
}

/// Worker groups of the jobs in `job-rows` (workers, master, parameter servers, launcher).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupRows {
    pub role_name: Vec<u32>,
    pub workers_min: Vec<u32>,
    pub workers_max: Vec<u32>,
    /// Request of one worker.
    pub gpu_milli: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
    /// Range in which the CPU of one worker may be re-tuned; min = max = request when it may not.
    pub cpu_milli_min: Vec<u32>,
    pub cpu_milli_max: Vec<u32>,
    /// The same for memory.
    pub memory_mib_min: Vec<u32>,
    pub memory_mib_max: Vec<u32>,
    /// What the backend can change while the worker runs, summed: 1 = CPU both ways, 2 = memory may grow,
    /// 4 = memory may shrink.
    pub resize_rights: Vec<u8>,
}

/// What a job holds: totals of its workers of one group on one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocationRows {
    pub job: Vec<u32>,
    pub group: Vec<u32>,
    pub node: Vec<u32>,
    pub workers: Vec<u32>,
    pub cpu_milli: Vec<u32>,
    pub memory_mib: Vec<u32>,
    pub gpu_milli: Vec<u32>,
    /// Bit i = device i of the node.
    pub device_mask: Vec<u32>,
}

/// Change points: between two of them value(now) = value + rate × (now - since).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressRows {
    pub job: Vec<u32>,
    pub since_ns: Vec<u64>,
    /// Finished iterations and iterations per second, as observed or reported; rate 0 while not running.
    pub iterations: Vec<f64>,
    pub iterations_per_s: Vec<f64>,
    /// Attained service in GPU-seconds and its rate (GPUs held).
    pub service_gpu_s: Vec<f64>,
    pub service_gpu_s_per_s: Vec<f64>,
}

/// Reports about running jobs that the host does not interpret (gradient statistics, loss, …).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservationRows {
    pub job: Vec<u32>,
    pub metric_name: Vec<u32>,
    pub at_ns: Vec<u64>,
    pub value: Vec<f64>,
}

/// What became of the actions of the previous plan; accepted ones show in jobs and nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictRows {
    /// Action index in that plan.
    pub action: Vec<u32>,
    pub reason: Vec<Refusal>,
    pub job: Vec<u32>,
}

/// What changed since the view of `base_revision`, or the whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delta {
    /// 0 = the tables are a full image; else they apply to the view of that revision.
    pub base_revision: u64,
    pub revision: u64,
    pub now_ns: u64,
    pub trigger: Trigger,
    /// Appended to the string table.
    pub strings: Vec<String>,
    pub nodes: Option<NodeRows>,
    pub node_states: Option<NodeStateRows>,
    pub device_shares: Option<DeviceShareRows>,
    pub removed_nodes: Vec<u32>,
    pub eligibility: Option<EligibilityRows>,
    pub queues: Option<QueueRows>,
    pub jobs: Option<JobRows>,
    pub groups: Option<GroupRows>,
    pub job_states: Option<JobStateRows>,
    pub allocations: Option<AllocationRows>,
    pub removed_jobs: Vec<u32>,
    pub progress: Option<ProgressRows>,
    pub observations: Option<ObservationRows>,
    /// Jobs whose predictions differ from what `predict` said before.
    pub estimates_changed: Vec<u32>,
    pub verdicts: Option<VerdictRows>,
    /// Sum of per-row hashes of the view after this delta (SPEC); 0 = not sent this time.
    pub checksum: u32,
}
