//! The plan that a cycle builds, checked against what is left as it grows.

use std::collections::BTreeSet;

use coretuner_contract::NONE;
use coretuner_contract::plan::{Plan, Reason, Verb};

use crate::cluster::{Allocation, Cluster, Free, Job, Phase};
use crate::id::{JobId, NodeId};
use crate::plan::table::{self, Lengths};
use crate::plan::{Placement, PlanError, Resize, check};
use crate::space::{Lack, Space};

/// Collects actions. Each one is checked as the host will check it, against the cluster as the plan so far leaves it:
/// what an action takes is gone for the next, what it gives back is free. A refused action leaves no trace.
#[derive(Debug)]
pub struct PlanBuilder<'a> {
    cluster: &'a Cluster,
    pub(crate) space: &'a mut Space,
    pub(super) plan: Plan,
    pub(super) acted: BTreeSet<JobId>,
    pub(super) bundle: u32,
    pub(super) in_bundle: bool,
    /// Where the bundle, or the single action, began in the free-resource view.
    mark: usize,
}

/// An action that was just noted, to say more about it.
#[derive(Debug)]
pub struct Noted<'p> {
    plan: &'p mut Plan,
    /// None: there was nothing to do.
    action: Option<usize>,
}

impl Noted<'_> {
    /// Gives the reason: a code from the policy's `REASONS` and the numbers behind it, in the order declared there.
    pub fn because(self, code: &str, arguments: &[f64]) -> Self {
        if let Some(action) = self.action {
            self.plan.actions.reason[action] = self.plan.reasons.len() as u32;
            self.plan.reasons.push(Reason {
                code: code.to_owned(),
                arguments: arguments.to_vec(),
                node: NONE,
                other_job: NONE,
            });
        }
        self
    }

    /// The node that the reason speaks of; after [`Noted::because`].
    pub fn about_node(mut self, node: NodeId) -> Self {
        if let Some(reason) = self.reason() {
            reason.node = node.0;
        }
        self
    }

    /// The other job that the reason speaks of; after [`Noted::because`].
    pub fn about_job(mut self, job: JobId) -> Self {
        if let Some(reason) = self.reason() {
            reason.other_job = job.0;
        }
        self
    }

    fn reason(&mut self) -> Option<&mut Reason> {
        let index = *self.plan.actions.reason.get(self.action?)?;
        self.plan.reasons.get_mut(index as usize)
    }
}

impl<'a> PlanBuilder<'a> {
    pub(crate) fn new(cluster: &'a Cluster, space: &'a mut Space) -> Self {
        let plan = Plan { revision: cluster.revision(), ..Plan::default() };
        Self { cluster, space, plan, acted: BTreeSet::new(), bundle: 0, in_bundle: false, mark: 0 }
    }

    /// Undoes what the plan took in the free-resource view and hands the plan out.
    pub(crate) fn finish(self) -> Plan {
        self.space.rollback(0);
        self.plan
    }

    /// The view that the plan is made for.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// What is free on a node as the plan so far leaves it.
    pub fn free(&self, node: NodeId) -> Option<&Free> {
        self.space.free(node)
    }

    /// Whether the plan has an action for this job; it takes one per job.
    pub fn has_acted_on(&self, job: JobId) -> bool {
        self.acted.contains(&job)
    }

    /// Whether the plan stops a job, which then waits.
    pub(crate) fn stops_any(&self) -> bool {
        self.plan.actions.verb.contains(&Verb::Preempt)
    }

    /// Actions noted so far.
    pub fn len(&self) -> usize {
        self.plan.actions.job.len()
    }

