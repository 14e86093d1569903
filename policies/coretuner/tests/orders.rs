//! Who goes first, and what it takes to lose one's place.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::event::Command;
use coretuner_core::model::JobId;
use coretuner_policy_coretuner::CoreTuner;
use world::World;

const HOUR_S: u64 = 3600;

/// Iterations for so many seconds at the proportional share.
fn work(world: &World<CoreTuner>, model: &'static str, share_s: f64) -> u64 {
    (world.host.speed(model, 1, 3000, 64_000) * share_s) as u64
}

fn submit(world: &mut World<CoreTuner>, model: &'static str, gpus: u32, share_s: f64) -> JobId {
    let iterations = work(world, model, share_s);
    world.submit_with(Some(model), gpus, |spec| spec.work_iterations = iterations)
}

/// A node full of hungry jobs that need an hour at their share, and a waiting one that would take less only with more CPU
/// than anybody gets.
fn crowded(config: &str) -> (World<CoreTuner>, JobId) {
    let mut world: World<CoreTuner> = World::new(1, config);
    for _ in 0..8 {
        submit(&mut world, "res18", 1, 3600.0);
    }
    world.cycle(0);
    let late = submit(&mut world, "res18", 1, 4500.0);
    world.cycle(300);
    (world, late)
}

#[test]
fn jsrsf_ranks_by_the_speed_that_the_price_leaves() {
    let check = |order: &str, preempts: bool| {
        let (world, late) = crowded(&format!(r#"{{"order": "{order}", "restart_cost_s": 0}}"#));
        assert_eq!(world.is_running(late), preempts, "{order}");
    };
    check("srtf", true);
    check("srsf", true);
    check("jsrsf", false);
}

#[test]
fn jsrsf_counts_gpus() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "jsrsf"}"#);
    let blocker = submit(&mut world, "deepspeech", 8, 1000.0);
    world.cycle(0);
    let gang = submit(&mut world, "deepspeech", 8, 600.0);
    let singles: Vec<_> = (0..8).map(|_| submit(&mut world, "deepspeech", 1, 3000.0)).collect();
    world.cycle(10);
    world.complete(blocker);
    world.cycle(10);
    assert!(singles.iter().all(|job| world.is_running(*job)) && !world.is_running(gang));
}

/// A running job with `running_s` left and a waiting one with `waiting_s`, an hour after the start.
fn meets(config: &str, running_s: f64, waiting_s: f64) -> bool {
    let mut world: World<CoreTuner> = World::new(1, config);
    let running = submit(&mut world, "deepspeech", 8, running_s + 3600.0);
    world.cycle(0);
    let waiting = submit(&mut world, "deepspeech", 8, waiting_s);
    world.cycle(HOUR_S);
    assert_ne!(world.is_running(running), world.is_running(waiting));
    world.is_running(waiting)
}

#[test]
fn a_place_is_lost_only_for_more_than_a_restart_costs() {
    for order in ["srtf", "srsf", "jsrsf"] {
        let check = |costs: &str, running_s: f64, waiting_s: f64, expected: bool| {
            let config = format!(r#"{{"order": "{order}", {costs}}}"#);
            assert_eq!(meets(&config, running_s, waiting_s), expected, "{config}: {running_s} against {waiting_s}");
        };
        let free = r#""restart_cost_s": 0"#;
        check(free, 1000.0, 990.0, true);
        check(free, 1000.0, 1010.0, false);
        let costly = r#""restart_cost_s": 60, "preempt_margin": 0"#;
        check(costly, 1000.0, 950.0, false);
        check(costly, 1000.0, 930.0, true);
        let unsure = r#""restart_cost_s": 60, "preempt_margin": 0.25"#;
        check(unsure, 1000.0, 750.0, false);
        check(unsure, 1000.0, 730.0, true);
    }
}

#[test]
fn a_job_that_was_only_just_started_keeps_its_place_for_a_tick() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "srtf"}"#);
    let blocker = submit(&mut world, "deepspeech", 8, 1000.0);
    world.cycle(0);
    let long = submit(&mut world, "deepspeech", 8, 100_000.0);
    world.cycle(200);
    world.complete(blocker);
    world.cycle(10);
    assert!(world.is_running(long));
    let short = submit(&mut world, "deepspeech", 8, 100.0);
    world.cycle(90);
    assert!(world.is_running(long), "started 90 s ago");
    world.cycle(300);
    assert!(world.is_running(short));
    assert_eq!(world.reason(long).as_deref(), Some("order"));
}

/// Stops in six hours of two long jobs of kinds whose predictions are wrong by a factor, on GPUs for one.
fn stops(order: &str, restart_cost_s: u32, factor: f64) -> usize {
    let mut world: World<CoreTuner> =
        World::new(1, &format!(r#"{{"order": "{order}", "restart_cost_s": {restart_cost_s}}}"#));
    submit(&mut world, "res50", 8, 36_000.0);
    submit(&mut world, "deepspeech", 8, 36_300.0);
    world.truth = factor;
    let cycles = (0..72).map(|_| world.cycle(300).1);
    cycles.flat_map(|judgement| judgement.commands).filter(|command| matches!(command, Command::Preempt { .. })).count()
}

#[test]
fn wrong_predictions_do_not_make_jobs_take_turns() {
    assert!(stops("srsf", 0, 0.5) > 10, "free moves follow every change of the order");
    assert_eq!(stops("jsrsf", 30, 0.5), 0);
    assert_eq!(stops("jsrsf", 0, 0.5), 0);
}

#[test]
fn age_brings_a_long_job_forward() {
    let check = |ageing: &str, runs: bool| {
        let mut world: World<CoreTuner> = World::new(1, &format!(r#"{{"order": "jsrsf"{ageing}}}"#));
        submit(&mut world, "deepspeech", 8, 7.0 * 3600.0);
        world.cycle(0);
        let long = submit(&mut world, "deepspeech", 8, 10.0 * 3600.0);
        // Every hour a shorter job than the long one comes, and one ends.
        for _ in 0..30 {
            let next = submit(&mut world, "deepspeech", 8, 3600.0);
            world.cycle(HOUR_S);
            let over = world.state.running().find(|job| *job != long).unwrap_or(next);
            if world.is_running(long) {
                break;
            }
            world.complete(over);
            world.cycle(1);
        }
        assert_eq!(world.is_running(long), runs, "{ageing}");
        if runs {
            assert_eq!(world.reason(long).as_deref(), Some("aged"));
        }
    };
    check("", false);
    check(r#", "ageing_h": 2"#, true);
}
