//! What a backend reports, and what it is told to do.

use serde::{Deserialize, Serialize};

use crate::model::{
    Allocation, ChangePoint, ClassId, Eligibility, JobId, JobSpec, NodeId, NodeSpec, NodeState, QueueId, QueueSpec,
    TimeNs,
};

/// Something happened to the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// A node appeared, or an existing one is described anew (its capacity may not fall below what its jobs hold).
    NodeSet {
        id: NodeId,
        spec: NodeSpec,
    },
    NodeStateSet {
        id: NodeId,
        state: NodeState,
    },
    /// Use of a node by what we do not manage; replaces what was said before.
    ForeignUse {
        node: NodeId,
        cpu_milli: u32,
        memory_mib: u32,
        device_mask: u32,
    },
    /// The node is gone; jobs with an allocation there fall back to waiting, whole gangs.
    NodeRemoved {
        id: NodeId,
    },
    QueueSet {
        id: QueueId,
        spec: QueueSpec,
    },
    ClassSet {
        id: ClassId,
        nodes: Eligibility,
    },
    JobSubmitted {
        id: JobId,
        spec: JobSpec,
    },
    /// Done or withdrawn: the job leaves the cluster with all it held.
    JobRemoved {
        id: JobId,
        reason: RemovalReason,
    },
    /// The backend lost or stopped the job's workers: it waits again, all it held is free.
    JobStopped {
        id: JobId,
    },
    Progress {
        job: JobId,
        point: ChangePoint,
    },
    /// A report that the host does not interpret.
    Observation {
        job: JobId,
        metric: String,
        at_ns: TimeNs,
        value: f64,
    },
    /// Predictions of these jobs differ from what was said before.
    EstimatesChanged {
        jobs: Vec<JobId>,
    },
}

/// Why a job left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RemovalReason {
    Completed,
    Withdrawn,
    Failed,
}

/// An accepted action, with devices picked. Allocations are the whole new ones of the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Command {
    Start {
        job: JobId,
        allocations: Vec<Allocation>,
    },
    /// Same nodes, groups and devices; other CPU or memory.
    Resize {
        job: JobId,
        allocations: Vec<Allocation>,
    },
    /// New placement, worker count or batch: the job restarts from its checkpoint.
    Rescale {
        job: JobId,
        allocations: Vec<Allocation>,
        batch_per_gpu: u32,
    },
    Preempt {
        job: JobId,
    },
}

impl Command {
    /// The job it is about.
    pub fn job(&self) -> JobId {
        match self {
            Self::Start { job, .. } | Self::Resize { job, .. } | Self::Rescale { job, .. } | Self::Preempt { job } => {
                *job
            }
        }
    }
}

/// All that happened at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    pub now_ns: TimeNs,
    pub events: Vec<Event>,
    /// The moment was asked for by `wake_at_ns` or is a round boundary.
    pub timer: bool,
}
