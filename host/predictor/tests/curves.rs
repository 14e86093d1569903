//! Queries through the real ONNX Runtime.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{built_in, query, resnet18};
use coretuner_core::catalog::{InputKind, KindCatalog, ModelDescriptor};
use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, PredictError, Predictor};
use coretuner_predictor::{ModelSource, Observation, ObserveError, OnnxPredictor, Options, Provider};
use proptest::prelude::*;

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn observation(kind: KindId, cores: u32, iterations_per_s: f64) -> Observation {
    let gpu_kind = "V100".to_owned();
    let (gpus, nodes_spanned, cpu_milli, memory_mib) = (1, 1, cores * 1000, 64_000);
    Observation { kind, gpu_kind, gpus, nodes_spanned, cpu_milli, memory_mib, iterations_per_s }
}

#[test]
fn nothing_is_known_of_unknown_kinds_and_empty_allocations() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let known = catalog.intern(resnet18());
    let asked = CurveQuery { cpu_milli: vec![0, 3000], ..query(vec![None, Some(known), Some(KindId(99))]) };
    let curves = predictor.curves(&asked).expect("answers");
    let nan: Vec<bool> = curves.mean.iter().map(|v| v.is_nan()).collect();
    assert_eq!(nan, [true, true, true, false, true, true]);
    assert_eq!((curves.low.len(), curves.high.len(), curves.version.len()), (6, 6, 3));
    assert!(curves.low[3] < curves.mean[3] && curves.mean[3] < curves.high[3]);
}

#[test]
fn an_answer_does_not_depend_on_what_else_is_asked() {
    let catalog = Arc::new(KindCatalog::default());
    let kinds: Vec<_> = (1..400)
        .map(|i| catalog.intern(ModelDescriptor { activations_m: Some(f64::from(i) * 0.05), ..resnet18() }))
        .collect();
    let many = built_in(&catalog).curves(&query(kinds.iter().copied().map(Some).collect())).expect("answers");
    for at in [0, 7, 42, 43, 255, 398] {
        let alone = built_in(&catalog).curves(&query(vec![Some(kinds[at])])).expect("answers");
        assert_eq!(bits(&alone.mean), bits(&many.mean[at * 6..at * 6 + 6]));
        assert_eq!(bits(&alone.low), bits(&many.low[at * 6..at * 6 + 6]));
    }
}

#[test]
fn jobs_of_one_kind_share_an_answer_and_a_second_query_repeats_it() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let kind = Some(catalog.intern(resnet18()));
    let first = predictor.curves(&query(vec![kind, kind])).expect("answers");
    assert_eq!(bits(&first.mean[..6]), bits(&first.mean[6..]));
    assert_eq!(first, predictor.curves(&query(vec![kind, kind])).expect("answers"));
}

#[test]
fn values_have_sixteen_bits() {
    let catalog = Arc::new(KindCatalog::default());
    let kind = Some(catalog.intern(resnet18()));
    let curves = built_in(&catalog).curves(&query(vec![kind])).expect("answers");
    assert!(curves.mean.iter().chain(&curves.low).chain(&curves.high).all(|v| v.to_bits() & 0xFF == 0));
}

#[test]
fn an_observation_changes_the_curve_and_its_version() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let (seen, other) =
        (catalog.intern(resnet18()), catalog.intern(ModelDescriptor { gmacs: Some(9.0), ..resnet18() }));
    let asked = query(vec![Some(seen), Some(other)]);
    let before = predictor.curves(&asked).expect("answers");
    predictor.observe(&observation(seen, 12, 3.0)).expect("learns");
    let after = predictor.curves(&asked).expect("answers");
    assert_ne!(before.version[0], after.version[0]);
    assert_eq!(before.version[1], after.version[1]);
    assert!((after.mean[4] - 3.0).abs() < (before.mean[4] - 3.0).abs() / 2.0, "{} {}", before.mean[4], after.mean[4]);
    assert_eq!(bits(&before.mean[6..]), bits(&after.mean[6..]));
    let fresh = predictor.fork(Arc::clone(&catalog)).curves(&asked).expect("answers");
    assert_eq!(fresh, before);
    // What was seen on one GPU kind says nothing here of another.
    let elsewhere = CurveQuery { gpu_kind: "T4".to_owned(), ..asked };
    let untouched = predictor.fork(Arc::clone(&catalog)).curves(&elsewhere).expect("answers");
    assert_eq!(predictor.curves(&elsewhere).expect("answers"), untouched);
}

#[test]
fn useless_observations_are_refused() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let kind = catalog.intern(resnet18());
    let check = |observed: Observation, expected: ObserveError| assert_eq!(predictor.observe(&observed), Err(expected));
    check(observation(KindId(9), 3, 1.0), ObserveError::UnknownKind(KindId(9)));
    check(observation(kind, 3, 0.0), ObserveError::Speed(0.0));
    check(observation(kind, 3, f64::INFINITY), ObserveError::Speed(f64::INFINITY));
    check(observation(kind, 0, 1.0), ObserveError::NoResources);
}

#[test]
fn probes_until_the_curve_is_known() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let kind = catalog.intern(resnet18());
    let truth = |cores: u32| 512.0 / 512.0 * f64::from(cores).min(7.0) * 0.6;
    let mut asked = Vec::new();
    while let Some(cpu_milli) = predictor.next_probe(kind) {
        asked.push(cpu_milli);
        assert!(asked.len() < 6, "never satisfied: {asked:?}");
        predictor.observe(&observation(kind, cpu_milli / 1000, truth(cpu_milli / 1000))).expect("learns");
    }
    assert!((1..=4).contains(&asked.len()), "{asked:?}");
    assert_eq!(predictor.next_probe(KindId(77)), None);
}

