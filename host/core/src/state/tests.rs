use crate::contract::plan::Verb;
use crate::event::{Event, RemovalReason};
use crate::model::{ChangePoint, GroupSpec, JobId, JobPhase, JobSpec, NodeId, QueueId};
use crate::tests::build::{Planned, Row, apply, cluster, group, job, queue, row, server, submit};

use super::queue::DEPTH_MAX;
use super::{State, StateError};

/// One server with job 0 (4 of 8 GPUs) on it and job 1 waiting.
fn busy() -> State {
    let mut state = cluster(1);
    submit(&mut state, 0, job(vec![group(4)]));
    submit(&mut state, 1, JobSpec { submit_ns: 5, ..job(vec![group(4)]) });
    let rows = [Row { device_mask: 0b1111_0000, ..row(0, 4) }];
    assert_eq!(state.judge(0, &Planned::default().alone(Verb::Start, 0, &rows).0).accepted, 1);
    state
}

fn check(event: &Event, expected: Result<(), StateError>) {
    let mut state = busy();
    assert_eq!(state.apply(state.now_ns(), event), expected, "{event:?}");
    state.check_invariants().unwrap();
}

#[test]
fn events_that_cannot_be_true_are_refused() {
    let (node, job_id) = (NodeId(9), JobId(9));
    check(&Event::JobRemoved { id: job_id, reason: RemovalReason::Failed }, Err(StateError::UnknownJob(job_id)));
    check(&Event::JobStopped { id: job_id }, Err(StateError::UnknownJob(job_id)));
    check(&Event::JobStopped { id: JobId(1) }, Err(StateError::NotRunning { job: JobId(1), phase: "waiting" }));
    check(&Event::NodeRemoved { id: node }, Err(StateError::UnknownNode(node)));
    check(&Event::EstimatesChanged { jobs: vec![JobId(0), job_id] }, Err(StateError::UnknownJob(job_id)));
    check(&Event::JobSubmitted { id: JobId(0), spec: job(vec![group(1)]) }, Err(StateError::ReusedJob(JobId(0))));
    let spec = JobSpec { queue: QueueId(8), ..job(vec![group(1)]) };
    let expected = StateError::JobQueue { job: job_id, queue: QueueId(8) };
    check(&Event::JobSubmitted { id: job_id, spec }, Err(expected));
    check(&Event::JobSubmitted { id: job_id, spec: job(vec![]) }, Err(StateError::NoGroups(job_id)));
    let mut spec = server("n");
    spec.devices = 33;
    let expected = StateError::TooManyDevices { node, devices: 33, limit: 32 };
    check(&Event::NodeSet { id: node, spec }, Err(expected));
}

#[test]
fn a_node_shrinks_down_to_its_use() {
    let with = |devices, cpu_milli| {
        let mut spec = server("n0");
        (spec.devices, spec.cpu_milli) = (devices, cpu_milli);
        Event::NodeSet { id: NodeId(0), spec }
    };
    check(&with(8, 12_000), Ok(()));
    check(&with(8, 11_999), Err(StateError::CapacityBelowUse(NodeId(0))));
    check(&with(7, 24_000), Err(StateError::CapacityBelowUse(NodeId(0))));
}

#[test]
fn groups_are_checked_when_a_job_comes() {
    fn check(spec: GroupSpec, good: bool) {
        let mut state = cluster(0);
        let event = Event::JobSubmitted { id: JobId(0), spec: job(vec![spec.clone()]) };
        assert_eq!(state.apply(0, &event).is_ok(), good, "{spec:?}");
    }
    let good = group(2);
    check(good.clone(), true);
    check(GroupSpec { gpu_milli: 0, ..good.clone() }, true);
    check(GroupSpec { gpu_milli: 250, ..good.clone() }, true);
    check(GroupSpec { gpu_milli: 1_500, ..good.clone() }, false);
    check(GroupSpec { gpu_milli: 33_000, ..good.clone() }, false);
    check(GroupSpec { workers_min: 3, ..good.clone() }, false);
    check(GroupSpec { workers_min: 0, workers_max: 0, ..good.clone() }, false);
    check(GroupSpec { cpu_milli: 500, ..good.clone() }, false);
    check(GroupSpec { memory_mib_max: 63_000, ..good }, false);
}

#[test]
fn a_range_that_is_left_out_is_the_request() {
    let mut state = cluster(0);
    submit(&mut state, 0, job(vec![GroupSpec { cpu_milli_min: 0, cpu_milli_max: 0, ..group(1) }]));
    let spec = &state.job(JobId(0)).unwrap().spec.groups[0];
    assert_eq!((spec.cpu_milli_min, spec.cpu_milli_max), (3_000, 3_000));
}

#[test]
fn a_lost_node_sends_whole_gangs_back() {
    let mut state = cluster(2);
    submit(&mut state, 0, job(vec![group(4)]));
    let plan = Planned::default().alone(Verb::Start, 0, &[row(0, 2), row(1, 2)]);
    assert_eq!(state.judge(0, &plan.0).accepted, 1);
    apply(&mut state, &Event::NodeRemoved { id: NodeId(0) });
    assert_eq!(state.job(JobId(0)).unwrap().phase, JobPhase::Waiting);
    assert_eq!(state.node(NodeId(1)).unwrap().devices_free_mask(), 0xff);
    state.check_invariants().unwrap();
    let again = state.apply(0, &Event::NodeSet { id: NodeId(0), spec: server("n0") });
    assert_eq!(again, Err(StateError::ReusedNode(NodeId(0))));
}

