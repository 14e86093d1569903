//! `simulate-scale`: how fast and how large simulations are. Each run is a process of its own, whose peak memory the
//! system knows.

use crate::error::Error;
use crate::value::Value;
use coretuner_core::port::PredictorIdentity;
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, Services};
use coretuner_simulator::trace::{Format, ReadOptions, read};
use coretuner_simulator::workload::{Gangs, GenerateOptions, Workload, generate, jobs_per_hour_for};
use coretuner_simulator::{Hooks, RunLabels, Settings, simulate};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The largest published trace, below `CORETUNER_DATA`.
const PHILLY: &str = "philly-derived/philly.csv";
/// Share of GPU time that generated jobs ask for.
const UTILISATION: f64 = 0.8;

/// One simulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    name: String,
    /// A trace; generated when there is none.
    trace: Option<PathBuf>,
    jobs: u32,
    nodes: u32,
    policy: PathBuf,
}

/// Measures the whole figure.
pub(crate) fn measure(guests: &Path) -> Result<Vec<Value>, Error> {
    let policy = guests.join("fifo.wasm");
    let generated = |jobs: u32, nodes: u32| Run {
        name: format!("generated, {jobs} jobs, {nodes} nodes"),
        trace: None,
        jobs,
        nodes,
        policy: policy.clone(),
    };
    let mut runs = Vec::new();
    match std::env::var_os("CORETUNER_DATA").map(|folder| PathBuf::from(folder).join(PHILLY)) {
        Some(trace) => runs.push(Run {
            name: "Philly-derived, 82,247 jobs".into(),
            trace: Some(trace),
            jobs: 0,
            nodes: 0,
            policy: policy.clone(),
        }),
        None => eprintln!("SKIPPED the Philly-derived trace: CORETUNER_DATA is not set"),
    }
    runs.extend([1_000, 10_000, 100_000].map(|jobs| generated(jobs, 128)));
    runs.extend([1_000, 10_000].map(|nodes| generated(10_000, nodes)));
    runs.push(generated(100_000, 10_000));
    let mut values = Vec::new();
    for run in &runs {
        eprintln!("    {}", run.name);
        values.extend(in_child(run)?);
    }
    Ok(values)
}

fn in_child(run: &Run) -> Result<Vec<Value>, Error> {
    let failed = |detail: String| Error::Child(format!("{}: {detail}", run.name));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let output = Command::new(program).arg("one-run").arg(serde_json::to_string(run)?).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs one simulation in this process.
pub(crate) fn one_run(run: &str) -> Result<Vec<Value>, Error> {
    let run: Run = serde_json::from_str(run)?;
    let workload = workload(&run)?;
    let engine = PolicyEngine::new(Mode::Metered, Limits::default())?;
    let failed = |source| Error::Load { path: run.policy.clone(), source: Box::new(source) };
    let loaded =
        LoadedPolicy::from_file(&engine, &run.policy, &Grants::all(), &CodeCache::disabled()).map_err(failed)?;
    let policy = loaded.instantiate("{}", Services::default()).map_err(failed)?;
    let none = PredictorIdentity { name: "none".into(), digest: String::new(), engine: "none".into() };
    let labels = RunLabels { policy_config: serde_json::json!({}), predictor: none };
    let mut events = 0_usize;
    let mut count = |observed: &coretuner_controller::Observed<'_>| events += observed.batch.events.len();
    let mut hooks = Hooks { progress: &mut |_| {}, cycle: &mut count };
    let start = Instant::now();
    let result = simulate(&workload, &Settings::default(), policy, labels, &mut hooks)?;
    let wall_s = start.elapsed().as_secs_f64();
    eprintln!(
        "{} cycles, {} of {} jobs finished",
        result.cycles.cycles, result.metrics.jobs_finished, workload.info.jobs
    );
    Ok(vec![
        Value::new(format!("{}: wall time", run.name), wall_s, "s"),
        Value::new(format!("{}: events", run.name), events as f64 / wall_s, "1/s"),
        Value::new(format!("{}: peak memory", run.name), peak_memory_mib()?, "MiB"),
    ])
}

fn workload(run: &Run) -> Result<Workload, Error> {
    if let Some(trace) = &run.trace {
        let options = ReadOptions { format: Some(Format::Philly), ..ReadOptions::default() };
        return Ok(read(trace, &options)?);
    }
    Ok(generate(&GenerateOptions {
        jobs: run.jobs,
        servers: run.nodes,
        load_jobs_per_hour: jobs_per_hour_for(UTILISATION, run.nodes, Gangs::Published),
        ..GenerateOptions::default()
    })?)
}

/// The most memory that this process ever held.
fn peak_memory_mib() -> Result<f64, Error> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| Error::Child(error.to_string()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map(|kib| kib / 1024.0).ok_or_else(|| Error::Child("the system does not say the peak memory".into()))
}
