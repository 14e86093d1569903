//! Open nodes by free GPUs and free CPU, so that a search costs logarithms and not a pass over all nodes.

use std::collections::BTreeMap;

use crate::cluster::{Class, Cluster, Eligible, Free};
use crate::id::{ClassId, NodeId};
use crate::space::tree::MaxTree;

/// Nodes that the same explicit eligibility classes name, ascending by id; a class is a union of pools.
#[derive(Clone, Debug, Default)]
struct Pool {
    nodes: Vec<NodeId>,
    /// By free GPUs `g`: free CPU + 1 of the open nodes with exactly `g` wholly free devices, by position.
    by_gpus: Vec<MaxTree>,
    /// Largest free part of a partly used device, by position.
    shares: MaxTree,
}

/// Where a node is in the index.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    pool: u32,
    position: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    pools: Vec<Pool>,
    all: Vec<u32>,
    of_class: BTreeMap<ClassId, Vec<u32>>,
}

impl Index {
    /// Groups the nodes of `cluster` into pools; every node starts closed. Returns each node's place, ascending by id.
    pub(crate) fn rebuild(&mut self, cluster: &Cluster) -> Vec<(NodeId, Place)> {
        let mut classes_of: BTreeMap<NodeId, Vec<ClassId>> = BTreeMap::new();
        for class in cluster.classes.iter() {
            if let Eligible::Nodes(nodes) = &class.nodes {
                nodes.iter().for_each(|node| classes_of.entry(*node).or_default().push(class.id));
            }
        }
        let mut pool_of: BTreeMap<&[ClassId], u32> = BTreeMap::new();
        *self = Self::default();
        let mut places = Vec::with_capacity(cluster.node_count());
        for node in cluster.nodes() {
            let classes = classes_of.get(&node.id).map_or(&[][..], |classes| classes);
            let pool = *pool_of.entry(classes).or_insert_with(|| {
                self.pools.push(Pool::default());
                self.pools.len() as u32 - 1
            });
            let nodes = &mut self.pools[pool as usize].nodes;
            places.push((node.id, Place { pool, position: nodes.len() as u32 }));
            nodes.push(node.id);
        }
        for (classes, pool) in &pool_of {
            classes.iter().for_each(|class| self.of_class.entry(*class).or_default().push(*pool));
        }
        self.all = (0..self.pools.len() as u32).collect();
        let devices = cluster.nodes().map(|node| node.devices).max().unwrap_or(0) as usize;
        for pool in &mut self.pools {
            let tree = MaxTree::new(pool.nodes.len());
            pool.by_gpus = vec![tree.clone(); devices + 1];
            pool.shares = tree;
        }
        places
    }

    /// `old` and `new`: what is free, or none where the node is closed.
    pub(crate) fn update(&mut self, place: Place, old: Option<&Free>, new: Option<&Free>) {
        let Some(pool) = self.pools.get_mut(place.pool as usize) else { return };
        let position = place.position as usize;
        let gpus = |free: &Free| free.gpus() as usize;
        if old.map(gpus) != new.map(gpus)
            && let Some(tree) = old.and_then(|free| pool.by_gpus.get_mut(gpus(free)))
        {
            tree.set(position, 0);
        }
        if let Some(free) = new
            && let Some(tree) = pool.by_gpus.get_mut(gpus(free))
        {
            tree.set(position, free.cpu_milli.saturating_add(1));
        }
        pool.shares.set(position, new.map_or(0, Free::share_max));
    }

    /// Largest number of free GPUs that a node can have.
    pub(crate) fn gpus_max(&self) -> u32 {
        self.pools.iter().map(|pool| pool.by_gpus.len()).max().unwrap_or(1) as u32 - 1
    }

    fn pools_of(&self, class: &Class) -> &[u32] {
        match class.nodes {
            Eligible::All => &self.all,
            Eligible::Nodes(_) => self.of_class.get(&class.id).map_or(&[], |pools| pools),
        }
    }

    /// Lowest id among open nodes of `class` with exactly `gpus` free devices, at least `cpu_milli` free, and `accept`.
    pub(crate) fn first(
        &self,
        class: &Class,
        gpus: u32,
        cpu_milli: u32,
        accept: &mut dyn FnMut(NodeId) -> bool,
    ) -> Option<NodeId> {
        let trees = self.pools_of(class).iter().filter_map(|pool| {
            let pool = self.pools.get(*pool as usize)?;
            Some((pool, pool.by_gpus.get(gpus as usize)?))
        });
        lowest(trees, cpu_milli.saturating_add(1), accept)
    }

    /// Lowest id among open nodes of `class` with a partly used device that has `gpu_milli` free, and `accept`.
    pub(crate) fn first_share(
        &self,
        class: &Class,
        gpu_milli: u32,
        accept: &mut dyn FnMut(NodeId) -> bool,
    ) -> Option<NodeId> {
        let trees = self.pools_of(class).iter().filter_map(|pool| {
            let pool = self.pools.get(*pool as usize)?;
            Some((pool, &pool.shares))
        });
        lowest(trees, gpu_milli.max(1), accept)
    }
}

fn lowest<'a>(
    trees: impl Iterator<Item = (&'a Pool, &'a MaxTree)>,
    least: u32,
    accept: &mut dyn FnMut(NodeId) -> bool,
) -> Option<NodeId> {
    let mut best: Option<NodeId> = None;
    for (pool, tree) in trees {
        let mut from = 0;
        while let Some(position) = tree.next(from, least) {
            let node = pool.nodes[position];
            if best.is_some_and(|best| best < node) {
                break;
            }
            if accept(node) {
                best = Some(node);
                break;
            }
            from = position + 1;
        }
    }
    best
}
