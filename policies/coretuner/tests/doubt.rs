//! What the policy does where predictions are unsure.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::event::Event;
use coretuner_core::model::{JobId, ResizeRights};
use coretuner_policy_coretuner::CoreTuner;
use world::World;

/// One hungry job on a server, known to be worth 12 cores at the mean of its curve.
fn hungry(config: &str, doubt: f64, probe: Option<u32>) -> (World<CoreTuner>, JobId) {
    let mut world: World<CoreTuner> = World::new(1, config);
    world.host.doubt.insert("alexnet", doubt);
    world.host.probe = probe;
    let job = world.submit("alexnet", 1);
    world.cycle(0);
    (world, job)
}

fn cores(world: &World<CoreTuner>, job: JobId) -> u32 {
    world.held(job)[0].1
}

#[test]
fn an_unsure_kind_stays_near_its_share() {
    let check = |caution: f64, doubt: f64, expected: u32| {
        let config = format!(r#"{{"order": "fifo", "probes_max": 0, "caution": {caution}}}"#);
        let (world, job) = hungry(&config, doubt, None);
        assert_eq!(cores(&world, job), expected, "caution {caution}, doubt {doubt}");
    };
    check(0.25, 0.0, 12);
    check(0.25, 0.5, 12);
    check(1.0, 2.0, 3);
    check(0.0, 2.0, 12);
}

const PROBES: &str = r#"{"order": "fifo", "caution": 2, "probe_s": 600, "probe_doubt_min": 0.15}"#;

#[test]
fn a_probe_ends_with_the_observation() {
    let (mut world, job) = hungry(PROBES, 1.0, Some(9000));
    assert_eq!(cores(&world, job), 3);
    // It starts to be looked at once it runs.
    world.cycle(10);
    assert_eq!((cores(&world, job), world.reason(job).as_deref()), (9, Some("probe")));
    // The observation makes the curve sure.
    world.host.doubt.clear();
    world.event(&Event::EstimatesChanged { jobs: vec![job] });
    world.cycle(10);
    assert_eq!(cores(&world, job), 12);
}

#[test]
fn a_probe_without_an_observation_ends_after_its_time_and_rests() {
    let (mut world, job) = hungry(PROBES, 1.0, Some(9000));
    let (plan, _) = world.cycle(10);
    assert_eq!((cores(&world, job), plan.wake_at_ns), (9, 610 * world::SECOND));
    world.cycle(600);
    assert_eq!(cores(&world, job), 3);
    // Another arrival has the node divided again, but the kind rests.
    world.submit("gnmt", 1);
    world.cycle(10);
    world.cycle(10);
    assert_eq!(cores(&world, job), 3);
}

#[test]
fn no_probe_takes_what_others_must_have() {
    let mut world: World<CoreTuner> = World::new(1, PROBES);
    world.host.doubt.insert("alexnet", 1.0);
    world.host.probe = Some(9000);
    let job = world.submit("alexnet", 1);
    // Seven that keep three cores each.
    let others: Vec<JobId> = (0..7).map(|_| world.submit("deepspeech", 1)).collect();
    world.cycle(0);
    world.cycle(10);
    assert_eq!(cores(&world, job), 3);
    assert!(others.iter().all(|other| cores(&world, *other) == 3));
}

#[test]
fn sure_kinds_short_jobs_and_fixed_jobs_are_not_probed() {
    let check = |doubt: f64, work: u64, rights: ResizeRights| {
        let mut world: World<CoreTuner> = World::new(1, PROBES);
        world.host.doubt.insert("alexnet", doubt);
        world.host.probe = Some(9000);
        let job = world.submit_with(Some("alexnet"), 1, |spec| {
            spec.work_iterations = work;
            spec.groups[0].resize_rights = rights;
        });
        world.cycle(0);
        let before = cores(&world, job);
        world.cycle(10);
        assert_eq!(cores(&world, job), before, "doubt {doubt}, work {work}");
    };
    check(0.0, 1_000_000, ResizeRights::ALL);
    check(1.0, 500, ResizeRights::ALL);
    check(1.0, 1_000_000, ResizeRights { cpu: false, ..ResizeRights::ALL });
}
