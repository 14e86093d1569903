//! Queues and eligibility classes.

use std::sync::Arc;

use crate::id::{ClassId, NodeId, QueueId};

/// A queue with its fair-share settings and what its jobs use, those of queues below included.
#[derive(Clone, Debug)]
pub struct Queue {
    pub id: QueueId,
    pub name: Arc<str>,
    pub parent: Option<QueueId>,
    pub weight_milli: u32,
    pub guaranteed_gpu_milli: Option<u32>,
    pub maximum_gpu_milli: Option<u32>,
    pub guaranteed_cpu_milli: Option<u32>,
    pub maximum_cpu_milli: Option<u32>,
    pub used_gpu_milli: u64,
    pub used_cpu_milli: u64,
}

/// Which nodes the jobs of a class may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub id: ClassId,
    pub nodes: Eligible,
}

/// Which nodes a class may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Eligible {
    /// Every node, present and future.
    All,
    /// These, ascending.
    Nodes(Vec<NodeId>),
}

impl Class {
    /// Whether jobs of this class may use the node.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        match &self.nodes {
            Eligible::All => true,
            Eligible::Nodes(nodes) => nodes.binary_search(&node).is_ok(),
        }
    }
}
