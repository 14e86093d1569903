//! The policy host with real guests: every fault is typed, survived and does not leak.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, also in its helpers")]

mod capabilities;
mod faults;
mod floods;
mod life;

use coretuner_contract::cluster::{Delta, JobRows, NodeRows};
use coretuner_contract::plan::Plan;
use coretuner_core::port::{Policy, PolicyFault};
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, Services, WasmPolicy};
use coretuner_tests::paths;

const MODES: [Mode; 2] = [Mode::Production, Mode::Metered];

/// Limits small enough that a fault shows within milliseconds.
fn small() -> Limits {
    Limits {
        decide_deadline_ms: 60,
        configure_deadline_ms: 60,
        decide_fuel: 30_000_000,
        configure_fuel: 30_000_000,
        memory_bytes: 64 << 20,
        answer_bytes: 1 << 20,
        ..Limits::default()
    }
}

/// The same for faults that are not of time, on a slow machine.
fn patient() -> Limits {
    Limits { decide_deadline_ms: 20_000, decide_fuel: 1 << 40, ..small() }
}

/// The misbehaving guest on an engine of its own; its code is compiled once per mode and memory limit.
fn load(mode: Mode, limits: Limits) -> LoadedPolicy {
    let engine = PolicyEngine::new(mode, limits).unwrap();
    let cache = CodeCache::open(&paths::target().join("guests-code"));
    LoadedPolicy::from_file(&engine, &paths::guest("misbehaving"), &Grants::all(), &cache).unwrap()
}

fn start(loaded: &LoadedPolicy, config: &str) -> WasmPolicy {
    loaded.instantiate(config, Services::default()).unwrap()
}

/// One instance of the misbehaving guest.
fn misbehaving(mode: Mode, config: &str) -> WasmPolicy {
    start(&load(mode, small()), config)
}

/// A full image: one V100 node (id 0) and these jobs, of kind id % 2.
fn image(jobs: &[u32]) -> Delta {
    let nodes = NodeRows { id: vec![0], ..NodeRows::default() };
    let jobs = JobRows { id: jobs.to_vec(), kind: jobs.iter().map(|id| id % 2).collect(), ..JobRows::default() };
    Delta {
        revision: 1,
        strings: vec!["V100".into()],
        nodes: Some(one_row(nodes)),
        jobs: Some(full_rows(jobs)),
        ..Delta::default()
    }
}

/// Nothing changed since the image.
fn unchanged(revision: u64) -> Delta {
    Delta { base_revision: revision, revision: revision + 1, ..Delta::default() }
}

fn one_row(rows: NodeRows) -> NodeRows {
    let zero = || vec![0];
    NodeRows {
        name: zero(),
        gpu_kind_name: zero(),
        cpu_milli: zero(),
        memory_mib: zero(),
        storage_mib_per_s: zero(),
        device_count: zero(),
        device_memory_mib: zero(),
        zone_name: zero(),
        rack_name: zero(),
        link_domain_name: zero(),
        ..rows
    }
}

fn full_rows(rows: JobRows) -> JobRows {
    let count = rows.id.len();
    JobRows {
        name: vec![0; count],
        user_name: vec![0; count],
        queue: vec![0; count],
        eligibility: vec![0; count],
        priority: vec![0; count],
        tier: vec![0; count],
        preemptible: vec![0; count],
        submit_ns: vec![0; count],
        group_start: vec![0; count],
        group_count: vec![0; count],
        work_iterations: vec![0; count],
        estimated_duration_ns: vec![0; count],
        deadline_ns: vec![0; count],
        ..rows
    }
}

/// Cycles with an image first; the answers up to the first fault.
fn cycles(policy: &mut WasmPolicy, count: u64) -> Result<Vec<Plan>, PolicyFault> {
    let deltas = std::iter::once(image(&[1, 2, 3])).chain((1..).map(unchanged));
    deltas.zip(0..count).map(|(delta, _)| policy.decide(&delta).map(|answer| answer.plan)).collect()
}
