//! Instances come and go without leaving anything behind, and say the same things each time.

use coretuner_core::port::{FaultKind, Policy};
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, SavedState, StateError};
use coretuner_tests::paths;

use super::{MODES, cycles, image, load, misbehaving, small, start, unchanged};

/// Mapped regions and resident KiB of this process.
fn footprint() -> (usize, u64) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (maps, resident.trim().trim_end_matches(" kB").trim().parse().unwrap())
}

#[test]
fn three_hundred_faults_leave_nothing_behind() {
    for mode in MODES {
        let mut policy = misbehaving(mode, r#"{"fault": "panic", "at": 2}"#);
        let mut round = || {
            assert_eq!(cycles(&mut policy, 2).unwrap_err().kind, FaultKind::Trap);
            policy.reset().unwrap();
        };
        (0..20).for_each(|_| round());
        let (maps_before, resident_before) = footprint();
        (0..300).for_each(|_| round());
        let (maps, resident) = footprint();
        // Other tests of this program run meanwhile: allow for them, not for 300 instances of over 1 MiB.
        assert!(maps < maps_before + 150, "{maps_before} → {maps} mapped regions in {mode:?}");
        assert!(resident < resident_before + 200_000, "{resident_before} → {resident} KiB in {mode:?}");
        assert_eq!(policy.instances_started(), 321);
    }
}

#[test]
fn a_worn_instance_asks_for_an_image_and_is_renewed() {
    let limits = Limits { renew_after_calls: 3, ..small() };
    let mut policy = start(&load(Mode::Metered, limits), "{}");
    assert!(policy.needs_image());
    cycles(&mut policy, 2).unwrap();
    assert!(!policy.needs_image());
    policy.decide(&unchanged(2)).unwrap();
    assert!(policy.needs_image());
    policy.decide(&image(&[])).unwrap();
    assert_eq!((policy.instances_started(), policy.needs_image()), (2, false));
}

#[test]
fn a_grown_instance_is_renewed() {
    let limits = Limits { renew_after_growth_bytes: 20 << 20, decide_fuel: 1 << 40, ..small() };
    let mut policy = start(&load(Mode::Metered, limits), r#"{"fault": "leak", "amount": 4}"#);
    let mut bytes = Vec::new();
    for cycle in 0..30 {
        let delta = if policy.needs_image() { image(&[]) } else { unchanged(cycle) };
        bytes.push(policy.decide(&delta).unwrap().memory_bytes);
    }
    assert!(policy.instances_started() > 2, "{bytes:?}");
    assert!(bytes.iter().max() < Some(&(64 << 20)), "{bytes:?}");
}

#[test]
fn an_instance_without_a_view_takes_only_an_image() {
    let mut policy = misbehaving(Mode::Metered, "{}");
    let fault = policy.decide(&unchanged(5)).unwrap_err();
    assert_eq!((fault.kind, fault.message.contains("full image")), (FaultKind::Start, true));
    cycles(&mut policy, 2).unwrap();
}

#[test]
fn state_is_handed_over_or_refused() {
    for mode in MODES {
        let loaded = load(mode, small());
        let mut old = start(&loaded, "{}");
        cycles(&mut old, 3).unwrap();
        let state = old.save_state().unwrap().unwrap();
        assert_eq!(state, SavedState { version: 1, bytes: vec![3, 0, 0, 0] });
        let mut new = start(&loaded, r#"{"fault": "panic", "at": 5}"#);
        new.restore_state(&state).unwrap();
        assert!(cycles(&mut new, 1).is_ok() && new.decide(&unchanged(1)).is_err());

        let mut stubborn = start(&loaded, r#"{"fault": "refuse-state"}"#);
        assert_eq!(stubborn.save_state(), Err(StateError::Refused("nothing to say".into())));
        assert!(matches!(stubborn.restore_state(&state), Err(StateError::Refused(_))));
        let later = SavedState { version: 2, ..state };
        assert!(matches!(old.restore_state(&later), Err(StateError::Refused(text)) if text.contains("version 2")));
    }
}

#[test]
fn state_is_bounded() {
    let limits = Limits { state_bytes: 1000, ..small() };
    let loaded = load(Mode::Metered, limits);
    let mut policy = start(&loaded, r#"{"fault": "huge-state", "amount": 1001}"#);
    assert_eq!(policy.save_state(), Err(StateError::TooLarge { bytes: 1001, limit: 1000 }));
    let huge = SavedState { version: 1, bytes: vec![0; 1001] };
    assert_eq!(policy.restore_state(&huge), Err(StateError::TooLarge { bytes: 1001, limit: 1000 }));
    let mut policy = start(&loaded, r#"{"fault": "huge-state", "amount": 2000000}"#);
    assert!(matches!(policy.save_state(), Err(StateError::Fault(fault)) if fault.kind == FaultKind::AnswerTooLarge));
}

#[test]
fn the_meter_says_the_same_each_time() {
    let loaded = load(Mode::Metered, small());
    let costs = |config: &str| {
        let mut policy = start(&loaded, config);
        let deltas = [image(&[1, 2, 3]), unchanged(1), unchanged(2)];
        deltas.map(|delta| policy.decide(&delta).unwrap().fuel.unwrap())
    };
    let first = costs("{}");
    assert!(first.iter().all(|fuel| *fuel > 0), "{first:?}");
    assert_eq!(first, costs("{}"));
    let mut production = misbehaving(Mode::Production, "{}");
    assert_eq!(production.decide(&image(&[])).unwrap().fuel, None);
}

#[test]
fn one_loaded_policy_runs_on_several_threads() {
    let loaded = load(Mode::Metered, small());
    let plans: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| cycles(&mut start(&loaded, "{}"), 50).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(plans.iter().all(|plan| *plan == plans[0]) && plans[0].len() == 50);
}

#[test]
fn a_full_pool_is_a_clear_error_and_frees_up() {
    let loaded = load(Mode::Metered, Limits { pool_instances: 2, ..small() });
    if loaded.engine().allocator() != coretuner_policy_host::Allocator::Pooling {
        return;
    }
    let first = start(&loaded, "{}");
    let _second = start(&loaded, "{}");
    let error = loaded.instantiate("{}", Default::default()).err().unwrap();
    assert!(error.to_string().contains("does not start"), "{error}");
    drop(first);
    start(&loaded, "{}");
}

#[test]
fn a_real_policy_is_inspected_and_answers() {
    let engine = PolicyEngine::new(Mode::Production, Limits::default()).unwrap();
    let path = paths::guest("fifo");
    let loaded = LoadedPolicy::from_file(&engine, &path, &Grants::all(), &CodeCache::disabled()).unwrap();
    let inspection = loaded.inspection();
    assert_eq!((inspection.name.as_str(), inspection.contract.to_string().as_str()), ("fifo", "0.1.0"));
    assert_eq!(inspection.size_bytes, std::fs::metadata(&path).unwrap().len());
    assert!(inspection.digest.starts_with("blake3:") && inspection.configuration_schema.contains("properties"));
    let resources = inspection.resources.unwrap();
    assert_eq!(resources.memories, 1);
    assert!(resources.largest_initial_memory_bytes <= inspection.memory_bytes_at_start);
    let mut policy = start(&loaded, "{}");
    assert!(policy.decide(&coretuner_contract::cluster::Delta::default()).is_ok());
}
