//! The built-in answer when a policy cannot answer: first come, first served, with backfilling.
//!
//! It only starts jobs. Each waiting job, by (submit time, id), gets its smallest gang on the fewest nodes with the CPU
//! it asked for, or with the least CPU it declared acceptable where that alone makes it fit. A job that does not fit
//! does not hold back those behind it.

use std::collections::BTreeMap;

use crate::contract::NONE;
use crate::contract::plan::{Plan, Verb};
use crate::model::{Allocation, ClassId, GroupSpec, JobId, NodeId, NodeState, QueueId};
use crate::state::{JobView, QueueBook, Room, State, Usage};

/// Waiting jobs looked at in one cycle; those behind wait for the next one.
pub const JOBS_LOOKED_AT_MAX: usize = 1024;

/// Distinct requests tried in one cycle before the rest waits: each costs a look at every node.
pub const MISSES_MAX: usize = 64;

/// Starts for the jobs that fit now.
pub fn plan(state: &State) -> Plan {
    let mut search = Search::new(state);
    let mut plan = Plan { revision: state.revision(), ..Plan::default() };
    for job in state.waiting().take(JOBS_LOOKED_AT_MAX).filter_map(|id| state.job(id)) {
        if search.misses.len() == MISSES_MAX {
            break;
        }
        if let Some(rows) = search.place(job) {
            push_start(&mut plan, job.id, &rows);
        }
    }
    plan
}

fn push_start(plan: &mut Plan, job: JobId, rows: &[Allocation]) {
    let actions = &mut plan.actions;
    actions.verb.push(Verb::Start);
    actions.job.push(job.0);
    actions.bundle.push(actions.bundle.len() as u32);
    actions.placement_start.push(plan.placements.group.len() as u32);
    actions.placement_count.push(rows.len() as u32);
    actions.batch_per_gpu.push(0);
    actions.reason.push(NONE);
    for row in rows {
        let table = &mut plan.placements;
        table.group.push(row.group);
        table.node.push(row.node.0);
        table.workers.push(row.workers);
        table.cpu_milli.push(row.cpu_milli);
        table.memory_mib.push(row.memory_mib);
        table.gpu_milli.push(row.gpu_milli);
        table.device_mask.push(row.device_mask);
    }
}

/// What is left while the plan grows.
struct Search<'a> {
    state: &'a State,
    /// Nodes that take jobs.
    rooms: BTreeMap<NodeId, Room>,
    queues: QueueBook,
    /// Requests that did not fit; they will not fit later in this plan either, which only takes.
    misses: Vec<(ClassId, QueueId, &'a [GroupSpec])>,
}

impl<'a> Search<'a> {
    fn new(state: &'a State) -> Self {
        let open = state.nodes().filter(|node| node.state == NodeState::Schedulable);
        Self {
            state,
            rooms: open.map(|node| (node.id, node.room)).collect(),
            queues: state.queue_book().clone(),
            misses: Vec::new(),
        }
    }

    fn place(&mut self, job: &'a JobView) -> Option<Vec<Allocation>> {
        let request = (job.spec.eligibility, job.spec.queue, job.spec.groups.as_slice());
        if self.misses.contains(&request) {
            return None;
        }
        let asked = |group: &GroupSpec| group.cpu_milli;
        let least = |group: &GroupSpec| group.cpu_milli_min;
        let rows = self.gang(job, asked).or_else(|| self.gang(job, least));
        if rows.is_none() {
            self.misses.push(request);
        }
        rows
    }

    /// The whole smallest gang of `job` with `cpu` per worker, taken from what is left; all of it or nothing.
    fn gang(&mut self, job: &JobView, cpu: impl Fn(&GroupSpec) -> u32) -> Option<Vec<Allocation>> {
        let mut taken: BTreeMap<NodeId, Room> = BTreeMap::new();
        let mut rows = Vec::new();
        for (index, group) in job.spec.groups.iter().enumerate() {
            let worker = Worker { group: index as u32, spec: group, cpu_milli: cpu(group) };
            let workers = group.workers_min.max(u32::from(job.spec.groups.len() == 1));
            self.group(job.spec.eligibility, &worker, workers, &mut taken, &mut rows)?;
        }
        let amount = Usage::of(&rows);
        if rows.is_empty() || !self.queues.allows(job.spec.queue, amount, |queue| queue.usage) {
            return None;
        }
        self.queues.take(job.spec.queue, amount);
        self.rooms.append(&mut taken);
        Some(rows)
    }

    /// Places `workers` of one group: on one node if any takes them all (the one with the least left over), else on
    /// those that take most.
    fn group(
        &self,
        class: ClassId,
        worker: &Worker,
        workers: u32,
        taken: &mut BTreeMap<NodeId, Room>,
        rows: &mut Vec<Allocation>,
    ) -> Option<()> {
        let room_of = |id: &NodeId, room: &Room| taken.get(id).copied().unwrap_or(*room);
        let eligible = self.rooms.iter().filter(|(id, _)| self.state.is_eligible(class, **id));
        let fits = eligible.map(|(id, room)| (worker.fits(&room_of(id, room)), *id));
        let mut nodes: Vec<(u32, NodeId)> = fits.filter(|(fit, _)| *fit > 0).collect();
        nodes.sort_unstable_by_key(|(fit, id)| (*fit, *id));
        let mut left = workers;
        while left > 0 {
            // The smallest room that takes all that is left; else the largest.
            let at = nodes.partition_point(|(fit, _)| *fit < left).min(nodes.len().checked_sub(1)?);
            let (fit, id) = nodes.remove(at);
            let here = fit.min(left);
            let room = taken.entry(id).or_insert(*self.rooms.get(&id)?);
            rows.push(worker.take(room, id, here)?);
            left -= here;
        }
        Some(())
    }
}

/// One worker's request.
struct Worker<'a> {
    group: u32,
    spec: &'a GroupSpec,
    cpu_milli: u32,
}

impl Worker<'_> {
    /// Workers that fit into `room`.
    fn fits(&self, room: &Room) -> u32 {
        let by = |free: i64, each: u32| match each {
            0 => u32::MAX,
            each => (free.max(0) / i64::from(each)).min(i64::from(u32::MAX)) as u32,
        };
        let host = by(room.cpu_milli, self.cpu_milli).min(by(room.memory_mib, self.spec.memory_mib));
        host.min(room.workers_fitting(self.spec.gpu_milli))
    }

    fn take(&self, room: &mut Room, node: NodeId, workers: u32) -> Option<Allocation> {
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
