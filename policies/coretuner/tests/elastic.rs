//! Jobs with more than one allowed number of workers.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::{JobId, JobSpec};
use coretuner_policy_coretuner::CoreTuner;
use world::World;

fn config(more: &str) -> String {
    format!(r#"{{"order": "fifo", "restart_cost_s": 30{more}}}"#)
}

fn world(servers: u32, scaling: f64, more: &str) -> World<CoreTuner> {
    let mut world: World<CoreTuner> = World::new(servers, &config(more));
    world.host.scaling = Some(scaling);
    world
}

fn up_to(most: u32) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.groups[0].workers_max = most
}

fn workers(world: &World<CoreTuner>, job: JobId) -> u32 {
    world.state.job(job).unwrap().allocations.iter().map(|row| row.workers).sum()
}

#[test]
fn a_job_starts_with_the_gpus_that_nobody_else_wants() {
    let check = |more: &str, most: u32, scaling: f64, expected: u32| {
        let mut world = world(1, scaling, more);
        let job = world.submit_with(Some("gnmt"), 1, up_to(most));
        world.cycle(0);
        assert_eq!(workers(&world, job), expected, "{more} to {most} at {scaling}");
    };
    check("", 4, 0.9, 4);
    check("", 16, 0.9, 8);
    check("", 4, 0.0, 1);
    check(r#", "elastic": false"#, 4, 0.9, 1);
}

#[test]
fn with_a_queue_everybody_starts_with_the_least() {
    let mut world = world(1, 0.9, "");
    let elastic = world.submit_with(Some("gnmt"), 2, up_to(8));
    let others: Vec<_> = (0..8).map(|_| world.submit("gnmt", 1)).collect();
    world.cycle(0);
    assert_eq!(workers(&world, elastic), 2);
    assert_eq!(others.iter().filter(|job| world.is_running(**job)).count(), 6);
}

#[test]
fn freed_gpus_go_to_the_job_that_gains_most_from_each() {
    let mut world = world(1, 0.8, "");
    let small = world.submit_with(Some("gnmt"), 1, up_to(3));
    let large = world.submit_with(Some("gnmt"), 4, up_to(6));
    let rigid = world.submit("gnmt", 3);
    world.cycle(0);
    assert_eq!((workers(&world, small), workers(&world, large)), (1, 4));
    world.complete(rigid);
    world.cycle(700);
    // From 4 to 6 is a smaller stretch than from 1 to 3.
    assert_eq!((workers(&world, small), workers(&world, large)), (2, 6));
    assert_eq!(world.reason(small).as_deref(), Some("grow"));
}

#[test]
fn a_job_near_its_end_is_not_restarted_to_grow() {
    let mut world = world(1, 0.9, "");
    let elastic = world.submit_with(Some("gnmt"), 4, |spec| {
        spec.groups[0].workers_max = 8;
        spec.work_iterations = 1000;
    });
    let rigid = world.submit("gnmt", 4);
    world.cycle(0);
    world.complete(rigid);
    world.cycle(1);
    assert_eq!(workers(&world, elastic), 4);
}

#[test]
fn a_waiting_job_takes_gpus_back_where_the_sum_of_values_rises() {
    let check = |scaling: f64, starts: bool, left: u32| {
        let mut world = world(1, scaling, "");
        let elastic = world.submit_with(Some("gnmt"), 1, up_to(8));
        world.cycle(0);
        assert_eq!(workers(&world, elastic), 8);
        world.state.advance(world.state.now_ns() + 700 * world::SECOND);
        let waits = world.submit("gnmt", 2);
        world.cycle(1);
        assert_eq!((world.is_running(waits), workers(&world, elastic)), (starts, left), "at {scaling}");
        let reason = world.reason(elastic);
        assert_eq!(reason.as_deref() == Some("shrink"), starts);
    };
    // Two GPUs less cost a job of 8 far less than two full GPUs.
    check(0.5, true, 6);
    // In proportion: the job that waits came later, and a restart would be all that changes.
    check(1.0, false, 8);
}

#[test]
fn a_waiting_job_that_goes_first_takes_back_what_is_above_the_least() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "srsf"}"#);
    world.host.scaling = Some(1.0);
    let elastic = world.submit_with(Some("gnmt"), 2, up_to(8));
    world.cycle(0);
    assert_eq!(workers(&world, elastic), 8);
    let short = world.submit_with(Some("gnmt"), 2, |spec| spec.work_iterations = 5000);
    world.cycle(700);
    assert_eq!((world.is_running(short), workers(&world, elastic)), (true, 6));
    let large = world.submit_with(Some("gnmt"), 8, |spec| spec.work_iterations = 5000);
    world.cycle(10);
    assert!(!world.is_running(large) && workers(&world, elastic) == 6, "never below its least, and not so soon again");
}

#[test]
fn a_job_is_left_alone_for_a_while_after_a_change() {
    let mut world = world(1, 0.5, r#", "elastic_gap_s": 600"#);
    let elastic = world.submit_with(Some("gnmt"), 1, up_to(8));
    world.cycle(0);
    let first = world.submit("gnmt", 2);
    world.cycle(10);
    assert!(world.is_running(first));
    world.complete(first);
    let (plan, _) = world.cycle(10);
    assert_eq!(workers(&world, elastic), 6);
    assert_eq!(plan.wake_at_ns, 610 * world::SECOND);
    world.cycle(590);
    assert_eq!(workers(&world, elastic), 8);
}

#[test]
fn at_most_so_many_jobs_change_per_plan() {
    let changes = |most: u32| {
        let mut world = world(4, 0.9, &format!(r#", "elastic_moves_max": {most}, "swaps_max": 0"#));
        let jobs: Vec<_> = (0..4).map(|_| world.submit_with(Some("gnmt"), 4, up_to(8))).collect();
        let rigid: Vec<_> = (0..4).map(|_| world.submit("gnmt", 4)).collect();
        world.cycle(0);
        rigid.into_iter().for_each(|job| world.complete(job));
        world.cycle(10);
        jobs.into_iter().filter(|job| workers(&world, *job) > 4).count()
    };
    assert_eq!((changes(1), changes(3)), (1, 3));
}

#[test]
fn growing_weighs_the_cpu_that_neighbours_lose() {
    let grown = |neighbour: &'static str| {
        let mut world = world(1, 0.3, "");
        let elastic = world.submit_with(Some("res50"), 1, up_to(8));
        for _ in 0..2 {
            world.submit(neighbour, 1);
        }
        world.cycle(0);
        workers(&world, elastic)
    };
    assert!(grown("gnmt") > grown("alexnet"), "{} and {}", grown("gnmt"), grown("alexnet"));
}
