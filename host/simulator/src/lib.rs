//! A backend on virtual time: trace readers, ground-truth throughput, the event loop and the metrics.
#![forbid(unsafe_code)]

mod backend;
mod metrics;
mod profile;
mod random;
mod run;

pub mod result;
pub mod trace;
pub mod truth;
pub mod workload;

pub use backend::{Measured, Mode, Settings, SimBackend, SimError};
pub use metrics::distribution;
pub use profile::ProfilePredictor;
pub use run::{Hooks, Progress, RunLabels, SimulateError, simulate, simulate_with_feedback};
