//! Nodes as this policy keeps them: what it may divide on each, and where GPUs are free. Follows the view only.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{JobId, NodeId};

use crate::classes::ClassNo;
use crate::shape::ShapeId;

/// Nodes with as many free GPUs that are weighed against each other for one gang.
const CANDIDATES_MAX: usize = 64;

/// An own gang that is, or in a draft will be, whole on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Resident {
    pub(crate) job: JobId,
    pub(crate) class: ClassNo,
    pub(crate) gpus: u32,
    /// Steps of its base.
    pub(crate) base_units: (u32, u32),
    /// What it would hold if nobody else wanted anything.
    pub(crate) peak: Amount,
    /// What it holds there now; none if it is only planned to be there.
    pub(crate) held: Option<Amount>,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Berth {
    pub(crate) id: NodeId,
    /// None without GPUs.
    pub(crate) shape: Option<ShapeId>,
    /// It takes new jobs.
    pub(crate) open: bool,
    /// Its jobs must leave.
    pub(crate) draining: bool,
    pub(crate) devices: u32,
    /// Wholly free devices.
    pub(crate) gpus_free: u32,
    /// Free thousandths of partly used devices.
    pub(crate) shares_free: Vec<u32>,
    /// What is free or held by `gangs`.
    pub(crate) capacity: Amount,
    /// Ascending by job.
    pub(crate) gangs: Vec<Resident>,
}

impl Berth {
    /// Steps of the bases of all gangs.
    pub(crate) fn base_units(&self) -> (u32, u32) {
        let add = |sum: (u32, u32), gang: &Resident| {
            (sum.0.saturating_add(gang.base_units.0), sum.1.saturating_add(gang.base_units.1))
        };
        self.gangs.iter().fold((0, 0), add)
    }

    pub(crate) fn add(&mut self, gang: Resident) {
        self.gpus_free = self.gpus_free.saturating_sub(gang.gpus);
        let at = self.gangs.partition_point(|other| other.job < gang.job);
        self.gangs.insert(at, gang);
    }

    /// Whether the same gangs share the same amounts, whatever each holds now.
    pub(crate) fn divides_alike(&self, other: &Self) -> bool {
        let gangs =
            |berth: &Self| -> Vec<(JobId, ClassNo)> { berth.gangs.iter().map(|gang| (gang.job, gang.class)).collect() };
        let rest = |berth: &Self| (berth.open, berth.gpus_free, berth.capacity);
        rest(self) == rest(other) && gangs(self) == gangs(other)
    }

    /// Takes a gang off; its CPU and memory stay in the capacity.
    pub(crate) fn remove(&mut self, job: JobId) -> Option<Resident> {
        let at = self.gangs.iter().position(|gang| gang.job == job)?;
        let gang = self.gangs.remove(at);
        self.gpus_free += gang.gpus;
        Some(gang)
    }

    /// Takes a part of a device: of the fullest partly used one with enough left, else of a new one.
    pub(crate) fn take_share(&mut self, gpu_milli: u32) {
        let enough = self.shares_free.iter_mut().filter(|free| **free >= gpu_milli).min();
        match enough {
            Some(free) => *free -= gpu_milli,
            None => {
                self.gpus_free = self.gpus_free.saturating_sub(1);
                self.shares_free.push(1000_u32.saturating_sub(gpu_milli));
            }
        }
    }

    /// Takes CPU and memory out of what is divided.
    pub(crate) fn reserve(&mut self, amount: Amount) {
        self.capacity.cpu = self.capacity.cpu.saturating_sub(amount.cpu);
        self.capacity.memory = self.capacity.memory.saturating_sub(amount.memory);
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, amount: Amount) {
        self.capacity.cpu = self.capacity.cpu.saturating_add(amount.cpu);
        self.capacity.memory = self.capacity.memory.saturating_add(amount.memory);
    }

    /// Sorted classes of its gangs, with the job of each.
    pub(crate) fn by_class(&self) -> Vec<(ClassNo, JobId)> {
        let mut all: Vec<_> = self.gangs.iter().map(|gang| (gang.class, gang.job)).collect();
        all.sort_unstable();
        all
    }

