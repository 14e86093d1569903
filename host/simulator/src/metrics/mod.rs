//! What a run measures, by the definitions that `result.rs` names.

mod collect;
mod distribution;
mod ledger;
mod segments;
mod series;
mod stranded;

pub(crate) use collect::{collect_jobs, collect_metrics};
pub use distribution::distribution;
pub(crate) use ledger::{Holding, Ledger};
pub(crate) use segments::Segments;
pub(crate) use stranded::{NodeRoom, Stranded};
