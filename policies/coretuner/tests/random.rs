//! Long random histories: every plan is accepted whole, nobody falls below its share, nothing moves without need.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::event::Event;
use coretuner_core::model::{JobId, NodeId, NodeState};
use coretuner_policy_coretuner::CoreTuner;
use world::{Random, SERVER, World};

const MODELS: [&str; 8] = ["alexnet", "shufflenet", "res18", "mobilenet", "m5", "deepspeech", "gnmt", "lstm"];

fn submit(world: &mut World<CoreTuner>, random: &mut Random) -> JobId {
    let gpus = [1, 1, 1, 1, 2, 2, 4, 8, 12][random.below(9) as usize];
    let model = (random.below(12) > 0).then(|| MODELS[random.below(8) as usize]);
    let kind = random.below(12);
    world.submit_with(model, gpus, |spec| {
        spec.work_iterations = 100 + u64::from(random.below(20_000));
        spec.preemptible = random.below(8) > 0;
        let group = &mut spec.groups[0];
        match kind {
            0 => group.gpu_milli = 0,
            1 => (group.gpu_milli, group.workers_min, group.workers_max) = (300, 1, 1),
            2 => (group.cpu_milli_min, group.cpu_milli_max) = (3000, 3000),
            3 => group.resize_rights.memory_shrink = false,
            4 => group.resize_rights.cpu = false,
            _ => (),
        }
    })
}

fn history(config: &str, nodes: &[(u32, u32, u32)], seed: u64) {
    let mut world: World<CoreTuner> = World::with_nodes(nodes, config);
    let mut random = Random(seed);
    let mut alive: Vec<JobId> = Vec::new();
    for _ in 0..400 {
        match random.below(10) {
            0..5 => alive.push(submit(&mut world, &mut random)),
            5..8 if !alive.is_empty() => {
                let at = random.below(alive.len() as u32) as usize;
                world.complete(alive.swap_remove(at));
            }
            8 => {
                let state =
                    [NodeState::Schedulable, NodeState::Cordoned, NodeState::Draining][random.below(3) as usize];
                let node = random.below(nodes.len() as u32);
                world.set_node(node, state);
            }
            9 => {
                let node = NodeId(random.below(nodes.len() as u32));
                let free = world.state.node(node).unwrap();
                let cpu_milli = random.below(4) * 1000;
                if free.cpu_milli_free() + free.foreign.cpu_milli >= cpu_milli {
                    world.event(&Event::ForeignUse { node, cpu_milli, memory_mib: 0, device_mask: 0 });
                }
            }
            _ => (),
        }
        let after_s = u64::from(random.below(120));
        world.cycle(after_s);
        check(&world, &alive);
    }
}

/// Every running gang of a known model runs at its share's speed at least.
fn check(world: &World<CoreTuner>, alive: &[JobId]) {
    for job in alive.iter().filter(|job| world.is_running(**job)) {
        let view = world.state.job(*job).unwrap();
        let gang = view.spec.groups[0].gpu_milli == 1000;
        if gang && world.host.models.contains_key(&job.0) {
            let share = f64::from(view.spec.groups[0].workers_min);
            let found = world.relative(*job);
            assert!(found >= share * (1.0 - 1e-3), "{} at {found} in {:?}", view.spec.name, view.allocations);
        }
    }
}

#[test]
fn histories_on_published_servers() {
    for (seed, order) in ["fifo", "las", "srtf", "srsf"].into_iter().enumerate() {
        history(&format!(r#"{{"order": "{order}"}}"#), &[SERVER; 4], seed as u64);
        history(&format!(r#"{{"order": "{order}", "restart_cost_s": 0}}"#), &[SERVER; 3], 10 + seed as u64);
    }
}

/// 3 to 6 cores per GPU, 4 and 8 GPUs, one node without any: shares differ by node, floors hold on each.
#[test]
fn histories_on_mixed_shapes() {
    let nodes = [
        SERVER,
        (8, 32_000, 512_000),
        (8, 48_000, 768_000),
        (4, 24_000, 256_000),
        (4, 18_000, 384_000),
        (0, 8000, 64_000),
    ];
    for (seed, order) in ["fifo", "las", "srtf", "srsf"].into_iter().enumerate() {
        history(&format!(r#"{{"order": "{order}"}}"#), &nodes, 20 + seed as u64);
    }
    // Every switch that goes beyond the published setting, one by one.
    let switches =
        [r#""span_speed_min": 0"#, r#""spare_cpu": false"#, r#""kinds_by_gain": false"#, r#""elastic": false"#];
    for (seed, switch) in switches.into_iter().enumerate() {
        history(&format!("{{{switch}}}"), &nodes, 30 + seed as u64);
    }
}
