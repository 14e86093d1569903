use crate::model::{ClassId, JobId, NodeId, QueueId, TimeNs};

/// An event that cannot be true of this cluster: the backend and the state disagree. The state is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("time runs back: event at {event_ns} ns, the state is at {state_ns} ns")]
    TimeRunsBack { event_ns: TimeNs, state_ns: TimeNs },
    #[error("node {0} is not known; describe it with node-set first")]
    UnknownNode(NodeId),
    #[error("node {0} was removed; a node that comes back needs a new id")]
    ReusedNode(NodeId),
    #[error("node {node}: {devices} devices, at most {limit} can be described")]
    TooManyDevices { node: NodeId, devices: u32, limit: u32 },
    #[error("node {0}: the new capacity is below what its jobs hold; preempt them first")]
    CapacityBelowUse(NodeId),
    #[error("job {0} is not known; submit it first")]
    UnknownJob(JobId),
    #[error("job {0} was submitted before; a job needs a new id each time")]
    ReusedJob(JobId),
    #[error("job {job}, group {group}: {why}")]
    BadGroup { job: JobId, group: usize, why: &'static str },
    #[error("job {0} has no worker group; give at least one")]
    NoGroups(JobId),
    #[error("job {job} names queue {queue}, which is not known; send queue-set first")]
    JobQueue { job: JobId, queue: QueueId },
    #[error("job {job} names eligibility class {class}, which is not known; send class-set first")]
    JobClass { job: JobId, class: ClassId },
    #[error("job {job} reports more than {limit} metrics; report fewer names")]
    TooManyMetrics { job: JobId, limit: usize },
    #[error("job {job} is {phase}, it cannot have been stopped")]
    NotRunning { job: JobId, phase: &'static str },
    #[error("queue {queue} names parent {parent}, which is not known; send parents first")]
    UnknownParent { queue: QueueId, parent: QueueId },
    #[error("queue {0} would be its own ancestor, or lie deeper than {limit} levels", limit = super::queue::DEPTH_MAX)]
    QueueDepth(QueueId),
    #[error("job {job}: its refused command cannot be rolled back, node {node} was given to others in the same cycle")]
    RollBack { job: JobId, node: NodeId },
}
