//! What backs the capabilities.

use std::sync::Arc;

use coretuner_core::model::JobId;
use coretuner_core::port::Predictor;

use crate::kv::KvStore;

/// Rare details of jobs, asked for by the policy.
pub trait JobDetails: Send + Sync {
    /// Labels and annotations, sorted by key; empty for an unknown job.
    fn labels(&self, job: JobId) -> Vec<(String, String)>;

    /// Descriptor of the job's model as JSON.
    fn model(&self, job: JobId) -> Option<String>;
}

/// What backs the capabilities of one instance. A granted capability without a service answers as if it knew nothing.
#[derive(Clone, Default)]
pub struct Services {
    pub predictor: Option<Arc<dyn Predictor>>,
    pub job_details: Option<Arc<dyn JobDetails>>,
    /// Shared by all instances that shall see each other's state.
    pub kv: KvStore,
}
