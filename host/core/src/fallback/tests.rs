use proptest::prelude::*;

use super::*;
use crate::event::Event;
use crate::model::{Eligibility, JobSpec, NodeId, NodeState};
use crate::tests::build::{apply, cluster, group, job, queue, submit};

/// (node, workers, cpu_milli).
type Held = (u32, u32, u32);
/// Starts of the plan after it was judged.
type Starts = Vec<(u32, Vec<Held>)>;

fn starts(state: &mut State) -> Starts {
    let judgement = state.judge(0, &plan(state));
    assert_eq!(judgement.verdicts, []);
    state.check_invariants().unwrap();
    let rows = |id: JobId| {
        let rows = &state.job(id).unwrap().allocations;
        rows.iter().map(|row| (row.node.0, row.workers, row.cpu_milli)).collect()
    };
    judgement.commands.iter().map(|command| (command.job().0, rows(command.job()))).collect()
}

fn check(nodes: u32, jobs: &[Vec<GroupSpec>], expected: &[(u32, &[Held])]) {
    let mut state = cluster(nodes);
    for (id, groups) in jobs.iter().enumerate() {
        submit(&mut state, id as u32, job(groups.clone()));
    }
    let expected: Starts = expected.iter().map(|(id, rows)| (*id, rows.to_vec())).collect();
    assert_eq!(starts(&mut state), expected);
}

#[test]
fn gangs_go_whole_to_the_fewest_and_fullest_nodes() {
    check(2, &[vec![group(4)], vec![group(2)]], &[(0, &[(0, 4, 12_000)]), (1, &[(0, 2, 6_000)])]);
    check(2, &[vec![group(6)], vec![group(4)]], &[(0, &[(0, 6, 18_000)]), (1, &[(1, 4, 12_000)])]);
    check(3, &[vec![group(12)]], &[(0, &[(0, 4, 12_000), (2, 8, 24_000)])]);
    check(1, &[vec![group(9)]], &[]);
}

#[test]
fn smaller_jobs_pass_one_that_does_not_fit() {
    check(1, &[vec![group(6)], vec![group(4)], vec![group(2)]], &[(0, &[(0, 6, 18_000)]), (2, &[(0, 2, 6_000)])]);
}

#[test]
fn less_cpu_is_given_where_the_request_does_not_fit() {
    let hungry = GroupSpec { cpu_milli: 12_000, cpu_milli_min: 2_000, ..group(2) };
    check(1, &[vec![hungry.clone()], vec![hungry]], &[(0, &[(0, 2, 24_000)])]);
    let hungry = GroupSpec { cpu_milli: 9_000, cpu_milli_min: 2_000, ..group(2) };
    check(1, &[vec![hungry.clone()], vec![hungry]], &[(0, &[(0, 2, 18_000)]), (1, &[(0, 2, 4_000)])]);
}

#[test]
fn every_group_gets_its_workers() {
    let launcher =
        GroupSpec { gpu_milli: 0, cpu_milli: 1_000, memory_mib: 0, memory_mib_min: 0, memory_mib_max: 0, ..group(1) };
    check(1, &[vec![group(7), launcher.clone()]], &[(0, &[(0, 7, 21_000), (0, 1, 1_000)])]);
    check(1, &[vec![group(8), launcher]], &[(0, &[(0, 8, 8_000), (0, 1, 1_000)])]);
    let share = GroupSpec { gpu_milli: 500, ..group(2) };
    check(1, &[vec![share]], &[(0, &[(0, 2, 6_000)])]);
}

#[test]
fn ceilings_classes_and_states_bind() {
    let mut state = cluster(3);
    apply(&mut state, &Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(vec![NodeId(0), NodeId(2)]) });
    apply(&mut state, &Event::QueueSet { id: QueueId(1), spec: queue(Some(2_000), Some(0)) });
    apply(&mut state, &Event::NodeStateSet { id: NodeId(0), state: NodeState::Cordoned });
    submit(&mut state, 0, JobSpec { eligibility: ClassId(1), ..job(vec![group(8)]) });
    submit(&mut state, 1, JobSpec { queue: QueueId(1), ..job(vec![group(3)]) });
    submit(&mut state, 2, JobSpec { queue: QueueId(1), ..job(vec![group(2)]) });
    assert_eq!(starts(&mut state), [(0, vec![(2, 8, 24_000)]), (2, vec![(1, 2, 6_000)])]);
    assert_eq!(starts(&mut state), [], "what runs stays as it is");
}

#[test]
fn a_cycle_looks_at_a_bounded_number_of_jobs() {
    let mut state = cluster(1);
    for id in 0..JOBS_LOOKED_AT_MAX as u32 {
        submit(&mut state, id, job(vec![group(9)]));
    }
    submit(&mut state, 5_000, job(vec![group(1)]));
    assert_eq!(starts(&mut state), []);
}

/// `jobs` jobs of drawn kinds on `nodes` nodes; `draw(n)` is below n.
fn crowd(nodes: u32, jobs: u32, mut draw: impl FnMut(u32) -> u32) -> State {
    let mut state = cluster(nodes);
    let some = (0..nodes).filter(|_| draw(3) > 0).map(NodeId).collect();
    apply(&mut state, &Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(some) });
    apply(&mut state, &Event::QueueSet { id: QueueId(1), spec: queue(Some(6 * nodes * 1_000), None) });
    for id in 0..jobs {
        let gpu_milli = [1_000, 1_000, 2_000, 300, 0][draw(5) as usize];
        let cpu_milli = 1_000 * (1 + draw(6));
        let first = GroupSpec { gpu_milli, cpu_milli, memory_mib: 8_000 * (2 + draw(6)), ..group(1 + draw(12)) };
        let second = GroupSpec { gpu_milli: 500 * draw(2), ..group(1 + draw(2)) };
        let groups = if draw(4) == 0 { vec![first, second] } else { vec![first] };
        let (class, in_queue) = (ClassId(draw(2)), QueueId(draw(2)));
        submit(&mut state, id, JobSpec { eligibility: class, queue: in_queue, ..job(groups) });
    }
    state
}

proptest! {
    #[test]
    fn every_node_looked_at_anew_gives_the_same_plan(nodes in 1..7_u32, jobs in 1..40_u32, seed in any::<u64>()) {
        let mut drawn = seed;
        let state = crowd(nodes, jobs, |below| {
            // Knuth's linear congruential generator; the high bits are the good ones.
            drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (drawn >> 33) as u32 % below
        });
        prop_assert_eq!(plan(&state), slow::plan(&state));
    }
}

#[test]
fn the_work_of_a_plan_grows_with_nodes_and_jobs_not_their_product() {
    let check = |nodes: u32, jobs: u32| {
        let mut state = cluster(nodes);
        (0..jobs).for_each(|id| submit(&mut state, id, job(vec![group(1 + id % 2)])));
        let mut search = Search::new(&state);
        let plan = search.plan(&state);
        let looks = search.free.looks();
        assert_eq!(plan.actions.job.len(), jobs as usize);
        assert!(looks <= u64::from(nodes + 2 * jobs), "{looks} looks for {jobs} jobs on {nodes} nodes");
    };
    check(100, 100);
    check(1_000, 100);
    check(1_000, 1_000);
}
