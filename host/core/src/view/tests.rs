use crate::contract::cluster::{Delta, Refusal, Trigger};
use crate::contract::plan::Verb;
use crate::event::{Event, RemovalReason};
use crate::judge::Verdict;
use crate::model::{GroupSpec, JobId, NodeId, NodeState};
use crate::state::{Owner, State};
use crate::tests::build::{Planned, Row, apply, cluster, group, job, row, server, submit};

use super::Cursor;

fn delta(cursor: &mut Cursor, state: &State) -> Delta {
    cursor.delta(state, Trigger::empty(), &[])
}

#[test]
fn the_first_delta_is_an_image() {
    let mut state = cluster(2);
    submit(&mut state, 4, job(vec![group(1), group(2)]));
    let mut cursor = Cursor::new();
    let image = cursor.delta(&state, Trigger::ARRIVAL, &[]);
    assert_eq!((image.base_revision, image.revision), (0, state.revision()));
    assert_eq!(image.trigger, Trigger::ARRIVAL | Trigger::IMAGE);
    assert_eq!(image.nodes.unwrap().id, [0, 1]);
    assert_eq!(image.jobs.unwrap().group_count, [2]);
    assert_eq!(image.groups.unwrap().workers_min, [1, 2]);
    assert_eq!(image.job_states.unwrap().mine, [1]);
    assert_eq!((image.allocations, image.progress, image.device_shares), (None, None, None));
    assert_ne!(image.checksum, 0);
}

#[test]
fn an_unchanged_cluster_has_an_empty_delta() {
    let state = cluster(3);
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    let expected = Delta {
        base_revision: state.revision(),
        revision: state.revision(),
        checksum: state.checksum(Owner::ACTIVE),
        ..Delta::default()
    };
    assert_eq!(delta(&mut cursor, &state), expected);
}

#[test]
fn strings_are_sent_once() {
    let mut state = cluster(1);
    let mut cursor = Cursor::new();
    let image = delta(&mut cursor, &state);
    assert_eq!(image.strings, ["q", "n0", "V100", "r0"]);
    apply(&mut state, &Event::NodeSet { id: NodeId(1), spec: server("n1") });
    let change = delta(&mut cursor, &state);
    assert_eq!(change.strings, ["n1"]);
    let nodes = change.nodes.unwrap();
    assert_eq!((nodes.name, nodes.gpu_kind_name), (vec![4], vec![2]));
    cursor.reset();
    assert_eq!(delta(&mut cursor, &state).strings, ["q", "n0", "V100", "r0", "n1"]);
}

#[test]
fn a_delta_holds_what_changed_and_no_more() {
    let mut state = cluster(1_000);
    for id in 0..1_000 {
        submit(&mut state, id, job(vec![group(1)]));
    }
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    let plan = Planned::default().alone(Verb::Start, 7, &[row(3, 1)]);
    assert_eq!(state.judge(0, &plan.0).accepted, 1);
    let change = delta(&mut cursor, &state);
    assert_eq!((change.nodes, change.jobs, change.queues), (None, None, None));
    assert_eq!(change.node_states.unwrap().id, [3]);
    assert_eq!(change.job_states.unwrap().id, [7]);
    assert_eq!(change.allocations.unwrap().device_mask, [1]);
    assert_eq!(change.progress.unwrap().job, [7]);
}

#[test]
fn who_came_and_went_unseen_is_not_mentioned() {
    let mut state = cluster(1);
    submit(&mut state, 0, job(vec![group(1)]));
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    submit(&mut state, 1, job(vec![group(1)]));
    apply(&mut state, &Event::NodeSet { id: NodeId(5), spec: server("n5") });
    apply(&mut state, &Event::EstimatesChanged { jobs: vec![JobId(0), JobId(1)] });
    for id in [0, 1] {
        apply(&mut state, &Event::JobRemoved { id: JobId(id), reason: RemovalReason::Withdrawn });
    }
    apply(&mut state, &Event::NodeRemoved { id: NodeId(5) });
    apply(&mut state, &Event::NodeRemoved { id: NodeId(0) });
    let change = delta(&mut cursor, &state);
    assert_eq!((change.removed_jobs, change.removed_nodes), (vec![0], vec![0]));
    assert_eq!((change.jobs, change.job_states, change.nodes), (None, None, None));
    assert_eq!(change.estimates_changed, [0_u32; 0]);
}

