//! A backend on virtual time: trace readers, ground-truth throughput, the event loop and the metrics.
#![forbid(unsafe_code)]

pub mod result;
