//! Readers of published traces and of our own format (`docs/traces.md`).

mod cluster;
mod coretuner;
mod detect;
mod document;
mod error;
mod gavel;
mod itp;
mod openb;
mod philly;
mod read;
#[cfg(test)]
mod read_tests;
mod rows;
mod source;
mod synergy;
#[cfg(test)]
mod testing;
mod write;

pub use detect::Format;
pub use error::TraceError;
pub use read::{ReadOptions, read};
pub use write::write;
