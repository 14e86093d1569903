//! All nodes as this policy keeps them, and what is counted over them. Follows the view; a draft changes it for the time of
//! a plan.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::{NodeId, Table};

use crate::berth::Berth;
use crate::classes::ClassNo;
use crate::index::Index;
use crate::shape::ShapeId;

/// All nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    berths: Table<Berth>,
    index: Index,
    draining: BTreeSet<NodeId>,
    /// Open nodes by what is left when all have what they want.
    slack: BTreeMap<ShapeId, BTreeSet<(i64, NodeId)>>,
    /// Running gangs by class.
    crowd: BTreeMap<ClassNo, u32>,
    devices: BTreeMap<ShapeId, u32>,
    capacity: (u64, u64),
}

impl Fleet {
    pub(crate) fn get(&self, node: NodeId) -> Option<&Berth> {
        #[cfg(test)]
        crate::effort::look(1);
        self.berths.get(node.0)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Berth> {
        #[cfg(test)]
        crate::effort::look(self.berths.len() as u64);
        self.berths.iter()
    }

    /// Open nodes by what is free on them now; a draft's changes count.
    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Keeps the order [`Index::sites`] for gangs of `gpus` GPUs from now on.
    pub(crate) fn keep_sites(&mut self, gpus: u32) {
        self.index.keep_sites(gpus, self.berths.iter().filter(|berth| berth.open));
    }

    /// Open nodes of a shape with most and with least left beside what their gangs want, `each` of both. As of the last
    /// [`Fleet::set`].
    pub(crate) fn extremes(&self, shape: ShapeId, each: usize) -> BTreeSet<NodeId> {
        let Some(nodes) = self.slack.get(&shape) else { return BTreeSet::new() };
        nodes.iter().take(each).chain(nodes.iter().rev().take(each)).map(|(_, node)| *node).collect()
    }

    /// Nodes that are being emptied.
    pub(crate) fn draining(&self) -> impl Iterator<Item = NodeId> {
        self.draining.iter().copied()
    }

    /// CPU and memory that can be divided among gangs.
    pub(crate) fn capacity(&self) -> (u64, u64) {
        self.capacity
    }

    /// Running gangs by class.
    pub(crate) fn crowd(&self) -> &BTreeMap<ClassNo, u32> {
        &self.crowd
    }

    /// The shape with most GPUs among open nodes.
    pub(crate) fn commonest_shape(&self) -> Option<ShapeId> {
        self.devices.iter().max_by_key(|(shape, count)| (**count, std::cmp::Reverse(**shape))).map(|(shape, _)| *shape)
    }

    /// Changes a node for a draft: the index follows, what is counted over all nodes does not. Nothing for a node that is
    /// not there.
    pub(crate) fn draft(&mut self, node: NodeId, change: impl FnOnce(&mut Berth)) {
        let Some(berth) = self.berths.get_mut(node.0) else { return };
        if berth.open {
            self.index.remove(berth);
        }
        change(berth);
        if berth.open {
            self.index.add(berth);
        }
    }

    /// Replaces what was known of a node. Whether its shape or state is another than before.
    pub(crate) fn set(&mut self, berth: Berth) -> bool {
        let old = self.remove(berth.id);
        let same = old.as_ref().is_some_and(|old| old.shape == berth.shape && old.open == berth.open);
        self.count(&berth, true);
        if berth.open {
            self.index.add(&berth);
            if let Some(shape) = berth.shape {
                self.slack.entry(shape).or_default().insert((berth.slack(), berth.id));
            }
        }
        if berth.draining {
            self.draining.insert(berth.id);
        }
        self.berths.insert(berth.id.0, berth);
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

    pub(crate) fn remove(&mut self, node: NodeId) -> Option<Berth> {
        let berth = self.berths.remove(node.0)?;
        self.draining.remove(&node);
        self.count(&berth, false);
        if berth.open {
            self.index.remove(&berth);
            if let Some(nodes) = berth.shape.and_then(|shape| self.slack.get_mut(&shape)) {
                nodes.remove(&(berth.slack(), berth.id));
            }
        }
        Some(berth)
    }
}

fn change<K: Ord + Copy>(counts: &mut BTreeMap<K, u32>, key: K, by: u32, add: bool) {
    let count = counts.entry(key).or_insert(0);
    *count = if add { *count + by } else { count.saturating_sub(by) };
    if *count == 0 {
        counts.remove(&key);
    }
}
