//! Published cases with the policies running as components on the simulator.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use coretuner_core::port::Predictor;
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode as Metering, PolicyEngine, Services};
use coretuner_simulator::result::RunResult;
use coretuner_simulator::trace::{Format, ReadOptions, read};
use coretuner_simulator::truth::{TruthMode, TruthOptions};
use coretuner_simulator::workload::{FillOptions, Workload};
use coretuner_simulator::{Hooks, Mode, ProfilePredictor, RunLabels, Settings, simulate};
use coretuner_tests::paths;

/// A workload on `servers` published servers from lines of `job_id,model,arrival_s,iterations,gpus`.
fn workload(lines: &str, servers: u32, mode: TruthMode) -> Workload {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), lines).expect("written");
    let truth = TruthOptions { mode, ..TruthOptions::default() };
    let fill = FillOptions { servers: Some(servers), truth, ..FillOptions::default() };
    let options = ReadOptions { format: Some(Format::Synergy), fill, ..ReadOptions::default() };
    read(file.path(), &options).unwrap_or_else(|error| panic!("{error}"))
}

fn run(policy: &str, config: &str, workload: &Workload, settings: &Settings) -> RunResult {
    let engine = PolicyEngine::new(Metering::Metered, Limits::default()).expect("an engine");
    let path = paths::guest(policy);
    let cache = CodeCache::open(&paths::target().join("code-cache"));
    let loaded = LoadedPolicy::from_file(&engine, Path::new(&path), &Grants::all(), &cache)
        .unwrap_or_else(|error| panic!("{error}"));
    let predictor = Arc::new(ProfilePredictor::new(workload));
    let labels = RunLabels { policy_config: serde_json::Value::Null, predictor: predictor.identity() };
    let services = Services { predictor: Some(predictor), ..Services::default() };
    let instance = loaded.instantiate(config, services).unwrap_or_else(|error| panic!("{error}"));
    let mut hooks = Hooks { progress: &mut |_| {}, cycle: &mut |_| {} };
    let result = simulate(workload, settings, instance, labels, &mut hooks).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.cycles.first_fault, None);
    assert!(result.cycles.refused.is_empty(), "{policy}: refused {:?}", result.cycles.refused);
    result
}

/// Σ over running jobs of GPUs × speed relative to the share, at `at_s`.
fn sum_of_speeds(result: &RunResult, at_s: f64) -> f64 {
    let open = result.segments.iter().filter(|segment| segment.from_s <= at_s && segment.to_s >= at_s);
    open.map(|segment| segment.gpus * segment.relative_speed).sum()
}

fn check_four_gangs(policy: &str, expected: f64) {
    // About 10,000 s each at the share, so that all four run at 900 s.
    let lines = "0,res18,0,16000,4\n1,m5,0,16000,4\n2,transformer,0,16000,4\n3,gnmt,0,80000,4\n";
    let workload = workload(lines, 2, TruthMode::Tables);
    let result = run(policy, "{}", &workload, &Settings::default());
    let found = sum_of_speeds(&result, 900.0);
    assert!((found - expected).abs() < 5e-3, "{policy}: {found}, not {expected}; {:?}", result.segments);
}

#[test]
fn synergy_tune_puts_the_four_gangs_of_the_paper_to_their_shares() {
    check_four_gangs("synergy-tune", 16.00);
}

#[test]
fn coretuner_gives_the_hungry_gangs_what_the_others_leave() {
    check_four_gangs("coretuner", 19.72);
}

#[test]
fn synergy_tune_reproduces_the_published_static_run_job_by_job() {
    let fixture = include_str!("../../fixtures/synergy/static_100.csv");
    let mut lines = String::new();
    let mut expected = Vec::new();
    for line in fixture.lines().skip(1) {
        let (job, jct_s) = line.rsplit_once(',').expect("six columns");
        writeln!(lines, "{job}").expect("written");
        expected.push(jct_s.parse::<f64>().expect("a time"));
    }
    let workload = workload(&lines, 4, TruthMode::Scalar);
    let mode = Mode::Rounds { round_s: 300.0, first_round_s: Some(1.0), whole_iterations: true };
    let settings = Settings { mode, restart_s: 0.0, ..Settings::default() };
    let result = run("synergy-tune", r#"{"first_round_s": 1}"#, &workload, &settings);
    assert_eq!(result.jobs.len(), expected.len());
    for (job, expected) in result.jobs.iter().zip(expected) {
        let found = job.jct_s.unwrap_or(f64::NAN);
        assert!((found - expected).abs() < 1e-3, "{}: {found} s, not {expected} s", job.name);
    }
}

#[test]
fn elastic_jobs_use_gpus_that_nobody_waits_for() {
    let path = paths::root().join("examples/traces/elastic.csv");
    let workload = read(&path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let mean_s = |elastic: bool| {
        let result = run("coretuner", &format!(r#"{{"elastic": {elastic}}}"#), &workload, &Settings::default());
        assert_eq!(result.metrics.jobs_finished as usize, workload.jobs.len());
        result.metrics.jct_s.mean
    };
    let (with, without) = (mean_s(true), mean_s(false));
    assert!(with < 0.8 * without, "{with} s with, {without} s without");
}
