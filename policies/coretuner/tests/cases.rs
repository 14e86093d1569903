//! What this policy does with jobs and nodes that are not of the published kind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod world;

use coretuner_core::event::{Command, Event};
use coretuner_core::model::{ClassId, Eligibility, GroupSpec, JobSpec, NodeId, NodeState, ResizeRights};
use coretuner_policy_coretuner::CoreTuner;
use coretuner_sdk::contract::cluster::Trigger;
use world::{SERVER, World};

const FIFO: &str = r#"{"memory_levels": [0.3333333333333333, 1, 2, 3, 4], "order": "fifo"}"#;

fn fixed_at(cores: u32, units: u32) -> impl FnOnce(&mut JobSpec) {
    move |spec| {
        let group = &mut spec.groups[0];
        group.cpu_milli = cores * 1000;
        (group.cpu_milli_min, group.cpu_milli_max) = (cores * 1000, cores * 1000);
        let memory = units * 512_000 / 24;
        group.memory_mib = memory;
        (group.memory_mib_min, group.memory_mib_max) = (memory, memory);
    }
}

#[test]
fn a_job_of_unknown_kind_gets_its_share() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let unknown = world.submit_with(None, 2, |_| ());
    let known = world.submit("alexnet", 1);
    world.cycle(0);
    assert_eq!(world.held(unknown), [(0, 6, 6)]);
    assert_eq!(world.held(known), [(0, 12, 6)]);
}

#[test]
fn a_predictor_that_fails_is_asked_again_and_the_share_serves_meanwhile() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    world.host.fails = true;
    let job = world.submit("alexnet", 1);
    world.cycle(0);
    assert_eq!(world.held(job), [(0, 3, 3)]);
    assert!(world.host.log[0].contains("proportional share"), "{:?}", world.host.log);
    world.host.fails = false;
    world.cycle(10);
    assert_eq!(world.held(job), [(0, 12, 6)]);
}

#[test]
fn a_job_that_may_not_be_tuned_gets_exactly_its_request() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let fixed = world.submit_with(Some("alexnet"), 1, fixed_at(5, 3));
    let other = world.submit("res18", 1);
    world.cycle(0);
    assert_eq!((world.held(fixed), world.held(other)), (vec![(0, 5, 3)], vec![(0, 9, 3)]));
}

#[test]
fn what_the_backend_cannot_resize_stays_where_it_started() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let stiff = world.submit_with(Some("alexnet"), 1, |spec| spec.groups[0].resize_rights = ResizeRights::NONE);
    let grows = world.submit_with(Some("m5"), 1, |spec| {
        spec.groups[0].resize_rights = ResizeRights { cpu: true, memory_grow: true, memory_shrink: false };
    });
    world.cycle(0);
    assert_eq!((world.held(stiff), world.held(grows)), (vec![(0, 12, 6)], vec![(0, 6, 9)]));
    let hungry: Vec<_> = (0..4).map(|_| world.submit("res18", 1)).collect();
    let (_, judgement) = world.cycle(10);
    assert_eq!(world.held(stiff), [(0, 12, 6)]);
    assert_eq!(world.held(grows)[0].2, 9, "memory never shrinks in place");
    // Their bases take 3 of 24 units and cores each: 12 + 3 × 4 cores leave none for a third hungry job.
    assert_eq!(hungry.iter().filter(|job| world.is_running(**job)).count(), 3, "{judgement:?}");
}

#[test]
fn cpu_only_jobs_prefer_nodes_without_gpus_and_never_take_a_base() {
    let mut world: World<CoreTuner> = World::with_nodes(&[SERVER, (0, 8000, 64_000)], FIFO);
    let cpu_only = |spec: &mut JobSpec| spec.groups[0].gpu_milli = 0;
    let gangs: Vec<_> = (0..7).map(|_| world.submit("alexnet", 1)).collect();
    world.cycle(0);
    let first = world.submit_with(None, 1, cpu_only);
    let second = world.submit_with(None, 1, |spec| {
        cpu_only(spec);
        spec.groups[0].memory_mib = 10_000;
    });
    let third = world.submit_with(None, 1, cpu_only);
    world.cycle(10);
    assert_eq!((world.held(first)[0].0, world.held(first)[0].1), (1, 3));
    assert_eq!(world.held(second)[0].0, 0, "64,000 MiB are gone on the plain node");
    assert!(!world.is_running(third), "nobody is put below its base");
    assert_eq!(world.reason(third).as_deref(), Some("wait-beside"));
    assert!(gangs.iter().all(|job| world.held(*job)[0].1 >= 3));
}

