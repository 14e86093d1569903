//! A backend on virtual time: trace readers, ground-truth throughput, the event loop and the metrics.
#![forbid(unsafe_code)]

mod random;

pub mod result;
pub mod trace;
pub mod truth;
pub mod workload;
