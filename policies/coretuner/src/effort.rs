//! How much a plan looks at: that must not grow with the cluster.

use std::cell::Cell;

use coretuner_core::model::{JobId, NodeState};

use crate::CoreTuner;

#[path = "../tests/world/mod.rs"]
mod world;

use world::World;

thread_local! {
    static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
}

/// So many nodes were looked at.
pub(crate) fn look(nodes: u64) {
    LOOKED_AT.with(|looked_at| looked_at.set(looked_at.get() + nodes));
}

/// Models that want more cores than their share, and such that do not.
const MODELS: [&str; 4] = ["alexnet", "gnmt", "res50", "lstm"];

/// Plans in each of which a little changes.
const TURNS: u32 = 8;

/// Servers of 8 GPUs, each with jobs of 4, 2 and 1 GPUs; gangs that fit no node wait.
fn at_work(servers: u32, config: &str) -> World<CoreTuner> {
    let mut world = World::new(servers, config);
    for gpus in [4, 2, 1] {
        (0..servers).for_each(|job| _ = world.submit(MODELS[job as usize % MODELS.len()], gpus));
    }
    world.cycle(0);
    for (model, gpus) in MODELS.into_iter().zip([8, 8, 16, 4]) {
        world.submit(model, gpus);
    }
    (0..4).for_each(|_| _ = world.cycle(1));
    world
}

/// Nodes looked at in the worst plan.
fn worst(servers: u32, config: &str, change: impl Fn(&mut World<CoreTuner>, u32)) -> u64 {
    let mut world = at_work(servers, config);
    let measured = (0..TURNS).map(|turn| {
        change(&mut world, turn);
        LOOKED_AT.with(|looked_at| looked_at.set(0));
        world.cycle(1);
        LOOKED_AT.with(Cell::get)
    });
    measured.max().unwrap_or(0)
}

fn check(change: impl Fn(&mut World<CoreTuner>, u32) + Copy) {
    let config = r#"{"swaps_max": 0}"#;
    let (few, many) = (worst(1_000, config, change), worst(4_000, config, change));
    assert!(few > 0 && many < 2 * few && many < 1_000, "{few} nodes of 1,000, {many} of 4,000");
}

#[test]
fn a_job_that_ends_and_one_that_comes_cost_as_much_in_a_larger_cluster() {
    check(|world, turn| {
        world.complete(JobId(turn * 7));
        world.submit(MODELS[0], 1 + turn % 4);
    });
}

#[test]
fn a_node_that_closes_or_opens_costs_as_much_in_a_larger_cluster() {
    check(|world, turn| {
        let state = if turn % 2 == 0 { NodeState::Cordoned } else { NodeState::Schedulable };
        world.set_node(3 + turn / 2, state);
    });
}

#[test]
fn a_job_without_gpus_costs_as_much_in_a_larger_cluster() {
    check(|world, _| {
        world.submit_with(None, 1, |spec| {
            let group = &mut spec.groups[0];
            (group.gpu_milli, group.cpu_milli, group.memory_mib) = (0, 2000, 1000);
            (group.cpu_milli_min, group.cpu_milli_max) = (2000, 2000);
        });
    });
}

#[test]
fn exchanges_look_at_so_many_nodes_at_most() {
    let looked_at = worst(1_000, "{}", |world, turn| world.complete(JobId(turn * 7)));
    assert!(looked_at < 8_000, "{looked_at}");
}
