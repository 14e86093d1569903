use crate::contract::cluster::Refusal::{self, *};
use crate::contract::plan::{Plan, Verb};
use crate::event::{Command, Event};
use crate::model::{
    ClassId, Eligibility, GroupSpec, JobId, JobPhase, JobSpec, NodeId, NodeState, QueueId, ResizeRights,
};
use crate::state::{Owner, State};
use crate::tests::build::{Planned, Row, apply, cluster, group, job, queue, row, submit};

use super::{Judgement, PLAN_ACTIONS_MAX, PlanDefect, check_shape};

fn judged(state: &mut State, plan: Planned) -> Judgement {
    let judgement = state.judge(state.now_ns(), &plan.0);
    state.check_invariants().unwrap();
    judgement
}

/// (action, reason) of each verdict.
fn refusals(judgement: &Judgement) -> Vec<(u32, Refusal)> {
    judgement.verdicts.iter().map(|verdict| (verdict.action, verdict.reason)).collect()
}

fn start(job: u32, rows: &[Row]) -> Planned {
    Planned::default().alone(Verb::Start, job, rows)
}

/// One server; jobs 0 and 1 have the given spec.
fn two_jobs(spec: JobSpec) -> State {
    let mut state = cluster(2);
    submit(&mut state, 0, spec.clone());
    submit(&mut state, 1, spec);
    state
}

#[test]
fn a_start_is_checked_in_every_dimension() {
    fn check(rows: &[Row], expected: &[Refusal]) {
        let mut state = two_jobs(job(vec![group(4)]));
        let judgement = judged(&mut state, start(0, rows));
        let reasons: Vec<Refusal> = judgement.verdicts.iter().map(|verdict| verdict.reason).collect();
        assert_eq!(reasons, expected, "{rows:?}");
        assert_eq!(judgement.commands.len(), usize::from(expected.is_empty()));
    }
    let whole = row(0, 4);
    check(&[whole], &[]);
    check(&[row(0, 3), row(1, 1)], &[]);
    check(&[row(0, 3)], &[GangIncomplete]);
    check(&[], &[GangIncomplete]);
    check(&[row(0, 5)], &[OutOfRange]);
    check(&[row(0, 2), row(0, 2)], &[OutOfRange]);
    check(&[row(9, 4)], &[UnknownId]);
    check(&[Row { group: 1, ..whole }], &[OutOfRange]);
    check(&[Row { workers: 0, ..whole }], &[OutOfRange]);
    check(&[Row { gpu_milli: 3_000, ..whole }], &[OutOfRange]);
    check(&[Row { cpu_milli: 3_999, ..whole }], &[OutOfRange]);
    check(&[Row { cpu_milli: 48_001, ..whole }], &[OutOfRange]);
    check(&[Row { cpu_milli: 25_000, ..whole }], &[NoCpu]);
    check(&[Row { memory_mib: 39_999, ..whole }], &[OutOfRange]);
    check(&[Row { memory_mib: 512_000, ..whole }], &[]);
    check(&[Row { device_mask: 0b1111_0000, ..whole }], &[]);
    check(&[Row { device_mask: 0b111, ..whole }], &[OutOfRange]);
    check(&[Row { device_mask: 0b1111 << 5, ..whole }], &[OutOfRange]);
}

#[test]
fn capacity_runs_out() {
    fn check(first: Row, second: Row, expected: Refusal) {
        let mut state = two_jobs(job(vec![group(4)]));
        let judgement = judged(&mut state, start(0, &[first]).alone(Verb::Start, 1, &[second]));
        assert_eq!(refusals(&judgement), [(1, expected)]);
    }
    let whole = row(0, 4);
    check(Row { cpu_milli: 20_000, ..whole }, whole, NoCpu);
    check(Row { memory_mib: 500_000, ..whole }, whole, NoMemory);
    check(Row { device_mask: 0b1111, ..whole }, Row { device_mask: 0b11_1100, ..whole }, NoGpu);
}

