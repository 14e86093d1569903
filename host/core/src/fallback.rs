//! The built-in answer when a policy cannot answer: first come, first served, with backfilling.
//!
//! It only starts jobs. Each waiting job, by (submit time, id), gets its smallest gang on the fewest nodes with the CPU
//! it asked for, or with the least CPU it declared acceptable where that alone makes it fit. A job that does not fit
//! does not hold back those behind it.

mod free;

use crate::contract::NONE;
use crate::contract::plan::{Plan, Verb};
use crate::model::{Allocation, ClassId, GroupSpec, JobId, QueueId};
use crate::state::{JobView, QueueBook, State, Usage};

use free::{Free, Worker};

/// Waiting jobs looked at in one cycle; those behind wait for the next one.
pub const JOBS_LOOKED_AT_MAX: usize = 1024;

/// Distinct requests tried in one cycle before the rest waits: each costs a look at every node.
pub const MISSES_MAX: usize = 64;

/// Starts for the jobs that fit now.
pub fn plan(state: &State) -> Plan {
    Search::new(state).plan(state)
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
    free: Free<'a>,
    queues: QueueBook,
    /// Requests that did not fit; they will not fit later in this plan either, which only takes.
    misses: Vec<(ClassId, QueueId, &'a [GroupSpec])>,
}

impl<'a> Search<'a> {
    fn new(state: &'a State) -> Self {
        Self { free: Free::new(state), queues: state.queue_book().clone(), misses: Vec::new() }
    }

    fn plan(&mut self, state: &'a State) -> Plan {
        let mut plan = Plan { revision: state.revision(), ..Plan::default() };
        for job in state.waiting().take(JOBS_LOOKED_AT_MAX).filter_map(|id| state.job(id)) {
            if self.misses.len() == MISSES_MAX {
                break;
            }
            if let Some(rows) = self.place(job) {
                push_start(&mut plan, job.id, &rows);
            }
        }
        plan
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
        let before = self.free.mark();
        let rows = self.rows(job, cpu);
        let amount = rows.as_deref().map(Usage::of).unwrap_or_default();
        let rows = rows.filter(|_| self.queues.allows(job.spec.queue, amount, |queue| queue.usage));
        match rows {
            Some(_) => self.queues.take(job.spec.queue, amount),
            None => self.free.give_back(before),
        }
        rows
    }

    fn rows(&mut self, job: &JobView, cpu: impl Fn(&GroupSpec) -> u32) -> Option<Vec<Allocation>> {
        let mut rows = Vec::new();
        for (index, group) in job.spec.groups.iter().enumerate() {
            let worker = Worker { group: index as u32, spec: group, cpu_milli: cpu(group) };
            let workers = group.workers_min.max(u32::from(job.spec.groups.len() == 1));
            self.free.take(job.spec.eligibility, &worker, workers, &mut rows)?;
        }
        (!rows.is_empty()).then_some(rows)
    }
}

#[cfg(test)]
mod slow;
#[cfg(test)]
mod tests;
