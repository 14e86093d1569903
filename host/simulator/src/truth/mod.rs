//! Ground truth of throughput: how fast a job really runs with what it holds. Never the predictor's answer.

mod catalog;
mod gavel;
mod ground;
mod surface;
mod table;

pub(crate) use catalog::{CPU_ONLY, GAVEL, PORTABLE, models_of};
pub use catalog::{ModelClass, TruthError, known_models};
pub use ground::{GroundTruth, Share, TruthId, TruthMode, TruthOptions};
pub(crate) use table::LEAST_MEMORY_MIB;
