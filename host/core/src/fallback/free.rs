//! What is left on the nodes while a plan grows, and where a request fits best.
//!
//! A plan places many jobs of few kinds of request on many nodes. Looking at every node for every job would cost their
//! product; so the nodes are put in order once per kind of request, and afterwards only those that changed move.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Allocation, ClassId, GroupSpec, NodeId, NodeState};
use crate::state::{Room, State};

/// Orders kept at once, each of the size of the cluster; with more kinds of request than that they are made anew.
const ORDERS_MAX: usize = 32;

/// One worker's request.
pub(super) struct Worker<'a> {
    pub(super) group: u32,
    pub(super) spec: &'a GroupSpec,
    pub(super) cpu_milli: u32,
}

/// Nodes that take jobs.
pub(super) struct Free<'a> {
    state: &'a State,
    /// Ascending by id; the others speak of a node by its place here.
    nodes: Vec<(NodeId, Room)>,
    /// Each change of a room: the place and the room before it.
    changes: Vec<(usize, Room)>,
    orders: BTreeMap<Request, Order>,
    /// Times that a request was held against a room.
    looks: u64,
}

/// All that decides how many workers a room takes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Request {
    class: ClassId,
    gpu_milli: u32,
    cpu_milli: u32,
    memory_mib: u32,
}

/// Places by the workers of one request that they take.
struct Order {
    /// (workers, place) where at least one fits.
    by_fit: BTreeSet<(u32, usize)>,
    /// Workers that each place is listed with; 0 where it is not.
    fits: Vec<u32>,
    /// Changes that this order knows of.
    seen: usize,
}

impl<'a> Free<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        let open = state.nodes().filter(|node| node.state == NodeState::Schedulable);
        let nodes = open.map(|node| (node.id, node.room)).collect();
        Self { state, nodes, changes: Vec::new(), orders: BTreeMap::new(), looks: 0 }
    }

    /// A point to return to.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Gives back all that was taken since `mark`.
    pub(super) fn give_back(&mut self, mark: usize) {
        for at in (mark..self.changes.len()).rev() {
            let (place, before) = self.changes[at];
            // Noted too, as an order may have seen the taking.
            self.set(place, before);
        }
    }

    fn set(&mut self, place: usize, room: Room) {
        let before = std::mem::replace(&mut self.nodes[place].1, room);
        self.changes.push((place, before));
    }

    /// Takes `workers` of one group: on one node if any takes them all (the one with the least left over), else on
    /// those that take most. `None` leaves behind what it took so far.
    pub(super) fn take(
        &mut self,
        class: ClassId,
        worker: &Worker,
        workers: u32,
        rows: &mut Vec<Allocation>,
    ) -> Option<()> {
        let request = worker.request(class);
        let mut order = self.order(&request);
        let mut left = workers;
        while left > 0 {
            let Some((fit, place)) = order.best(left) else { break };
            // No group has two rows on one node: the node is out until the group is whole.
            order.list(place, 0);
            let here = fit.min(left);
            let (node, mut room) = self.nodes[place];
            // The order is forgotten with the `?`: this node is missing in it.
            let row = worker.take(&mut room, node, here)?;
            self.set(place, room);
            rows.push(row);
            left -= here;
        }
        self.keep(request, order);
        (left == 0).then_some(())
    }

    /// The order of `request`, up to date.
    fn order(&mut self, request: &Request) -> Order {
        let Some(mut order) = self.orders.remove(request) else { return self.new_order(request) };
        let seen = std::mem::replace(&mut order.seen, self.changes.len());
        for at in seen..self.changes.len() {
            let place = self.changes[at].0;
            let fit = self.fit(request, place);
            order.list(place, fit);
        }
        order
    }

    fn new_order(&mut self, request: &Request) -> Order {
        let fits: Vec<u32> = (0..self.nodes.len()).map(|place| self.fit(request, place)).collect();
        let listed = fits.iter().copied().zip(0..).filter(|(fit, _)| *fit > 0);
        Order { by_fit: listed.collect(), fits, seen: self.changes.len() }
    }

    fn keep(&mut self, request: Request, order: Order) {
        if self.orders.len() == ORDERS_MAX {
            self.orders.clear();
        }
        self.orders.insert(request, order);
    }

    fn fit(&mut self, request: &Request, place: usize) -> u32 {
        self.looks += 1;
        let (node, room) = &self.nodes[place];
        if self.state.is_eligible(request.class, *node) { request.fits(room) } else { 0 }
    }

    #[cfg(test)]
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }
}

impl Order {
    /// The smallest room that takes `workers`; else the largest. With the workers that it takes.
    fn best(&self, workers: u32) -> Option<(u32, usize)> {
        self.by_fit.range((workers, 0)..).next().or_else(|| self.by_fit.last()).copied()
    }

    fn list(&mut self, place: usize, fit: u32) {
        let before = std::mem::replace(&mut self.fits[place], fit);
        if before != fit {
            self.by_fit.remove(&(before, place));
            if fit > 0 {
                self.by_fit.insert((fit, place));
            }
        }
    }
}

impl Request {
    /// Workers that fit into `room`.
    fn fits(&self, room: &Room) -> u32 {
        let by = |free: i64, each: u32| match each {
            0 => u32::MAX,
            each => (free.max(0) / i64::from(each)).min(i64::from(u32::MAX)) as u32,
        };
        let host = by(room.cpu_milli, self.cpu_milli).min(by(room.memory_mib, self.memory_mib));
        host.min(room.workers_fitting(self.gpu_milli))
    }
}

impl Worker<'_> {
    #[cfg(test)]
    pub(super) fn fits(&self, room: &Room) -> u32 {
        self.request(ClassId(0)).fits(room)
    }

    fn request(&self, class: ClassId) -> Request {
        let (gpu_milli, memory_mib) = (self.spec.gpu_milli, self.spec.memory_mib);
        Request { class, gpu_milli, cpu_milli: self.cpu_milli, memory_mib }
    }

    pub(super) fn take(&self, room: &mut Room, node: NodeId, workers: u32) -> Option<Allocation> {
        let total = |each: u32| workers.checked_mul(each);
        let mut row = Allocation {
            group: self.group,
            node,
            workers,
            cpu_milli: total(self.cpu_milli)?,
            memory_mib: total(self.spec.memory_mib)?,
            gpu_milli: total(self.spec.gpu_milli)?,
            device_mask: 0,
        };
        room.take_host(&row, &Room::ZERO).ok()?;
        if row.gpu_milli > 0 {
            let whole = crate::judge::is_whole(self.spec);
            row.device_mask = room.pick_devices(row.gpu_milli, whole).ok()?;
            room.take_devices(&row, &Room::ZERO).ok()?;
        }
        Some(row)
    }
}
