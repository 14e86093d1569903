//! The same rules without any order kept: every node is looked at for every group.

use std::collections::BTreeMap;

use super::free::Worker;
use super::*;
use crate::model::{NodeId, NodeState};
use crate::state::Room;

struct Slow<'a> {
    state: &'a State,
    rooms: BTreeMap<NodeId, Room>,
    queues: QueueBook,
}

pub(super) fn plan(state: &State) -> Plan {
    let open = state.nodes().filter(|node| node.state == NodeState::Schedulable);
    let rooms = open.map(|node| (node.id, node.room)).collect();
    let mut slow = Slow { state, rooms, queues: state.queue_book().clone() };
    let mut plan = Plan { revision: state.revision(), ..Plan::default() };
    for job in state.waiting().filter_map(|id| state.job(id)) {
        let rows = slow.gang(job, |group| group.cpu_milli).or_else(|| slow.gang(job, |group| group.cpu_milli_min));
        if let Some(rows) = rows {
            push_start(&mut plan, job.id, &rows);
        }
    }
    plan
}

impl Slow<'_> {
    fn gang(&mut self, job: &JobView, cpu: impl Fn(&GroupSpec) -> u32) -> Option<Vec<Allocation>> {
        let (mut rooms, mut rows) = (self.rooms.clone(), Vec::new());
        for (group, spec) in (0..).zip(&job.spec.groups) {
            let worker = Worker { group, spec, cpu_milli: cpu(spec) };
            let fits = |(id, room): (&NodeId, &Room)| {
                let eligible = self.state.is_eligible(job.spec.eligibility, *id);
                (if eligible { worker.fits(room) } else { 0 }, *id)
            };
            let mut nodes: Vec<_> = rooms.iter().map(fits).filter(|(fit, _)| *fit > 0).collect();
            nodes.sort_unstable();
            let mut left = spec.workers_min;
            while left > 0 {
                let at = nodes.iter().position(|(fit, _)| *fit >= left).or(nodes.len().checked_sub(1))?;
                let (fit, id) = nodes.remove(at);
                rows.push(worker.take(rooms.get_mut(&id)?, id, fit.min(left))?);
                left -= fit.min(left);
            }
        }
        let amount = Usage::of(&rows);
        if !self.queues.allows(job.spec.queue, amount, |queue| queue.usage) {
            return None;
        }
        self.queues.take(job.spec.queue, amount);
        self.rooms = rooms;
        Some(rows)
    }
}
