//! Round boundaries.

use coretuner_core::event::Event;
use coretuner_core::model::TimeNs;

use super::job::Phase;
use super::settings::{Mode, nanoseconds};
use super::sim::SimBackend;

/// Where the boundaries are.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    next_ns: TimeNs,
    round_ns: u64,
    round_s: f64,
    whole_iterations: bool,
}

impl Rounds {
    pub(crate) fn new(mode: &Mode, first_arrival_ns: TimeNs) -> Option<Self> {
        let Mode::Rounds { round_s, first_round_s, whole_iterations } = *mode else { return None };
        let round_ns = nanoseconds(round_s).max(1);
        let first_ns = match first_round_s {
            Some(first_s) => nanoseconds(first_s),
            None => first_arrival_ns.div_ceil(round_ns) * round_ns,
        };
        Some(Self { next_ns: first_ns, round_ns, round_s, whole_iterations })
    }

    /// The next boundary, not before `earliest_ns`; the one after it comes a round later.
    pub(crate) fn advance(&mut self, earliest_ns: TimeNs) -> TimeNs {
        let skipped = earliest_ns.saturating_sub(self.next_ns).div_ceil(self.round_ns);
        let boundary = self.next_ns + skipped * self.round_ns;
        self.next_ns = boundary + self.round_ns;
        boundary
    }

    /// Length of a round where only whole iterations count.
    pub(crate) fn whole_round_s(&self) -> Option<f64> {
        self.whole_iterations.then_some(self.round_s)
    }
}

impl SimBackend<'_> {
    /// Whether progress is counted in whole iterations at boundaries.
    pub(super) fn whole(&self) -> bool {
        self.rounds.as_ref().is_some_and(|rounds| rounds.whole_iterations)
    }

    /// Ends a round: done jobs leave.
    pub(super) fn close_round(&mut self, now_ns: TimeNs, events: &mut Vec<Event>) {
        if self.rounds.is_none() {
            return;
        }
        let whole = self.whole();
        for job in self.holding.iter().copied().collect::<Vec<u32>>() {
            let Some(run) = self.jobs.get_mut(job as usize) else { continue };
            if whole && run.phase == Phase::Running {
                // A round with a restart in it was slower than the next one will be.
                if run.resume_ns > run.since_ns {
                    self.unreported.insert(job);
                }
                run.settle(now_ns, true);
                let complete = run.done >= run.work;
                if complete {
                    self.done(job);
                }
            }
            if self.jobs.get(job as usize).is_some_and(|run| run.phase == Phase::Done) {
                self.remove(job, events);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundaries_keep_their_raster() {
        let mode = |first_round_s| Mode::Rounds { round_s: 300.0, first_round_s, whole_iterations: true };
        let second = |seconds: u64| seconds * 1_000_000_000;
        let mut rounds = Rounds::new(&mode(Some(1.0)), 0).expect("rounds");
        assert_eq!([rounds.advance(0), rounds.advance(0), rounds.advance(second(700))], [1, 301, 901].map(second));
        let mut rounds = Rounds::new(&mode(None), second(8)).expect("rounds");
        assert_eq!([rounds.advance(second(8)), rounds.advance(second(600))], [300, 600].map(second));
        assert!(Rounds::new(&Mode::Events, 0).is_none());
    }
}