#[test]
fn the_host_picks_the_lowest_free_devices() {
    let mut state = two_jobs(job(vec![group(2)]));
    judged(&mut state, start(0, &[Row { device_mask: 0b10, gpu_milli: 2_000, ..row(0, 2) }]));
    judged(&mut state, start(0, &[Row { device_mask: 0b1010, ..row(0, 2) }]));
    judged(&mut state, start(1, &[row(0, 2)]));
    assert_eq!(state.job(JobId(1)).unwrap().allocations[0].device_mask, 0b101);
}

#[test]
fn shares_fill_the_most_used_device_that_fits() {
    let mut state = cluster(1);
    for (id, gpu_milli) in [(0, 300), (1, 600), (2, 200), (3, 400), (4, 100)] {
        submit(&mut state, id, job(vec![GroupSpec { gpu_milli, ..group(1) }]));
        judged(&mut state, start(id, &[Row { gpu_milli, ..row(0, 1) }]));
    }
    let device = |id| state.job(JobId(id)).unwrap().allocations[0].device_mask.trailing_zeros();
    // 300 + 600 leave 100 on device 0; 200 and 400 open and fill device 1; the last 100 fits device 0 exactly.
    assert_eq!([0, 1, 2, 3, 4].map(device), [0, 0, 1, 1, 0]);
    assert_eq!(state.node(NodeId(0)).unwrap().shares().collect::<Vec<_>>(), [(1, 400)]);
}

#[test]
fn workers_of_a_share_stay_on_one_device() {
    let mut state = cluster(1);
    submit(&mut state, 0, job(vec![GroupSpec { gpu_milli: 400, ..group(3) }]));
    let judgement = judged(&mut state, start(0, &[Row { gpu_milli: 1_200, ..row(0, 3) }]));
    assert_eq!(refusals(&judgement), [(0, OutOfRange)]);
}

/// Two servers, each full with one 8-GPU job.
fn two_full_nodes() -> State {
    let mut state = two_jobs(job(vec![group(8)]));
    let judgement = judged(&mut state, start(0, &[row(0, 8)]).alone(Verb::Start, 1, &[row(1, 8)]));
    assert_eq!(judgement.accepted, 2);
    state
}

#[test]
fn a_swap_of_two_full_nodes_is_one_bundle() {
    let mut state = two_full_nodes();
    let swap = Planned::default().alone(Verb::Rescale, 0, &[row(1, 8)]).with(Verb::Rescale, 1, &[row(0, 8)]);
    let judgement = judged(&mut state, swap);
    assert_eq!((refusals(&judgement), judgement.accepted), (vec![], 2));
    assert_eq!(state.job(JobId(0)).unwrap().allocations[0].node, NodeId(1));
    assert_eq!(state.job(JobId(0)).unwrap().restarts, 1);
}

#[test]
fn a_swap_in_two_bundles_is_refused() {
    let mut state = two_full_nodes();
    let before = state.revision();
    let swap = Planned::default().alone(Verb::Rescale, 0, &[row(1, 8)]).alone(Verb::Rescale, 1, &[row(0, 8)]);
    let judgement = judged(&mut state, swap);
    assert_eq!(refusals(&judgement), [(0, NoCpu), (1, NoCpu)]);
    assert_eq!((judgement.commands.len(), state.revision()), (0, before));
}

#[test]
fn a_bundle_stands_or_falls_as_a_whole() {
    let mut state = two_full_nodes();
    submit(&mut state, 2, job(vec![group(8)]));
    let bundle = Planned::default().alone(Verb::Preempt, 0, &[]).with(Verb::Start, 2, &[row(7, 8)]);
    assert_eq!(refusals(&judged(&mut state, bundle)), [(0, GroupBroken), (1, UnknownId)]);
    assert_eq!(state.job(JobId(0)).unwrap().phase, JobPhase::Running);

    let bundle = Planned::default().alone(Verb::Start, 2, &[row(0, 8)]).with(Verb::Preempt, 0, &[]);
    let judgement = judged(&mut state, bundle);
    let order: Vec<JobId> = judgement.commands.iter().map(Command::job).collect();
    assert_eq!(order, [JobId(0), JobId(2)], "what gives back goes out first");
}

