//! Reading access to the view.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cluster::{Class, Job, Node, Queue};
use crate::id::{ClassId, GpuKind, JobId, NodeId, QueueId};
use crate::table::Table;

/// The cluster as the host last described it. A plan in the making does not change it.
#[derive(Clone, Debug, Default)]
pub struct Cluster {
    pub(crate) revision: u64,
    pub(crate) now_ns: u64,
    pub(crate) strings: Vec<Arc<str>>,
    pub(crate) nodes: Table<Node>,
    pub(crate) jobs: Table<Job>,
    pub(crate) queues: Table<Queue>,
    pub(crate) classes: Table<Class>,
    /// Own waiting jobs by (submit time, id).
    pub(crate) waiting: BTreeSet<(u64, JobId)>,
    /// Own running jobs.
    pub(crate) running: BTreeSet<JobId>,
    pub(crate) checksum: u32,
}

impl Cluster {
    /// Time of the cycle, nanoseconds since the host's epoch (virtual or wall).
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Revision of the host's state that this view shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The node of that id, if it is there.
    #[inline]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    /// The job of that id, if it is there.
    #[inline]
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.jobs.get(id.0)
    }

    /// The queue of that id, if it is there.
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.queues.get(id.0)
    }

    /// The eligibility class of that id, if it is there.
    #[inline]
    pub fn class(&self, id: ClassId) -> Option<&Class> {
        self.classes.get(id.0)
    }

    /// All nodes, ascending by id.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter()
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// All jobs that this instance sees, also those it may not act on, ascending by id.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter()
    }

    /// How many jobs there are, in any phase.
    pub fn job_count(&self) -> usize {
        self.jobs.len()
    }

    /// All queues, ascending by id.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.queues.iter()
    }

    /// Waiting jobs that this instance may act on, by submit time, then id.
    pub fn waiting(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.waiting.iter().filter_map(|(_, id)| self.job(*id))
    }

    /// How many jobs wait.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Running jobs that this instance may act on, ascending by id.
    pub fn running(&self) -> impl DoubleEndedIterator<Item = &Job> {
        self.running.iter().filter_map(|id| self.job(*id))
    }

    /// How many jobs run.
    pub fn running_count(&self) -> usize {
        self.running.len()
    }

    /// Jobs that hold something on a node, ascending by id.
    pub fn jobs_on(&self, node: NodeId) -> impl Iterator<Item = &Job> {
        let jobs = self.node(node).map_or(&[][..], |node| &node.jobs);
        jobs.iter().filter_map(|id| self.job(*id))
    }

    /// Whether jobs of a class may use a node. A class that was never described has no nodes.
    #[inline]
    pub fn is_eligible(&self, class: ClassId, node: NodeId) -> bool {
        self.class(class).is_some_and(|class| class.contains(node))
    }

    /// Name of a GPU product.
    pub fn gpu_kind_name(&self, kind: GpuKind) -> &str {
        self.strings.get(kind.0 as usize).map_or("", |name| name)
    }

    /// A queue and those above it, lowest first.
    pub fn ancestry(&self, queue: QueueId) -> impl Iterator<Item = &Queue> {
        std::iter::successors(self.queue(queue), |queue| self.queue(queue.parent?)).take(MAX_QUEUE_DEPTH)
    }
}

/// Deeper trees are cut, so that a loop of parents cannot hang a policy.
pub(super) const MAX_QUEUE_DEPTH: usize = 32;
