//! GPU-proportional CPU and memory: see README.md.

mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Config, Proportional};

coretuner_sdk::export!(Proportional);
