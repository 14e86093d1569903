//! What the integration tests share. They need the ONNX Runtime library and fail without it.

use std::sync::Arc;

use coretuner_core::catalog::{InputKind, KindCatalog, ModelDescriptor};
use coretuner_core::model::KindId;
use coretuner_core::port::CurveQuery;
use coretuner_predictor::{ModelError, ModelSource, OnnxPredictor, OnnxRuntime, Options, Provider};

pub fn runtime() -> OnnxRuntime {
    match OnnxRuntime::load(None) {
        Ok(runtime) => runtime,
        Err(e) => panic!("{e}"),
    }
}

pub fn open(source: &ModelSource, catalog: &Arc<KindCatalog>) -> Result<OnnxPredictor, ModelError> {
    OnnxPredictor::open(&runtime(), source, Provider::Cpu, Arc::clone(catalog), Options::default())
}

pub fn built_in(catalog: &Arc<KindCatalog>) -> OnnxPredictor {
    open(&ModelSource::Embedded, catalog).expect("the built-in model passes its checks")
}

pub fn resnet18() -> ModelDescriptor {
    ModelDescriptor {
        name: "resnet18".to_owned(),
        input: InputKind::Image,
        activations_m: Some(2.48),
        gmacs: Some(1.82),
        params_m: Some(11.7),
        batch_per_gpu: 512,
        bytes_per_sample: None,
        dataset_mib: None,
    }
}

/// One GPU of a V100 node at 1, 2, 3, 6, 12 and 24 cores.
pub fn query(kinds: Vec<Option<KindId>>) -> CurveQuery {
    CurveQuery {
        model: String::new(),
        kinds,
        gpu_kind: "V100".to_owned(),
        gpus: vec![1],
        nodes_spanned: vec![1],
        cpu_milli: [1, 2, 3, 6, 12, 24].map(|cores| cores * 1000).to_vec(),
        memory_mib: vec![64_000],
    }
}
