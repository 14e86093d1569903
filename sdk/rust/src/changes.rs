//! What is new since the policy's last cycle.

use std::sync::Arc;

use coretuner_contract::cluster::{Delta, Refusal, Trigger};

use crate::cluster::{ApplyError, Cluster};
use crate::id::{JobId, NodeId};

/// What became of an action of the previous plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Index of the action in that plan.
    pub action: u32,
    pub job: JobId,
    pub reason: Refusal,
}

/// A report about a running job that the host does not interpret.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub job: JobId,
    pub metric: Arc<str>,
    pub at_ns: u64,
    pub value: f64,
}

/// What is new since the last cycle. Work that follows these lists, and not the whole cluster, scales.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Why this cycle runs.
    pub trigger: Trigger,
    /// The view was built anew, or the policy was: forget what was derived from it. All jobs are in `arrived`, all nodes
    /// in `nodes`.
    pub image: bool,
    /// Jobs seen for the first time, in whatever phase they are.
    pub arrived: Vec<JobId>,
    /// Known jobs with a new phase, allocation, owner or description; one may be listed twice.
    pub changed: Vec<JobId>,
    /// Jobs that are gone: done or withdrawn.
    pub removed: Vec<JobId>,
    /// Jobs with a new change point of progress, new ones too.
    pub progressed: Vec<JobId>,
    /// Jobs whose predictions differ from what was said before.
    pub estimates: Vec<JobId>,
    /// Nodes that are new, described anew, or have another state or other free resources; one may be listed twice.
    pub nodes: Vec<NodeId>,
    pub removed_nodes: Vec<NodeId>,
    /// Something is free that was not before, or a job that the last plan started does not run: what did not fit may fit
    /// now.
    pub released: bool,
    /// Eligibility classes changed.
    pub classes: bool,
    /// Queues changed: settings, not use.
    pub queues: bool,
    pub verdicts: Vec<Verdict>,
    pub observations: Vec<Observation>,
    /// Nodes came, went or were described anew.
    pub(crate) described_nodes: bool,
}

impl Changes {
    /// Nothing but the time is new.
    pub fn is_empty(&self) -> bool {
        let lists = [&self.arrived, &self.changed, &self.removed, &self.progressed, &self.estimates];
        let nodes = self.nodes.is_empty() && self.removed_nodes.is_empty();
        let rare = self.image || self.classes || self.queues;
        lists.iter().all(|list| list.is_empty())
            && nodes
            && !rare
            && self.verdicts.is_empty()
            && self.observations.is_empty()
    }

    /// Empties everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        for list in [&mut self.arrived, &mut self.changed, &mut self.removed, &mut self.progressed, &mut self.estimates]
        {
            list.clear();
        }
        self.nodes.clear();
        self.removed_nodes.clear();
        self.verdicts.clear();
        self.observations.clear();
        self.trigger = Trigger::empty();
        (self.image, self.released, self.classes, self.queues, self.described_nodes) =
            (false, false, false, false, false);
    }

    /// Shows everything as new, for a policy that is newer than the view.
    pub(crate) fn show_all(&mut self, cluster: &Cluster) {
        self.image = true;
        self.changed.clear();
        self.arrived = cluster.jobs().map(|job| job.id).collect();
        self.nodes = cluster.nodes().map(|node| node.id).collect();
        (self.released, self.classes, self.queues) = (true, true, true);
    }

    /// Takes over what the view does not keep.
    pub(crate) fn note(&mut self, delta: &Delta, strings: &[Arc<str>]) -> Result<(), ApplyError> {
        self.trigger = delta.trigger;
        self.estimates.extend(delta.estimates_changed.iter().map(|id| JobId(*id)));
        if let Some(rows) = &delta.verdicts {
            for (i, action) in rows.action.iter().enumerate() {
                let (Some(job), Some(reason)) = (rows.job.get(i), rows.reason.get(i)) else {
                    return Err(ApplyError::Table { table: "verdicts", row: i });
                };
                self.verdicts.push(Verdict { action: *action, job: JobId(*job), reason: *reason });
            }
        }
        let Some(rows) = &delta.observations else { return Ok(()) };
        for (i, job) in rows.job.iter().enumerate() {
            let short = ApplyError::Table { table: "observations", row: i };
            let (Some(name), Some(at_ns), Some(value)) =
                (rows.metric_name.get(i), rows.at_ns.get(i), rows.value.get(i))
            else {
                return Err(short);
            };
            let metric = strings.get(*name as usize).ok_or(ApplyError::Unknown { what: "text", id: *name })?;
            self.observations.push(Observation {
                job: JobId(*job),
                metric: Arc::clone(metric),
                at_ns: *at_ns,
                value: *value,
            });
        }
        Ok(())
    }
}
