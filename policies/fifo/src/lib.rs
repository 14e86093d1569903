//! First in, first out: see README.md.

mod policy;
#[cfg(test)]
mod tests;

pub use policy::{Config, Fifo, Mode};

coretuner_sdk::export!(Fifo);
