use coretuner_core::event::Batch;
use coretuner_core::model::TimeNs;
use coretuner_core::state::State;

use crate::CycleError;

/// Bounds on wake-ups, so that a policy cannot keep the host busy with nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeLimits {
    /// A wake-up sooner than this after the cycle that asked for it comes this much after it.
    pub gap_min_ns: u64,
    /// Wake-ups in a row in which nothing changed, no job runs and some wait, before the run is given up.
    pub idle_max: u32,
    /// The same with jobs running, whose end will change something.
    pub quiet_max: u32,
}

impl Default for WakeLimits {
    /// 1 ms; 10,000; 1,000,000.
    fn default() -> Self {
        Self { gap_min_ns: 1_000_000, idle_max: 10_000, quiet_max: 1_000_000 }
    }
}

/// Follows wake-ups.
#[derive(Debug, Default)]
pub(crate) struct WakeGuard {
    pub(crate) limits: WakeLimits,
    /// What the last cycle asked for.
    pending_ns: Option<TimeNs>,
    /// Asked-for cycles in a row without an event or a command, and the time of the first one.
    quiet: u32,
    since_ns: TimeNs,
}

impl WakeGuard {
    /// When to wake after a cycle at `now_ns`: never without jobs, there is nothing to decide; never in the present or
    /// past, which would be a cycle without end.
    pub(crate) fn next(&mut self, state: &State, now_ns: TimeNs, wanted_ns: TimeNs) -> Option<TimeNs> {
        let wanted = wanted_ns > now_ns && state.jobs().len() > 0;
        self.pending_ns = wanted.then(|| wanted_ns.max(now_ns.saturating_add(self.limits.gap_min_ns)));
        self.pending_ns
    }

    /// The wake-up that was asked for last; a cycle in which the policy failed does not lose it. 0 = none.
    pub(crate) fn pending_ns(&self) -> TimeNs {
        self.pending_ns.unwrap_or(0)
    }

    /// Counts a cycle, before [`WakeGuard::next`]; an error once wake-ups go on with nothing happening.
    pub(crate) fn note(
        &mut self,
        state: &State,
        batch: &Batch,
        commands: usize,
        policy: &str,
    ) -> Result<(), CycleError> {
        if self.pending_ns.is_none() || !batch.events.is_empty() || commands > 0 {
            self.quiet = 0;
            return Ok(());
        }
        if self.quiet == 0 {
            self.since_ns = batch.now_ns;
        }
        self.quiet += 1;
        let limit = if state.running().len() == 0 { self.limits.idle_max } else { self.limits.quiet_max };
        if self.quiet <= limit {
            return Ok(());
        }
        let jobs = state.waiting().len();
        Err(CycleError::Stalled { policy: policy.to_owned(), wakes: self.quiet, since_ns: self.since_ns, jobs })
    }
}
