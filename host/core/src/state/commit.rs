//! What an accepted bundle does to the state, and how a command that the backend refused is taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::contract::cluster::Refusal;
use crate::contract::plan::Reason;
use crate::judge::{Judgement, Verdict};
use crate::model::{Allocation, ChangePoint, JobId, JobPhase, NodeId, QueueId, TimeNs};

use super::apply::frozen;
use super::{Change, NodeView, QueueView, Room, State, StateError, Usage};

/// A job as it was before a command.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Before {
    pub(crate) action: u32,
    job: JobId,
    phase: JobPhase,
    allocations: Vec<Allocation>,
    restarts: u32,
    batch_per_gpu: u32,
    started: bool,
    progress: ChangePoint,
}

/// A job as it shall be.
pub(crate) struct After {
    pub(crate) job: JobId,
    pub(crate) phase: JobPhase,
    pub(crate) allocations: Vec<Allocation>,
    /// The job starts (again) from its checkpoint.
    pub(crate) starts: bool,
    /// 0 = unchanged.
    pub(crate) batch_per_gpu: u32,
    pub(crate) reason: Option<Arc<Reason>>,
}

/// Nodes and queues as they were before a bundle took and gave anything.
#[derive(Debug, Default)]
pub(crate) struct Savepoint {
    nodes: BTreeMap<NodeId, Room>,
    queues: BTreeMap<QueueId, Usage>,
}

impl Savepoint {
    /// Nodes that were touched, ascending.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.keys().copied()
    }

    /// A node that others overdrew already may stay so: workers that stay do not make it worse.
    pub(crate) fn floor(&self, node: NodeId) -> Room {
        self.nodes.get(&node).map_or(Room::ZERO, Room::overdrawn)
    }

    fn usage_before(&self, queue: &QueueView) -> Usage {
        self.queues.get(&queue.id).copied().unwrap_or(queue.usage)
    }
}

impl State {
    /// The node's room, saved first.
    pub(crate) fn room_mut(&mut self, save: &mut Savepoint, node: NodeId) -> Option<&mut Room> {
        let room = &mut self.nodes.get_mut(&node)?.room;
        save.nodes.entry(node).or_insert(*room);
        Some(room)
    }

    /// Gives back what a job holds, for the time of judging.
    pub(crate) fn give_back(&mut self, save: &mut Savepoint, job: JobId) {
        let Some(view) = self.jobs.get(&job) else { return };
        let (queue, amount) = (view.spec.queue, Usage::of(&view.allocations));
        for row in &view.allocations {
            if let Some(node) = self.nodes.get_mut(&row.node) {
                save.nodes.entry(row.node).or_insert(node.room);
                node.room.give(row);
            }
        }
        self.save_queues(save, queue);
        self.queues.give(queue, amount);
    }

    /// Takes `amount` from the ceilings of a queue.
    pub(crate) fn take_quota(&mut self, save: &mut Savepoint, queue: QueueId, amount: Usage) -> Result<(), Refusal> {
        self.save_queues(save, queue);
        if !self.queues.allows(queue, amount, |queue| save.usage_before(queue)) {
            return Err(Refusal::Quota);
        }
        self.queues.take(queue, amount);
        Ok(())
    }

    fn save_queues(&self, save: &mut Savepoint, queue: QueueId) {
        for queue in self.queues.line(queue) {
            save.queues.entry(queue.id).or_insert(queue.usage);
        }
    }

    /// Puts nodes and queues back.
    pub(crate) fn undo(&mut self, save: Savepoint) {
        for (id, room) in save.nodes {
            if let Some(node) = self.nodes.get_mut(&id) {
                node.room = room;
            }
        }
        for (id, usage) in save.queues {
            self.queues.restore(id, usage);
        }
    }

    /// Makes a bundle's result the jobs' state; rooms and quotas are taken already. Returns the jobs as they were.
    pub(crate) fn commit(&mut self, now_ns: TimeNs, save: &Savepoint, after: Vec<(u32, After)>) -> Vec<Before> {
        self.revision += 1;
        self.now_ns = self.now_ns.max(now_ns);
        let before = after.into_iter().filter_map(|(action, after)| self.commit_job(action, after)).collect();
        save.nodes().for_each(|node| self.touch_node(node));
        save.queues.keys().for_each(|queue| self.queues.settle(*queue));
        before
    }

