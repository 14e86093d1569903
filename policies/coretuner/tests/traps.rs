//! The traps that the study behind this policy fell into, one test each.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::model::NodeState;
use coretuner_policy_coretuner::CoreTuner;
use world::World;

const FIFO: &str = r#"{"memory_levels": [0.3333333333333333, 1, 2, 3, 4], "order": "fifo", "restart_cost_s": 0}"#;

/// Trap 1: curves are not concave, and memory helps only together with cores. One core more gains nothing from 9 to 10 on
/// unless the memory comes in the same step.
#[test]
fn jumps_take_cores_and_memory_together() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let alexnet = world.submit("alexnet", 1);
    (0..7).for_each(|_| {
        world.submit("gnmt", 1);
    });
    world.cycle(0);
    assert_eq!(world.held(alexnet), [(0, 12, 6)]);
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let m5 = world.submit("m5", 1);
    world.cycle(0);
    assert_eq!(world.held(m5), [(0, 6, 9)]);
}

/// Mean value of a full cluster in which one job ends and the next starts, again and again.
fn turnover(swaps_max: u32) -> f64 {
    let config = FIFO.replace('}', &format!(r#", "swaps_max": {swaps_max}}}"#));
    let mut world: World<CoreTuner> = World::new(4, &config);
    let names = ["alexnet", "res18", "gnmt", "deepspeech", "m5", "lstm", "mobilenet", "transformer"];
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut running: Vec<_> = (0..32).map(|at| world.submit(names[at % 8], 1)).collect();
    world.cycle(0);
    let mut sum = 0.0;
    for _ in 0..200 {
        let at = below(32);
        world.complete(running[at]);
        running[at] = world.submit(names[below(8)], 1);
        world.cycle(60);
        sum += world.value();
    }
    sum / 200.0
}

/// Trap 2: where each start finds one free GPU there is no choice of node, and hungry jobs gather. Swaps repair it.
#[test]
fn starts_one_by_one_need_swaps() {
    let (without, with) = (turnover(0), turnover(4));
    assert!(with > 1.02 * without, "{with} against {without}");
}

/// Trap 3: jobs that stay leave no node for a gang, which is then split.
#[test]
fn without_room_gangs_are_split() {
    let check = |room: bool, nodes: usize| {
        let config = format!(r#"{{"order": "fifo", "swaps_max": 0, "span_speed_min": 0, "room": {room}}}"#);
        let mut world: World<CoreTuner> = World::new(2, &config);
        for node in [0, 1] {
            world.set_node(1 - node, NodeState::Cordoned);
            world.set_node(node, NodeState::Schedulable);
            world.submit("gnmt", 4);
            world.submit("gnmt", 1);
            world.cycle(10);
        }
        world.set_node(0, NodeState::Schedulable);
        let gang = world.submit("res18", 4);
        world.cycle(10);
        assert_eq!(world.held(gang).len(), nodes, "room {room}");
    };
    check(true, 1);
    check(false, 2);
}

/// Trap 4: a node's jobs stay the same, but a part of a split gang comes to it or leaves it: it is divided again.
#[test]
fn a_part_of_a_split_gang_divides_its_node_again() {
    let mut world: World<CoreTuner> = World::new(2, FIFO);
    world.set_node(0, NodeState::Cordoned);
    let hungry = world.submit("alexnet", 1);
    world.cycle(0);
    world.set_node(0, NodeState::Schedulable);
    let gang = world.submit("deepspeech", 15);
    // The judge refuses more than 24 cores.
    world.cycle(10);
    assert_eq!(world.held(gang).len(), 2);
    assert_eq!(world.held(hungry), [(1, 3, 3)]);
    world.complete(gang);
    world.cycle(10);
    assert_eq!(world.held(hungry), [(1, 12, 6)]);
}

/// Trap 5: a language job needs less memory than the smallest profiled amount, which counts as one part; and nothing moves
/// or is resized while nothing changes.
#[test]
fn places_and_amounts_do_not_flap() {
    for order in ["fifo", "las", "srtf", "srsf", "jsrsf"] {
        let mut world: World<CoreTuner> = World::new(2, &FIFO.replace("fifo", order));
        let language = world.submit("gnmt", 1);
        for name in ["alexnet", "res18", "m5", "mobilenet"] {
            world.submit(name, 1);
            world.submit(name, 2);
        }
        // One job that finds no place keeps the ticks going.
        world.submit("deepspeech", 12);
        world.cycle(0);
        world.cycle(300);
        assert_eq!(world.held(language)[0].1, 1, "{order}");
        for _ in 0..4 {
            let (_, judgement) = world.cycle(300);
            assert_eq!(judgement.commands, [], "{order}");
        }
    }
}
