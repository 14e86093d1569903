//! What changed when, so that a delta costs what changed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::{ClassId, JobId, NodeId, QueueId, TimeNs};

/// Fewest entries kept; a reader that is further behind gets a full image, which is then the cheaper answer.
const KEPT_MIN: usize = 1 << 16;

/// One thing that changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    NodeAdded(NodeId),
    NodeSpec(NodeId),
    NodeState(NodeId),
    NodeRemoved(NodeId),
    Queue(QueueId),
    Class(ClassId),
    JobAdded(JobId),
    JobState(JobId),
    JobRemoved(JobId),
    Progress(JobId),
    Estimate(JobId),
}

/// A report that the host does not interpret.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) job: JobId,
    pub(crate) metric: Arc<str>,
    pub(crate) at_ns: TimeNs,
    pub(crate) value: f64,
}

/// Changes in order of revision, the oldest forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangeLog {
    changes: VecDeque<(u64, Change)>,
    reports: VecDeque<(u64, Report)>,
    /// Everything after this revision is still here.
    floor: u64,
}

impl ChangeLog {
    /// Notes a change; `entities` bounds how much is worth keeping.
    pub(crate) fn push(&mut self, revision: u64, change: Change, entities: usize) {
        if self.changes.back() == Some(&(revision, change)) {
            return;
        }
        self.changes.push_back((revision, change));
        if self.changes.len() > KEPT_MIN.max(4 * entities) {
            self.floor = self.changes.pop_front().map_or(self.floor, |(dropped, _)| self.floor.max(dropped));
        }
    }

    pub(crate) fn push_report(&mut self, revision: u64, report: Report) {
        self.reports.push_back((revision, report));
        if self.reports.len() > KEPT_MIN {
            self.floor = self.reports.pop_front().map_or(self.floor, |(dropped, _)| self.floor.max(dropped));
        }
    }

    /// Whether all changes after `revision` are still here.
    pub(crate) fn reaches(&self, revision: u64) -> bool {
        revision >= self.floor
    }

    pub(crate) fn changes_since(&self, revision: u64) -> impl Iterator<Item = Change> + '_ {
        let from = self.changes.partition_point(|(at, _)| *at <= revision);
        self.changes.range(from..).map(|(_, change)| *change)
    }

    pub(crate) fn reports_since(&self, revision: u64) -> impl Iterator<Item = &Report> + '_ {
        let from = self.reports.partition_point(|(at, _)| *at <= revision);
        self.reports.range(from..).map(|(_, report)| report)
    }
}
