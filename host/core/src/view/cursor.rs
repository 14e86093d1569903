use crate::contract::cluster::{Delta, Trigger};
use crate::judge::Verdict;
use crate::model::{ChangePoint, ClassId, JobId, NodeId, QueueId};
use crate::state::{Change, JobView, NodeView, Owner, State};

use super::strings::Strings;
use super::tables::{self, rows};

/// A checksum is sent with every so many deltas (and with each in debug builds).
pub const CHECKSUM_EVERY: u64 = 64;

/// What one policy instance has seen.
///
/// An image (`base_revision` 0) starts everything anew, the string table included.
#[derive(Clone, Debug, Default)]
pub struct Cursor {
    owner: Owner,
    /// Revision of the instance's view; 0 = it has none.
    base: u64,
    sent: u64,
    strings: Strings,
}

/// Ids of what changed, each ascending and once.
#[derive(Default)]
struct Changed {
    added_nodes: Vec<NodeId>,
    node_specs: Vec<NodeId>,
    node_states: Vec<NodeId>,
    removed_nodes: Vec<NodeId>,
    queues: Vec<QueueId>,
    classes: Vec<ClassId>,
    added_jobs: Vec<JobId>,
    job_states: Vec<JobId>,
    removed_jobs: Vec<JobId>,
    progress: Vec<JobId>,
    estimates: Vec<JobId>,
}

impl Cursor {
    /// A fresh instance, which gets a full image first.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same for an instance that acts on `owner`'s jobs only.
    pub fn for_owner(owner: Owner) -> Self {
        Self { owner, ..Self::default() }
    }

    /// The instance was replaced: the next delta is a full image.
    pub fn reset(&mut self) {
        *self = Self::for_owner(self.owner);
    }

    /// What the instance has not seen of `state` yet; afterwards it has. Costs what changed.
    pub fn delta(&mut self, state: &State, trigger: Trigger, verdicts: &[Verdict]) -> Delta {
        if self.base != 0 && !state.log().reaches(self.base) {
            self.reset();
        }
        let mut delta = Delta {
            base_revision: self.base,
            revision: state.revision(),
            now_ns: state.now_ns(),
            trigger,
            verdicts: tables::verdicts(verdicts),
            ..Delta::default()
        };
        if !verdicts.is_empty() {
            delta.trigger |= Trigger::VERDICT;
        }
        if self.base == 0 {
            delta.trigger |= Trigger::IMAGE;
            self.image(state, &mut delta);
        } else {
            self.changes(state, &mut delta);
        }
        delta.strings = self.strings.take_new();
        if self.base == 0 || self.sent.is_multiple_of(CHECKSUM_EVERY) || cfg!(debug_assertions) {
            delta.checksum = state.checksum(self.owner);
        }
        self.sent += 1;
        self.base = state.revision();
        delta
    }

    fn image(&mut self, state: &State, delta: &mut Delta) {
        for queue in state.queues() {
            tables::queue(rows(&mut delta.queues), &mut self.strings, queue);
        }
        for (id, nodes) in state.classes() {
            tables::class(rows(&mut delta.eligibility), id, nodes);
        }
        for node in state.nodes() {
            tables::node(rows(&mut delta.nodes), &mut self.strings, node);
            node_state(delta, node);
        }
        for job in state.jobs() {
            self.job(delta, job);
            self.job_state(delta, job);
            if job.progress != ChangePoint::default() {
                tables::progress(rows(&mut delta.progress), job);
            }
            for latest in &job.latest {
                let value = (latest.at_ns, latest.value);
                let rows = rows(&mut delta.observations);
                tables::observation(rows, &mut self.strings, (job.id, &latest.metric), value);
            }
        }
    }

