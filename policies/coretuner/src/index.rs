//! Open nodes by what is free on them: searches go through these orders, and need not look at every node.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::NodeId;
use coretuner_sdk::solve::Amount;

use crate::berth::Berth;
use crate::shape::ShapeId;
use crate::spares::{Spare, Spares, merged};

/// Nodes with as many free GPUs that are weighed against each other for one gang.
const CANDIDATES_MAX: usize = 64;

/// Steps of CPU and memory beside the bases of the gangs on a node.
type Left = (i64, i64);

/// Nodes by what is left when all their gangs have what they want, and id.
type BySlack = BTreeSet<(i64, NodeId)>;

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

/// What moving smaller jobs off a node costs: GPUs, then jobs to move.
type SiteCost = (u32, usize);

/// All orders. A node changes only between [`Index::remove`] and [`Index::add`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Index {
    /// With gangs.
    busy: BTreeMap<BusyGroup, BTreeMap<Left, BySlack>>,
    /// Without gangs.
    idle: BTreeMap<IdleGroup, BTreeSet<NodeId>>,
    /// With GPUs, by how many are free.
    by_free: BTreeMap<u32, BTreeSet<NodeId>>,
    gpus_free: BTreeMap<ShapeId, u64>,
    /// By number of GPUs of a gang: where the fewest must move for it. Kept for the numbers that were asked for.
    sites: BTreeMap<u32, BTreeSet<(SiteCost, NodeId)>>,
    /// Nodes without GPUs have rank 0, others 1.
    spares: Spares,
    /// Where GPUs or parts of one are free. Rank: free GPUs.
    sharing: Spares,
}

impl Index {
    /// Takes an open node in.
    pub(crate) fn add(&mut self, berth: &Berth) {
        self.note_spare(berth, true);
        let Some(shape) = berth.shape else { return };
        match self.group_of(berth, shape) {
            Group::Busy(group, left) => {
                let nodes = self.busy.entry(group).or_default().entry(left).or_default();
                nodes.insert((berth.slack(), berth.id));
            }
            Group::Idle(group) => _ = self.idle.entry(group).or_default().insert(berth.id),
        }
        self.by_free.entry(berth.gpus_free).or_default().insert(berth.id);
        *self.gpus_free.entry(shape).or_insert(0) += u64::from(berth.gpus_free);
        for (gpus, sites) in &mut self.sites {
            sites.extend(site_cost(berth, *gpus).map(|cost| (cost, berth.id)));
        }
    }

    /// Takes an open node out, which is as it was when it was taken in.
    pub(crate) fn remove(&mut self, berth: &Berth) {
        self.note_spare(berth, false);
        let Some(shape) = berth.shape else { return };
        match self.group_of(berth, shape) {
            Group::Busy(group, left) => {
                if let Some(rooms) = self.busy.get_mut(&group) {
                    withdraw(rooms, &left, (berth.slack(), berth.id));
                    if rooms.is_empty() {
                        self.busy.remove(&group);
                    }
                }
            }
            Group::Idle(group) => withdraw(&mut self.idle, &group, berth.id),
        }
        withdraw(&mut self.by_free, &berth.gpus_free, berth.id);
        if let Some(free) = self.gpus_free.get_mut(&shape) {
            *free -= u64::from(berth.gpus_free);
        }
        for (gpus, sites) in &mut self.sites {
            if let Some(cost) = site_cost(berth, *gpus) {
                sites.remove(&(cost, berth.id));
            }
        }
    }

    fn note_spare(&mut self, berth: &Berth, add: bool) {
        let share = berth.shares_free.iter().copied().max().unwrap_or(0);
        let rank = u32::from(berth.shape.is_some());
        let spare = Spare { rank, amount: berth.spare(), share, node: berth.id };
        let sharing = Spare { rank: berth.gpus_free, ..spare };
        let note = if add { Spares::add } else { Spares::remove };
        note(&mut self.spares, &spare);
        if berth.shape.is_some() && (berth.gpus_free > 0 || share > 0) {
            note(&mut self.sharing, &sharing);
        }
    }

    fn group_of(&self, berth: &Berth, shape: ShapeId) -> Group {
        if berth.gangs.is_empty() {
            Group::Idle(IdleGroup { gpus_free: berth.gpus_free, shape, capacity: berth.capacity })
        } else {
            Group::Busy(BusyGroup { gpus_free: berth.gpus_free, shape }, berth.left_units())
        }
    }

    /// Wholly free devices of nodes of a shape.
    pub(crate) fn gpus_free_of(&self, shape: ShapeId) -> u64 {
        self.gpus_free.get(&shape).copied().unwrap_or(0)
    }

    /// Wholly free devices.
    pub(crate) fn gpus_free(&self) -> u64 {
        self.gpus_free.values().sum()
    }

