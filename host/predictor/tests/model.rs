//! The model through the real ONNX Runtime: its test vectors, and files that must be refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod common;

use std::path::PathBuf;
use std::sync::Arc;

use common::{built_in, open, query};
use coretuner_core::catalog::{InputKind, KindCatalog, ModelDescriptor};
use coretuner_core::port::{CurveQuery, Predictor};
use coretuner_predictor::{ModelError, ModelSource, Observation, OnnxPredictor, Options, Provider};
use serde_json::Value;

/// A file below the repository's root.
fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn card() -> Value {
    let text = std::fs::read_to_string(repository("models/throughput.json")).expect("the model card is there");
    serde_json::from_str(&text).expect("the model card is JSON")
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().expect("an array").iter().map(|v| v.as_f64().expect("a number")).collect()
}

/// The descriptor that a vector's `job` columns stand for.
fn descriptor(job: &[f64]) -> ModelDescriptor {
    let kinds = [(0, InputKind::Image), (1, InputKind::Audio), (2, InputKind::Text)];
    let input = kinds.iter().find(|(at, _)| job[*at] > 0.0).map_or(InputKind::Other, |(_, kind)| *kind);
    let known = |flag: usize, at: usize| (job[flag] > 0.0).then_some(job[at]);
    ModelDescriptor {
        name: String::new(),
        input,
        activations_m: known(3, 4),
        gmacs: known(3, 5),
        params_m: known(7, 6),
        batch_per_gpu: job[8] as u32,
        bytes_per_sample: None,
        dataset_mib: None,
    }
}

/// Answers of every `place` of a vector as log samples/s: (mean, low, high).
fn answers(predictor: &OnnxPredictor, catalog: &KindCatalog, vector: &Value) -> Vec<[f64; 3]> {
    let job = floats(&vector["job"]);
    let kind = catalog.intern(descriptor(&job));
    let mut out = Vec::new();
    for place in vector["place"].as_array().expect("places") {
        let place = floats(place);
        let (cores, gpus, nodes) = (place[0], place[1], place[2]);
        let curves = predictor
            .curves(&CurveQuery {
                gpus: vec![gpus as u32],
                nodes_spanned: vec![nodes as u32],
                cpu_milli: vec![(cores * gpus * 1000.0) as u32],
                ..query(vec![Some(kind)])
            })
            .expect("answers");
        let samples = job[8] * gpus;
        out.push([curves.mean[0], curves.low[0], curves.high[0]].map(|v| (f64::from(v) * samples).ln()));
    }
    out
}

#[test]
fn answers_the_card_s_test_vectors() {
    let card = card();
    let tolerance = card["test_tolerance"].as_f64().expect("a number");
    for vector in card["test_vectors"].as_array().expect("vectors") {
        let name = vector["name"].as_str().expect("a name");
        // Fetching needs bytes and memory instead of the card's seconds; the self-test at load covers it.
        if vector["place"].as_array().expect("places").iter().any(|p| p[3] != 0.0) {
            continue;
        }
        let catalog = Arc::new(KindCatalog::default());
        let predictor = built_in(&catalog);
        let kind = catalog.intern(descriptor(&floats(&vector["job"])));
        for seen in vector["observations"].as_array().unwrap_or(&Vec::new()) {
            let place = floats(&seen["place"]);
            let batch = floats(&vector["job"])[8];
            let observed = Observation {
                kind,
                gpu_kind: "V100".to_owned(),
                gpus: place[1] as u32,
                nodes_spanned: place[2] as u32,
                cpu_milli: (place[0] * 1000.0) as u32,
                memory_mib: 64_000,
                iterations_per_s: seen["samples_per_s"].as_f64().expect("a number") / batch,
            };
            predictor.observe(&observed).expect("learns");
        }
        let found = answers(&predictor, &catalog, vector);
        for (output, column) in ["log_tput", "log_lo", "log_hi"].into_iter().zip(0..) {
            for (found, expected) in found.iter().map(|f| f[column]).zip(floats(&vector[output])) {
                assert!((found - expected).abs() < tolerance, "{name}: {output} {found} expected {expected}");
            }
        }
    }
}

/// Values from the study behind the model: an independent implementation of the same recipe.
#[test]
fn agrees_with_the_study() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let kind = catalog.intern(common::resnet18());
    let check = |expected: [f64; 6]| {
        let curves = predictor.curves(&query(vec![Some(kind)])).expect("answers");
        for (speed, expected) in curves.mean.iter().zip(expected) {
            let found = (f64::from(*speed) * 512.0).ln();
            assert!((found - expected).abs() < 1e-3, "{found} {expected}");
        }
    };
    let observe = |cores: u32, samples_per_s: f64| {
        let observed = Observation {
            kind,
            gpu_kind: "V100".to_owned(),
            gpus: 1,
            nodes_spanned: 1,
            cpu_milli: cores * 1000,
            memory_mib: 64_000,
            iterations_per_s: samples_per_s / 512.0,
        };
        predictor.observe(&observed).expect("learns");
    };
    check([5.7210, 6.4113, 6.8084, 7.4027, 7.6261, 7.6515]);
    observe(12, 2228.1165);
    check([5.7237, 6.4149, 6.8149, 7.4396, 7.6877, 7.7145]);
    observe(1, 332.7706);
    check([5.8023, 6.4931, 6.8918, 7.5010, 7.6925, 7.7118]);
}

