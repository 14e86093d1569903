//! Applying a delta: work proportional to its rows.

use std::sync::Arc;

use coretuner_contract::cluster::{AllocationRows, Delta, GroupRows};

use super::read::Result;
use crate::changes::Changes;
use crate::cluster::{ApplyError, Cluster};
use crate::id::{JobId, NodeId};

impl Cluster {
    /// Brings the view to the delta's revision and says in `changes` what is new.
    pub(crate) fn apply(&mut self, delta: &Delta, changes: &mut Changes) -> Result<()> {
        if delta.base_revision == 0 {
            *self = Self::default();
            changes.image = true;
        } else if delta.base_revision != self.revision {
            return Err(ApplyError::Gap { view: self.revision, base: delta.base_revision });
        }
        self.revision = delta.revision;
        self.now_ns = delta.now_ns;
        self.strings.extend(delta.strings.iter().map(|text| Arc::from(text.as_str())));
        self.apply_descriptions(delta, changes)?;
        self.apply_states(delta, changes)?;
        delta.removed_jobs.iter().try_for_each(|id| self.remove_job(JobId(*id), changes))?;
        delta.removed_nodes.iter().try_for_each(|id| self.remove_node(NodeId(*id), changes))?;
        changes.note(delta, &self.strings)?;
        match delta.checksum {
            0 => Ok(()),
            host if host == self.checksum => Ok(()),
            host => Err(ApplyError::Drift { view: self.checksum, host, revision: self.revision }),
        }
    }

    fn apply_descriptions(&mut self, delta: &Delta, changes: &mut Changes) -> Result<()> {
        if let Some(rows) = &delta.nodes {
            (0..rows.id.len()).try_for_each(|i| self.describe_node(rows, i, changes))?;
        }
        if let Some(rows) = &delta.eligibility {
            changes.classes = true;
            (0..rows.id.len()).try_for_each(|i| self.set_class(rows, i))?;
        }
        if let Some(rows) = &delta.queues {
            changes.queues = true;
            (0..rows.id.len()).try_for_each(|i| self.set_queue(rows, i))?;
            self.recount_queues();
        }
        let none = GroupRows::default();
        if let Some(rows) = &delta.jobs {
            let groups = delta.groups.as_ref().unwrap_or(&none);
            (0..rows.id.len()).try_for_each(|i| self.describe_job(rows, groups, i, changes))?;
        }
        Ok(())
    }

    fn apply_states(&mut self, delta: &Delta, changes: &mut Changes) -> Result<()> {
        if let Some(rows) = &delta.node_states {
            (0..rows.id.len()).try_for_each(|i| self.set_node_state(rows, i, changes))?;
        }
        if let Some(rows) = &delta.device_shares {
            (0..rows.node.len()).try_for_each(|i| self.set_share(rows, i))?;
        }
        let none = AllocationRows::default();
        if let Some(rows) = &delta.job_states {
            let allocations = delta.allocations.as_ref().unwrap_or(&none);
            (0..rows.id.len()).try_for_each(|i| self.set_job_state(rows, allocations, i, changes))?;
        }
        if let Some(rows) = &delta.progress {
            (0..rows.job.len()).try_for_each(|i| self.set_progress(rows, i, changes))?;
        }
        Ok(())
    }
}