#[test]
fn parts_of_a_gpu_share_devices_and_stay_at_their_request() {
    let mut world: World<CoreTuner> = World::with_nodes(&[(2, 24_000, 512_000)], FIFO);
    let part = |spec: &mut JobSpec| spec.groups[0].gpu_milli = 500;
    let parts: Vec<_> = (0..3).map(|_| world.submit_with(Some("res18"), 1, part)).collect();
    world.cycle(0);
    assert!(parts.iter().all(|job| world.held(*job) == [(0, 3, 3)]));
    let whole = world.submit("res18", 1);
    world.cycle(10);
    assert!(!world.is_running(whole), "no device is wholly free");
    assert_eq!(world.reason(whole).as_deref(), Some("wait-gpus"));
}

#[test]
fn a_job_of_two_groups_is_placed_as_requested() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let job = world.submit_with(Some("res18"), 2, |spec| {
        let launcher = GroupSpec {
            role: "launcher".to_owned(),
            workers_min: 1,
            workers_max: 1,
            gpu_milli: 0,
            ..spec.groups[0].clone()
        };
        spec.groups.push(launcher);
    });
    world.cycle(0);
    assert_eq!(world.held(job), [(0, 6, 6), (0, 3, 3)]);
}

#[test]
fn a_gang_larger_than_a_node_is_split_at_its_base() {
    let mut world: World<CoreTuner> = World::new(2, FIFO);
    let gang = world.submit("res18", 12);
    world.cycle(0);
    assert_eq!(world.held(gang), [(0, 24, 24), (1, 12, 12)]);
    let other = world.submit("alexnet", 1);
    world.cycle(10);
    assert_eq!(world.held(other), [(1, 12, 6)]);
}

#[test]
fn other_shapes_divide_in_whole_shares() {
    let mut world: World<CoreTuner> = World::with_nodes(&[(4, 6000, 200_000)], FIFO);
    let jobs: Vec<_> = (0..4).map(|_| world.submit("deepspeech", 1)).collect();
    world.cycle(0);
    assert!(jobs.iter().all(|job| world.is_running(*job)));
    let rows = jobs.iter().map(|job| &world.state.job(*job).unwrap().allocations[0]);
    assert!(rows.into_iter().all(|row| row.cpu_milli == 1500), "a share is one and a half cores");
}

#[test]
fn jobs_leave_a_node_that_is_emptied() {
    let mut world: World<CoreTuner> = World::new(2, FIFO);
    let jobs: Vec<_> = (0..10).map(|_| world.submit("res50", 1)).collect();
    world.cycle(0);
    let there = jobs.iter().filter(|job| world.held(**job)[0].0 == 0).count();
    world.set_node(0, NodeState::Draining);
    world.cycle(10);
    world.cycle(10);
    let running = jobs.iter().filter(|job| world.is_running(**job));
    assert!(running.clone().all(|job| world.held(*job)[0].0 == 1));
    assert_eq!(running.count(), 8, "{there} were on node 0");
}

#[test]
fn a_cordoned_node_keeps_its_jobs_and_still_divides_well() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let jobs = [world.submit("alexnet", 1), world.submit("res18", 8 - 1)];
    world.cycle(0);
    world.set_node(0, NodeState::Cordoned);
    let late = world.submit("gnmt", 1);
    world.complete(jobs[1]);
    world.cycle(10);
    assert_eq!(world.held(jobs[0]), [(0, 12, 6)]);
    assert!(!world.is_running(late));
}

#[test]
fn a_job_uses_only_nodes_of_its_class() {
    let mut world: World<CoreTuner> = World::new(3, FIFO);
    world.event(&Event::ClassSet { id: ClassId(7), nodes: Eligibility::Nodes(vec![NodeId(2)]) });
    let jobs: Vec<_> =
        (0..3).map(|_| world.submit_with(Some("gnmt"), 4, |spec| spec.eligibility = ClassId(7))).collect();
    world.cycle(0);
    let nodes: Vec<_> = jobs.iter().flat_map(|job| world.held(*job)).map(|held| held.0).collect();
    assert_eq!(nodes, [2, 2]);
}

