//! A plan in the making: the fleet as it would be.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Allocation, GpuKind, Job, JobId, NodeId};

use crate::fleet::{Berth, Fleet, Resident};
use crate::mix::Typical;
use crate::reasons::Cause;

/// What a draft changed so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    touched: BTreeMap<NodeId, Berth>,
    /// Jobs placed otherwise than as a gang on one node: their whole new allocation.
    pub(crate) apart: BTreeMap<JobId, Vec<Allocation>>,
    pub(crate) stopped: BTreeSet<JobId>,
    pub(crate) causes: BTreeMap<JobId, Cause>,
}

/// The fleet with changes on top.
pub(crate) struct Draft<'a> {
    pub(crate) fleet: &'a Fleet,
    pub(crate) changes: Changes,
    /// Wholly free devices of open nodes.
    pub(crate) gpus_free: u64,
    /// What the jobs that usually come need.
    pub(crate) typical: Typical,
    /// GPU kinds that the job which is being placed had better leave to others.
    pub(crate) spoken_for: BTreeSet<GpuKind>,
    /// Nodes kept for gangs that have waited too long.
    pub(crate) reserved: BTreeSet<NodeId>,
    /// When a waiting job may be placed although nothing happened until then.
    pub(crate) again_ns: Option<u64>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(fleet: &'a Fleet) -> Self {
        Self {
            fleet,
            changes: Changes::default(),
            gpus_free: fleet.gpus_free(),
            typical: Typical::default(),
            spoken_for: BTreeSet::new(),
            reserved: BTreeSet::new(),
            again_ns: None,
        }
    }

    /// Asks for a plan at that time.
    pub(crate) fn look_again_at(&mut self, at_ns: u64) {
        self.again_ns = Some(self.again_ns.map_or(at_ns, |before| before.min(at_ns)));
    }

    pub(crate) fn get(&self, node: NodeId) -> Option<&Berth> {
        self.changes.touched.get(&node).or_else(|| self.fleet.get(node))
    }

    /// Nodes that differ from the fleet's.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &Berth> {
        self.changes.touched.values()
    }

    /// Changes a node.
    pub(crate) fn edit(&mut self, node: NodeId, change: impl FnOnce(&mut Berth)) {
        let Some(original) = self.fleet.get(node) else { return };
        let berth = self.changes.touched.entry(node).or_insert_with(|| original.clone());
        let before = if berth.open { u64::from(berth.gpus_free) } else { 0 };
        change(berth);
        let after = if berth.open { u64::from(berth.gpus_free) } else { 0 };
        self.gpus_free = (self.gpus_free + after).saturating_sub(before);
    }

    /// Visits open nodes with at least `gpus` free GPUs that `allowed` lets through; of alike empty ones one, and of many
    /// for which `visit` says that they would do the most promising ones.
    pub(crate) fn spots(&self, gpus: u32, allowed: &dyn Fn(NodeId) -> bool, visit: &mut dyn FnMut(&Berth) -> bool) {
        let skip = |node: NodeId| self.changes.touched.contains_key(&node) || !allowed(node);
        self.fleet.spots(gpus, &skip, visit);
        let fits = |berth: &&Berth| berth.open && berth.shape.is_some() && berth.gpus_free >= gpus;
        for berth in self.touched().filter(fits).filter(|berth| allowed(berth.id)) {
            visit(berth);
        }
    }

    /// Every open node with at least `gpus` free GPUs.
    pub(crate) fn all_spots(&self, gpus: u32) -> impl Iterator<Item = &Berth> {
        let untouched = self.fleet.all_spots(gpus).filter(|berth| !self.changes.touched.contains_key(&berth.id));
        let fits = move |berth: &&Berth| berth.open && berth.shape.is_some() && berth.gpus_free >= gpus;
        untouched.chain(self.touched().filter(fits))
    }

    pub(crate) fn add_gang(&mut self, node: NodeId, gang: Resident) {
        self.edit(node, |berth| berth.add(gang));
    }

    /// Takes a running job off all its nodes.
    pub(crate) fn take_off(&mut self, job: &Job) {
        for row in &job.allocations {
            self.edit(row.node, |berth| {
                if berth.remove(job.id).is_none() {
                    berth.gpus_free += row.gpu_milli / 1000;
                    berth.release(Amount { cpu: row.cpu_milli, memory: row.memory_mib });
                }
            });
        }
    }

    /// Gives a row of a running job that was taken off back to it.
    pub(crate) fn restore(&mut self, row: &Allocation) {
        self.edit(row.node, |berth| {
            berth.reserve(Amount { cpu: row.cpu_milli, memory: row.memory_mib });
            take_gpus(berth, row.gpu_milli, row.workers);
        });
    }

    /// Puts a job somewhere else than as a gang on one node.
    pub(crate) fn set_apart(&mut self, job: JobId, rows: Vec<Allocation>) {
        for row in &rows {
            let amount = Amount { cpu: row.cpu_milli, memory: row.memory_mib };
            self.edit(row.node, |berth| {
                berth.reserve(amount);
                take_gpus(berth, row.gpu_milli, row.workers);
            });
        }
        self.changes.apart.insert(job, rows);
    }
}

/// Whole devices, or one part of a device for all workers of a row.
fn take_gpus(berth: &mut Berth, gpu_milli: u32, workers: u32) {
    let each = gpu_milli / workers.max(1);
    if each == 0 || each >= 1000 {
        berth.gpus_free = berth.gpus_free.saturating_sub(gpu_milli / 1000);
    } else {
        berth.take_share(gpu_milli);
    }
}
