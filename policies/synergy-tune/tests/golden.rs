//! Published cases, with the host's own state and judge around the policy.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

#[path = "../../coretuner/tests/world/mod.rs"]
mod world;

use coretuner_core::model::JobId;
use coretuner_policy_synergy_tune::SynergyTune;
use coretuner_sdk::solve::synergy::model;
use world::World;

#[test]
fn c1_the_four_gangs_of_the_paper_end_at_their_shares() {
    let mut world: World<SynergyTune> = World::new(2, "{}");
    let jobs = ["res18", "m5", "transformer", "gnmt"].map(|name| world.submit(name, 4));
    world.cycle(0);
    assert!((world.value() - 16.0).abs() < 1e-3, "{}", world.value());
    assert_eq!(jobs.map(|job| world.held(job)[0].1), [12, 12, 4, 4]);
}

#[test]
fn c2_both_hungry_jobs_share_the_first_server() {
    let mut world: World<SynergyTune> = World::new(2, "{}");
    world.submit("alexnet", 1);
    world.submit("alexnet", 1);
    (0..14).for_each(|_| _ = world.submit("gnmt", 1));
    world.cycle(0);
    assert!((world.value() - 17.94).abs() < 1e-3, "{}", world.value());
}

#[test]
fn nothing_is_decided_between_rounds() {
    let mut world: World<SynergyTune> = World::new(1, r#"{"first_round_s": 1}"#);
    let job = world.submit("res50", 1);
    let (plan, _) = world.cycle(0);
    assert!(!world.is_running(job));
    assert_eq!(plan.wake_at_ns, world::SECOND);
    assert_eq!(world.reason(job).as_deref(), Some("wait-round"));
    world.cycle(1);
    assert!(world.is_running(job));
    let other = world.submit("res50", 1);
    world.cycle(299);
    assert!(!world.is_running(other));
    world.cycle(1);
    assert!(world.is_running(other));
}

#[test]
fn a_round_may_make_jobs_trade_places_in_one_bundle() {
    let mut world: World<SynergyTune> = World::new(1, r#"{"order": "las"}"#);
    let first: Vec<JobId> = (0..8).map(|_| world.submit("gnmt", 1)).collect();
    world.cycle(0);
    let second: Vec<JobId> = (0..8).map(|_| world.submit("gnmt", 1)).collect();
    let (plan, _) = world.cycle(300);
    assert!(first.iter().all(|job| !world.is_running(*job)) && second.iter().all(|job| world.is_running(*job)));
    let bundles: Vec<u32> = plan.actions.verb.iter().zip(&plan.actions.bundle).map(|(_, bundle)| *bundle).collect();
    assert_eq!(bundles.iter().filter(|bundle| **bundle == bundles[0]).count(), 16);
    let (plan, _) = world.cycle(10);
    assert!(plan.actions.job.is_empty());
}

#[test]
fn unknown_jobs_get_their_share_and_others_their_request() {
    let mut world: World<SynergyTune> = World::new(1, "{}");
    let unknown = world.submit_with(None, 2, |_| ());
    let cpu_only = world.submit_with(None, 1, |spec| spec.groups[0].gpu_milli = 0);
    let part = world.submit_with(None, 1, |spec| spec.groups[0].gpu_milli = 400);
    world.cycle(0);
    assert_eq!(world.held(unknown), [(0, 6, 6)]);
    assert_eq!(world.held(cpu_only), [(0, 3, 3)]);
    assert_eq!(world.held(part), [(0, 3, 3)]);
}

struct Row {
    model: &'static str,
    arrival_s: f64,
    iterations: u64,
    jct_s: f64,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../../tests/fixtures/synergy/static_100.csv");
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Row {
            model: model(cells[1]).name,
            arrival_s: cells[2].parse().unwrap(),
            iterations: cells[3].parse().unwrap(),
            jct_s: cells[5].parse().unwrap(),
        }
    };
    text.lines().skip(1).map(row).collect()
}

/// Published rules of progress: whole iterations per round, at the best speed for a job that holds its full demand, else
/// at that of the share.
fn iterations_per_round(world: &World<SynergyTune>, job: JobId, name: &str) -> u64 {
    let model = model(name);
    let Some(&(_, cores, units)) = world.held(job).first() else { return 0 };
    let full = cores == model.best.0 && units >= (model.best.1 / 20.83).round().max(1.0) as u32;
    let best = model.relative_speed(f64::from(model.best.0), (model.best.1 / 20.83).round().max(1.0));
    (300.0 / (model.iteration_s / if full { best } else { 1.0 })).floor() as u64
}

#[test]
fn the_static_fifo_run_of_100_jobs_is_reproduced_job_by_job() {
    let rows = rows();
    let mut world: World<SynergyTune> = World::new(4, r#"{"first_round_s": 1}"#);
    let jobs: Vec<JobId> = rows.iter().map(|row| world.submit(row.model, 1)).collect();
    let mut left: Vec<u64> = rows.iter().map(|row| row.iterations).collect();
    let mut jct_s: Vec<Option<f64>> = vec![None; rows.len()];
    world.cycle(1);
    while jct_s.iter().any(Option::is_none) {
        let end_s = (world.state.now_ns() / world::SECOND + 300) as f64;
        for at in 0..rows.len() {
            left[at] = left[at].saturating_sub(iterations_per_round(&world, jobs[at], rows[at].model));
            if left[at] == 0 && jct_s[at].is_none() {
                jct_s[at] = Some(end_s - rows[at].arrival_s);
                world.complete(jobs[at]);
            }
        }
        world.cycle(300);
    }
    for (at, row) in rows.iter().enumerate() {
        let found = jct_s[at].unwrap();
        assert!((found - row.jct_s).abs() < 1e-3, "job {at}: {found} s, not {} s", row.jct_s);
    }
}
