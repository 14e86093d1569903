//! A plan in the making: the fleet as it would be.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Allocation, GpuKind, Job, JobId, NodeId};

use crate::berth::{Berth, Resident};
use crate::fleet::Fleet;
use crate::mix::Typical;
use crate::reasons::Cause;

/// What a draft decided so far, beside gangs on nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Jobs placed otherwise than as a gang on one node: their whole new allocation.
    pub(crate) apart: BTreeMap<JobId, Vec<Allocation>>,
    pub(crate) stopped: BTreeSet<JobId>,
    pub(crate) causes: BTreeMap<JobId, Cause>,
}

/// Changes of nodes that may be taken back.
struct Trial {
    /// Nodes before each change, in order; and whether the draft had left them alone until then.
    before: Vec<(Berth, bool)>,
    gpus_free: u64,
}

/// The fleet with changes, which last until this is dropped.
pub(crate) struct Draft<'a> {
    pub(crate) fleet: &'a mut Fleet,
    /// Changed nodes as they were.
    originals: BTreeMap<NodeId, Berth>,
    trial: Option<Trial>,
    /// Where gangs were put last.
    homes: BTreeMap<JobId, NodeId>,
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

impl Drop for Draft<'_> {
    /// The fleet shows what is, not what is planned.
    fn drop(&mut self) {
        for (node, original) in std::mem::take(&mut self.originals) {
            self.fleet.draft(node, |berth| *berth = original);
        }
    }
}

impl<'a> Draft<'a> {
    pub(crate) fn new(fleet: &'a mut Fleet) -> Self {
        Self {
            gpus_free: fleet.index().gpus_free(),
            fleet,
            originals: BTreeMap::new(),
            trial: None,
            homes: BTreeMap::new(),
            changes: Changes::default(),
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
        self.fleet.get(node)
    }

    /// A node as it is, without what this draft changed.
    pub(crate) fn original(&self, node: NodeId) -> Option<&Berth> {
        self.originals.get(&node).or_else(|| self.fleet.get(node))
    }

    /// Nodes that this draft changed.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &Berth> {
        self.originals.keys().filter_map(|node| self.fleet.get(*node))
    }

    /// Changes a node.
    pub(crate) fn edit(&mut self, node: NodeId, change: impl FnOnce(&mut Berth)) {
        let Some(before) = self.fleet.get(node) else { return };
        let first = !self.originals.contains_key(&node);
        if let Some(trial) = &mut self.trial {
            trial.before.push((before.clone(), first));
        }
        if first {
            self.originals.insert(node, before.clone());
        }
        let free = |berth: &Berth| if berth.open { u64::from(berth.gpus_free) } else { 0 };
        let (mut less, mut more) = (0, 0);
        self.fleet.draft(node, |berth| {
            less = free(berth);
            change(berth);
            more = free(berth);
        });
        self.gpus_free = (self.gpus_free + more).saturating_sub(less);
    }

    /// From now on changes of nodes can be taken back, until [`Draft::keep`] or [`Draft::take_back`]. One at a time.
    pub(crate) fn try_out(&mut self) {
        debug_assert!(self.trial.is_none(), "one trial at a time");
        self.trial = Some(Trial { before: Vec::new(), gpus_free: self.gpus_free });
    }

    /// What was tried out stays.
    pub(crate) fn keep(&mut self) {
        self.trial = None;
    }

    /// Nodes become as they were before [`Draft::try_out`].
    pub(crate) fn take_back(&mut self) {
        let Some(Trial { before, gpus_free }) = self.trial.take() else { return };
        for (earlier, first) in before.into_iter().rev() {
            let node = earlier.id;
            self.fleet.draft(node, |berth| *berth = earlier);
            if first {
                self.originals.remove(&node);
            }
        }
        self.gpus_free = gpus_free;
    }

    /// Every open node with at least `gpus` free GPUs, those with most first.
    pub(crate) fn all_spots(&self, gpus: u32) -> impl Iterator<Item = &Berth> {
        self.fleet.index().most_free(gpus).filter_map(|node| self.fleet.get(node))
    }

