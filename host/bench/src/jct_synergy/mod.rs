//! `jct-synergy`: job completion times on Synergy's own workload.

mod measure;
mod table;

pub(crate) use measure::measure;
