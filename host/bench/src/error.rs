//! Why a figure could not be measured.

use std::path::PathBuf;

/// A failed measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to start the policy engine: {0}")]
    Engine(#[from] coretuner_policy_host::EngineError),
    #[error("failed to load {}: {source}", path.display())]
    Load { path: PathBuf, source: Box<coretuner_policy_host::LoadError> },
    #[error("policy {0} was not loaded")]
    NotLoaded(String),
    #[error("policy {policy} failed in a cycle, so that its run says nothing: {detail}")]
    Faulty { policy: String, detail: String },
    #[error("policy {policy} finished {finished} of the {counted} jobs that count")]
    Unfinished { policy: String, finished: u64, counted: u64 },
    #[error("the running jobs have no bound: not even their proportional shares fit the cluster")]
    Bound,
    #[error("failed to open the predictors that were trained without a model: {0}")]
    HeldOut(String),
    #[error("the policy failed: {0}")]
    Policy(#[from] coretuner_core::port::PolicyFault),
    #[error("failed to make the cluster: {0}")]
    Cluster(String),
    #[error("{policy} answers differently in WebAssembly and natively: {detail}")]
    Differs { policy: String, detail: String },
    #[error("failed to make the workload: {0}")]
    Workload(#[from] coretuner_simulator::trace::TraceError),
    #[error("the simulation failed: {0}")]
    Simulate(#[from] coretuner_simulator::SimulateError),
    #[error("failed to run a measurement of its own process: {0}")]
    Child(String),
    #[error("failed to read or write JSON: {0}")]
    Json(#[from] serde_json::Error),
}
