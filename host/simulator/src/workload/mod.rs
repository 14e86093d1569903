//! What a run simulates: a cluster, jobs and the truth about their speed; and how the gaps of a trace are filled.

mod assign;
mod classes;
mod cluster;
mod complete;
mod draft;
mod feasible;
mod generate;
mod reference;
mod types;

pub use assign::Mix;
pub use cluster::{named_queue, synergy_server};
pub use complete::{FillOptions, complete};
pub use draft::{Draft, DraftJob, Extent, Work};
#[cfg(test)]
pub(crate) use feasible::mark_never_schedulable;
pub use generate::{Gangs, GenerateOptions, generate, jobs_per_hour_for};
pub use types::{TraceJob, Workload};
