//! Gangs over several nodes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::{JobId, JobSpec, NodeSpec};
use coretuner_policy_coretuner::CoreTuner;
use world::{SERVER, World};

fn config(least: f64) -> String {
    format!(r#"{{"order": "fifo", "room": false, "restart_cost_s": 30, "span_speed_min": {least}}}"#)
}

/// Two servers with 4 GPUs free on each, and the jobs that hold the others.
fn half_full(least: f64, spanning: f64) -> (World<CoreTuner>, Vec<JobId>) {
    let mut world: World<CoreTuner> = World::new(2, &config(least));
    world.host.spanning = Some(spanning);
    let jobs = (0..2).map(|_| world.submit_with(Some("gnmt"), 4, |spec| spec.preemptible = false)).collect();
    world.cycle(0);
    (world, jobs)
}

fn iterations(work: u64) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.work_iterations = work
}

#[test]
fn a_split_that_would_run_too_slowly_is_refused() {
    let check = |least: f64, runs: bool, reason: Option<&str>| {
        let (mut world, _) = half_full(least, 0.5);
        let gang = world.submit_with(Some("gnmt"), 8, iterations(1000));
        world.cycle(10);
        assert_eq!((world.is_running(gang), world.reason(gang).as_deref()), (runs, reason), "at {least}");
    };
    check(0.0, true, Some("start"));
    check(0.4, true, Some("start"));
    check(0.6, false, Some("wait-span"));
}

#[test]
fn a_gang_waits_for_a_whole_node_no_longer_than_a_split_costs() {
    let (mut world, jobs) = half_full(0.4, 0.8);
    // Holders end in 300,000 × 0.12 s; a long gang would lose a quarter of its run by a split.
    let soon = world.submit_with(Some("gnmt"), 8, iterations(2_000_000));
    world.cycle(10);
    assert_eq!(world.reason(soon).as_deref(), Some("start"), "the holders run on for longer than that");
    world.complete(soon);
    for job in jobs {
        world.complete(job);
    }
    for _ in 0..2 {
        world.submit_with(Some("gnmt"), 4, |spec| (spec.preemptible, spec.work_iterations) = (false, 10_000));
    }
    world.cycle(10);
    let gang = world.submit_with(Some("gnmt"), 8, iterations(100_000));
    let (plan, _) = world.cycle(10);
    assert_eq!(world.reason(gang).as_deref(), Some("wait-whole"));
    // A quarter of 100,000 × 0.12 s, less the 10 s since it came.
    let waits_s = (plan.wake_at_ns - world.state.now_ns()) as f64 / world::SECOND as f64;
    assert!((waits_s - 2990.0).abs() < 1.0, "{waits_s}");
    world.cycle(2000);
    assert!(!world.is_running(gang));
    world.cycle(1001);
    assert!(world.is_running(gang), "whole nodes did not come: it does not wait for ever");
}

#[test]
fn a_split_gang_is_brought_together_where_that_pays() {
    let check = |work: u64, joins: bool| {
        let (mut world, jobs) = half_full(0.4, 0.8);
        let gang = world.submit_with(Some("gnmt"), 8, iterations(work));
        world.cycle(10);
        assert_eq!(world.held(gang).len(), 2);
        world.complete(jobs[0]);
        world.cycle(10);
        assert_eq!((world.held(gang).len() == 1, world.reason(gang).as_deref() == Some("join")), (joins, joins));
    };
    check(1_000_000, true);
    // Its end is nearer than the restart is worth.
    check(600, false);
}

#[test]
fn a_gang_larger_than_a_node_takes_whole_nodes_and_leaves_no_splinters() {
    let mut world: World<CoreTuner> = World::new(4, &config(0.5));
    let small = world.submit("gnmt", 4);
    world.cycle(0);
    let gang = world.submit("res18", 12);
    world.cycle(10);
    let node = world.held(small)[0].0;
    assert_eq!(world.held(gang).iter().map(|held| held.1).collect::<Vec<_>>(), [12, 24]);
    assert!(world.held(gang).iter().any(|held| held.0 == node), "the rest fits tightly beside the small gang");
    let second = world.submit("res18", 16);
    world.cycle(10);
    assert_eq!(world.held(second).len(), 2);
}

#[test]
fn of_equally_many_nodes_those_of_one_rack_are_taken() {
    let rack = |node: usize| ["a", "b", "c", "b"][node].to_owned();
    let spec = |node| NodeSpec {
        name: format!("node{node}"),
        gpu_kind: "V100".to_owned(),
        cpu_milli: SERVER.1,
        memory_mib: SERVER.2,
        storage_mib_per_s: 500,
        devices: SERVER.0,
        device_memory_mib: 16_384,
        zone: None,
        rack: Some(rack(node)),
        link_domain: None,
    };
    let nodes = |least: f64| {
        let mut world: World<CoreTuner> = World::with_specs((0..4).map(spec).collect(), &config(least));
        let gang = world.submit("gnmt", 16);
        world.cycle(0);
        world.held(gang).iter().map(|held| held.0).collect::<Vec<_>>()
    };
    assert_eq!(nodes(0.5), [1, 3]);
    assert_eq!(nodes(0.0), [0, 1]);
}
