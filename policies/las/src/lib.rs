//! Least attained service in discretised queues: see README.md.

mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Config, LeastService};

coretuner_sdk::export!(LeastService);
