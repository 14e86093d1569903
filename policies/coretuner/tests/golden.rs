//! The golden cases of the study that this policy was chosen by, on whole clusters.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::event::Command;
use coretuner_policy_coretuner::CoreTuner;
use world::World;

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found}, not {expected}");
}

const FREE_MOVES: &str = r#"{"memory_levels": [0.3333333333333333, 1, 2, 3, 4], "order": "fifo", "restart_cost_s": 0}"#;
const STAY: &str = r#"{"memory_levels": [0.3333333333333333, 1, 2, 3, 4], "order": "fifo", "swaps_max": 0}"#;

#[test]
fn c1_two_hungry_gangs_each_share_a_node_with_a_language_gang() {
    for config in [FREE_MOVES, STAY, "{}"] {
        let mut world: World<CoreTuner> = World::new(2, config);
        let jobs =
            [("res18", 4), ("m5", 4), ("transformer", 4), ("gnmt", 4)].map(|(name, gpus)| world.submit(name, gpus));
        world.cycle(0);
        close(world.value(), 19.72);
        assert_eq!((world.held(jobs[0])[0].1, world.held(jobs[1])[0].1), (20, 20));
        close(world.relative(jobs[0]), 6.12);
        close(world.relative(jobs[1]), 5.60);
        let (plan, _) = world.cycle(10);
        assert!(plan.actions.job.is_empty(), "nothing changed, so nothing is said: {plan:?}");
    }
}

#[test]
fn c2_hungry_jobs_are_spread_over_the_nodes() {
    let mut world: World<CoreTuner> = World::new(2, STAY);
    let mut jobs = vec![world.submit("alexnet", 1), world.submit("alexnet", 1)];
    jobs.extend((0..14).map(|_| world.submit("gnmt", 1)));
    world.cycle(0);
    close(world.value(), 19.88);
    assert_eq!(world.held(jobs[0])[0].1, 12);
    assert_ne!(world.held(jobs[0])[0].0, world.held(jobs[1])[0].0);
}

#[test]
fn c3_one_swap_reaches_the_optimum() {
    let mut world: World<CoreTuner> = World::new(2, FREE_MOVES);
    let first = [("alexnet", 1), ("alexnet", 1), ("res18", 4), ("res50", 2)];
    let second = [("gnmt", 1), ("gnmt", 1), ("gnmt", 4), ("gnmt", 2)];
    // Fill node 0 while node 1 is closed.
    world.set_node(1, coretuner_core::model::NodeState::Cordoned);
    let first = first.map(|(name, gpus)| world.submit(name, gpus));
    world.cycle(0);
    close(world.value(), 8.0);
    world.set_node(1, coretuner_core::model::NodeState::Schedulable);
    let second = second.map(|(name, gpus)| world.submit(name, gpus));
    let (_, judgement) = world.cycle(10);
    assert!(second.iter().chain(&first).all(|job| world.is_running(*job)));
    world.cycle(10);
    close(world.value(), 19.92);
    let moves = judgement.commands.iter().filter(|command| matches!(command, Command::Rescale { .. })).count();
    assert!(moves <= 4, "{moves} moves");
}

#[test]
fn c4_an_end_gives_its_cores_in_place_to_those_that_stay() {
    let mut world: World<CoreTuner> = World::new(1, STAY);
    let names = ["alexnet", "shufflenet", "res18", "deepspeech", "deepspeech", "gnmt", "gnmt", "gnmt"];
    let jobs = names.map(|name| world.submit(name, 1));
    world.cycle(0);
    close(world.value(), 9.59);
    world.complete(jobs[0]);
    let (_, judgement) = world.cycle(10);
    close(world.value(), 9.15);
    assert_eq!((world.held(jobs[1])[0].1, world.held(jobs[2])[0].1), (6, 9));
    let resized: Vec<_> = judgement.commands.iter().map(Command::job).collect();
    assert_eq!(resized, [jobs[1], jobs[2]]);
    assert!(judgement.commands.iter().all(|command| matches!(command, Command::Resize { .. })));
}

#[test]
fn c5_a_single_moves_to_make_room_for_a_gang() {
    let mut world: World<CoreTuner> = World::new(2, STAY);
    let jobs = [("gnmt", 4), ("gnmt", 1), ("gnmt", 4), ("gnmt", 1)];
    let mut all = Vec::new();
    for (at, (name, gpus)) in jobs.into_iter().enumerate() {
        let closed = 1 - at as u32 / 2;
        world.set_node(closed, coretuner_core::model::NodeState::Cordoned);
        world.set_node(1 - closed, coretuner_core::model::NodeState::Schedulable);
        all.push(world.submit(name, gpus));
        world.cycle(10);
    }
    world.set_node(0, coretuner_core::model::NodeState::Schedulable);
    let gang = world.submit("res18", 4);
    let (_, judgement) = world.cycle(10);
    assert_eq!(world.held(gang), [(0, 20, 12)]);
    assert_eq!(world.held(all[1])[0].0, 1);
    close(world.value(), 16.12);
    let moves = judgement.commands.iter().filter(|command| matches!(command, Command::Rescale { .. })).count();
    assert_eq!(moves, 1);
    assert_eq!(world.reason(all[1]).as_deref(), Some("room"));
}
