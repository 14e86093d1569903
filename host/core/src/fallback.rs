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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::model::{Eligibility, JobSpec};
    use crate::tests::build::{apply, cluster, group, job, queue, submit};

    /// (node, workers, cpu_milli).
    type Held = (u32, u32, u32);
    /// Starts of the plan after it was judged.
    type Starts = Vec<(u32, Vec<Held>)>;

    fn starts(state: &mut State) -> Starts {
        let judgement = state.judge(0, &plan(state));
        assert_eq!(judgement.verdicts, []);
        state.check_invariants().unwrap();
        let rows = |id: JobId| {
            let rows = &state.job(id).unwrap().allocations;
            rows.iter().map(|row| (row.node.0, row.workers, row.cpu_milli)).collect()
        };
        judgement.commands.iter().map(|command| (command.job().0, rows(command.job()))).collect()
    }

    fn check(nodes: u32, jobs: &[Vec<GroupSpec>], expected: &[(u32, &[Held])]) {
        let mut state = cluster(nodes);
        for (id, groups) in jobs.iter().enumerate() {
            submit(&mut state, id as u32, job(groups.clone()));
        }
        let expected: Starts = expected.iter().map(|(id, rows)| (*id, rows.to_vec())).collect();
        assert_eq!(starts(&mut state), expected);
    }

    #[test]
    fn gangs_go_whole_to_the_fewest_and_fullest_nodes() {
        check(2, &[vec![group(4)], vec![group(2)]], &[(0, &[(0, 4, 12_000)]), (1, &[(0, 2, 6_000)])]);
        check(2, &[vec![group(6)], vec![group(4)]], &[(0, &[(0, 6, 18_000)]), (1, &[(1, 4, 12_000)])]);
        check(3, &[vec![group(12)]], &[(0, &[(0, 4, 12_000), (2, 8, 24_000)])]);
        check(1, &[vec![group(9)]], &[]);
    }

    #[test]
    fn smaller_jobs_pass_one_that_does_not_fit() {
        check(1, &[vec![group(6)], vec![group(4)], vec![group(2)]], &[(0, &[(0, 6, 18_000)]), (2, &[(0, 2, 6_000)])]);
    }

    #[test]
    fn less_cpu_is_given_where_the_request_does_not_fit() {
        let hungry = GroupSpec { cpu_milli: 12_000, cpu_milli_min: 2_000, ..group(2) };
        check(1, &[vec![hungry.clone()], vec![hungry]], &[(0, &[(0, 2, 24_000)])]);
        let hungry = GroupSpec { cpu_milli: 9_000, cpu_milli_min: 2_000, ..group(2) };
        check(1, &[vec![hungry.clone()], vec![hungry]], &[(0, &[(0, 2, 18_000)]), (1, &[(0, 2, 4_000)])]);
    }

    #[test]
    fn every_group_gets_its_workers() {
        let launcher = GroupSpec {
            gpu_milli: 0,
            cpu_milli: 1_000,
            memory_mib: 0,
            memory_mib_min: 0,
            memory_mib_max: 0,
            ..group(1)
        };
        check(1, &[vec![group(7), launcher.clone()]], &[(0, &[(0, 7, 21_000), (0, 1, 1_000)])]);
        check(1, &[vec![group(8), launcher]], &[(0, &[(0, 8, 8_000), (0, 1, 1_000)])]);
        let share = GroupSpec { gpu_milli: 500, ..group(2) };
        check(1, &[vec![share]], &[(0, &[(0, 2, 6_000)])]);
    }

    #[test]
    fn ceilings_classes_and_states_bind() {
        let mut state = cluster(3);
        apply(&mut state, &Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(vec![NodeId(0), NodeId(2)]) });
        apply(&mut state, &Event::QueueSet { id: QueueId(1), spec: queue(Some(2_000), Some(0)) });
        apply(&mut state, &Event::NodeStateSet { id: NodeId(0), state: NodeState::Cordoned });
        submit(&mut state, 0, JobSpec { eligibility: ClassId(1), ..job(vec![group(8)]) });
        submit(&mut state, 1, JobSpec { queue: QueueId(1), ..job(vec![group(3)]) });
        submit(&mut state, 2, JobSpec { queue: QueueId(1), ..job(vec![group(2)]) });
        assert_eq!(starts(&mut state), [(0, vec![(2, 8, 24_000)]), (2, vec![(1, 2, 6_000)])]);
        assert_eq!(starts(&mut state), [], "what runs stays as it is");
    }

    #[test]
    fn a_cycle_looks_at_a_bounded_number_of_jobs() {
        let mut state = cluster(1);
        for id in 0..JOBS_LOOKED_AT_MAX as u32 {
            submit(&mut state, id, job(vec![group(9)]));
        }
        submit(&mut state, 5_000, job(vec![group(1)]));
        assert_eq!(starts(&mut state), []);
    }
}
