//! What an author writes.

use crate::changes::Changes;
use crate::cluster::Cluster;
use crate::host::HostHandle;
use crate::id::JobId;
use crate::plan::PlanBuilder;
use crate::predict::{CurveRequest, Grid, PredictError, Speeds};

/// A code that the policy gives as reason of an action or a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: &'static str,
    /// For people; `{0}`, `{1}`, … stand for the arguments.
    pub text: &'static str,
    /// What the numbers are, with units.
    pub arguments: &'static [&'static str],
}

/// State that moves from one instance to its successor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    pub version: u32,
    pub bytes: Vec<u8>,
}

/// A scheduling policy. One value serves many cycles; what it keeps between them is its own affair, as long as it follows
/// [`Changes`] and starts anew when `changes.image` says so.
pub trait Policy: Sized {
    /// Configuration as JSON; `deny_unknown_fields` tells operators about typing errors.
    type Config: serde::de::DeserializeOwned + schemars::JsonSchema + Default;

    const NAME: &'static str;
    const SUMMARY: &'static str;
    /// Codes that [`crate::Noted::because`] and [`PlanBuilder::hold`] may use.
    const REASONS: &'static [Reason] = &[];
    /// Version of what [`Policy::save_state`] writes.
    const STATE_VERSION: u32 = 0;

    /// Makes a policy; the error is shown to the operator.
    fn new(config: Self::Config) -> Result<Self, String>;

    /// Answers one cycle.
    fn decide(&mut self, cycle: &mut Cycle<'_>);

    /// State for a successor; none = nothing worth keeping.
    fn save_state(&self) -> Result<Option<SavedState>, String> {
        Ok(None)
    }

    /// Takes over a predecessor's state; an error calls the swap off.
    fn restore_state(&mut self, state: SavedState) -> Result<(), String> {
        Err(format!("{} keeps no state, but was given state of version {}", Self::NAME, state.version))
    }
}

/// One cycle: what is, what is new, what shall be.
#[derive(Debug)]
pub struct Cycle<'a> {
    /// The cluster as the host last described it.
    pub cluster: &'a Cluster,
    /// What is new since the last cycle.
    pub changes: &'a Changes,
    /// The answer.
    pub plan: PlanBuilder<'a>,
    pub host: HostHandle<'a>,
}

impl Cycle<'_> {
    /// The time of this cycle, nanoseconds since the backend's epoch.
    pub fn now_ns(&self) -> u64 {
        self.cluster.now_ns()
    }

    /// Predicted speeds of jobs over a grid, by the host's default model.
    pub fn speeds(&mut self, jobs: &[JobId], grid: &Grid) -> Result<Speeds, PredictError> {
        let curves = self.host.curves(&CurveRequest {
            model: String::new(),
            jobs: jobs.to_vec(),
            gpu_kind: grid.gpu_kind.0,
            gpus: grid.gpus.iter().map(|(gpus, _)| *gpus).collect(),
            nodes_spanned: grid.gpus.iter().map(|(_, nodes)| *nodes).collect(),
            cpu_milli: grid.cpu_milli.clone(),
            memory_mib: grid.memory_mib.clone(),
        })?;
        Speeds::new(curves, grid, jobs.len())
    }
}
