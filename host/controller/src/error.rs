use coretuner_core::model::TimeNs;
use coretuner_core::state::StateError;

/// A cycle could not run: the backend and the state disagree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CycleError {
    #[error("event {index} of the batch at {now_ns} ns cannot be applied")]
    Event { index: usize, now_ns: TimeNs, source: StateError },
    #[error("a command that the backend refused at {now_ns} ns cannot be taken back")]
    RollBack { now_ns: TimeNs, source: StateError },
    #[error(
        "policy `{policy}` asked for {wakes} wake-ups since {since_ns} ns with nothing happening and {jobs} jobs waiting; \
         it must either start them or ask for a wake-up only when that can change something"
    )]
    Stalled { policy: String, wakes: u32, since_ns: TimeNs, jobs: usize },
}

/// A run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError<B: std::error::Error + Send + Sync + 'static> {
    #[error(transparent)]
    Cycle(#[from] CycleError),
    #[error("the backend failed")]
    Backend(#[source] B),
}
