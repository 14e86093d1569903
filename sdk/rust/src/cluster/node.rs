//! A node as an author sees it.

use std::sync::Arc;

use coretuner_contract::GPU_MILLI;

use crate::id::{GpuKind, JobId, NodeId};

/// Whether a node takes jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NodeState {
    #[default]
    Schedulable,
    /// Keeps its jobs, takes no new ones.
    Cordoned,
    /// Its jobs must leave.
    Draining,
}

/// A partly used device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    pub device: u8,
    pub gpu_milli_free: u32,
}

/// What is free on a node, use by others included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Free {
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Bit i = device i is wholly free.
    pub devices: u32,
    /// Partly used devices, ascending.
    pub shares: Vec<Share>,
}

impl Free {
    /// Wholly free devices.
    pub fn gpus(&self) -> u32 {
        self.devices.count_ones()
    }

    /// Largest free part of a partly used device.
    pub fn share_max(&self) -> u32 {
        self.shares.iter().map(|share| share.gpu_milli_free).max().unwrap_or(0)
    }

    /// Whether `later` has something that this lacks.
    pub(crate) fn misses_some_of(&self, later: &Self) -> bool {
        later.cpu_milli > self.cpu_milli
            || later.memory_mib > self.memory_mib
            || later.devices & !self.devices != 0
            || !self.shares.is_empty()
    }

    /// Free GPU capacity, in thousandths.
    pub fn gpu_milli(&self) -> u32 {
        self.gpus() * GPU_MILLI + self.shares.iter().map(|share| share.gpu_milli_free).sum::<u32>()
    }
}

/// A machine. Everything in it is what the host last said; what a plan in the making has taken is in
/// [`crate::PlanBuilder::free`].
#[derive(Clone, Debug)]
pub struct Node {
    pub id: NodeId,
    pub name: Arc<str>,
    pub gpu_kind: GpuKind,
    /// GPU product, for example `V100`; empty without GPUs.
    pub gpu_kind_name: Arc<str>,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Read rate available to jobs, MiB/s; 0 = unknown.
    pub storage_mib_per_s: u32,
    pub devices: u32,
    pub device_memory_mib: u32,
    pub zone: Option<Arc<str>>,
    pub rack: Option<Arc<str>>,
    pub link_domain: Option<Arc<str>>,
    pub state: NodeState,
    pub free: Free,
    /// Jobs that hold something here, ascending.
    pub jobs: Vec<JobId>,
    pub(crate) hash: u32,
}

impl Node {
    /// Whether it takes new jobs.
    pub fn is_schedulable(&self) -> bool {
        self.state == NodeState::Schedulable
    }
}
