//! Shortest remaining time first: see README.md.

mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Config, Measure, Srtf};

coretuner_sdk::export!(Srtf);