    /// Whether the plan has no action yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts a waiting job; the placements are its whole gang.
    pub fn start(&mut self, job: JobId, placements: &[Placement]) -> Result<Noted<'_>, PlanError> {
        let job = self.actionable(job, Phase::Waiting)?;
        let rows = check::whole(self.cluster, job, placements)?;
        self.exchange(Verb::Start, job, 0, &[], rows)
    }

    /// Changes CPU or memory of a running job in place. Rows that change nothing are left out; when none is left, so is
    /// the action.
    pub fn resize(&mut self, job: JobId, resizes: &[Resize]) -> Result<Noted<'_>, PlanError> {
        let job = self.actionable(job, Phase::Running)?;
        let (held, new): (Vec<_>, Vec<_>) = check::resize(job, resizes)?.into_iter().unzip();
        if new.is_empty() {
            return Ok(Noted { plan: &mut self.plan, action: None });
        }
        self.exchange(Verb::Resize, job, 0, &held, new)
    }

    /// Gives a running job a new placement, worker count or batch (0 = unchanged); it restarts from its checkpoint.
    pub fn rescale(
        &mut self,
        job: JobId,
        placements: &[Placement],
        batch_per_gpu: u32,
    ) -> Result<Noted<'_>, PlanError> {
        let job = self.actionable(job, Phase::Running)?;
        check::may_interrupt(self.cluster, job)?;
        let rows = check::whole(self.cluster, job, placements)?;
        self.exchange(Verb::Rescale, job, batch_per_gpu, &job.allocations, rows)
    }

    /// Stops a running job; it waits again, with its progress.
    pub fn preempt(&mut self, job: JobId) -> Result<Noted<'_>, PlanError> {
        let job = self.actionable(job, Phase::Running)?;
        check::may_interrupt(self.cluster, job)?;
        self.exchange(Verb::Preempt, job, 0, &job.allocations, Vec::new())
    }

    /// Says why a waiting job waits. The host keeps it until the next hold or start, so say it when it changes.
    pub fn hold(&mut self, job: JobId, code: &str, arguments: &[f64]) -> Result<Noted<'_>, PlanError> {
        let job = self.actionable(job, Phase::Waiting)?;
        Ok(self.exchange(Verb::Hold, job, 0, &[], Vec::new())?.because(code, arguments))
    }

    /// Actions that stand or fall together: when `make` fails none of them stays in the plan, and the host accepts or
    /// refuses them as one. What is given back must be given back before it is taken.
    pub fn bundle<T, E>(&mut self, make: impl FnOnce(&mut Self) -> Result<T, E>) -> Result<T, E> {
        let (mark, lengths) = (self.space.savepoint(), table::lengths(&self.plan));
        let outer = std::mem::replace(&mut self.in_bundle, true);
        if !outer {
            self.mark = mark;
        }
        let result = make(self);
        self.in_bundle = outer;
        if result.is_err() {
            self.cut(mark, lengths);
        }
        if !outer {
            self.bundle += 1;
        }
        result
    }

    fn cut(&mut self, mark: usize, lengths: Lengths) {
        self.space.rollback(mark);
        for job in &self.plan.actions.job[lengths.actions..] {
            self.acted.remove(&JobId(*job));
        }
        table::truncate(&mut self.plan, lengths);
    }

    /// Runs `look` on the free resources as the plan leaves them, with takes and gives that are undone afterwards.
    pub(crate) fn try_out<T>(&mut self, look: impl FnOnce(&mut Self) -> T) -> T {
        let mark = self.space.savepoint();
        let outer = self.mark;
        if !self.in_bundle {
            self.mark = mark;
        }
        let result = look(self);
        self.mark = outer;
        self.space.rollback(mark);
        result
    }

    /// Asks for a cycle at `at_ns` even if nothing happens; the earliest wish counts. A time that has passed is ignored.
    pub fn wake_at(&mut self, at_ns: u64) {
        if at_ns > self.cluster.now_ns() && (self.plan.wake_at_ns == 0 || at_ns < self.plan.wake_at_ns) {
            self.plan.wake_at_ns = at_ns;
        }
    }

    pub(super) fn actionable(&self, id: JobId, phase: Phase) -> Result<&'a Job, PlanError> {
        let job = self.cluster.job(id).ok_or(PlanError::UnknownJob(id))?;
        if !job.mine {
            return Err(PlanError::NotMine(id));
        }
        if job.phase != phase {
            return Err(PlanError::WrongPhase(id));
        }
        if self.acted.contains(&id) {
            return Err(PlanError::Twice(id));
        }
        Ok(job)
    }

    /// Gives back `held`, takes `rows`, and notes the action; all or nothing.
    fn exchange(
        &mut self,
        verb: Verb,
        job: &Job,
        batch: u32,
        held: &[Allocation],
        mut rows: Vec<Allocation>,
    ) -> Result<Noted<'_>, PlanError> {
        let mark = self.space.savepoint();
        if !self.in_bundle {
            self.mark = mark;
        }
        self.give_back(job, held);
        if let Err(error) = self.take(job, &mut rows) {
            self.space.rollback(mark);
            return Err(error);
        }
        self.acted.insert(job.id);
        let action = table::push(&mut self.plan, verb, job.id, self.bundle, batch, &rows);
        if !self.in_bundle {
            self.bundle += 1;
        }
        Ok(Noted { plan: &mut self.plan, action: Some(action) })
    }

    pub(crate) fn give_back(&mut self, job: &Job, held: &[Allocation]) {
        if held.is_empty() {
            return;
        }
        held.iter().for_each(|row| self.space.give(row));
        let (gpu, cpu) = totals(held);
        self.space.give_quota(self.cluster, job.queue, gpu, cpu);
    }

    /// Takes all of it or nothing; says which.
    pub(crate) fn take_or_leave(&mut self, job: &Job, rows: &mut [Allocation]) -> bool {
        let mark = self.space.savepoint();
        let taken = self.take(job, rows).is_ok();
        if !taken {
            self.space.rollback(mark);
        }
        taken
    }

    /// Takes rows and quota; fills in the device masks. On failure the caller rolls back.
    pub(crate) fn take(&mut self, job: &Job, rows: &mut [Allocation]) -> Result<(), PlanError> {
        if rows.is_empty() {
            return Ok(());
        }
        for row in rows.iter_mut() {
            row.device_mask = self.space.take(row).map_err(|lack| match lack {
                Lack::Node => PlanError::UnknownNode(row.node),
                Lack::Cpu => PlanError::NoCpu(row.node),
                Lack::Memory => PlanError::NoMemory(row.node),
                Lack::Gpu => PlanError::NoGpu(row.node),
            })?;
        }
        self.space.take_quota(self.cluster, job.queue, totals(rows), self.mark).map_err(PlanError::Quota)
    }
}

fn totals(rows: &[Allocation]) -> (u64, u64) {
    rows.iter().fold((0, 0), |(gpu, cpu), row| (gpu + u64::from(row.gpu_milli), cpu + u64::from(row.cpu_milli)))
}