#[test]
fn commands_of_a_bundle_give_back_before_they_take() {
    let mut state = two_jobs(job(vec![group(1)]));
    for id in 2..5 {
        submit(&mut state, id, job(vec![group(1)]));
    }
    let small = row(0, 1);
    let running = (0..4).fold(Planned::default(), |plan, id| plan.alone(Verb::Start, id, &[small]));
    assert_eq!(judged(&mut state, running).accepted, 4);
    let bundle = Planned::default()
        .alone(Verb::Start, 4, &[small])
        .with(Verb::Resize, 0, &[Row { cpu_milli: 4_000, ..small }])
        .with(Verb::Rescale, 1, &[row(1, 1)])
        .with(Verb::Resize, 2, &[Row { cpu_milli: 2_000, ..small }])
        .with(Verb::Preempt, 3, &[]);
    let judgement = judged(&mut state, bundle);
    let order: Vec<u32> = judgement.commands.iter().map(|command| command.job().0).collect();
    assert_eq!(order, [3, 2, 1, 0, 4]);
}

#[test]
fn a_resize_stays_in_place_and_within_rights() {
    fn check(rights: ResizeRights, change: impl Fn(Row) -> Row, expected: &[Refusal]) {
        let mut state = two_jobs(job(vec![GroupSpec { resize_rights: rights, ..group(2) }]));
        judged(&mut state, start(0, &[row(0, 2)]));
        let judgement = judged(&mut state, Planned::default().alone(Verb::Resize, 0, &[change(row(0, 2))]));
        let reasons: Vec<Refusal> = judgement.verdicts.iter().map(|verdict| verdict.reason).collect();
        assert_eq!(reasons, expected);
    }
    let all = ResizeRights::ALL;
    let none = ResizeRights::NONE;
    check(all, |row| Row { cpu_milli: 24_000, memory_mib: 200_000, ..row }, &[]);
    check(all, |row| Row { cpu_milli: 24_001, ..row }, &[OutOfRange]);
    check(all, |row| Row { memory_mib: 256_001, ..row }, &[OutOfRange]);
    check(all, |row| Row { node: 1, ..row }, &[OutOfRange]);
    check(all, |row| Row { group: 1, ..row }, &[OutOfRange]);
    check(all, |row| Row { workers: 1, gpu_milli: 1_000, ..row }, &[OutOfRange]);
    check(all, |row| Row { device_mask: 0b11, ..row }, &[]);
    check(all, |row| Row { device_mask: 0b110, ..row }, &[OutOfRange]);
    check(none, |row| Row { cpu_milli: 7_000, ..row }, &[OutOfRange]);
    check(none, |row| Row { memory_mib: 129_000, ..row }, &[OutOfRange]);
    check(ResizeRights { memory_grow: true, ..none }, |row| Row { memory_mib: 129_000, ..row }, &[]);
    check(ResizeRights { memory_grow: true, ..none }, |row| Row { memory_mib: 127_000, ..row }, &[OutOfRange]);
    check(ResizeRights { memory_shrink: true, ..none }, |row| Row { memory_mib: 127_000, ..row }, &[]);
    check(none, |row| row, &[]);
}

#[test]
fn a_resize_that_changes_nothing_costs_nothing() {
    let mut state = two_jobs(job(vec![group(2)]));
    judged(&mut state, start(0, &[row(0, 2)]));
    let before = state.revision();
    let judgement = judged(&mut state, Planned::default().alone(Verb::Resize, 0, &[row(0, 2)]));
    assert_eq!((judgement.accepted, judgement.commands.len(), state.revision()), (1, 0, before));
}

#[test]
fn a_resize_names_only_the_rows_that_change() {
    let mut state = two_jobs(job(vec![group(4)]));
    judged(&mut state, start(0, &[row(0, 2), row(1, 2)]));
    judged(&mut state, Planned::default().alone(Verb::Resize, 0, &[Row { cpu_milli: 9_000, ..row(1, 2) }]));
    let cpu: Vec<u32> = state.job(JobId(0)).unwrap().allocations.iter().map(|row| row.cpu_milli).collect();
    assert_eq!(cpu, [6_000, 9_000]);
}

