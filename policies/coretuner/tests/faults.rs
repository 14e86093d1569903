//! Predictors that say anything, crowds, lost nodes: plans stay legal, floors hold, instances agree.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use std::collections::BTreeSet;

use coretuner_core::event::Event;
use coretuner_core::model::{JobId, NodeId};
use coretuner_policy_coretuner::CoreTuner;
use world::chaos::{Chaos, Said};
use world::{Random, World};

const MODELS: [&str; 6] = ["alexnet", "res18", "mobilenet", "m5", "gnmt", "lstm"];

fn submit(world: &mut World<CoreTuner>, random: &mut Random) -> JobId {
    let gpus = [1, 1, 1, 1, 2, 2, 4, 8, 12][random.below(9) as usize];
    let model = MODELS[random.below(6) as usize];
    world.submit_with(Some(model), gpus, |spec| spec.work_iterations = 100 + u64::from(random.below(50_000)))
}

/// The predictor changes its mind on some kinds.
fn change_opinions(world: &mut World<CoreTuner>, random: &mut Random, alive: &[JobId], every: u32) {
    let changed: BTreeSet<&str> = MODELS.into_iter().filter(|_| random.below(every) == 0).collect();
    let of = |job: &&JobId| changed.contains(world.host.models[&job.0]);
    let jobs: Vec<JobId> = alive.iter().filter(of).copied().collect();
    let chaos = world.host.chaos.as_mut().unwrap();
    chaos.cycle += 1;
    // A kind of which no job is there keeps its answers: nobody is told.
    let told: BTreeSet<&'static str> = jobs.iter().map(|job| world.host.models[&job.0]).collect();
    for name in told {
        *chaos.epochs.entry(name).or_default() += 1;
    }
    if !jobs.is_empty() {
        world.event(&Event::EstimatesChanged { jobs });
    }
}

fn history(config: &str, seed: u64, every: u32) {
    let mut world: World<CoreTuner> = World::<CoreTuner>::new(3, config).with_twin(config);
    world.host.chaos = Some(Chaos { seed, ..Chaos::default() });
    let mut random = Random(seed);
    let mut alive: Vec<JobId> = Vec::new();
    let mut floors = 0;
    for _ in 0..300 {
        match random.below(4) {
            0..2 => alive.push(submit(&mut world, &mut random)),
            2 if !alive.is_empty() => {
                let at = random.below(alive.len() as u32) as usize;
                world.complete(alive.swap_remove(at));
            }
            _ => (),
        }
        change_opinions(&mut world, &mut random, &alive, every);
        // Accepted in full, no node over its capacity, no gang in part: the world checks it.
        world.cycle(u64::from(random.below(200)));
        floors += alive.iter().filter(|job| holds_floor(&world, **job)).count();
    }
    assert!(floors > 300, "{floors} looked at");
}

/// Whether the floor of a job could be checked; it must hold then.
fn holds_floor(world: &World<CoreTuner>, job: JobId) -> bool {
    let Some(view) = world.state.job(job).filter(|_| world.is_running(job)) else { return false };
    let [row] = &view.allocations[..] else { return false };
    let gpus = row.gpu_milli / 1000;
    assert_eq!(gpus, view.spec.groups[0].workers_min);
    let (share_cpu, share_memory) = (3000 * gpus, 64_000 * gpus);
    let chaos = world.host.chaos.as_ref().unwrap();
    let said = chaos.said.get(&(world.host.models[&job.0], gpus));
    let unknown = match said {
        Some(Said::Curves(curve)) => {
            let share = curve.at(share_cpu, share_memory).unwrap();
            if share.is_finite() && share > 0.0 {
                let held = curve.at(row.cpu_milli, row.memory_mib).unwrap();
                assert!(held >= share * 0.98 * (1.0 - 1e-5), "{job:?}: {held} below {share}");
                return true;
            }
            true
        }
        Some(Said::Doubtful) => false,
        Some(Said::Nothing) | None => true,
    };
    if unknown {
        assert_eq!((row.cpu_milli, row.memory_mib), (share_cpu, share_memory), "{job:?}: {said:?}");
    }
    unknown
}

#[test]
fn whatever_the_curves_plans_are_legal_floors_hold_and_instances_agree() {
    for (seed, order) in ["fifo", "las", "srtf", "srsf", "jsrsf"].into_iter().enumerate() {
        let config = format!(r#"{{"order": "{order}", "reserve_after_s": 3000}}"#);
        history(&config, seed as u64, 6);
        history(&format!(r#"{{"order": "{order}", "restart_cost_s": 0}}"#), 10 + seed as u64, 6);
    }
    history(r#"{"ageing_h": 0.5}"#, 20, 6);
    history(r#"{"swaps_max": 0, "room": false}"#, 21, 6);
}

#[test]
fn opinions_that_change_in_every_cycle_are_followed() {
    history("{}", 30, 1);
    history(r#"{"order": "srtf"}"#, 31, 1);
}

#[test]
fn ten_thousand_jobs_may_come_at_once() {
    let config = "{}";
    let mut world: World<CoreTuner> = World::<CoreTuner>::new(8, config).with_twin(config);
    let mut random = Random(7);
    let jobs: Vec<JobId> = (0..10_000).map(|_| submit(&mut world, &mut random)).collect();
    let (plan, _) = world.cycle(0);
    let busy: u64 = world.state.running().map(|job| world.state.job(job).unwrap().gpu_milli()).sum();
    assert_eq!(busy, 64_000);
    // As many holds as it may tell; the rest follows in later cycles.
    assert!(plan.actions.job.len() < 64 + 64 + 1, "{}", plan.actions.job.len());
    world.cycle(300);
    for job in &jobs[..1000] {
        world.complete(*job);
    }
    world.cycle(1);
    let busy: u64 = world.state.running().map(|job| world.state.job(job).unwrap().gpu_milli()).sum();
    assert_eq!(busy, 64_000);
}

#[test]
fn nodes_lost_while_a_plan_is_made_cost_only_what_was_on_them() {
    for seed in 0..6 {
        let config = r#"{"retry_s": 30}"#;
        let mut world: World<CoreTuner> = World::new(4, config);
        let mut random = Random(seed);
        (0..20).for_each(|_| {
            submit(&mut world, &mut random);
        });
        let lost = NodeId(random.below(4));
        if seed % 2 == 0 {
            world.cycle(0);
            (0..10).for_each(|_| {
                submit(&mut world, &mut random);
            });
        }
        world.meanwhile = vec![Event::NodeRemoved { id: lost }];
        world.cycle_unchecked(300, coretuner_sdk::contract::cluster::Trigger::ARRIVAL);
        // From the next cycle on the policy knows; what fell with the node may be tried again after a while.
        for _ in 0..4 {
            world.cycle(31);
        }
        let rows: Vec<_> =
            world.state.running().flat_map(|job| world.state.job(job).unwrap().allocations.clone()).collect();
        assert!(rows.iter().all(|row| row.node != lost));
        let busy: u32 = rows.iter().map(|row| row.gpu_milli / 1000).sum();
        let waits = |gpus: u32| {
            let of = |id: u32| world.state.job(JobId(id)).filter(|_| !world.is_running(JobId(id)));
            (0..30).filter_map(of).any(|job| job.spec.groups[0].workers_min == gpus)
        };
        assert!(busy == 24 || !waits(1), "seed {seed}: {busy} of 24 GPUs are used");
    }
}