    pub(crate) fn add_gang(&mut self, node: NodeId, gang: Resident) {
        self.homes.insert(gang.job, node);
        self.edit(node, |berth| berth.add(gang));
    }

    /// Where this draft has a gang, if on a node that it changed.
    pub(crate) fn home(&self, job: JobId) -> Option<(&Berth, &Resident)> {
        let on = |berth: &'_ Berth| berth.gangs.iter().position(|gang| gang.job == job);
        let last = self.homes.get(&job).and_then(|node| self.get(*node)).filter(|berth| on(berth).is_some());
        // What was put somewhere and taken back is where it was.
        let berth = last.or_else(|| self.touched().find(|berth| on(berth).is_some()))?;
        Some((berth, &berth.gangs[on(berth)?]))
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

#[cfg(test)]
mod tests {
    use super::*;
    use coretuner_sdk::solve::{Axis, Lattice};

    const NODES: u32 = 12;

    fn berth(id: u32) -> Berth {
        let axis = |total| Axis { total, units: 24 };
        let shape = (id % 4 != 3).then_some(id % 2);
        Berth {
            id: NodeId(id),
            shape,
            lattice: shape.map(|_| Lattice { cpu: axis(24_000), memory: axis(512_000) }),
            open: id % 5 != 4,
            draining: false,
            devices: 8,
            gpus_free: if shape.is_some() { 8 } else { 0 },
            shares_free: Vec::new(),
            capacity: Amount { cpu: 24_000, memory: 512_000 },
            gangs: Vec::new(),
        }
    }

    fn gang(job: u32) -> Resident {
        let gpus = 1 + job % 3;
        let peak = Amount { cpu: 2000 * gpus, memory: 64_000 };
        let movable = !job.is_multiple_of(5);
        Resident { job: JobId(job), class: job % 4, gpus, base_units: (gpus, 3 * gpus), peak, held: None, movable }
    }

    fn fleet() -> Fleet {
        let mut fleet = Fleet::default();
        for id in 0..NODES {
            let mut berth = berth(id);
            if berth.shape.is_some() {
                (0..id % 3).for_each(|at| berth.add(gang(100 * id + at)));
            }
            fleet.set(berth);
        }
        fleet.keep_sites(4);
        fleet
    }

    /// Some changes of every sort.
    fn scramble(draft: &mut Draft<'_>, from: u32) {
        for step in (from..).take(40) {
            let node = NodeId(step * 7 % NODES);
            match step % 4 {
                0 => draft.add_gang(node, gang(step)),
                1 => draft.edit(node, |berth| {
                    let first = berth.gangs.first().map(|gang| gang.job);
                    first.map(|job| berth.remove(job));
                }),
                2 => draft.edit(node, |berth| berth.reserve(Amount { cpu: 500, memory: 1000 })),
                _ => draft.edit(node, |berth| berth.take_share(300)),
            }
        }
    }

    #[test]
    fn the_fleet_is_as_before_when_a_draft_ends_or_a_trial_is_taken_back() {
        let mut fleet = fleet();
        let shown = |fleet: &Fleet| (fleet.iter().cloned().collect::<Vec<_>>(), fleet.index().clone());
        let before = shown(&fleet);
        let mut draft = Draft::new(&mut fleet);
        scramble(&mut draft, 0);
        let (kept, touched, free) = (shown(draft.fleet), draft.touched().count(), draft.gpus_free);
        assert_ne!(kept, before);
        draft.try_out();
        scramble(&mut draft, 3);
        assert_ne!(shown(draft.fleet), kept);
        draft.take_back();
        assert_eq!((shown(draft.fleet), draft.touched().count(), draft.gpus_free), (kept, touched, free));
        drop(draft);
        assert_eq!(shown(&fleet), before);
    }

    #[test]
    fn the_index_of_a_changed_fleet_is_that_of_a_new_one() {
        let mut fleet = fleet();
        let mut draft = Draft::new(&mut fleet);
        scramble(&mut draft, 1);
        let mut anew = Fleet::default();
        draft.fleet.iter().cloned().for_each(|berth| _ = anew.set(berth));
        anew.keep_sites(4);
        assert_eq!(draft.fleet.index(), anew.index());
    }
}