    /// Nodes with at least `gpus` free GPUs and room for the steps that `base` says for their shape, among those that
    /// `allowed` lets through. Of those with as many free GPUs and gangs on them, the [`CANDIDATES_MAX`] with most left
    /// when all have what they want; of alike ones without gangs the first.
    pub(crate) fn spots(
        &self,
        gpus: u32,
        base: &dyn Fn(ShapeId) -> Option<(u32, u32)>,
        allowed: &dyn Fn(NodeId) -> bool,
        visit: &mut dyn FnMut(NodeId),
    ) {
        let least = BusyGroup { gpus_free: gpus, shape: ShapeId::default() };
        for (group, rooms) in self.busy.range(least..) {
            let Some((cpu, memory)) = base(group.shape) else { continue };
            let enough = |left: &Left| left.0 >= i64::from(cpu) && left.1 >= i64::from(memory);
            let fitting = rooms.range((i64::from(cpu), i64::MIN)..).filter(|(left, _)| enough(left));
            let ordered = by_slack(fitting.map(|(_, nodes)| nodes));
            ordered.filter(|node| allowed(*node)).take(CANDIDATES_MAX).for_each(&mut *visit);
        }
        let least = IdleGroup { gpus_free: gpus, shape: ShapeId::default(), capacity: Amount::default() };
        for (group, nodes) in self.idle.range(least..) {
            if base(group.shape).is_some() {
                nodes.iter().copied().find(|node| allowed(*node)).into_iter().for_each(&mut *visit);
            }
        }
    }

    /// Nodes with at least `gpus` free GPUs: most first, then by id.
    pub(crate) fn most_free(&self, gpus: u32) -> impl Iterator<Item = NodeId> {
        self.by_free.range(gpus..).rev().flat_map(|(_, nodes)| nodes.iter().copied())
    }

    /// Nodes with at least `gpus` free GPUs: fewest first, then by id.
    pub(crate) fn least_free(&self, gpus: u32) -> impl Iterator<Item = NodeId> {
        self.by_free.range(gpus..).flat_map(|(_, nodes)| nodes.iter().copied())
    }

    /// As [`Index::most_free`], by number of free GPUs.
    pub(crate) fn groups_by_free(&self, gpus: u32) -> impl Iterator<Item = impl Iterator<Item = NodeId>> {
        self.by_free.range(gpus..).rev().map(|(_, nodes)| nodes.iter().copied())
    }

    /// Most free GPUs of a node.
    pub(crate) fn free_max(&self) -> u32 {
        self.by_free.keys().next_back().copied().unwrap_or(0)
    }

    /// Nodes where smaller jobs that may move hold enough for a gang of `gpus` GPUs, the cheapest first. Needs
    /// [`Index::keep_sites`].
    pub(crate) fn sites(&self, gpus: u32) -> impl Iterator<Item = NodeId> {
        self.sites.get(&gpus).into_iter().flatten().map(|(_, node)| *node)
    }

    /// Whether that order is kept already; else it begins with `open`, which are all nodes of this index.
    pub(crate) fn keep_sites<'b>(&mut self, gpus: u32, open: impl Iterator<Item = &'b Berth>) {
        self.sites
            .entry(gpus)
            .or_insert_with(|| open.filter_map(|berth| Some((site_cost(berth, gpus)?, berth.id))).collect());
    }

    /// Nodes with at least `need` beside the bases. Without `share`: those without GPUs first, then those with most CPU. With
    /// it, those with a free GPU, or a part of one of at least so many thousandths: the fewest free ones first.
    pub(crate) fn with_spare(&self, need: Amount, share: Option<u32>) -> impl Iterator<Item = NodeId> {
        let spares = if share.is_some() { &self.sharing } else { &self.spares };
        spares.with(need, share.unwrap_or(0))
    }
}

enum Group {
    Busy(BusyGroup, Left),
    Idle(IdleGroup),
}

fn site_cost(berth: &Berth, gpus: u32) -> Option<SiteCost> {
    let movers = berth.movers(gpus)?;
    Some((movers.iter().map(|mover| mover.gpus).sum(), movers.len()))
}

/// Nodes of all sets, those with most left first.
fn by_slack<'a>(sets: impl Iterator<Item = &'a BySlack>) -> impl Iterator<Item = NodeId> {
    merged(sets.map(|nodes| nodes.iter().rev().copied().map(Reverse))).map(|Reverse((_, node))| node)
}

fn withdraw<K: Ord + Copy, V: Ord>(index: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: V) {
    if let Some(nodes) = index.get_mut(key) {
        nodes.remove(&value);
        if nodes.is_empty() {
            index.remove(key);
        }
    }
}