#[test]
fn a_job_that_stays_on_an_overdrawn_node_may_shrink_there() {
    let mut state = two_jobs(job(vec![group(8)]));
    judged(&mut state, start(0, &[row(0, 8)]));
    apply(&mut state, &Event::ForeignUse { node: NodeId(0), cpu_milli: 6_000, memory_mib: 0, device_mask: 1 });
    let resize = |cpu_milli| Planned::default().alone(Verb::Resize, 0, &[Row { cpu_milli, ..row(0, 8) }]);
    assert_eq!(refusals(&judged(&mut state, resize(24_001))), [(0, NoCpu)]);
    assert_eq!(refusals(&judged(&mut state, resize(22_000))), []);
    assert_eq!(state.node(NodeId(0)).unwrap().cpu_milli_free(), 0);
    assert_eq!(refusals(&judged(&mut state, resize(17_000))), []);
    assert_eq!(state.node(NodeId(0)).unwrap().cpu_milli_free(), 1_000);
}

#[test]
fn verbs_need_the_right_phase() {
    fn check(verb: Verb, running: bool, preemptible: bool, expected: &[Refusal]) {
        let mut state = two_jobs(JobSpec { preemptible, ..job(vec![group(1)]) });
        if running {
            judged(&mut state, start(0, &[row(0, 1)]));
        }
        let judgement = judged(&mut state, Planned::default().alone(verb, 0, &[row(0, 1)]));
        let reasons: Vec<Refusal> = judgement.verdicts.iter().map(|verdict| verdict.reason).collect();
        assert_eq!(reasons, expected, "{verb:?} running {running}");
    }
    check(Verb::Start, false, true, &[]);
    check(Verb::Start, true, true, &[WrongState]);
    check(Verb::Hold, false, true, &[]);
    check(Verb::Hold, true, true, &[WrongState]);
    for verb in [Verb::Resize, Verb::Rescale, Verb::Preempt] {
        check(verb, false, true, &[WrongState]);
        check(verb, true, true, &[]);
    }
    check(Verb::Resize, true, false, &[]);
    check(Verb::Rescale, true, false, &[WrongState]);
    check(Verb::Preempt, true, false, &[WrongState]);
}

#[test]
fn a_job_that_must_leave_its_node_may_be_moved() {
    let mut state = two_jobs(JobSpec { preemptible: false, ..job(vec![group(1)]) });
    judged(&mut state, start(0, &[row(0, 1)]));
    apply(&mut state, &Event::NodeStateSet { id: NodeId(0), state: NodeState::Draining });
    let rescale = |node| Planned::default().alone(Verb::Rescale, 0, &[row(node, 1)]);
    assert_eq!(refusals(&judged(&mut state, rescale(0))), [(0, NotEligible)]);
    assert_eq!(refusals(&judged(&mut state, rescale(1))), []);
}

#[test]
fn a_cordoned_node_keeps_its_jobs_and_takes_no_others() {
    let mut state = two_jobs(job(vec![group(1)]));
    judged(&mut state, start(0, &[row(0, 1)]));
    apply(&mut state, &Event::NodeStateSet { id: NodeId(0), state: NodeState::Cordoned });
    let plan = start(1, &[row(0, 1)]).alone(Verb::Rescale, 0, &[Row { cpu_milli: 4_000, ..row(0, 1) }]);
    assert_eq!(refusals(&judged(&mut state, plan)), [(0, NotEligible)]);
}

#[test]
fn eligibility_is_the_hosts() {
    let mut state = cluster(2);
    apply(&mut state, &Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(vec![NodeId(1)]) });
    submit(&mut state, 0, JobSpec { eligibility: ClassId(1), ..job(vec![group(1)]) });
    assert_eq!(refusals(&judged(&mut state, start(0, &[row(0, 1)]))), [(0, NotEligible)]);
    assert_eq!(refusals(&judged(&mut state, start(0, &[row(1, 1)]))), []);
}