    fn changes(&mut self, state: &State, delta: &mut Delta) {
        let changed = Changed::since(state, self.base);
        for queue in changed.queues.iter().filter_map(|id| state.queue(*id)) {
            tables::queue(rows(&mut delta.queues), &mut self.strings, queue);
        }
        for id in changed.classes {
            if let Some(nodes) = state.class(id) {
                tables::class(rows(&mut delta.eligibility), id, nodes);
            }
        }
        for node in changed.node_specs.iter().filter_map(|id| state.node(*id)) {
            tables::node(rows(&mut delta.nodes), &mut self.strings, node);
        }
        for node in changed.node_states.iter().filter_map(|id| state.node(*id)) {
            node_state(delta, node);
        }
        for job in changed.added_jobs.iter().filter_map(|id| state.job(*id)) {
            self.job(delta, job);
        }
        for job in changed.job_states.iter().filter_map(|id| state.job(*id)) {
            self.job_state(delta, job);
        }
        for job in changed.progress.iter().filter_map(|id| state.job(*id)) {
            tables::progress(rows(&mut delta.progress), job);
        }
        for report in state.log().reports_since(self.base).filter(|report| state.job(report.job).is_some()) {
            let (about, value) = ((report.job, &*report.metric), (report.at_ns, report.value));
            tables::observation(rows(&mut delta.observations), &mut self.strings, about, value);
        }
        let there = |id: &JobId| state.job(*id).is_some();
        delta.estimates_changed = changed.estimates.into_iter().filter(there).map(|id| id.0).collect();
        delta.removed_nodes = gone(&changed.removed_nodes, &changed.added_nodes).map(|id| id.0).collect();
        delta.removed_jobs = gone(&changed.removed_jobs, &changed.added_jobs).map(|id| id.0).collect();
    }

    fn job(&mut self, delta: &mut Delta, job: &JobView) {
        tables::job(rows(&mut delta.jobs), rows(&mut delta.groups), &mut self.strings, job);
    }

    fn job_state(&self, delta: &mut Delta, job: &JobView) {
        tables::job_state(rows(&mut delta.job_states), &mut delta.allocations, self.owner, job);
    }
}

fn node_state(delta: &mut Delta, node: &NodeView) {
    tables::node_state(rows(&mut delta.node_states), node);
    tables::shares(&mut delta.device_shares, node);
}

/// What left and was there before; who came and went in between was never seen.
fn gone<T: Ord + Copy>(removed: &[T], added: &[T]) -> impl Iterator<Item = T> {
    removed.iter().copied().filter(|id| added.binary_search(id).is_err())
}

impl Changed {
    fn since(state: &State, revision: u64) -> Self {
        let mut changed = Self::default();
        for change in state.log().changes_since(revision) {
            changed.note(change);
        }
        changed.node_specs.extend_from_slice(&changed.added_nodes);
        for nodes in
            [&mut changed.added_nodes, &mut changed.node_specs, &mut changed.node_states, &mut changed.removed_nodes]
        {
            sort(nodes);
        }
        for jobs in [
            &mut changed.added_jobs,
            &mut changed.job_states,
            &mut changed.removed_jobs,
            &mut changed.progress,
            &mut changed.estimates,
        ] {
            sort(jobs);
        }
        sort(&mut changed.queues);
        sort(&mut changed.classes);
        changed
    }

    fn note(&mut self, change: Change) {
        match change {
            Change::NodeAdded(id) => self.added_nodes.push(id),
            Change::NodeSpec(id) => self.node_specs.push(id),
            Change::NodeState(id) => self.node_states.push(id),
            Change::NodeRemoved(id) => self.removed_nodes.push(id),
            Change::Queue(id) => self.queues.push(id),
            Change::Class(id) => self.classes.push(id),
            Change::JobAdded(id) => self.added_jobs.push(id),
            Change::JobState(id) => self.job_states.push(id),
            Change::JobRemoved(id) => self.removed_jobs.push(id),
            Change::Progress(id) => self.progress.push(id),
            Change::Estimate(id) => self.estimates.push(id),
        }
    }
}

fn sort<T: Ord>(ids: &mut Vec<T>) {
    ids.sort_unstable();
    ids.dedup();
}