#[test]
fn a_tick_stops_as_few_jobs_as_those_that_go_first_need() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "srtf", "restart_cost_s": 0}"#);
    let long: Vec<_> = (0..8).map(|_| world.submit("res50", 1)).collect();
    world.cycle(0);
    let short = world.submit_with(Some("res50"), 2, |spec| spec.work_iterations = 10);
    let (plan, _) = world.cycle(10);
    assert!(!world.is_running(short), "no preemption before the tick");
    assert_eq!(plan.wake_at_ns, 300 * world::SECOND);
    let (_, judgement) = world.cycle(290);
    assert!(world.is_running(short));
    let stopped = long.iter().filter(|job| !world.is_running(**job)).count();
    assert_eq!(stopped, 2);
    let stops = judgement.commands.iter().filter(|command| matches!(command, Command::Preempt { .. })).count();
    assert_eq!(stops, 2);
}

#[test]
fn a_tick_leaves_jobs_alone_that_may_not_be_preempted() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "srtf"}"#);
    let long: Vec<_> = (0..8).map(|_| world.submit_with(Some("res50"), 1, |spec| spec.preemptible = false)).collect();
    world.cycle(0);
    let short = world.submit_with(Some("res50"), 1, |spec| spec.work_iterations = 10);
    world.cycle(300);
    assert!(!world.is_running(short) && long.iter().all(|job| world.is_running(*job)));
}

#[test]
fn least_attained_service_takes_turns() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "las"}"#);
    let first = world.submit("gnmt", 8);
    world.cycle(0);
    let second = world.submit("gnmt", 8);
    // 8 GPUs × 300 s stay in the first queue, the whole 600 s do not.
    world.cycle(300);
    assert!(world.is_running(first));
    world.cycle(300);
    assert!(world.is_running(second) && !world.is_running(first));
    assert_eq!(world.reason(first).as_deref(), Some("order"));
}

#[test]
fn changed_predictions_divide_the_nodes_of_that_kind_again() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    let jobs = [world.submit("alexnet", 1), world.submit("gnmt", 1)];
    world.cycle(0);
    assert_eq!(world.held(jobs[0]), [(0, 12, 6)]);
    // From now on this kind behaves like a language model.
    world.host.models.insert(jobs[0].0, "gnmt");
    world.event(&Event::EstimatesChanged { jobs: vec![jobs[0]] });
    world.cycle(10);
    assert_eq!(world.held(jobs[0]), [(0, 1, 1)]);
}

#[test]
fn many_jobs_of_few_kinds_cost_few_questions() {
    let mut world: World<CoreTuner> = World::new(4, FIFO);
    for round in 0..400 {
        world.submit(["alexnet", "res18", "gnmt", "m5"][round % 4], 1 + (round as u32 / 4) % 2);
    }
    world.cycle(0);
    assert_eq!(world.host.questions, 8);
}

#[test]
fn a_refused_start_is_left_alone_for_a_while() {
    let mut world: World<CoreTuner> = World::new(1, r#"{"order": "fifo", "retry_s": 60}"#);
    let job = world.submit("gnmt", 1);
    // The node closes behind the policy's back: its plan comes too late.
    let (_, judgement) = {
        world.cycle_unchecked(0, Trigger::ARRIVAL);
        assert!(world.is_running(job));
        world.event(&Event::JobStopped { id: job });
        world.cycle(1)
    };
    assert_eq!(judgement.verdicts, []);
    assert!(world.is_running(job), "a job that the backend stopped starts again");
}

#[test]
fn a_freed_gpu_is_taken_by_the_next_in_line() {
    let mut world: World<CoreTuner> = World::new(1, FIFO);
    // Several of each model wait, so that more of one profile want the one free GPU than can have it.
    let names = ["alexnet", "gnmt", "deepspeech", "res18", "res50", "mobilenet", "lstm", "shufflenet"];
    let jobs: Vec<_> = names.repeat(4).into_iter().map(|name| world.submit(name, 1)).collect();
    world.cycle(0);
    for done in [0, 1, 2, 3] {
        world.complete(jobs[done]);
        world.cycle(10);
        let running = jobs.iter().filter(|job| world.is_running(**job)).count();
        assert_eq!(running, 8);
    }
}
