//! `coretuner simulate` where something is missing: it says what it lacks.

use std::process::Output;

use coretuner_tests::paths;
use serde_json::Value;

use super::cli::{FAILED, OK, coretuner};

/// Standard output and standard error.
fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned())
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
