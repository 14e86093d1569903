//! What a guest gets from the host.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use coretuner_core::model::KindId;
use coretuner_core::port::{CurveQuery, Curves, Policy, PredictError, Predictor, PredictorIdentity};
use coretuner_policy_host::{
    CodeCache, Grants, KvStore, Limits, LoadedPolicy, Mode, PolicyEngine, Services, WasmPolicy,
};
use coretuner_tests::paths;

use super::{MODES, cycles, image, load, small, unchanged};

#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<CurveQuery>>,
    delay: Duration,
}

impl Predictor for Fake {
    fn identity(&self) -> PredictorIdentity {
        PredictorIdentity { name: "fake".into(), digest: String::new(), engine: String::new() }
    }

    #[expect(clippy::disallowed_methods, reason = "a slow predictor is what is tested")]
    fn curves(&self, query: &CurveQuery) -> Result<Curves, PredictError> {
        self.asked.lock().unwrap().push(query.clone());
        std::thread::sleep(self.delay);
        let (points, kinds) = (query.points(), query.kinds.len());
        let list = || vec![1.0; points * kinds];
        Ok(Curves { mean: list(), low: list(), high: list(), version: vec![1; kinds] })
    }

    fn next_probe(&self, _kind: KindId) -> Option<u32> {
        None
    }
}

#[test]
fn jobs_are_predicted_by_kind() {
    for mode in MODES {
        let fake = Arc::new(Fake::default());
        let predictor: Arc<dyn Predictor> = Arc::<Fake>::clone(&fake);
        let services = Services { predictor: Some(predictor), ..Services::default() };
        let mut policy = load(mode, small()).instantiate(r#"{"fault": "ask"}"#, services).unwrap();
        // Jobs 1, 2 and 3 are of kinds 1, 0 and 1; four core counts each.
        cycles(&mut policy, 3).unwrap();
        assert_eq!(policy.metrics(), [("answers".to_owned(), 12.0)]);
        let asked = fake.asked.lock().unwrap();
        assert_eq!(asked.len(), 1, "asked again what it knew");
        assert_eq!(asked[0].kinds, [Some(KindId(0)), Some(KindId(1))]);
        assert_eq!(asked[0].gpu_kind, "V100");
    }
}

/// A policy that asks a predictor which takes 200 ms, with 60 ms of its own and `budget_ms` for predictions.
fn asks_slowly(mode: Mode, budget_ms: u64) -> WasmPolicy {
    let predictor: Arc<dyn Predictor> = Arc::new(Fake { delay: Duration::from_millis(200), ..Fake::default() });
    let limits = Limits { predict_budget_ms: budget_ms, ..small() };
    let services = Services { predictor: Some(predictor), ..Services::default() };
    load(mode, limits).instantiate(r#"{"fault": "ask"}"#, services).unwrap()
}

#[test]
fn time_in_predictions_is_not_the_guests() {
    let mut policy = asks_slowly(Mode::Production, 10_000);
    cycles(&mut policy, 1).unwrap();
    assert_eq!(policy.metrics(), [("answers".to_owned(), 12.0)]);
}

#[test]
fn predictions_are_late_in_production_and_never_when_metered() {
    let mut policy = asks_slowly(Mode::Production, 50);
    cycles(&mut policy, 1).unwrap();
    assert_eq!(policy.metrics(), [("late".to_owned(), 1.0)]);
    // What came late was kept.
    policy.decide(&unchanged(1)).unwrap();
    assert_eq!(policy.metrics(), [("answers".to_owned(), 12.0), ("late".to_owned(), 1.0)]);

    let mut policy = asks_slowly(Mode::Metered, 50);
    cycles(&mut policy, 1).unwrap();
    assert_eq!(policy.metrics(), [("answers".to_owned(), 12.0)]);
}

#[test]
fn kv_writes_count_when_their_cycle_is_accepted() {
    let kv = KvStore::new();
    let services = || Services { kv: kv.clone(), ..Services::default() };
    let loaded = load(Mode::Metered, small());
    let mut policy = loaded.instantiate(r#"{"fault": "count-in-kv"}"#, services()).unwrap();
    policy.decide(&image(&[])).unwrap();
    assert_eq!(kv.entries("misbehaving"), []);
    // Not committed, so the second call counts from nothing again.
    policy.decide(&unchanged(1)).unwrap();
    policy.commit();
    assert_eq!(kv.entries("misbehaving"), [("calls".to_owned(), vec![1])]);
    // A new instance of the same policy goes on from there.
    let mut next = loaded.instantiate(r#"{"fault": "count-in-kv"}"#, services()).unwrap();
    next.decide(&image(&[])).unwrap();
    next.commit();
    assert_eq!(kv.entries("misbehaving"), [("calls".to_owned(), vec![2])]);
}

#[test]
fn what_is_not_granted_is_not_linked() {
    let engine = PolicyEngine::new(Mode::Metered, small()).unwrap();
    let loaded =
        LoadedPolicy::from_file(&engine, &paths::guest("misbehaving"), &Grants::none(), &CodeCache::disabled());
    let message = loaded.err().unwrap().to_string();
    assert!(message.contains("which is not granted"), "{message}");
}
