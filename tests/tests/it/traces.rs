//! The published traces themselves, and what the Synergy authors' simulator makes of one.

use std::path::Path;

use coretuner_contract::cluster::Delta;
use coretuner_core::port::{Answer, FaultKind, Policy, PolicyFault, PolicyIdentity, Predictor};
use coretuner_simulator::result::RunResult;
use coretuner_simulator::trace::{ReadOptions, read};
use coretuner_simulator::truth::{TruthMode, TruthOptions};
use coretuner_simulator::workload::{FillOptions, TraceJob, Workload};
use coretuner_simulator::{Hooks, Mode, ProfilePredictor, RunLabels, Settings, simulate};
use coretuner_tests::data::published;

/// Reads a trace below `CORETUNER_DATA`; nothing where that is not set.
fn workload(test: &str, path: &str, options: &ReadOptions) -> Option<Workload> {
    let full = published(test, path)?;
    Some(read(&full, options).unwrap_or_else(|error| panic!("{path}: {error}")))
}

fn check(test: &str, path: &str, format: &str, jobs: usize) {
    if let Some(workload) = workload(test, path, &ReadOptions::default()) {
        let found = (workload.info.format.as_str(), workload.jobs.len());
        assert_eq!(found, (format, jobs), "{path}");
        assert!(workload.jobs.is_sorted_by_key(|job| job.spec.submit_ns), "{path} is not sorted");
    }
}

#[test]
fn synergy_traces_are_whole() {
    for (file, jobs) in [("static_100job", 100), ("dynamic_100job", 100), ("test_trace", 8)] {
        check("synergy_traces_are_whole", &format!("synergy-traces/{file}.csv"), "synergy", jobs);
    }
}

