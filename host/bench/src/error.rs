//! Why a figure could not be measured.

use std::path::PathBuf;

/// A failed measurement.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("usage: coretuner-bench decision-cost|simulate-scale GUESTS-FOLDER; `cargo xtask figures` calls it")]
    Usage,
    #[error("failed to start the policy engine: {0}")]
    Engine(#[from] coretuner_policy_host::EngineError),
    #[error("failed to load {}: {source}", path.display())]
    Load { path: PathBuf, source: Box<coretuner_policy_host::LoadError> },
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
