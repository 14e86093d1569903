//! Cost of a query: 200 kinds × 24 core counts × 5 memory sizes, computed and from the cache.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use coretuner_core::catalog::{InputKind, KindCatalog, ModelDescriptor};
use coretuner_core::port::{CurveQuery, Predictor};
use coretuner_predictor::{ModelSource, OnnxPredictor, OnnxRuntime, Options, Provider};
use criterion::{Criterion, criterion_group, criterion_main};

fn query(catalog: &KindCatalog) -> CurveQuery {
    let kinds = (0..200u32).map(|i| {
        Some(catalog.intern(ModelDescriptor {
            name: format!("image-{i}"),
            input: InputKind::Image,
            activations_m: Some(0.5 + f64::from(i) * 0.1),
            gmacs: Some(0.2 + f64::from(i) * 0.05),
            params_m: Some(2.0 + f64::from(i)),
            batch_per_gpu: 64,
            bytes_per_sample: Some(110_000.0),
            dataset_mib: Some(150_000),
        }))
    });
    CurveQuery {
        model: String::new(),
        kinds: kinds.collect(),
        gpu_kind: "V100".to_owned(),
        gpus: vec![1],
        nodes_spanned: vec![1],
        cpu_milli: (1..=24).map(|cores| cores * 1000).collect(),
        memory_mib: [21_330, 64_000, 128_000, 192_000, 256_000].to_vec(),
    }
}

fn curves(c: &mut Criterion) {
    let runtime = OnnxRuntime::load(None).expect("ONNX Runtime: run `cargo xtask onnxruntime`");
    let catalog = Arc::new(KindCatalog::default());
    let query = query(&catalog);
    let predictor =
        OnnxPredictor::open(&runtime, &ModelSource::Embedded, Provider::Cpu, Arc::clone(&catalog), Options::default())
            .expect("the built-in model opens");
    let mut group = c.benchmark_group("curves");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(2));
    group.bench_function("200-kinds-computed", |b| {
        b.iter(|| black_box(predictor.fork(Arc::clone(&catalog)).curves(&query).expect("answers")));
    });
    group.bench_function("200-kinds-cached", |b| {
        b.iter(|| black_box(predictor.curves(&query).expect("answers")));
    });
    group.finish();
}

criterion_group!(benches, curves);
criterion_main!(benches);