/// All files of a folder below `CORETUNER_DATA` with their number of jobs.
fn count_all(test: &str, folder: &str, format: &str) -> Option<usize> {
    let full = published(test, folder)?;
    let mut count = 0;
    for entry in std::fs::read_dir(full).expect("a folder") {
        let path = entry.expect("an entry").path();
        let workload = read(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(workload.info.format, format, "{}", path.display());
        count += workload.jobs.len();
    }
    Some(count)
}

#[test]
fn gavel_traces_are_whole() {
    let test = "gavel_traces_are_whole";
    let msr = count_all(test, "gavel-traces/msr-seed0", "gavel");
    let physical = count_all(test, "gavel-traces/physical_cluster", "gavel");
    assert!(msr.is_none_or(|count| count == 15_264), "{msr:?}");
    assert!(physical.is_none_or(|count| count == 287), "{physical:?}");
}

#[test]
fn microsoft_itp_traces_are_whole() {
    let test = "microsoft_itp_traces_are_whole";
    let jobs = [1_595, 5_778, 3_011, 15_802, 3_629, 2_396, 12_699, 13_047, 11_134, 260];
    for (index, jobs) in jobs.into_iter().enumerate() {
        check(test, &format!("microsoft-itp-2021/raw/cluster{:02}.csv", index + 1), "itp", jobs);
    }
    check(test, "microsoft-itp-2021/elasticflow/195job.csv", "itp", 195);
}

#[test]
fn philly_is_whole() {
    let test = "philly_is_whole";
    check(test, "philly-derived/philly.csv", "philly", 82_247);
    let Some(workload) = workload(test, "philly-derived/philly.csv", &ReadOptions::default()) else { return };
    assert_eq!((workload.nodes.len(), workload.info.never_schedulable), (352, 0));
    assert_eq!(workload.jobs.first().map(|job| job.spec.submit_ns), Some(0));
    let last_day = workload.jobs.last().map(|job| job.spec.submit_ns / 86_400_000_000_000);
    assert_eq!(last_day, Some(108), "2017-09-04 to 2017-12-22");
}

#[test]
fn openb_is_whole() {
    let test = "openb_is_whole";
    let default = "alibaba-openb-v2023/openb_pod_list_default.csv";
    check(test, default, "openb", 7_255);
    for variant in ["cpu200", "gpushare100", "gpuspec33"] {
        let path = format!("alibaba-openb-v2023/openb_pod_list_{variant}.csv");
        workload(test, &path, &ReadOptions::default());
    }
    let Some(workload) = workload(test, default, &ReadOptions::default()) else { return };
    assert_eq!((workload.nodes.len(), workload.gpus()), (1_523, 6_212));
    assert!(workload.jobs.iter().any(|job| job.gpus() == 0), "pods without GPU");
    assert!(workload.jobs.iter().any(|job| (1..1000).contains(&job.spec.gpu_milli_min())), "shares");
}

/// Says nothing, so that the built-in fallback answers: first in, first out with backfill, at the request.
struct Silent(PolicyIdentity);

impl Policy for Silent {
    fn identity(&self) -> &PolicyIdentity {
        &self.0
    }
    fn decide(&mut self, _: &Delta) -> Result<Answer, PolicyFault> {
        let message = "says nothing".to_owned();
        Err(PolicyFault { kind: FaultKind::Trap, message, backtrace: Vec::new(), output_tail: Vec::new() })
    }
    fn reset(&mut self) -> Result<(), PolicyFault> {
        Ok(())
    }
}

fn run_fifo(workload: &Workload, settings: &Settings) -> RunResult {
    let identity = PolicyIdentity { name: "fallback".into(), version: "0".into(), digest: "native".into() };
    let predictor = ProfilePredictor::new(workload).identity();
    let labels = RunLabels { policy_config: serde_json::Value::Null, predictor };
    let hooks = &mut Hooks { progress: &mut |_| {}, cycle: &mut |_| {} };
    simulate(workload, settings, Silent(identity), labels, hooks).expect("a result")
}

fn reference_jcts(path: &Path) -> Vec<f64> {
    let text = std::fs::read_to_string(path).expect("the reference");
    let last = |line: &str| line.rsplit(',').next().and_then(|cell| cell.parse().ok());
    text.lines().skip(1).map(|line| last(line).unwrap_or_else(|| panic!("no time in `{line}`"))).collect()
}

/// Proportional shares in arrival order are what Synergy calls FIFO fair: its released simulator's 100 completion times.
#[test]
fn synergy_fifo_fair_is_reproduced() {
    let test = "synergy_fifo_fair_is_reproduced";
    let truth = TruthOptions { mode: TruthMode::Scalar, placement_penalty: 1.0 };
    let options = ReadOptions {
        cluster: published(test, "synergy-traces/configs/deployment.ini"),
        fill: FillOptions { truth, ..FillOptions::default() },
        ..ReadOptions::default()
    };
    let Some(workload) = workload(test, "synergy-traces/static_100job.csv", &options) else { return };
    let Some(reference) = published(test, "reference-results/synergy-jobs/static-FIFO-fair.csv") else { return };
    let mode = Mode::Rounds { round_s: 300.0, first_round_s: Some(1.0), whole_iterations: true };
    let result = run_fifo(&workload, &Settings { mode, restart_s: 0.0, ..Settings::default() });
    let expected = reference_jcts(&reference);
    assert_eq!(result.jobs.len(), expected.len());
    for (job, expected) in result.jobs.iter().zip(expected) {
        let jct_s = job.jct_s.expect("finished");
        assert!((jct_s - expected).abs() < 1e-6, "job {}: {jct_s} s, not {expected} s", job.id);
    }
}

/// The examples of `docs/traces.md`.
#[test]
fn examples_are_read() {
    let example = |file: &str| {
        let path = coretuner_tests::paths::root().join("examples/traces").join(file);
        read(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
    };
    let csv = example("jobs.csv");
    assert_eq!((csv.jobs.len(), csv.nodes.len(), csv.gpus(), csv.info.never_schedulable), (6, 3, 20, 0));
    assert_eq!(csv.queues.len(), 3, "the default queue and two that jobs name");
    let json = example("trace.json");
    assert_eq!((json.jobs.len(), json.nodes.len(), json.queues.len()), (2, 1, 3));
    let elastic = example("elastic.csv");
    let most = |job: &TraceJob| job.spec.groups[0].workers_max;
    assert_eq!(elastic.jobs.iter().map(most).collect::<Vec<_>>(), [8, 8, 4, 4, 8, 8]);
    for workload in [csv, json, elastic] {
        let result = run_fifo(&workload, &Settings::default());
        assert_eq!(result.metrics.jobs_finished as usize, workload.jobs.len(), "{:?}", result.jobs);
    }
}
