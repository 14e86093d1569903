//! The cycle: a backend's events change the state, the policy answers the delta, what is legal of its plan becomes
//! commands. A policy that fails is answered for by the fallback in the same cycle.
#![forbid(unsafe_code)]

mod controller;
mod error;
mod report;
mod run;
mod slot;
#[cfg(test)]
mod tests;
mod trigger;
mod wake;

pub use controller::{Controller, CycleOutcome};
pub use error::{CycleError, RunError};
pub use report::CycleReport;
pub use run::{Observed, Observer};
pub use wake::WakeLimits;
