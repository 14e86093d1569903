//! Kinds of jobs: what a predictor needs to know of them. Append-only and shared by host components.

use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

use crate::model::KindId;

/// What the input pipeline of a job reads; the predictor's prior differs by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    Image,
    Audio,
    Text,
    #[default]
    Other,
}

/// Describes one kind of training job. Unknown numbers are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelDescriptor {
    /// Name in the field's usual spelling, for example `resnet18`.
    pub name: String,
    pub input: InputKind,
    /// Elements out of convolution and linear layers for one sample, millions.
    pub activations_m: Option<f64>,
    /// Multiply-accumulates of one sample's forward pass, billions.
    pub gmacs: Option<f64>,
    /// Parameters, millions.
    pub params_m: Option<f64>,
    /// Samples that one GPU takes per iteration.
    pub batch_per_gpu: u32,
    pub bytes_per_sample: Option<f64>,
    /// Size of the data set; with less memory than this, samples are fetched again.
    pub dataset_mib: Option<u32>,
}

/// All kinds met so far; index = [`KindId`].
#[derive(Debug, Default)]
pub struct KindCatalog {
    kinds: RwLock<Vec<Arc<ModelDescriptor>>>,
}

impl KindCatalog {
    /// Id of `descriptor`, the same for an equal one.
    pub fn intern(&self, descriptor: ModelDescriptor) -> KindId {
        let mut kinds = self.kinds.write().unwrap_or_else(PoisonError::into_inner);
        let at = kinds.iter().position(|known| **known == descriptor).unwrap_or_else(|| {
            kinds.push(Arc::new(descriptor));
            kinds.len() - 1
        });
        KindId(at as u32)
    }

    /// The descriptor of `kind`, if it was interned.
    pub fn get(&self, kind: KindId) -> Option<Arc<ModelDescriptor>> {
        let kinds = self.kinds.read().unwrap_or_else(PoisonError::into_inner);
        kinds.get(kind.0 as usize).cloned()
    }

    /// How many kinds are known.
    pub fn len(&self) -> usize {
        self.kinds.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether no kind is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
