use std::collections::{BTreeMap, BTreeSet};

use crate::model::{ClassId, Eligibility, JobId, JobPhase, NodeId, QueueId, TimeNs};

use super::changes::ChangeLog;
use super::ids::UsedIds;
use super::{Change, JobView, NodeView, Owner, QueueBook, QueueView};

/// The cluster. [`State::apply`] takes what a backend reports, [`State::judge`] what a policy wants; both bump the
/// revision.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) now_ns: TimeNs,
    pub(super) revision: u64,
    pub(super) nodes: BTreeMap<NodeId, NodeView>,
    pub(super) jobs: BTreeMap<JobId, JobView>,
    pub(super) classes: BTreeMap<ClassId, Eligibility>,
    pub(super) queues: QueueBook,
    pub(super) waiting: BTreeSet<(TimeNs, JobId)>,
    pub(super) running: BTreeSet<JobId>,
    pub(super) log: ChangeLog,
    pub(super) used_nodes: UsedIds,
    pub(super) used_jobs: UsedIds,
    pub(super) sums: Sums,
}

/// Parts of the view's checksum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) nodes: u32,
    /// All jobs as seen by those who do not own them.
    pub(super) jobs_visible: u32,
    /// What ownership adds, by owner.
    pub(super) jobs_mine: BTreeMap<Owner, u32>,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// An empty cluster at revision 1 (0 is "nothing seen" in the contract).
    pub fn new() -> Self {
        Self {
            now_ns: 0,
            revision: 1,
            nodes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            classes: BTreeMap::new(),
            queues: QueueBook::default(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            log: ChangeLog::default(),
            used_nodes: UsedIds::default(),
            used_jobs: UsedIds::default(),
            sums: Sums::default(),
        }
    }

    /// Time of the last event or judgement.
    pub fn now_ns(&self) -> TimeNs {
        self.now_ns
    }

    /// Time passes without an event.
    pub fn advance(&mut self, now_ns: TimeNs) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Grows with each event and each bundle that changed something.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The node, unless it was never described or was removed.
    pub fn node(&self, id: NodeId) -> Option<&NodeView> {
        self.nodes.get(&id)
    }

    /// All nodes, ascending by id.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &NodeView> {
        self.nodes.values()
    }

    /// The job, unless it was never submitted or has left.
    pub fn job(&self, id: JobId) -> Option<&JobView> {
        self.jobs.get(&id)
    }

    /// All jobs that have not left, ascending by id.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = &JobView> {
        self.jobs.values()
    }

    /// Jobs with workers, ascending by id.
    pub fn running(&self) -> impl ExactSizeIterator<Item = JobId> + '_ {
        self.running.iter().copied()
    }

    /// Jobs without workers, ascending by (submit time, id).
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = JobId> + '_ {
        self.waiting.iter().map(|(_, job)| *job)
    }

    /// The queue with its use.
    pub fn queue(&self, id: QueueId) -> Option<&QueueView> {
        self.queues.get(id)
    }

    /// All queues, ascending by id.
    pub fn queues(&self) -> impl Iterator<Item = &QueueView> {
        self.queues.iter()
    }

    /// Nodes of an eligibility class.
    pub fn class(&self, id: ClassId) -> Option<&Eligibility> {
        self.classes.get(&id)
    }

    /// All eligibility classes, ascending by id.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = (ClassId, &Eligibility)> {
        self.classes.iter().map(|(id, nodes)| (*id, nodes))
    }

    /// Whether jobs of `class` may use `node`, whatever state it is in.
    pub fn is_eligible(&self, class: ClassId, node: NodeId) -> bool {
        match self.classes.get(&class) {
            Some(Eligibility::All) => true,
            Some(Eligibility::Nodes(nodes)) => nodes.binary_search(&node).is_ok(),
            None => false,
        }
    }

    /// Gives a job to another policy instance.
    pub fn assign(&mut self, job: JobId, owner: Owner) -> bool {
        let Some(view) = self.jobs.get_mut(&job) else { return false };
        self.revision += 1;
        let before = std::mem::replace(&mut view.owner, owner);
        let mine = view.hash_mine;
        self.sums.add_mine(before, mine.wrapping_neg());
        self.sums.add_mine(owner, mine);
        self.note(Change::JobState(job));
        true
    }

    /// Checksum of the view that an instance owning `owner`'s jobs has of this state.
    pub(crate) fn checksum(&self, owner: Owner) -> u32 {
        let mine = self.sums.jobs_mine.get(&owner).copied().unwrap_or(0);
        self.sums.nodes.wrapping_add(self.sums.jobs_visible).wrapping_add(mine)
    }

    pub(crate) fn queue_book(&self) -> &QueueBook {
        &self.queues
    }

    pub(crate) fn log(&self) -> &ChangeLog {
        &self.log
    }

    /// Notes a change at the present revision.
    pub(super) fn note(&mut self, change: Change) {
        let entities = self.nodes.len() + self.jobs.len();
        self.log.push(self.revision, change, entities);
    }

    /// After anything of a node's state changed: keeps checksum and log up.
    pub(super) fn touch_node(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let hash = node.row_hash();
        let before = std::mem::replace(&mut node.hash, hash);
        self.sums.nodes = self.sums.nodes.wrapping_sub(before).wrapping_add(hash);
        self.note(Change::NodeState(id));
    }

    /// After a job's phase, restarts or allocation changed: keeps checksum, log and indices up.
    pub(super) fn touch_job(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (visible, mine) = job.row_hashes();
        let visible_before = std::mem::replace(&mut job.hash_visible, visible);
        let mine_before = std::mem::replace(&mut job.hash_mine, mine);
        self.sums.jobs_visible = self.sums.jobs_visible.wrapping_sub(visible_before).wrapping_add(visible);
        self.sums.add_mine(job.owner, mine.wrapping_sub(mine_before));
        let key = (job.spec.submit_ns, id);
        if job.phase == JobPhase::Waiting {
            self.running.remove(&id);
            self.waiting.insert(key);
        } else {
            self.waiting.remove(&key);
            self.running.insert(id);
        }
        self.note(Change::JobState(id));
    }
}

impl Sums {
    pub(super) fn add_mine(&mut self, owner: Owner, amount: u32) {
        let sum = self.jobs_mine.entry(owner).or_default();
        *sum = sum.wrapping_add(amount);
    }
}