#[test]
fn shares_come_with_their_nodes_state() {
    let mut state = cluster(2);
    submit(&mut state, 0, job(vec![GroupSpec { gpu_milli: 300, ..group(1) }]));
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    let rows = [Row { gpu_milli: 300, device_mask: 0b100, ..row(1, 1) }];
    assert_eq!(state.judge(0, &Planned::default().alone(Verb::Start, 0, &rows).0).accepted, 1);
    let shares = delta(&mut cursor, &state).device_shares.unwrap();
    assert_eq!((shares.node, shares.device, shares.gpu_milli_free), (vec![1], vec![2], vec![700]));
    apply(&mut state, &Event::JobStopped { id: JobId(0) });
    let change = delta(&mut cursor, &state);
    assert_eq!((change.node_states.unwrap().id, change.device_shares), (vec![1], None));
}

#[test]
fn observations_are_sent_one_by_one_and_the_last_ones_in_an_image() {
    let mut state = cluster(0);
    submit(&mut state, 0, job(vec![group(1)]));
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    for (metric, value) in [("loss", 3.0), ("loss", 2.0), ("noise", 1.0)] {
        apply(&mut state, &Event::Observation { job: JobId(0), metric: metric.to_owned(), at_ns: 0, value });
    }
    assert_eq!(delta(&mut cursor, &state).observations.unwrap().value, [3.0, 2.0, 1.0]);
    assert_eq!(delta(&mut cursor, &state).observations, None);
    assert_eq!(delta(&mut Cursor::new(), &state).observations.unwrap().value, [2.0, 1.0]);
}

#[test]
fn verdicts_are_told() {
    let state = cluster(0);
    let verdict = Verdict { action: 3, job: JobId(9), reason: Refusal::NoCpu };
    let told = Cursor::new().delta(&state, Trigger::TIMER, &[verdict]);
    assert!(told.trigger.contains(Trigger::VERDICT | Trigger::TIMER));
    let rows = told.verdicts.unwrap();
    assert_eq!((rows.action, rows.job, rows.reason), (vec![3], vec![9], vec![Refusal::NoCpu]));
}

#[test]
fn a_reader_that_is_far_behind_gets_an_image() {
    let mut state = cluster(1);
    let mut cursor = Cursor::new();
    delta(&mut cursor, &state);
    for turn in 0..70_000 {
        let node_state = if turn % 2 == 0 { NodeState::Cordoned } else { NodeState::Schedulable };
        apply(&mut state, &Event::NodeStateSet { id: NodeId(0), state: node_state });
    }
    let image = delta(&mut cursor, &state);
    assert_eq!((image.base_revision, image.strings.len()), (0, 4));
}

#[test]
fn a_view_says_whose_a_job_is() {
    let mut state = cluster(1);
    submit(&mut state, 0, job(vec![group(1)]));
    submit(&mut state, 1, job(vec![group(1)]));
    let (mut active, mut canary) = (Cursor::new(), Cursor::for_owner(Owner(1)));
    delta(&mut active, &state);
    assert!(state.assign(JobId(1), Owner(1)));
    let change = delta(&mut active, &state).job_states.unwrap();
    assert_eq!((change.id, change.mine), (vec![1], vec![0]));
    let image = delta(&mut canary, &state);
    assert_eq!(image.job_states.unwrap().mine, [0, 1]);
    assert_ne!(image.checksum, state.checksum(Owner::ACTIVE));
}
