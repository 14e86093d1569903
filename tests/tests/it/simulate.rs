//! `coretuner simulate` where something is missing or fails: the run goes on and says so, or says what it lacks.

use std::process::Output;

use coretuner_tests::paths;
use serde_json::Value;

use super::cli::{FAILED, OK, SHORT, coretuner};

/// A short run of `policy` that must end well.
fn simulate(policy: &str, more: &[&str]) -> Output {
    let output = coretuner().args(["simulate", "--policy", policy]).args(SHORT).args(more).output().expect("starts");
    assert_eq!(output.status.code(), Some(OK), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Standard output and standard error.
fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}

/// The number beside `name` in the table of decisions.
fn table_number(table: &str, name: &str) -> u64 {
    let line = table.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no `{name}` in\n{table}"));
    let shown = line.split(name).nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a number");
    shown.replace(',', "").parse().unwrap_or_else(|error| panic!("{shown}: {error}"))
}

#[test]
fn a_policy_that_faults_is_shown_loudly_and_the_run_goes_on() {
    let policy = paths::guest("misbehaving").display().to_string();
    let check = |config: &str, kind: &str, in_words: &str| {
        let config = ["--policy-config", config];
        let [table, _] = texts(&simulate(&policy, &config));
        let [json, errors] = texts(&simulate(&policy, &[&config[..], &["--json"]].concat()));
        let result: Value = serde_json::from_str(&json).expect("JSON");
        let (cycles, metrics) = (&result["cycles"], &result["metrics"]);
        let faults = cycles["faults"][kind].as_u64().unwrap_or(0);
        assert!(faults > 0, "{cycles}");
        assert_eq!(cycles["faults"].as_object().map(serde_json::Map::len), Some(1), "{cycles}");
        assert_eq!(cycles["fallback_cycles"].as_u64(), Some(faults), "{cycles}");
        assert_eq!((&metrics["jobs_finished"], &metrics["jobs_counted"]), (&30.into(), &30.into()));
        let loud = format!("!! policy misbehaving failed in {faults} of");
        for text in [&table, &errors] {
            for part in [&loud, "the built-in fallback answered", in_words] {
                assert!(text.contains(part), "`{part}` is not in\n{text}");
            }
        }
        assert_eq!(table_number(&table, "policy faults"), faults);
        assert_eq!(table_number(&table, "cycles answered by the fallback"), faults);
    };
    check(r#"{"fault": "panic"}"#, "trap", "call 1 fell over");
    check(r#"{"fault": "panic", "at": 2}"#, "trap", "call 2 fell over");
    check(r#"{"fault": "ragged-columns"}"#, "invalid-answer", "make all columns equally long");
}

#[test]
fn a_policy_that_works_is_not_shouted_about() {
    let [json, errors] = texts(&simulate(&paths::guest("fifo").display().to_string(), &["--json"]));
    assert!(!errors.contains("!!"), "{errors}");
    let result: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(result["cycles"]["faults"], serde_json::json!({}));
}

/// Runs a policy where there is no ONNX Runtime library.
fn without_onnxruntime(policy: &str) -> (Option<i32>, [String; 2]) {
    let mut command = coretuner();
    command.env("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so");
    command.args(["simulate", "--policy", &paths::guest(policy).display().to_string(), "--json"]);
    let output = command.args(["--jobs", "10", "--nodes", "2", "--load", "4"]).output().expect("starts");
    (output.status.code(), texts(&output))
}

#[test]
fn a_policy_that_asks_for_no_predictions_needs_no_onnxruntime() {
    for policy in ["fifo", "las", "best-fit"] {
        let (code, [json, errors]) = without_onnxruntime(policy);
        assert_eq!(code, Some(OK), "{policy}: {errors}");
        let result: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(result["predictor"]["name"], "none");
    }
}

#[test]
fn a_policy_that_asks_for_predictions_says_what_it_lacks() {
    for policy in ["coretuner", "srtf", "synergy-tune"] {
        let (code, [json, errors]) = without_onnxruntime(policy);
        assert_eq!((code, json.as_str()), (Some(FAILED), ""), "{policy}");
        for part in [
            "no ONNX Runtime library found; looked for /nowhere/libonnxruntime.so",
            "cargo xtask onnxruntime",
            "--predictor profile",
        ] {
            assert!(errors.contains(part), "{policy}: `{part}` is not in\n{errors}");
        }
    }
}