    /// What is left of the scarcer resource when all have what they want, millionths of the capacity; below 0 where they
    /// cannot.
    fn slack(&self) -> i64 {
        let wanted =
            |amount: fn(&Amount) -> u32| self.gangs.iter().map(|gang| u64::from(amount(&gang.peak))).sum::<u64>();
        let left = |capacity: u32, wanted: u64| {
            ((f64::from(capacity) - wanted as f64) / f64::from(capacity.max(1)) * 1e6) as i64
        };
        let cpu = left(self.capacity.cpu, wanted(|peak| peak.cpu));
        cpu.min(left(self.capacity.memory, wanted(|peak| peak.memory)))
    }

    fn group(&self, shape: ShapeId) -> IdleGroup {
        IdleGroup { gpus_free: self.gpus_free, shape, capacity: self.capacity }
    }
}

/// Nodes with gangs that are looked at together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BusyGroup {
    gpus_free: u32,
    shape: ShapeId,
}

/// Nodes without gangs that are alike: one speaks for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IdleGroup {
    gpus_free: u32,
    shape: ShapeId,
    capacity: Amount,
}

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    berths: BTreeMap<NodeId, Berth>,
    /// Open nodes with gangs by what is left when all have what they want.
    busy: BTreeMap<BusyGroup, BTreeSet<(i64, NodeId)>>,
    /// Open nodes without gangs.
    idle: BTreeMap<IdleGroup, BTreeSet<NodeId>>,
    draining: BTreeSet<NodeId>,
    /// Open nodes by what is left when all have what they want.
    slack: BTreeMap<ShapeId, BTreeSet<(i64, NodeId)>>,
    /// Running gangs by class.
    crowd: BTreeMap<ClassNo, u32>,
    devices: BTreeMap<ShapeId, u32>,
    capacity: (u64, u64),
    gpus_free: u64,
}

