//! Since when jobs run, and since when gangs wait.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Waiting jobs of several GPUs, since when they wait.
    waits: BTreeMap<JobId, u64>,
    by_wait: BTreeSet<(u64, JobId)>,
}

impl Tenure {
    /// A new cycle.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        (self.before_ns, self.now_ns) = (self.now_ns, now_ns);
    }

    pub(crate) fn know(&mut self, job: &Job) {
        let since_ns = self.before_ns;
        if job.is_waiting() {
            let ran = self.starts.remove(&job.id).is_some();
            if job.gpu_milli_min() >= 2000 && !self.waits.contains_key(&job.id) {
                let since_ns = if ran { since_ns } else { job.submit_ns };
                self.waits.insert(job.id, since_ns);
                self.by_wait.insert((since_ns, job.id));
            }
            return;
        }
        self.ends_wait(job.id);
        let start = self.starts.entry(job.id).or_insert((job.restarts, since_ns));
        if start.0 != job.restarts {
            *start = (job.restarts, since_ns);
        }
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        self.starts.remove(&job);
        self.ends_wait(job);
    }

    fn ends_wait(&mut self, job: JobId) {
        if let Some(since_ns) = self.waits.remove(&job) {
            self.by_wait.remove(&(since_ns, job));
        }
    }

    /// Waiting jobs of several GPUs with the time since when they wait, the longest wait first.
    pub(crate) fn waiting_longest(&self) -> impl Iterator<Item = (u64, JobId)> {
        self.by_wait.iter().copied()
    }

    /// Running jobs that were (re)started less than so many seconds ago.
    pub(crate) fn started_within(&self, seconds: f64) -> BTreeSet<JobId> {
        let ran_s = |since_ns: u64| self.now_ns.saturating_sub(since_ns) as f64 / SECOND_NS;
        let lately = self.starts.iter().filter(|(_, start)| ran_s(start.1) < seconds);
        lately.map(|(job, _)| *job).collect()
    }
}
