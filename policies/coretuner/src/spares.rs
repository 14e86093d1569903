//! Nodes by the CPU and memory beside the bases of their gangs, for jobs that are placed as requested.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use coretuner_sdk::NodeId;
use coretuner_sdk::solve::Amount;

/// What a search goes by first: a rank, then most CPU.
type Order = (u32, Reverse<u32>);

/// What a node must have enough of, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rest {
    memory: u32,
    /// Largest free part of a partly used GPU, thousandths.
    share: u32,
}

/// A node as it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spare {
    /// The least comes first.
    pub(crate) rank: u32,
    pub(crate) amount: Amount,
    /// Largest free part of a partly used GPU, thousandths.
    pub(crate) share: u32,
    pub(crate) node: NodeId,
}

impl Spare {
    fn keys(&self) -> (Order, Rest) {
        ((self.rank, Reverse(self.amount.cpu)), Rest { memory: self.amount.memory, share: self.share })
    }
}

/// Nodes that have as much are together, so that those with too little are passed over without a look at each.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spares {
    groups: BTreeMap<Order, BTreeMap<Rest, BTreeSet<NodeId>>>,
}

impl Spares {
    pub(crate) fn add(&mut self, spare: &Spare) {
        let (order, rest) = spare.keys();
        self.groups.entry(order).or_default().entry(rest).or_default().insert(spare.node);
    }

    pub(crate) fn remove(&mut self, spare: &Spare) {
        let (order, rest) = spare.keys();
        let Some(group) = self.groups.get_mut(&order) else { return };
        if let Some(nodes) = group.get_mut(&rest) {
            nodes.remove(&spare.node);
            if nodes.is_empty() {
                group.remove(&rest);
            }
        }
        if group.is_empty() {
            self.groups.remove(&order);
        }
    }

    /// Nodes with at least `need` beside the bases, by rank, then most CPU first, then by id. `share`: least free part of a
    /// partly used GPU on nodes of rank 0.
    pub(crate) fn with(&self, need: Amount, share: u32) -> impl Iterator<Item = NodeId> {
        let enough = move |order: &Order| order.1.0 >= need.cpu;
        let groups = self.groups.iter().filter(move |(order, _)| enough(order));
        groups.flat_map(move |(order, group)| {
            let share = if order.0 == 0 { share } else { 0 };
            let fitting =
                group.range(Rest { memory: need.memory, share: 0 }..).filter(move |(rest, _)| rest.share >= share);
            merged(fitting.map(|(_, nodes)| nodes.iter().copied()))
        })
    }
}

/// All items of sorted iterators, sorted.
pub(crate) fn merged<T: Ord + Copy, I: Iterator<Item = T>>(sorted: impl Iterator<Item = I>) -> impl Iterator<Item = T> {
    let mut rests: Vec<I> = sorted.collect();
    let first = |(at, rest): (usize, &mut I)| Some(Reverse((rest.next()?, at)));
    let mut heads: BinaryHeap<Reverse<(T, usize)>> = rests.iter_mut().enumerate().filter_map(first).collect();
    std::iter::from_fn(move || {
        let Reverse((item, at)) = heads.pop()?;
        heads.extend(rests[at].next().map(|next| Reverse((next, at))));
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spares: &Spares, (cpu, memory, share): (u32, u32, u32), expected: &[u32]) {
        let found: Vec<u32> = spares.with(Amount { cpu, memory }, share).map(|node| node.0).collect();
        assert_eq!(found, expected, "{cpu} {memory} {share}");
    }

    #[test]
    fn nodes_with_enough_come_by_rank_then_cpu_then_id() {
        let mut spares = Spares::default();
        let nodes = [(1, 8, 10, 0), (0, 4, 10, 500), (0, 8, 2, 200), (0, 4, 20, 500), (0, 8, 10, 700), (1, 8, 20, 0)];
        for (node, (rank, cpu, memory, share)) in (0..).zip(nodes) {
            spares.add(&Spare { rank, amount: Amount { cpu, memory }, share, node: NodeId(node) });
        }
        check(&spares, (1, 1, 0), &[2, 4, 1, 3, 0, 5]);
        check(&spares, (5, 1, 0), &[2, 4, 0, 5]);
        check(&spares, (1, 5, 0), &[4, 1, 3, 0, 5]);
        check(&spares, (1, 1, 300), &[4, 1, 3, 0, 5]);
        spares.remove(&Spare { rank: 0, amount: Amount { cpu: 8, memory: 10 }, share: 700, node: NodeId(4) });
        check(&spares, (1, 11, 0), &[3, 5]);
        check(&spares, (9, 1, 0), &[]);
    }

    #[test]
    fn sorted_iterators_are_merged() {
        let found: Vec<u32> = merged([vec![1, 4, 9], vec![], vec![2, 4]].into_iter().map(Vec::into_iter)).collect();
        assert_eq!(found, [1, 2, 4, 4, 9]);
    }
}
