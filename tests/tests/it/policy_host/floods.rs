//! Floods of host calls: bounded by allowances, and by deadline or fuel when they do not end.

use coretuner_core::port::{FaultKind, Policy};
use coretuner_policy_host::{Limits, Mode, WasmPolicy};

use super::{MODES, cycles, image, load, misbehaving, patient, start};

fn value(policy: &WasmPolicy, name: &str) -> Option<f64> {
    policy.metrics().into_iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

#[test]
fn a_log_flood_is_dropped_beyond_the_allowance() {
    for mode in MODES {
        let mut policy = start(&load(mode, patient()), r#"{"fault": "log-flood", "amount": 3000}"#);
        cycles(&mut policy, 1).unwrap();
        // 64 KiB of lines of 39 to 42 bytes.
        assert_eq!(3000 - policy.log_dropped(), 1586);
        assert_eq!(policy.log_tail().len(), 20);
    }
}

#[test]
fn a_metric_flood_ends_at_the_last_series() {
    let mut policy = start(&load(Mode::Metered, patient()), r#"{"fault": "metric-flood", "amount": 1000}"#);
    cycles(&mut policy, 1).unwrap();
    assert_eq!((policy.metrics().len(), policy.metrics_dropped()), (64, 1000 - 64 + 1000));
}

#[test]
fn a_kv_flood_is_refused_beyond_the_last_key() {
    let mut policy = start(&load(Mode::Metered, patient()), r#"{"fault": "kv-flood", "amount": 3000}"#);
    cycles(&mut policy, 1).unwrap();
    assert_eq!(value(&policy, "refused"), Some(3000.0 - 1024.0));
}

#[test]
fn a_huge_query_is_refused() {
    // 3 jobs and 3,000,000 core counts are over 8,000,000 rows.
    let limits = Limits { answer_bytes: 64 << 20, ..patient() };
    let mut policy = start(&load(Mode::Metered, limits), r#"{"fault": "huge-query", "amount": 3000000}"#);
    cycles(&mut policy, 1).unwrap();
    assert_eq!(value(&policy, "too-many-rows"), Some(1.0), "{:?}", policy.metrics());
}

#[test]
fn floods_without_end_are_stopped() {
    for fault in ["log-flood", "metric-flood", "kv-flood", "predict-flood"] {
        let config = format!(r#"{{"fault": "{fault}", "amount": 4000000000}}"#);
        for (mode, kind) in [(Mode::Production, FaultKind::Deadline), (Mode::Metered, FaultKind::Fuel)] {
            let mut policy = misbehaving(mode, &config);
            let fault = policy.decide(&image(&[1, 2, 3])).unwrap_err();
            assert_eq!(fault.kind, kind, "{config}: {fault}");
        }
    }
}
