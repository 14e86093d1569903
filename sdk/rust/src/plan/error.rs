//! Why an action was not noted.

use crate::id::{JobId, NodeId, QueueId};

/// Why an action was not noted: the host would refuse it. Nothing of it is in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    UnknownJob(JobId),
    UnknownNode(NodeId),
    /// Visible only: another instance or the backend owns it.
    NotMine(JobId),
    /// The job is not in the phase that the action needs.
    WrongPhase(JobId),
    /// The plan has an action for this job already.
    Twice(JobId),
    /// Not preemptible, and none of its nodes is draining.
    NotPreemptible(JobId),
    /// The job's class does not name the node, or the node takes no jobs.
    NotEligible {
        job: JobId,
        node: NodeId,
    },
    /// A group has fewer workers than its gang, or more than its maximum.
    Gang {
        job: JobId,
        group: u32,
        workers: u32,
    },
    /// A row that the job's groups do not allow: unknown group, no workers, twice the same (group, node), CPU or memory
    /// outside the range, or a resize of what is not held or may not change.
    Row {
        job: JobId,
        group: u32,
        node: NodeId,
    },
    NoCpu(NodeId),
    NoMemory(NodeId),
    NoGpu(NodeId),
    /// The ceiling of this queue is in the way.
    Quota(QueueId),
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownJob(job) => write!(f, "there is no job {job}"),
            Self::UnknownNode(node) => write!(f, "there is no node {node}"),
            Self::NotMine(job) => write!(f, "job {job} is only visible to this policy, it may not act on it"),
            Self::WrongPhase(job) => write!(f, "job {job} is not in the phase that this action needs"),
            Self::Twice(job) => write!(f, "this plan has an action for job {job} already"),
            Self::NotPreemptible(job) => write!(f, "job {job} may not be interrupted"),
            Self::NotEligible { job, node } => write!(f, "job {job} may not use node {node} now"),
            Self::Gang { job, group, workers } => {
                write!(f, "{workers} workers are not a gang of group {group} of job {job}")
            }
            Self::Row { job, group, node } => {
                write!(f, "job {job} may not hold this for group {group} on node {node}; see the group's ranges")
            }
            Self::NoCpu(node) => write!(f, "not enough CPU is free on node {node}"),
            Self::NoMemory(node) => write!(f, "not enough memory is free on node {node}"),
            Self::NoGpu(node) => write!(f, "not enough GPUs are free on node {node}"),
            Self::Quota(queue) => write!(f, "queue {queue} is at its ceiling"),
        }
    }
}

impl std::error::Error for PlanError {}