#[test]
fn a_job_that_left_is_forgotten_but_its_id_is_not() {
    let mut state = busy();
    apply(&mut state, &Event::JobRemoved { id: JobId(0), reason: RemovalReason::Completed });
    assert!(state.job(JobId(0)).is_none());
    assert_eq!(state.node(NodeId(0)).unwrap().cpu_milli_free(), 24_000);
    assert_eq!(state.waiting().collect::<Vec<_>>(), [JobId(1)]);
    let again = state.apply(0, &Event::JobSubmitted { id: JobId(0), spec: job(vec![group(1)]) });
    assert_eq!(again, Err(StateError::ReusedJob(JobId(0))));
}

#[test]
fn a_stopped_job_keeps_its_progress_and_restarts_later() {
    let mut state = busy();
    let point = ChangePoint { since_ns: 0, iterations: 5.0, iterations_per_s: 2.0, ..ChangePoint::default() };
    apply(&mut state, &Event::Progress { job: JobId(0), point });
    state.apply(3_000_000_000, &Event::JobStopped { id: JobId(0) }).unwrap();
    let stopped = state.job(JobId(0)).unwrap();
    assert_eq!((stopped.progress.iterations, stopped.progress.iterations_per_s), (11.0, 0.0));
    assert_eq!(stopped.restarts, 0);
    state.judge(4_000_000_000, &Planned::default().alone(Verb::Start, 0, &[row(0, 4)]).0);
    assert_eq!(state.job(JobId(0)).unwrap().restarts, 1);
    let earlier = state.apply(1, &Event::JobStopped { id: JobId(0) });
    assert_eq!(earlier, Err(StateError::TimeRunsBack { event_ns: 1, state_ns: 4_000_000_000 }));
}

#[test]
fn foreign_use_may_overlap_ours_and_go_again() {
    let mut state = busy();
    let foreign = |cpu_milli, device_mask| Event::ForeignUse { node: NodeId(0), cpu_milli, memory_mib: 0, device_mask };
    apply(&mut state, &foreign(20_000, 0b1000_0001));
    let node = state.node(NodeId(0)).unwrap();
    assert_eq!((node.cpu_milli_free(), node.devices_free_mask()), (0, 0b1110));
    apply(&mut state, &foreign(0, 0));
    let node = state.node(NodeId(0)).unwrap();
    assert_eq!((node.cpu_milli_free(), node.devices_free_mask()), (12_000, 0b1111));
    state.check_invariants().unwrap();
}

#[test]
fn queues_form_a_tree_of_bounded_depth() {
    let mut state = cluster(0);
    let set = |id: u32, parent| Event::QueueSet { id: QueueId(id), spec: queue(None, parent) };
    let unknown = StateError::UnknownParent { queue: QueueId(1), parent: QueueId(9) };
    assert_eq!(state.apply(0, &set(1, Some(9))), Err(unknown));
    let depth = DEPTH_MAX as u32;
    (1..depth).for_each(|id| apply(&mut state, &set(id, Some(id - 1))));
    assert_eq!(state.apply(0, &set(depth, Some(depth - 1))), Err(StateError::QueueDepth(QueueId(depth))));
    assert_eq!(state.apply(0, &set(0, Some(3))), Err(StateError::QueueDepth(QueueId(0))), "a cycle");
    apply(&mut state, &set(100, None));
    assert_eq!(state.apply(0, &set(0, Some(100))), Err(StateError::QueueDepth(QueueId(0))), "too deep below");
}

#[test]
fn a_queue_takes_its_use_along() {
    let mut state = busy();
    let set = |id: u32, parent| Event::QueueSet { id: QueueId(id), spec: queue(None, parent) };
    apply(&mut state, &set(1, None));
    apply(&mut state, &set(0, Some(1)));
    assert_eq!(state.queue(QueueId(1)).unwrap().usage.gpu_milli, 4_000);
    apply(&mut state, &set(0, None));
    assert_eq!(state.queue(QueueId(1)).unwrap().usage.gpu_milli, 0);
    state.check_invariants().unwrap();
}

#[test]
fn waiting_jobs_come_in_order_of_submission() {
    let mut state = cluster(0);
    for (id, submit_ns) in [(0, 7), (1, 3), (2, 7), (3, 0)] {
        submit(&mut state, id, JobSpec { submit_ns, ..job(vec![group(1)]) });
    }
    assert_eq!(state.waiting().map(|job| job.0).collect::<Vec<_>>(), [3, 1, 0, 2]);
}

#[test]
fn a_job_reports_a_bounded_number_of_metrics() {
    let mut state = busy();
    let report = |name: u32| Event::Observation { job: JobId(0), metric: name.to_string(), at_ns: 0, value: 1.0 };
    (0..256).for_each(|name| apply(&mut state, &report(name)));
    apply(&mut state, &report(3));
    let fault = StateError::TooManyMetrics { job: JobId(0), limit: 256 };
    assert_eq!(state.apply(0, &report(256)), Err(fault));
}