impl Fleet {
    pub(crate) fn get(&self, node: NodeId) -> Option<&Berth> {
        self.berths.get(&node)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Berth> {
        self.berths.values()
    }

    /// Open nodes of a shape with most and with least left beside what their gangs want, `each` of both.
    pub(crate) fn extremes(&self, shape: ShapeId, each: usize) -> BTreeSet<NodeId> {
        let Some(nodes) = self.slack.get(&shape) else { return BTreeSet::new() };
        nodes.iter().take(each).chain(nodes.iter().rev().take(each)).map(|(_, node)| *node).collect()
    }

    /// Nodes that are being emptied.
    pub(crate) fn draining(&self) -> impl Iterator<Item = NodeId> {
        self.draining.iter().copied()
    }

    /// Wholly free devices of open nodes.
    pub(crate) fn gpus_free(&self) -> u64 {
        self.gpus_free
    }

    /// CPU and memory that can be divided among gangs.
    pub(crate) fn capacity(&self) -> (u64, u64) {
        self.capacity
    }

    /// Running gangs by class.
    pub(crate) fn crowd(&self) -> &BTreeMap<ClassNo, u32> {
        &self.crowd
    }

    /// Visits open nodes with at least `gpus` free GPUs, except those for which `skip` holds. `visit` says whether a node
    /// would do: of those with as many free GPUs, those with most left when all have what they want come first, and after
    /// [`CANDIDATES_MAX`] that would do the rest is left out. Of alike nodes without gangs only the first is visited.
    pub(crate) fn spots(&self, gpus: u32, skip: &dyn Fn(NodeId) -> bool, visit: &mut dyn FnMut(&Berth) -> bool) {
        let least = BusyGroup { gpus_free: gpus, shape: ShapeId::default() };
        for nodes in self.busy.range(least..).map(|(_, nodes)| nodes) {
            let berths = nodes.iter().rev().filter(|(_, node)| !skip(*node)).filter_map(|(_, node)| self.get(*node));
            berths.filter(|berth| visit(berth)).take(CANDIDATES_MAX).for_each(drop);
        }
        for (_, nodes) in self.idle.iter().filter(|(group, _)| group.gpus_free >= gpus) {
            let first = nodes.iter().find(|node| !skip(**node));
            first.and_then(|node| self.get(*node)).map(&mut *visit);
        }
    }

    /// Every open node with at least `gpus` free GPUs, alike ones too.
    pub(crate) fn all_spots(&self, gpus: u32) -> impl Iterator<Item = &Berth> {
        let least = BusyGroup { gpus_free: gpus, shape: ShapeId::default() };
        let busy = self.busy.range(least..).flat_map(|(_, nodes)| nodes.iter().map(|(_, node)| node));
        let idle = self.idle.iter().filter(move |(group, _)| group.gpus_free >= gpus);
        busy.chain(idle.flat_map(|(_, nodes)| nodes.iter())).filter_map(|node| self.get(*node))
    }

    /// The shape with most GPUs among open nodes.
    pub(crate) fn commonest_shape(&self) -> Option<ShapeId> {
        self.devices.iter().max_by_key(|(shape, count)| (**count, std::cmp::Reverse(**shape))).map(|(shape, _)| *shape)
    }

    /// Replaces what was known of a node. Whether its shape or state is another than before.
    pub(crate) fn set(&mut self, berth: Berth) -> bool {
        let old = self.remove(berth.id);
        let same = old.as_ref().is_some_and(|old| old.shape == berth.shape && old.open == berth.open);
        self.count(&berth, true);
        if berth.open {
            self.index(&berth);
        }
        if berth.draining {
            self.draining.insert(berth.id);
        }
        self.berths.insert(berth.id, berth);
        !same
    }

    /// What counts for targets: gangs and what they share, also on nodes that take no new ones.
    fn count(&mut self, berth: &Berth, add: bool) {
        for gang in &berth.gangs {
            change(&mut self.crowd, gang.class, 1, add);
        }
        let Some(shape) = berth.shape else { return };
        if berth.open {
            change(&mut self.devices, shape, berth.devices, add);
        }
        if berth.open || !berth.gangs.is_empty() {
            let shift = |sum: &mut u64, by: u32| {
                *sum = if add { *sum + u64::from(by) } else { sum.saturating_sub(u64::from(by)) };
            };
            shift(&mut self.capacity.0, berth.capacity.cpu);
            shift(&mut self.capacity.1, berth.capacity.memory);
        }
    }

    fn index(&mut self, berth: &Berth) {
        let Some(shape) = berth.shape else { return };
        if berth.gangs.is_empty() {
            self.idle.entry(berth.group(shape)).or_default().insert(berth.id);
        } else {
            let group = BusyGroup { gpus_free: berth.gpus_free, shape };
            self.busy.entry(group).or_default().insert((berth.slack(), berth.id));
        }
        self.slack.entry(shape).or_default().insert((berth.slack(), berth.id));
        self.gpus_free += u64::from(berth.gpus_free);
    }

    pub(crate) fn remove(&mut self, node: NodeId) -> Option<Berth> {
        let berth = self.berths.remove(&node)?;
        self.draining.remove(&node);
        self.count(&berth, false);
        if berth.open {
            self.unindex(&berth);
        }
        Some(berth)
    }

    fn unindex(&mut self, berth: &Berth) {
        let Some(shape) = berth.shape else { return };
        if berth.gangs.is_empty() {
            withdraw(&mut self.idle, &berth.group(shape), berth.id);
        } else {
            let group = BusyGroup { gpus_free: berth.gpus_free, shape };
            withdraw(&mut self.busy, &group, (berth.slack(), berth.id));
        }
        withdraw(&mut self.slack, &shape, (berth.slack(), berth.id));
        self.gpus_free -= u64::from(berth.gpus_free);
    }
}

fn change<K: Ord + Copy>(counts: &mut BTreeMap<K, u32>, key: K, by: u32, add: bool) {
    let count = counts.entry(key).or_insert(0);
    *count = if add { *count + by } else { count.saturating_sub(by) };
    if *count == 0 {
        counts.remove(&key);
    }
}

fn withdraw<K: Ord + Copy, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: V) {
    if let Some(nodes) = index.get_mut(key) {
        nodes.remove(&value);
        if nodes.is_empty() {
            index.remove(key);
        }
    }
}