#[test]
fn refuses_broken_files() {
    let catalog = Arc::new(KindCatalog::default());
    let check = |file: &str, expected: fn(&ModelError) -> bool, words: &[&str]| {
        let path = repository("tests/fixtures/models").join(file);
        let Err(error) = open(&ModelSource::File(path), &catalog) else { panic!("{file} was taken") };
        let text = error.to_string();
        assert!(expected(&error), "{file}: {text}");
        for word in words.iter().chain(&[file]) {
            assert!(text.contains(word), "{file}: `{word}` is not in: {text}");
        }
    };
    check("truncated.onnx", |e| matches!(e, ModelError::Load { .. }), &["is the file whole"]);
    check("not-a-model.onnx", |e| matches!(e, ModelError::Load { .. }), &["does not load"]);
    check("empty.onnx", |e| matches!(e, ModelError::Size { .. }), &["0 bytes"]);
    check("missing.onnx", |e| matches!(e, ModelError::Read { .. }), &["No such file"]);
    check("wrong-input-width.onnx", |e| matches!(e, ModelError::Interface { .. }), &["input `job`", "[N, 9]"]);
    check("wrong-output-width.onnx", |e| matches!(e, ModelError::Interface { .. }), &["output `sd`", "[N, 1]"]);
    check("wrong-features.onnx", |e| matches!(e, ModelError::Features { .. }), &["job=something,else"]);
    check("no-self-test.onnx", |e| matches!(e, ModelError::Metadata { .. }), &["self_test", "models/train.py"]);
    check("fails-self-test.onnx", |e| matches!(e, ModelError::SelfTest { .. }), &["fails its own test", "tolerance"]);
}

#[test]
fn a_file_is_the_same_model_as_the_built_in_one() {
    let catalog = Arc::new(KindCatalog::default());
    let file = open(&ModelSource::File(repository("models/throughput.onnx")), &catalog).expect("opens");
    assert_eq!(file.identity(), built_in(&catalog).identity());
}

#[test]
fn says_what_runs() {
    let predictor = built_in(&Arc::new(KindCatalog::default()));
    let identity = predictor.identity();
    let version = common::runtime().version().to_owned();
    assert_eq!(identity.name, "throughput");
    assert_eq!(identity.engine, format!("onnxruntime {version} CPUExecutionProvider"));
    assert!(version.starts_with("1."), "{version}");
    assert!(identity.digest.starts_with("blake3:") && identity.digest.len() == 7 + 64, "{}", identity.digest);
    let held_out = predictor.held_out();
    assert!(held_out.iter().any(|h| h.group == "image" && h.probes == 0 && h.error_percent < 9.0), "{held_out:?}");
}

/// On a machine without CUDA: asking for it fails, preferring it falls back and says so. With CUDA both run there.
#[test]
fn cuda_is_never_replaced_silently() {
    let runtime = common::runtime();
    let open = |provider| {
        let catalog = Arc::new(KindCatalog::default());
        OnnxPredictor::open(&runtime, &ModelSource::Embedded, provider, catalog, Options::default())
    };
    match open(Provider::Cuda { require: true }) {
        Ok(predictor) => assert!(predictor.identity().engine.contains("CUDAExecutionProvider")),
        Err(error) => {
            assert!(matches!(error, ModelError::CudaUnavailable { .. }), "{error}");
            for provider in [Provider::Cuda { require: false }, Provider::Auto] {
                let engine = open(provider).expect("falls back").identity().engine;
                assert!(engine.ends_with("CPUExecutionProvider"), "{engine}");
            }
        }
    }
}

/// Damage anywhere in a file gives an error or, where it does not matter, the same model: never a crash.
#[test]
fn damaged_bytes_never_crash() {
    let good = std::fs::read(repository("models/throughput.onnx")).expect("the model is there");
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("damaged.onnx");
    let catalog = Arc::new(KindCatalog::default());
    let (mut state, mut refused) = (1u64, 0);
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for _ in 0..60 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            let at = random(bytes.len());
            bytes[at] ^= 1 << random(8);
        }
        std::fs::write(&path, &bytes).expect("writable");
        match open(&ModelSource::File(path.clone()), &catalog) {
            Ok(predictor) => assert_eq!(predictor.model_version(), "1"),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("damaged.onnx"), "{error}");
            }
        }
    }
    assert!(refused > 20, "{refused} of 60 damaged files were refused");
}
