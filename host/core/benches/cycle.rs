//! Cost of the host's part of a cycle: one completion, one arrival, the delta, one start judged.

#![allow(clippy::unwrap_used, reason = "a bench fails like a test")]

use coretuner_core::contract::NONE;
use coretuner_core::contract::cluster::Trigger;
use coretuner_core::contract::plan::{Plan, Verb};
use coretuner_core::event::{Event, RemovalReason};
use coretuner_core::model::{
    ClassId, Eligibility, GroupSpec, JobId, JobSpec, NodeId, NodeSpec, QueueId, QueueSpec, ResizeRights,
};
use coretuner_core::state::State;
use coretuner_core::view::Cursor;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn node(id: u32) -> Event {
    let spec = NodeSpec {
        name: format!("node-{id}"),
        gpu_kind: "V100".to_owned(),
        cpu_milli: 24_000,
        memory_mib: 512_000,
        storage_mib_per_s: 500,
        devices: 8,
        device_memory_mib: 16_384,
        zone: None,
        rack: None,
        link_domain: None,
    };
    Event::NodeSet { id: NodeId(id), spec }
}

fn job(id: u32) -> Event {
    let group = GroupSpec {
        role: "worker".to_owned(),
        workers_min: 1,
        workers_max: 1,
        gpu_milli: 1000,
        cpu_milli: 3000,
        memory_mib: 64_000,
        cpu_milli_min: 1000,
        cpu_milli_max: 24_000,
        memory_mib_min: 0,
        memory_mib_max: 512_000,
        resize_rights: ResizeRights::ALL,
    };
    let spec = JobSpec {
        name: format!("job-{id}"),
        user: "user".to_owned(),
        queue: QueueId(0),
        eligibility: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: 0,
        groups: vec![group],
        work_iterations: 0,
        estimated_duration_ns: 0,
        deadline_ns: 0,
        kind: None,
        labels: Vec::new(),
    };
    Event::JobSubmitted { id: JobId(id), spec }
}

fn start(plan: &mut Plan, job: u32, node: u32) {
    plan.actions.verb.push(Verb::Start);
    plan.actions.job.push(job);
    plan.actions.bundle.push(job);
    plan.actions.placement_start.push(plan.placements.group.len() as u32);
    plan.actions.placement_count.push(1);
    plan.actions.batch_per_gpu.push(0);
    plan.actions.reason.push(NONE);
    plan.placements.group.push(0);
    plan.placements.node.push(node);
    plan.placements.workers.push(1);
    plan.placements.cpu_milli.push(3000);
    plan.placements.memory_mib.push(64_000);
    plan.placements.gpu_milli.push(1000);
    plan.placements.device_mask.push(0);
}

/// A full cluster: 8 one-GPU jobs on each node.
fn full(nodes: u32) -> State {
    let queue = QueueSpec {
        name: "default".to_owned(),
        parent: None,
        weight_milli: 1000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli: None,
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: None,
    };
    let mut state = State::new();
    let mut events = vec![
        Event::QueueSet { id: QueueId(0), spec: queue },
        Event::ClassSet { id: ClassId(0), nodes: Eligibility::All },
    ];
    events.extend((0..nodes).map(node));
    events.extend((0..nodes * 8).map(job));
    for event in &events {
        state.apply(0, event).unwrap();
    }
    for chunk in (0..nodes * 8).collect::<Vec<_>>().chunks(50_000) {
        let mut plan = Plan::default();
        chunk.iter().for_each(|job| start(&mut plan, *job, job / 8));
        assert_eq!(state.judge(0, &plan).verdicts, []);
    }
    state
}

fn cycle(c: &mut Criterion) {
    let mut group = c.benchmark_group("cycle");
    group.sample_size(20).measurement_time(std::time::Duration::from_secs(2));
    for nodes in [1_000_u32, 10_000] {
        let mut state = full(nodes);
        let mut cursor = Cursor::new();
        cursor.delta(&state, Trigger::empty(), &[]);
        let mut next = nodes * 8;
        group.bench_function(BenchmarkId::new("apply+delta+judge", nodes), |b| {
            b.iter(|| {
                let leaves = next - nodes * 8;
                let gone = Event::JobRemoved { id: JobId(leaves), reason: RemovalReason::Completed };
                state.apply(0, &gone).unwrap();
                state.apply(0, &job(next)).unwrap();
                let delta = cursor.delta(&state, Trigger::ARRIVAL | Trigger::COMPLETION, &[]);
                let mut plan = Plan { revision: delta.revision, ..Plan::default() };
                start(&mut plan, next, (leaves / 8) % nodes);
                assert_eq!(state.judge(0, &plan).accepted, 1);
                next += 1;
            });
        });
        group.bench_function(BenchmarkId::new("image", nodes), |b| {
            b.iter(|| Cursor::new().delta(&state, Trigger::empty(), &[]));
        });
    }
    group.finish();
}

criterion_group!(benches, cycle);
criterion_main!(benches);