#[test]
fn less_memory_than_data_slows_a_job() {
    let catalog = Arc::new(KindCatalog::default());
    let stored = ModelDescriptor { bytes_per_sample: Some(110_000.0), dataset_mib: Some(140_000), ..resnet18() };
    let kind = Some(catalog.intern(stored));
    let asked = CurveQuery { cpu_milli: vec![12_000], memory_mib: vec![128_000, 21_330, 192_000], ..query(vec![kind]) };
    let mean = built_in(&catalog).curves(&asked).expect("answers").mean;
    assert!(mean[1] < 0.7 * mean[0] && mean[0] <= mean[2], "{mean:?}");
}

#[test]
fn other_gpu_kinds_are_slower_and_less_certain() {
    let catalog = Arc::new(KindCatalog::default());
    let predictor = built_in(&catalog);
    let kind = Some(catalog.intern(resnet18()));
    let at_24 = |gpu: &str| {
        let curves = predictor.curves(&CurveQuery { gpu_kind: gpu.to_owned(), ..query(vec![kind]) }).expect("answers");
        (curves.mean[5], curves.high[5] / curves.low[5])
    };
    let (v100, t4, unknown) = (at_24("V100"), at_24("T4"), at_24("Accelerator-9000"));
    assert!(t4.0 < v100.0 && t4.1 > v100.1, "{v100:?} {t4:?}");
    assert!(unknown.1 > t4.1, "{t4:?} {unknown:?}");
}

#[test]
fn refuses_what_it_cannot_answer() {
    let catalog = Arc::new(KindCatalog::default());
    let kind = Some(catalog.intern(resnet18()));
    let options = Options { rows_max: 10, points_max: 100, ..Options::default() };
    let predictor =
        OnnxPredictor::open(&common::runtime(), &ModelSource::Embedded, Provider::Cpu, Arc::clone(&catalog), options)
            .expect("opens");
    let check = |asked: CurveQuery, expected: PredictError| assert_eq!(predictor.curves(&asked), Err(expected));
    check(
        CurveQuery { model: "duration".to_owned(), ..query(vec![]) },
        PredictError::UnknownModel("duration".to_owned()),
    );
    check(
        CurveQuery { memory_mib: vec![1, 2], ..query(vec![kind]) },
        PredictError::TooManyRows { rows: 12, limit: 10 },
    );
    check(query(vec![kind; 17]), PredictError::TooManyRows { rows: 102, limit: 100 });
    let two_axes = predictor.curves(&CurveQuery { nodes_spanned: vec![1, 2], ..query(vec![kind]) });
    assert!(matches!(two_axes, Err(PredictError::Unavailable(text)) if text.contains("one axis")));
    assert_eq!(predictor.curves(&query(vec![])).expect("answers").mean.len(), 0);
}

#[test]
fn a_query_past_its_deadline_is_late() {
    let catalog = Arc::new(KindCatalog::default());
    let kind = Some(catalog.intern(resnet18()));
    let options = Options { deadline: Some(Duration::ZERO), ..Options::default() };
    let predictor =
        OnnxPredictor::open(&common::runtime(), &ModelSource::Embedded, Provider::Cpu, Arc::clone(&catalog), options)
            .expect("opens");
    assert_eq!(predictor.curves(&query(vec![kind])), Err(PredictError::Late { deadline_ms: 0 }));
}

fn descriptors() -> impl Strategy<Value = ModelDescriptor> {
    let input =
        prop_oneof![Just(InputKind::Image), Just(InputKind::Audio), Just(InputKind::Text), Just(InputKind::Other)];
    let number =
        || proptest::option::of(prop_oneof![0.001..500.0f64, Just(0.0), Just(-3.0), Just(f64::NAN), Just(1e30)]);
    (input, number(), number(), number(), 0..4096u32, number(), proptest::option::of(0..600_000u32)).prop_map(
        |(input, activations_m, gmacs, params_m, batch_per_gpu, bytes, dataset_mib)| ModelDescriptor {
            name: String::new(),
            input,
            activations_m,
            gmacs,
            params_m,
            batch_per_gpu,
            bytes_per_sample: bytes.map(|b| b * 1000.0),
            dataset_mib,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the job, the GPU kind and what was observed: finite, ordered, and never falling with cores.
    #[test]
    fn more_cores_never_slow_a_job(
        descriptor in descriptors(),
        gpu in prop_oneof![Just("V100"), Just("K80"), Just("?")],
        gpus in 1..64u32,
        nodes in 1..9u32,
        seen in proptest::collection::vec((1..48u32, 1e-3..1e3f64), 0..4),
    ) {
        let catalog = Arc::new(KindCatalog::default());
        let predictor = built_in(&catalog);
        let kind = catalog.intern(descriptor);
        for (cores, speed) in seen {
            predictor.observe(&Observation { gpu_kind: gpu.to_owned(), ..observation(kind, cores, speed) }).expect("learns");
        }
        let asked = CurveQuery {
            gpu_kind: gpu.to_owned(),
            gpus: vec![gpus],
            nodes_spanned: vec![nodes],
            cpu_milli: (1..=96).map(|half| half * 500).collect(),
            ..query(vec![Some(kind)])
        };
        let curves = predictor.curves(&asked).expect("answers");
        for column in [&curves.mean, &curves.low, &curves.high] {
            prop_assert!(column.iter().all(|v| v.is_finite() && *v >= 0.0));
            prop_assert!(column.windows(2).all(|w| w[0] <= w[1]));
        }
        for at in 0..curves.mean.len() {
            prop_assert!(curves.low[at] <= curves.mean[at] && curves.mean[at] <= curves.high[at]);
        }
    }
}
