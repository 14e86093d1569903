use coretuner_core::event::Batch;
use coretuner_core::judge::Verdict;
use coretuner_core::model::JobId;
use coretuner_core::port::{Backend, Policy};
use coretuner_core::state::State;

use crate::{Controller, CycleOutcome, RunError};

/// Sees every cycle after its commands were carried out.
pub trait Observer {
    /// A cycle is over.
    fn cycle(&mut self, cycle: &Observed<'_>);
}

/// Sees nothing.
impl Observer for () {
    fn cycle(&mut self, _: &Observed<'_>) {}
}

impl<F: FnMut(&Observed<'_>)> Observer for F {
    fn cycle(&mut self, cycle: &Observed<'_>) {
        self(cycle);
    }
}

/// One cycle, for journals, statistics and displays.
pub struct Observed<'a> {
    pub batch: &'a Batch,
    pub outcome: &'a CycleOutcome,
    /// Commands that the backend refused, with its reason; they are rolled back.
    pub backend_refused: &'a [(JobId, String)],
    /// The verdicts that this gives.
    pub backend_verdicts: &'a [Verdict],
    /// After the cycle.
    pub state: &'a State,
}

impl<P: Policy> Controller<P> {
    /// Runs cycles until the backend has nothing more.
    pub fn run<B: Backend>(&mut self, backend: &mut B, observer: &mut impl Observer) -> Result<(), RunError<B::Error>> {
        let mut wake_at_ns = None;
        while let Some(batch) = backend.next(wake_at_ns).map_err(RunError::Backend)? {
            let outcome = self.run_batch(&batch)?;
            let refused = backend.execute(batch.now_ns, &outcome.commands).map_err(RunError::Backend)?;
            let jobs: Vec<JobId> = refused.iter().map(|(job, _)| *job).collect();
            let verdicts = self.refused(&outcome, &jobs)?;
            wake_at_ns = outcome.report.wake_at_ns;
            observer.cycle(&Observed {
                batch: &batch,
                outcome: &outcome,
                backend_refused: &refused,
                backend_verdicts: &verdicts,
                state: &self.state,
            });
        }
        Ok(())
    }
}
