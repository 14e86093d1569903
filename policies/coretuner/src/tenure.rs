//! Since when jobs run.

use std::collections::BTreeMap;

use coretuner_sdk::{Job, JobId};

const SECOND_NS: f64 = 1e9;

/// Starts of running jobs, as this instance saw them: what ran before its time ran for ever.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tenure {
    /// Time of the cycle before this one: what was started since was planned then.
    before_ns: u64,
    now_ns: u64,
    /// Number of restarts, and when it was seen first.
    starts: BTreeMap<JobId, (u32, u64)>,
}

impl Tenure {
    /// A new cycle.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        (self.before_ns, self.now_ns) = (self.now_ns, now_ns);
    }

    pub(crate) fn know(&mut self, job: &Job) {
        let since_ns = self.before_ns;
        if !job.is_running() {
            self.starts.remove(&job.id);
            return;
        }
        let start = self.starts.entry(job.id).or_insert((job.restarts, since_ns));
        if start.0 != job.restarts {
            *start = (job.restarts, since_ns);
        }
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        self.starts.remove(&job);
    }

    /// Seconds since a running job was last (re)started.
    pub(crate) fn ran_s(&self, job: JobId) -> f64 {
        let since_ns = self.starts.get(&job).map_or(self.now_ns, |start| start.1);
        self.now_ns.saturating_sub(since_ns) as f64 / SECOND_NS
    }
}
