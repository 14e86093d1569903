//! Nodes kept for gangs that have waited too long.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::{JobId, NodeState};
use coretuner_policy_coretuner::CoreTuner;
use world::World;

/// A job that needs so long at its share.
fn submit(world: &mut World<CoreTuner>, gpus: u32, share_s: f64) -> JobId {
    let iterations = (world.host.speed("deepspeech", 1, 3000, 64_000) * share_s) as u64;
    world.submit_with(Some("deepspeech"), gpus, |spec| spec.work_iterations = iterations)
}

/// Ends all jobs that have done their work.
fn finish(world: &mut World<CoreTuner>) {
    let now_ns = world.state.now_ns();
    let over = |job: &JobId| {
        let view = world.state.job(*job).unwrap();
        view.iterations_at(now_ns) + 1.0 >= view.spec.work_iterations as f64
    };
    let over: Vec<JobId> = world.state.running().filter(over).collect();
    over.into_iter().for_each(|job| world.complete(job));
}

/// A stream of jobs on a GPU each that fills all nodes; the minute in which a gang that comes after an hour starts, and its
/// last reason.
fn stream(config: &str, nodes: u32, gang_gpus: u32) -> (Option<u32>, World<CoreTuner>, JobId) {
    let mut world: World<CoreTuner> = World::new(nodes, config);
    let mut gang = None;
    for minute in 0..1440 {
        finish(&mut world);
        // So many at a time, each for four hours: more than fit.
        for _ in 0..(nodes * 8).div_ceil(200) {
            submit(&mut world, 1, 4.0 * 3600.0 + f64::from(minute % 7) * 600.0);
        }
        if minute == 60 {
            for _ in 0..nodes * 8 {
                submit(&mut world, 1, 4.0 * 3600.0);
            }
            gang = Some(submit(&mut world, gang_gpus, 3600.0));
        }
        world.cycle(60);
        if gang.is_some_and(|gang| world.is_running(gang)) {
            return (Some(minute), world, gang.unwrap());
        }
    }
    (None, world, gang.unwrap())
}

#[test]
fn a_gang_is_not_starved_for_ever_by_small_jobs() {
    for (order, gpus) in [("fifo", 8), ("jsrsf", 8), ("fifo", 16)] {
        let without = format!(r#"{{"order": "{order}"}}"#);
        // A shorter order may also put the gang first.
        if order == "fifo" {
            assert_eq!(stream(&without, 2, gpus).0, None, "{order}");
        }
        let with = format!(r#"{{"order": "{order}", "reserve_after_s": 7200}}"#);
        let (minute, world, gang) = stream(&with, 2, gpus);
        assert!(minute.is_some_and(|minute| minute <= 60 + 120 + 320), "{order}: {minute:?}");
        if order == "fifo" {
            assert_eq!(world.reason(gang).as_deref(), Some("reserved"));
        }
    }
}

/// Two nodes full of long jobs, but for one that ends after an hour on the first; a gang has waited for ten minutes.
fn kept() -> (World<CoreTuner>, JobId) {
    let mut world: World<CoreTuner> = World::new(2, r#"{"order": "fifo", "reserve_after_s": 600}"#);
    world.set_node(1, NodeState::Cordoned);
    submit(&mut world, 4, 7200.0);
    world.cycle(0);
    world.set_node(0, NodeState::Cordoned);
    world.set_node(1, NodeState::Schedulable);
    submit(&mut world, 5, 72_000.0);
    world.cycle(1);
    world.set_node(0, NodeState::Schedulable);
    let gang = submit(&mut world, 8, 3600.0);
    world.cycle(1);
    world.cycle(600);
    world.cycle(1);
    assert_eq!(world.reason(gang).as_deref(), Some("wait-reserved"));
    (world, gang)
}

#[test]
fn only_what_ends_before_may_use_kept_gpus_meanwhile() {
    let (mut world, gang) = kept();
    let short = submit(&mut world, 4, 3600.0);
    let long = submit(&mut world, 4, 72_000.0);
    let small = submit(&mut world, 1, 72_000.0);
    world.cycle(10);
    assert_eq!(world.held(short).first().map(|held| held.0), Some(0));
    assert!(!world.is_running(long), "four GPUs are nowhere else");
    assert_eq!(world.held(small).first().map(|held| held.0), Some(1), "other nodes are free for all");
    assert!(!world.is_running(gang));
    for _ in 0..130 {
        world.cycle(60);
        finish(&mut world);
    }
    assert_eq!(world.held(gang).first().map(|held| held.0), Some(0));
}

#[test]
fn a_kept_node_that_is_lost_is_replaced_by_another() {
    let (mut world, gang) = kept();
    world.set_node(0, NodeState::Draining);
    for _ in 0..1300 {
        world.cycle(60);
        finish(&mut world);
        if world.is_running(gang) {
            break;
        }
    }
    assert_eq!(world.held(gang).first().map(|held| held.0), Some(1));
}

#[test]
fn without_starving_gangs_every_plan_is_the_same() {
    let history = |config: &str| {
        let mut world: World<CoreTuner> = World::new(3, config);
        let mut plans = Vec::new();
        for step in 0..200_u32 {
            finish(&mut world);
            submit(&mut world, [1, 2, 1, 4, 8][step as usize % 5], 1200.0);
            plans.push(world.cycle(300).0.actions);
        }
        plans
    };
    assert_eq!(history("{}"), history(r#"{"reserve_after_s": 86400}"#));
}