#[test]
fn a_ceiling_binds_the_whole_line_of_queues() {
    let mut state = cluster(2);
    let set = |id, maximum, parent| Event::QueueSet { id: QueueId(id), spec: queue(maximum, parent) };
    apply(&mut state, &set(1, Some(8_000), Some(0)));
    apply(&mut state, &set(2, None, Some(1)));
    submit(&mut state, 0, JobSpec { queue: QueueId(2), ..job(vec![group(6)]) });
    submit(&mut state, 1, JobSpec { queue: QueueId(1), ..job(vec![group(3)]) });
    let plan = start(0, &[row(0, 6)]).alone(Verb::Start, 1, &[row(1, 3)]);
    assert_eq!(refusals(&judged(&mut state, plan)), [(1, Quota)]);
    // In one bundle the ceiling is judged by the net effect, too.
    let plan = Planned::default().alone(Verb::Preempt, 0, &[]).with(Verb::Start, 1, &[row(1, 3)]);
    assert_eq!(refusals(&judged(&mut state, plan)), []);
    assert_eq!(state.queue(QueueId(0)).unwrap().usage.gpu_milli, 3_000);
}

#[test]
fn a_lowered_ceiling_stops_growth_only() {
    let mut state = two_jobs(job(vec![group(2)]));
    judged(&mut state, start(0, &[row(0, 2)]));
    let mut lowered = queue(None, None);
    lowered.maximum_cpu_milli = Some(1_000);
    apply(&mut state, &Event::QueueSet { id: QueueId(0), spec: lowered });
    let resize = |cpu_milli| Planned::default().alone(Verb::Resize, 0, &[Row { cpu_milli, ..row(0, 2) }]);
    assert_eq!(refusals(&judged(&mut state, resize(7_000))), [(0, Quota)]);
    assert_eq!(refusals(&judged(&mut state, resize(5_000))), []);
    assert_eq!(refusals(&judged(&mut state, start(1, &[row(1, 2)]))), [(0, Quota)]);
}

#[test]
fn one_action_per_job() {
    let mut state = two_jobs(job(vec![group(1)]));
    let plan = start(0, &[row(0, 1)]).alone(Verb::Preempt, 0, &[]).alone(Verb::Start, 1, &[row(0, 1)]);
    assert_eq!(refusals(&judged(&mut state, plan)), [(1, Superseded)]);
}

#[test]
fn a_policy_acts_on_its_own_jobs_only() {
    let mut state = two_jobs(job(vec![group(1)]));
    assert!(state.assign(JobId(1), Owner(7)));
    let plan = start(0, &[row(0, 1)]).alone(Verb::Start, 1, &[row(0, 1)]);
    let mut canary = state.clone();
    assert_eq!(refusals(&judged(&mut state, plan.clone())), [(1, NotMine)]);
    let judgement = canary.judge_as(Owner(7), 0, &plan.0);
    assert_eq!(refusals(&judgement), [(0, NotMine)]);
    canary.check_invariants().unwrap();
}

#[test]
fn placement_rows_are_named_once_in_total() {
    let mut state = two_jobs(job(vec![group(1)]));
    let mut plan = start(0, &[row(0, 1)]).alone(Verb::Start, 1, &[row(0, 1)]);
    plan.0.actions.placement_start[1] = 0;
    plan.0.actions.placement_count[0] = 2;
    let judgement = judged(&mut state, plan);
    assert_eq!(refusals(&judgement), [(0, OutOfRange), (1, OutOfRange)]);
}

#[test]
fn a_hold_is_kept_with_its_reason() {
    let mut state = two_jobs(job(vec![group(1)]));
    let before = state.revision();
    let judgement = judged(&mut state, Planned::default().alone(Verb::Hold, 0, &[]).because("no-gpus"));
    assert_eq!(judgement.holds[0].reason.as_ref().unwrap().code, "no-gpus");
    assert_eq!(state.job(JobId(0)).unwrap().reason.as_ref().unwrap().code, "no-gpus");
    assert_eq!(state.revision(), before, "a hold changes nothing that a policy sees");
    let mut plan = Planned::default().alone(Verb::Hold, 1, &[]);
    plan.0.actions.reason[0] = 5;
    assert_eq!(refusals(&judged(&mut state, plan)), [(0, OutOfRange)]);
}

