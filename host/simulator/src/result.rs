//! What a run says: the format of `--json` (version [`FORMAT`]) and the input of every table, plot and report.
//!
//! No wall time ever stands here: two runs of the same inputs give the same bytes.

use std::collections::BTreeMap;

use coretuner_core::port::PredictorIdentity;
use serde::{Deserialize, Serialize};

/// Version of this format; raised by every change of it.
pub const FORMAT: u32 = 1;

/// One simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunResult {
    pub format: u32,
    pub workload: WorkloadInfo,
    pub policy: PolicyInfo,
    pub predictor: PredictorIdentity,
    pub settings: SettingsInfo,
    /// Over all jobs, or over the window if one was asked for.
    pub metrics: Metrics,
    pub cycles: CycleStats,
    /// In job id order.
    pub jobs: Vec<JobOutcome>,
    /// Cluster state over time, at most [`SERIES_POINTS_MAX`] points.
    pub series: Vec<Sample>,
    /// What each job held when, in time order; left out above the caller's limit.
    pub segments: Vec<Segment>,
}

/// Most points of [`RunResult::series`]; longer runs are averaged into as many equal bins.
pub const SERIES_POINTS_MAX: usize = 2_000;

/// Where jobs and nodes come from, and what was made up for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadInfo {
    /// For a person: `synergy static_100job.csv`, `generated (Synergy workload definition)`, …
    pub name: String,
    /// Reader: `coretuner`, `synergy`, `gavel`, `openb`, `itp`, `philly`, `generated`.
    pub format: String,
    /// `blake3:` digest of the trace's bytes, or of the generator's parameters.
    pub digest: String,
    /// Each seeded, documented rule that filled in what the trace lacks (rule id and one line), in order.
    pub assigned: Vec<String>,
    pub seed: u64,
    pub jobs: u64,
    /// Jobs that fit no node set of the cluster even when it is empty; they are reported and left out.
    pub never_schedulable: u64,
    pub nodes: u64,
    pub gpus: u64,
    pub cpu_cores: f64,
    /// Arrival rate in jobs per hour, where the workload is generated or rescaled.
    pub load_jobs_per_hour: Option<f64>,
}

/// Which policy ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyInfo {
    pub name: String,
    pub version: String,
    pub digest: String,
    /// The configuration as given, canonical JSON.
    pub config: serde_json::Value,
}

/// How time and cost are modelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsInfo {
    /// `events` or `rounds`.
    pub mode: String,
    pub round_s: Option<f64>,
    pub restart_s: f64,
    pub resize_s: f64,
    /// Factor on speed when a job spans nodes and its kind has no network term of its own; 1 = none.
    pub placement_penalty: f64,
    /// Ground truth of throughput, for a person.
    pub truth: String,
    /// Jobs by index of submission counted in `metrics`, first and last; `None` = all.
    pub window: Option<(u64, u64)>,
}

/// Figures over the counted jobs. Times in seconds; ratios 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metrics {
    pub jobs_counted: u64,
    pub jobs_finished: u64,
    /// Job completion time: finish − submit.
    pub jct_s: Distribution,
    /// First start − submit.
    pub queueing_delay_s: Distribution,
    /// Last finish − first submit.
    pub makespan_s: f64,
    /// GPUs allocated / GPUs, over time.
    pub gpu_allocation: f64,
    /// GPU-time at full speed: allocated GPUs weighted by speed / best speed of that job on as many GPUs.
    pub gpu_utilisation: f64,
    pub cpu_allocation: f64,
    /// Cores in use / cores, counting of a grant only what its job can turn into speed.
    pub cpu_utilisation: f64,
    pub memory_allocation: f64,
    /// Mean idle GPUs that no waiting job's GPU demand could use only for lack of CPU or memory on their node.
    pub gpus_stranded_by_cpu: f64,
    /// Finish-time fairness rho = JCT / time the job would take alone on an equal share (Themis).
    pub fairness_rho: Distribution,
    /// Share of jobs with rho > 1.
    pub fairness_unfair_share: f64,
    pub preemptions: u64,
    pub restarts: u64,
    pub resizes: u64,
}

/// A distribution in figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    pub mean: f64,
    pub median: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

/// What the policy cost and how it behaved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleStats {
    pub cycles: u64,
    pub actions_accepted: u64,
    /// Refused actions by reason (kebab-case).
    pub refused: BTreeMap<String, u64>,
    /// Faults by kind; each was answered by the fallback in the same cycle.
    pub faults: BTreeMap<String, u64>,
    pub fallback_cycles: u64,
    /// Message of the first fault.
    pub first_fault: Option<String>,
    /// Fuel per decision; zeros where it was not metered.
    pub fuel: Distribution,
    pub guest_memory_bytes_max: u64,
}

/// One job's fate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobOutcome {
    pub id: u32,
    pub name: String,
    pub model: String,
    pub gpus: u32,
    pub submit_s: f64,
    pub first_start_s: Option<f64>,
    pub finish_s: Option<f64>,
    pub jct_s: Option<f64>,
    pub rho: Option<f64>,
    pub preemptions: u32,
    pub restarts: u32,
    pub resizes: u32,
    /// `finished`, `waiting`, `running` or `never-schedulable`.
    pub end: String,
    /// Why it waits or never ran, where known.
    pub note: Option<String>,
}

/// The cluster from `t_s` until the next sample, means within a bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    pub t_s: f64,
    pub gpus_allocated: f64,
    /// See [`Metrics::gpu_utilisation`], in GPUs.
    pub gpus_effective: f64,
    pub cpu_cores_allocated: f64,
    pub cpu_cores_useful: f64,
    pub jobs_running: f64,
    pub jobs_waiting: f64,
}

/// A job's holding on one node between two changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    pub job: u32,
    pub node: u32,
    pub from_s: f64,
    pub to_s: f64,
    pub gpus: f64,
    pub cpu_cores: f64,
    pub memory_gib: f64,
    /// Speed relative to the proportional share (1 = that), where the ground truth knows it.
    pub relative_speed: f64,
}
