//! Why a simulation cannot go on.

use coretuner_core::model::{JobId, NodeId};

/// The first two mean that core and simulator disagree, which is a defect of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    #[error("job {job} cannot take this command: it is {phase}")]
    Phase { job: JobId, phase: &'static str },
    #[error("node {node} holds more {what} than it has after a cycle")]
    Overcommit { node: NodeId, what: &'static str },
    #[error("job {job} has no known speed on node {node} ({gpu_kind})")]
    NoSpeed { job: JobId, node: NodeId, gpu_kind: String },
    #[error("{0}")]
    Settings(String),
}
