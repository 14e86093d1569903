//! GPUs of several kinds.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::{JobId, JobSpec, NodeSpec};
use coretuner_policy_coretuner::CoreTuner;
use world::{SERVER, World};

/// A V100 and a T4 server. `res50` runs four times as fast on the V100, `gnmt` hardly faster.
fn world(by_gain: bool, more: &str) -> World<CoreTuner> {
    let spec = |(node, kind): (usize, &str)| NodeSpec {
        name: format!("node{node}"),
        gpu_kind: kind.to_owned(),
        cpu_milli: SERVER.1,
        memory_mib: SERVER.2,
        storage_mib_per_s: 500,
        devices: SERVER.0,
        device_memory_mib: 16_384,
        zone: None,
        rack: None,
        link_domain: None,
    };
    let config = format!(r#"{{"order": "fifo", "kinds_by_gain": {by_gain}{more}}}"#);
    let mut world = World::with_specs(["V100", "T4"].into_iter().enumerate().map(spec).collect(), &config);
    world.host.slower = [("gnmt", 0.9), ("res50", 0.25)].into_iter().collect();
    world
}

fn nodes(world: &World<CoreTuner>, jobs: &[JobId]) -> Vec<u32> {
    jobs.iter().flat_map(|job| world.held(*job)).map(|held| held.0).collect()
}

fn iterations(work: u64) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.work_iterations = work
}

#[test]
fn the_fast_kind_goes_to_the_job_that_gains_most_and_to_anybody_when_it_is_free() {
    let mut world = world(true, "");
    // Eight jobs that hardly gain come first in every order; eight that gain much come at the same time.
    let little: Vec<_> = (0..8).map(|_| world.submit("gnmt", 1)).collect();
    let much: Vec<_> = (0..8).map(|_| world.submit("res50", 1)).collect();
    world.cycle(0);
    assert_eq!((nodes(&world, &little), nodes(&world, &much)), (vec![1; 8], vec![0; 8]));
    much.into_iter().for_each(|job| world.complete(job));
    let late = world.submit("gnmt", 1);
    world.cycle(10);
    assert_eq!(nodes(&world, &[late]), [0], "nobody gains more");
}

#[test]
fn a_job_that_gains_more_changes_places_with_one_that_gains_less() {
    let check = |by_gain: bool, work: u64, expected: (u32, u32)| {
        let mut world = world(by_gain, r#", "restart_cost_s": 30"#);
        let little = world.submit_with(Some("gnmt"), 8, |spec| spec.work_iterations = 10_000_000);
        world.cycle(0);
        assert_eq!(nodes(&world, &[little]), [0], "the fast kind is free");
        let much = world.submit_with(Some("res50"), 8, iterations(work));
        world.cycle(10);
        // It runs on the slow kind; the next event finds it there.
        world.submit("alexnet", 8);
        world.cycle(10);
        world.cycle(10);
        assert_eq!((nodes(&world, &[little])[0], nodes(&world, &[much])[0]), expected, "{by_gain}, {work}");
        assert_eq!(world.reason(much).as_deref() == Some("kind"), expected.1 == 0);
    };
    check(true, 1_000_000, (1, 0));
    check(true, 10, (0, 1));
    check(false, 1_000_000, (0, 1));
}

#[test]
fn a_job_moves_up_when_nobody_waits_for_the_fast_kind() {
    let moves_up = |model: &'static str| {
        let mut world = world(true, "");
        let first = world.submit("res50", 8);
        world.cycle(0);
        let second = world.submit(model, 8);
        world.cycle(10);
        assert_eq!(nodes(&world, &[first, second]), [0, 1]);
        world.complete(first);
        world.cycle(10);
        world.cycle(100);
        nodes(&world, &[second])[0] == 0
    };
    assert!(moves_up("res50") && moves_up("gnmt"));
    assert!(!moves_up("deepspeech"), "it runs alike on both");
}