#[test]
fn a_plan_is_judged_up_to_its_limit() {
    let mut state = two_jobs(job(vec![group(1)]));
    let mut plan = Planned::default();
    for action in 0..PLAN_ACTIONS_MAX as u32 + 2 {
        plan.push(Verb::Hold, if action == 0 { 0 } else { 9 }, &[], action);
    }
    let judgement = judged(&mut state, plan);
    assert_eq!((judgement.accepted, judgement.verdicts.len()), (1, PLAN_ACTIONS_MAX));
    assert_eq!(refusals(&judgement).last(), Some(&(PLAN_ACTIONS_MAX as u32, PlanTooLong)));
}

#[test]
fn unreadable_plans_are_told_apart() {
    fn check(spoil: impl Fn(&mut Plan), expected: &PlanDefect) {
        let mut plan = start(0, &[row(0, 1)]).alone(Verb::Start, 1, &[row(0, 1)]).0;
        spoil(&mut plan);
        assert_eq!(check_shape(&plan, 5).as_ref(), Err(expected));
        let mut state = two_jobs(job(vec![group(1)]));
        let judgement = state.judge(0, &plan);
        assert_eq!((judgement.accepted, refusals(&judgement)), (0, vec![(0, OutOfRange)]));
    }
    let columns = |column, rows, first, expected| PlanDefect::Columns { column, rows, first, expected };
    check(|plan| _ = plan.actions.reason.pop(), &columns("reason", 1, "verb", 2));
    check(|plan| plan.placements.node.push(3), &columns("node", 3, "group", 2));
    check(|plan| plan.revision = 99, &PlanDefect::Newer { plan: 99, state: 5 });
    check(|plan| plan.actions.bundle[0] = 9, &PlanDefect::BundleFalls { action: 1, before: 9, bundle: 1 });
}

#[test]
fn progress_stands_still_until_the_backend_reports() {
    let mut state = two_jobs(job(vec![group(2)]));
    state.judge(10_000_000_000, &start(0, &[row(0, 2)]).0);
    let point = state.job(JobId(0)).unwrap().progress;
    assert_eq!((point.since_ns, point.iterations_per_s, point.service_gpu_s_per_s), (10_000_000_000, 0.0, 2.0));
    state.judge(15_000_000_000, &Planned::default().alone(Verb::Preempt, 0, &[]).0);
    let point = state.job(JobId(0)).unwrap().progress;
    assert_eq!((point.service_gpu_s, point.service_gpu_s_per_s), (10.0, 0.0));
}

#[test]
fn what_the_backend_refuses_is_rolled_back() {
    let mut state = two_full_nodes();
    let before: Vec<_> = state.jobs().map(|job| job.allocations.clone()).collect();
    let swap = Planned::default().alone(Verb::Rescale, 0, &[row(1, 8)]).with(Verb::Rescale, 1, &[row(0, 8)]);
    let judgement = judged(&mut state, swap);
    let verdicts = state.roll_back(&judgement, &[JobId(1), JobId(0)]).unwrap();
    let actions: Vec<_> = verdicts.iter().map(|verdict| (verdict.action, verdict.reason)).collect();
    assert_eq!(actions, [(0, BackendRefused), (1, BackendRefused)]);
    assert_eq!(state.jobs().map(|job| job.allocations.clone()).collect::<Vec<_>>(), before);
    assert_eq!(state.job(JobId(0)).unwrap().restarts, 0);
    state.check_invariants().unwrap();
}

#[test]
fn half_of_a_swap_cannot_be_rolled_back() {
    let mut state = two_full_nodes();
    let swap = Planned::default().alone(Verb::Rescale, 0, &[row(1, 8)]).with(Verb::Rescale, 1, &[row(0, 8)]);
    let judgement = judged(&mut state, swap);
    assert!(state.roll_back(&judgement, &[JobId(1)]).is_err());
    state.check_invariants().unwrap();
}
