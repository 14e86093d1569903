//! Made-up results for tests of tables, comparisons and reports. They stand for no measurement.

use std::collections::BTreeMap;

use coretuner_core::port::PredictorIdentity;
use coretuner_simulator::result::{
    CycleStats, Distribution, FORMAT, JobOutcome, Metrics, PolicyInfo, RunResult, Sample, Segment, SettingsInfo,
    WorkloadInfo,
};

use crate::comparison::{Cell, Comparison};

const JOBS: u32 = 80;
const GPUS: u32 = 16;

/// One run of 80 jobs on two nodes; the policy's name and the seed change the speeds a little.
pub(crate) fn run(policy: &str, seed: u64) -> RunResult {
    let speed = 1.0 + policy.len() as f64 / 20.0 + (seed % 5) as f64 / 50.0;
    let (jobs, segments) = schedule(speed, seed);
    let end = jobs.iter().filter_map(|job| job.finish_s).fold(0.0, f64::max);
    let mut times: Vec<f64> = jobs.iter().filter_map(|job| job.jct_s).collect();
    times.sort_by(f64::total_cmp);
    let jct_s = distribution(&times);
    let metrics = Metrics {
        jobs_counted: u64::from(JOBS),
        jobs_finished: u64::from(JOBS),
        jct_s,
        queueing_delay_s: Distribution { mean: jct_s.mean / 3.0, ..jct_s },
        makespan_s: end,
        gpu_allocation: 0.91,
        gpu_utilisation: 0.7 + speed / 20.0,
        cpu_allocation: 0.88,
        cpu_utilisation: 0.71,
        memory_allocation: 0.4,
        gpus_stranded_by_cpu: 0.4,
        fairness_rho: Distribution { mean: 1.1, median: 1.0, p95: 1.9, p99: 2.4, max: 3.0 },
        fairness_unfair_share: 0.31,
        preemptions: 4,
        restarts: 4,
        resizes: 57,
    };
    RunResult {
        format: FORMAT,
        workload: workload(seed),
        policy: info(policy),
        predictor: predictor(),
        settings: settings(),
        metrics,
        cycles: cycles(),
        series: series(&segments, end),
        jobs,
        segments,
    }
}

/// A comparison at one load; the first policy is the baseline.
pub(crate) fn comparison(labels: &[&str], seeds: &[u64]) -> Comparison {
    let mut cells = Vec::new();
    for (policy, label) in labels.iter().enumerate() {
        for seed in seeds {
            cells.push(Cell { policy, load: 0, seed: *seed, result: run(label, *seed) });
        }
    }
    Comparison {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        baseline: 0,
        loads: vec![None],
        seeds: seeds.to_vec(),
        cells,
    }
}

/// FIFO on 16 GPUs of two nodes with changing shares of 48 cores.
fn schedule(speed: f64, seed: u64) -> (Vec<JobOutcome>, Vec<Segment>) {
    const MODELS: [&str; 4] = ["resnet18", "alexnet", "transformer", "<gnmt & co>"];
    let mut free_at = vec![0.0f64; GPUS as usize];
    let (mut jobs, mut segments) = (Vec::new(), Vec::new());
    for id in 0..JOBS {
        let submit_s = f64::from(id) * 140.0;
        let (slot, free) = free_at.iter().copied().enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        let start = free.max(submit_s);
        let length = (900.0 + f64::from((id * 7919 + seed as u32 * 31) % 97) * 60.0) / speed;
        let finish = start + length;
        free_at[slot] = finish;
        let (node, half) = (slot as u32 / 8, start + length / 2.0);
        for (from_s, to_s, cpu_cores) in [(start, half, 3.0), (half, finish, 1.5 + f64::from(id % 3) * 1.25)] {
            let relative_speed = if cpu_cores == 3.0 { 1.0 } else { 0.7 + cpu_cores / 6.0 };
            segments.push(Segment {
                job: id,
                node,
                from_s,
                to_s,
                gpus: 1.0,
                cpu_cores,
                memory_gib: 60.0,
                relative_speed,
            });
        }
        jobs.push(JobOutcome {
            id,
            name: format!("job-{id}"),
            model: MODELS[id as usize % 4].to_owned(),
            gpus: 1,
            submit_s,
            first_start_s: Some(start),
            finish_s: Some(finish),
            jct_s: Some(finish - submit_s),
            rho: Some((finish - submit_s) / length / 1.2),
            preemptions: 0,
            restarts: 0,
            resizes: 1,
            end: "finished".to_owned(),
            note: None,
        });
    }
    segments.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
    (jobs, segments)
}

fn series(segments: &[Segment], end: f64) -> Vec<Sample> {
    let steps = 200u32;
    let sample = |at: u32| {
        let t_s = end * f64::from(at) / f64::from(steps);
        let active: Vec<&Segment> = segments.iter().filter(|s| s.from_s <= t_s && s.to_s > t_s).collect();
        let cores: f64 = active.iter().map(|s| s.cpu_cores).sum();
        Sample {
            t_s,
            gpus_allocated: active.len() as f64,
            gpus_effective: active.iter().map(|s| s.relative_speed.min(1.0) * 0.85).sum(),
            cpu_cores_allocated: cores,
            cpu_cores_useful: cores * 0.8,
            jobs_running: active.len() as f64,
            jobs_waiting: 3.0,
        }
    };
    (0..steps).map(sample).collect()
}

fn distribution(ascending: &[f64]) -> Distribution {
    let at = |q| crate::stats::quantile(ascending, q).unwrap();
    Distribution { mean: crate::stats::mean(ascending), median: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1.0) }
}

fn workload(seed: u64) -> WorkloadInfo {
    WorkloadInfo {
        name: "made up for tests <b>".to_owned(),
        format: "generated".to_owned(),
        digest: "blake3:0123456789abcdef".to_owned(),
        assigned: vec!["model-by-mix: models drawn from the mix image 30 %, audio 30 %, text 40 %".to_owned()],
        seed,
        jobs: u64::from(JOBS),
        never_schedulable: 0,
        nodes: 2,
        gpus: u64::from(GPUS),
        cpu_cores: 48.0,
        load_jobs_per_hour: Some(25.7),
    }
}

fn info(policy: &str) -> PolicyInfo {
    PolicyInfo {
        name: policy.to_owned(),
        version: "0.1.0".to_owned(),
        digest: "blake3:fedcba9876543210".to_owned(),
        config: serde_json::json!({}),
    }
}

fn predictor() -> PredictorIdentity {
    PredictorIdentity { name: "none".into(), digest: "blake3:00".into(), engine: "test".into() }
}

fn settings() -> SettingsInfo {
    SettingsInfo {
        mode: "events".to_owned(),
        round_s: None,
        restart_s: 30.0,
        resize_s: 0.5,
        placement_penalty: 1.0,
        truth: "made up".to_owned(),
        window: None,
    }
}

fn cycles() -> CycleStats {
    CycleStats {
        cycles: 260,
        actions_accepted: 140,
        refused: BTreeMap::from([("no-capacity".to_owned(), 2)]),
        fuel: Distribution { mean: 81_000.0, median: 80_000.0, p95: 90_000.0, p99: 99_000.0, max: 120_000.0 },
        guest_memory_bytes_max: 1_310_720,
        ..CycleStats::default()
    }
}
