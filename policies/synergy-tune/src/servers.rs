//! The cluster as a round starts: servers without the jobs that are placed anew, and what belongs to a GPU there.

use std::collections::BTreeMap;

use coretuner_sdk::{ClassId, Cluster, GpuKind, Job, Node, NodeId};

use crate::allocate::Server;
use crate::amounts::Amounts;

/// A server's storage rate when the host does not know it.
const UNKNOWN_STORAGE: u64 = u64::MAX / 4;

/// Servers with GPUs that take jobs, ascending by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Servers {
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) servers: Vec<Server>,
    pub(crate) sets: Vec<Vec<bool>>,
    grounds: BTreeMap<ClassId, Option<Ground>>,
}

/// Where the jobs of an eligibility class may run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ground {
    /// Index into the sets.
    pub(crate) set: usize,
    /// The kind of server with most GPUs among them: what demands are predicted for.
    pub(crate) gpu_kind: GpuKind,
    pub(crate) devices: u32,
    pub(crate) cpu_milli: u32,
    pub(crate) memory_mib: u32,
    /// What every one of them has for each GPU, at least.
    pub(crate) share_per_gpu: Amounts,
}

impl Servers {
    /// Takes `movable` jobs off their nodes.
    pub(crate) fn new<'a>(cluster: &'a Cluster, movable: impl Iterator<Item = &'a Job>) -> Self {
        let mut all = Self::default();
        for node in cluster.nodes().filter(|node| node.is_schedulable() && node.devices > 0) {
            let storage =
                if node.storage_mib_per_s == 0 { UNKNOWN_STORAGE } else { u64::from(node.storage_mib_per_s) * 1000 };
            let free = Amounts {
                cpu_milli: u64::from(node.free.cpu_milli),
                memory_mib: u64::from(node.free.memory_mib),
                storage_milli: storage,
            };
            all.nodes.push(node.id);
            all.servers.push(Server { gpus: node.free.gpus(), free });
        }
        for row in movable.flat_map(|job| &job.allocations) {
            if let Ok(at) = all.nodes.binary_search(&row.node) {
                let held = Amounts {
                    cpu_milli: u64::from(row.cpu_milli),
                    memory_mib: u64::from(row.memory_mib),
                    storage_milli: 0,
                };
                all.servers[at].free.give(&held);
                all.servers[at].gpus += row.gpu_milli / 1000;
            }
        }
        all
    }

    /// None when no server is left for the class.
    pub(crate) fn ground(&mut self, cluster: &Cluster, class: ClassId) -> Option<Ground> {
        if let Some(known) = self.grounds.get(&class) {
            return *known;
        }
        let set: Vec<bool> = self.nodes.iter().map(|node| cluster.is_eligible(class, *node)).collect();
        let nodes = self.nodes.iter().zip(&set).filter(|(_, allowed)| **allowed);
        let nodes: Vec<&Node> = nodes.filter_map(|(node, _)| cluster.node(*node)).collect();
        let ground = ground(self.sets.len(), &nodes);
        self.sets.push(set);
        self.grounds.insert(class, ground);
        ground
    }
}

fn ground(set: usize, nodes: &[&Node]) -> Option<Ground> {
    let mut gpus: BTreeMap<(GpuKind, u32, u32, u32), u32> = BTreeMap::new();
    for node in nodes {
        *gpus.entry((node.gpu_kind, node.devices, node.cpu_milli, node.memory_mib)).or_insert(0) += node.devices;
    }
    let most = gpus.iter().max_by_key(|(kind, gpus)| (**gpus, std::cmp::Reverse(**kind)))?;
    let (gpu_kind, devices, cpu_milli, memory_mib) = *most.0;
    let least = |amount: fn(&Node) -> u64| {
        nodes.iter().map(|node| amount(node) / u64::from(node.devices.max(1))).min().unwrap_or(0)
    };
    let share_per_gpu = Amounts {
        cpu_milli: least(|node| u64::from(node.cpu_milli)),
        memory_mib: least(|node| u64::from(node.memory_mib)),
        storage_milli: least(|node| u64::from(node.storage_mib_per_s) * 1000),
    };
    Some(Ground { set, gpu_kind, devices, cpu_milli, memory_mib, share_per_gpu })
}