    fn commit_job(&mut self, action: u32, after: After) -> Option<Before> {
        let now_ns = self.now_ns;
        let job = self.jobs.get_mut(&after.job)?;
        let before = Before {
            action,
            job: after.job,
            phase: std::mem::replace(&mut job.phase, after.phase),
            allocations: std::mem::replace(&mut job.allocations, after.allocations),
            restarts: job.restarts,
            batch_per_gpu: job.batch_per_gpu,
            started: job.started,
            progress: job.progress,
        };
        if after.starts {
            job.restarts += u32::from(job.started);
            job.started = true;
        }
        if after.batch_per_gpu != 0 {
            job.batch_per_gpu = after.batch_per_gpu;
        }
        if after.starts || job.phase == JobPhase::Waiting {
            job.progress = frozen(job, now_ns, job.gpu_milli());
        }
        job.reason = after.reason;
        self.relink(after.job, &before.allocations);
        self.touch_job(after.job);
        if job_moved(&before, &self.jobs, after.job) {
            self.note(Change::Progress(after.job));
        }
        Some(before)
    }

    /// Keeps the nodes' lists of jobs.
    fn relink(&mut self, id: JobId, old: &[Allocation]) {
        for row in old {
            if let Some(node) = self.nodes.get_mut(&row.node) {
                node.jobs.remove(&id);
            }
        }
        let Some(job) = self.jobs.get(&id) else { return };
        for row in &job.allocations {
            if let Some(node) = self.nodes.get_mut(&row.node) {
                node.jobs.insert(id);
            }
        }
    }

    /// Records why a job waits; nothing that a policy sees changes.
    pub(crate) fn set_reason(&mut self, id: JobId, reason: Option<Arc<Reason>>) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.reason = reason;
        }
    }

    /// Takes back the commands of `judgement` that the backend refused, all of them at once: their jobs are as before.
    /// Returns the verdicts for the policy.
    pub fn roll_back(&mut self, judgement: &Judgement, refused: &[JobId]) -> Result<Vec<Verdict>, StateError> {
        let refused: BTreeSet<JobId> = refused.iter().copied().collect();
        let before: Vec<&Before> = judgement.before.iter().filter(|before| refused.contains(&before.job)).collect();
        if before.is_empty() {
            return Ok(Vec::new());
        }
        let mut save = Savepoint::default();
        before.iter().for_each(|before| self.give_back(&mut save, before.job));
        for before in &before {
            if let Err(fault) = self.retake(&mut save, before) {
                self.undo(save);
                return Err(fault);
            }
        }
        self.revision += 1;
        before.iter().for_each(|before| self.restore(before));
        save.nodes().for_each(|node| self.touch_node(node));
        save.queues.keys().for_each(|queue| self.queues.excuse(*queue));
        let verdict =
            |before: &&Before| Verdict { action: before.action, job: before.job, reason: Refusal::BackendRefused };
        Ok(before.iter().map(verdict).collect())
    }

    fn retake(&mut self, save: &mut Savepoint, before: &Before) -> Result<(), StateError> {
        for row in &before.allocations {
            let fault = StateError::RollBack { job: before.job, node: row.node };
            // What others use counted neither before: only our own jobs can be in the way.
            let floor = self.nodes.get(&row.node).map_or(Room::ZERO, NodeView::foreign_room);
            let room = self.room_mut(save, row.node).ok_or_else(|| fault.clone())?;
            room.take_host(row, &floor).and_then(|()| room.take_devices(row, &floor)).map_err(|_| fault)?;
        }
        if let Some(queue) = self.jobs.get(&before.job).map(|job| job.spec.queue) {
            self.save_queues(save, queue);
            self.queues.take(queue, Usage::of(&before.allocations));
        }
        Ok(())
    }

    fn restore(&mut self, before: &Before) {
        let Some(job) = self.jobs.get_mut(&before.job) else { return };
        let rows = std::mem::replace(&mut job.allocations, before.allocations.clone());
        job.phase = before.phase;
        job.restarts = before.restarts;
        job.batch_per_gpu = before.batch_per_gpu;
        job.started = before.started;
        job.progress = before.progress;
        self.relink(before.job, &rows);
        self.touch_job(before.job);
        self.note(Change::Progress(before.job));
    }
}

fn job_moved(before: &Before, jobs: &BTreeMap<JobId, super::JobView>, id: JobId) -> bool {
    jobs.get(&id).is_some_and(|job| job.progress != before.progress)
}
