use std::collections::VecDeque;

use coretuner_contract::NONE;
use coretuner_contract::cluster::{Delta, Refusal, Trigger};
use coretuner_contract::plan::{Plan, Verb};
use coretuner_core::event::{Batch, Command, Event, RemovalReason};
use coretuner_core::model::{
    ClassId, Eligibility, GroupSpec, JobId, JobPhase, JobSpec, NodeId, NodeSpec, QueueId, QueueSpec, ResizeRights,
    TimeNs,
};
use coretuner_core::port::{Answer, Backend, FaultKind, Policy, PolicyFault, PolicyIdentity};

use crate::{Controller, CycleError, Observed, RunError, WakeLimits};

fn fault(kind: FaultKind) -> PolicyFault {
    PolicyFault { kind, message: "unreachable".to_owned(), backtrace: Vec::new(), output_tail: Vec::new() }
}

/// Answers from a list; afterwards with empty plans.
struct Scripted {
    identity: PolicyIdentity,
    answers: VecDeque<Result<Plan, PolicyFault>>,
    resets: VecDeque<Result<(), PolicyFault>>,
    /// Asks for a wake-up this long after each cycle; 0 = never.
    wake_every_ns: u64,
    needs_image: bool,
    seen: Vec<Delta>,
    commits: u32,
}

impl Scripted {
    fn new(answers: Vec<Result<Plan, PolicyFault>>) -> Self {
        let identity = PolicyIdentity { name: "scripted".into(), version: "1".into(), digest: "native".into() };
        Self {
            identity,
            answers: answers.into(),
            resets: VecDeque::new(),
            wake_every_ns: 0,
            needs_image: false,
            seen: Vec::new(),
            commits: 0,
        }
    }
}

impl Policy for Scripted {
    fn identity(&self) -> &PolicyIdentity {
        &self.identity
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        self.seen.push(delta.clone());
        let mut plan = self.answers.pop_front().unwrap_or_else(|| Ok(Plan::default()))?;
        if self.wake_every_ns > 0 {
            plan.wake_at_ns = delta.now_ns + self.wake_every_ns;
        }
        Ok(Answer { plan, fuel: Some(42), memory_bytes: 65_536 })
    }

    fn needs_image(&self) -> bool {
        self.needs_image
    }

    fn commit(&mut self) {
        self.commits += 1;
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        self.resets.pop_front().unwrap_or(Ok(()))
    }
}

fn start(job: u32, node: u32) -> Plan {
    let mut plan = Plan::default();
    push(&mut plan, Verb::Start, job, node);
    plan
}

fn push(plan: &mut Plan, verb: Verb, job: u32, node: u32) {
    plan.actions.verb.push(verb);
    plan.actions.job.push(job);
    plan.actions.bundle.push(plan.actions.bundle.len() as u32);
    plan.actions.placement_start.push(plan.placements.group.len() as u32);
    plan.actions.placement_count.push(1);
    plan.actions.batch_per_gpu.push(0);
    plan.actions.reason.push(NONE);
    plan.placements.group.push(0);
    plan.placements.node.push(node);
    plan.placements.workers.push(1);
    plan.placements.cpu_milli.push(3_000);
    plan.placements.memory_mib.push(1_000);
    plan.placements.gpu_milli.push(1_000);
    plan.placements.device_mask.push(0);
}

fn submitted(id: u32) -> Event {
    let group = GroupSpec {
        role: "worker".into(),
        workers_min: 1,
        workers_max: 1,
        gpu_milli: 1_000,
        cpu_milli: 3_000,
        memory_mib: 1_000,
        cpu_milli_min: 0,
        cpu_milli_max: 0,
        memory_mib_min: 0,
        memory_mib_max: 0,
        resize_rights: ResizeRights::ALL,
    };
    let spec = JobSpec {
        name: format!("j{id}"),
        user: "u".into(),
        queue: QueueId(0),
        eligibility: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: 0,
        groups: vec![group],
        work_iterations: 0,
        estimated_duration_ns: 0,
        deadline_ns: 0,
        kind: None,
        labels: Vec::new(),
    };
    Event::JobSubmitted { id: JobId(id), spec }
}

/// One node with one GPU, and two jobs that want it.
fn first_batch() -> Batch {
    let node = NodeSpec {
        name: "n0".into(),
        gpu_kind: "V100".into(),
        cpu_milli: 8_000,
        memory_mib: 64_000,
        storage_mib_per_s: 0,
        devices: 1,
        device_memory_mib: 0,
        zone: None,
        rack: None,
        link_domain: None,
    };
    let queue = QueueSpec {
        name: "q".into(),
        parent: None,
        weight_milli: 1_000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli: None,
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: None,
    };
    let events = vec![
        Event::QueueSet { id: QueueId(0), spec: queue },
        Event::ClassSet { id: ClassId(0), nodes: Eligibility::All },
        Event::NodeSet { id: NodeId(0), spec: node },
        submitted(0),
        submitted(1),
    ];
    Batch { now_ns: 0, events, timer: false }
}

fn timer(now_ns: TimeNs) -> Batch {
    Batch { now_ns, events: Vec::new(), timer: true }
}

fn started(commands: &[Command]) -> Vec<u32> {
    commands.iter().filter(|command| matches!(command, Command::Start { .. })).map(|command| command.job().0).collect()
}

#[test]
fn a_plan_becomes_commands_and_verdicts_come_back() {
    let mut plan = start(1, 0);
    push(&mut plan, Verb::Start, 0, 0);
    let mut controller = Controller::new(Scripted::new(vec![Ok(plan)]));
    let outcome = controller.run_batch(&first_batch()).unwrap();
    assert_eq!(started(&outcome.commands), [1]);
    assert_eq!((outcome.report.accepted, outcome.report.refused[&Refusal::NoGpu]), (1, 1));
    assert_eq!((outcome.report.fuel, outcome.report.memory_bytes), (Some(42), 65_536));
    assert!(outcome.report.trigger.contains(Trigger::IMAGE | Trigger::ARRIVAL | Trigger::CAPACITY));
    controller.run_batch(&timer(1)).unwrap();
    let seen = &controller.policy().seen[1];
    assert_eq!(seen.trigger, Trigger::TIMER | Trigger::VERDICT);
    assert_eq!(seen.verdicts.as_ref().unwrap().action, [1]);
    assert_eq!(seen.job_states.as_ref().unwrap().id, [1], "a plan shows in the view when the host reports it");
    controller.run_batch(&timer(2)).unwrap();
    assert_eq!((controller.policy().seen[2].verdicts.clone(), controller.policy().commits), (None, 3));
}

#[test]
fn a_fault_is_answered_in_the_same_cycle_and_followed_by_an_image() {
    fn check(answer: Result<Plan, PolicyFault>, kind: FaultKind) {
        let mut controller = Controller::new(Scripted::new(vec![answer]));
        let outcome = controller.run_batch(&first_batch()).unwrap();
        assert_eq!(started(&outcome.commands), [0], "the fallback starts the first job");
        assert_eq!((outcome.report.fault.unwrap().kind, outcome.report.fallback), (kind, true));
        assert_eq!((outcome.report.fuel, controller.policy().commits), (None, 0));
        let next = controller.run_batch(&timer(1)).unwrap();
        assert_eq!((next.report.fault, next.report.fallback), (None, false));
        let seen = &controller.policy().seen[1];
        assert_eq!((seen.base_revision, seen.verdicts.clone()), (0, None));
        assert!(seen.trigger.contains(Trigger::IMAGE));
    }
    FaultKind::ALL.into_iter().for_each(|kind| check(Err(fault(kind)), kind));
    let mut torn = start(1, 0);
    torn.actions.reason.clear();
    check(Ok(torn), FaultKind::InvalidAnswer);
    let future = Plan { revision: u64::MAX, ..start(1, 0) };
    check(Ok(future), FaultKind::InvalidAnswer);
}

#[test]
fn a_fault_with_verdicts_pending_starts_clean() {
    let mut controller = Controller::new(Scripted::new(vec![Ok(start(9, 0)), Err(fault(FaultKind::Trap))]));
    controller.run_batch(&first_batch()).unwrap();
    controller.run_batch(&timer(1)).unwrap();
    controller.run_batch(&timer(2)).unwrap();
    let verdicts: Vec<bool> = controller.policy().seen.iter().map(|delta| delta.verdicts.is_some()).collect();
    assert_eq!(verdicts, [false, true, false]);
}

#[test]
fn a_policy_that_cannot_restart_is_tried_again_each_cycle() {
    let mut policy = Scripted::new(vec![Err(fault(FaultKind::Trap)), Ok(start(1, 0))]);
    policy.resets = [Err(fault(FaultKind::Start)), Err(fault(FaultKind::Start)), Ok(())].into();
    let mut controller = Controller::new(policy);
    let first = controller.run_batch(&first_batch()).unwrap();
    assert_eq!(first.report.fault.unwrap().kind, FaultKind::Trap);
    assert_eq!(first.report.reset_failed.unwrap().kind, FaultKind::Start);
    let second = controller.run_batch(&timer(1)).unwrap();
    assert_eq!((second.report.fault.unwrap().kind, second.delta), (FaultKind::Start, None));
    assert!(second.report.fallback && second.report.reset_failed.is_some());
    let gone = Batch {
        now_ns: 2,
        events: vec![Event::JobRemoved { id: JobId(0), reason: RemovalReason::Completed }],
        timer: false,
    };
    let third = controller.run_batch(&gone).unwrap();
    assert_eq!((third.report.fault, started(&third.commands)), (None, vec![1]));
    assert_eq!(controller.policy().seen[1].base_revision, 0);
}

#[test]
fn a_policy_gets_an_image_when_it_asks() {
    let mut policy = Scripted::new(Vec::new());
    policy.needs_image = true;
    let mut controller = Controller::new(policy);
    controller.run_batch(&first_batch()).unwrap();
    controller.run_batch(&timer(1)).unwrap();
    assert!(controller.policy().seen.iter().all(|delta| delta.base_revision == 0));
}

#[test]
fn a_command_that_the_backend_refuses_is_taken_back() {
    let mut controller = Controller::new(Scripted::new(vec![Ok(start(1, 0)), Ok(start(0, 0))]));
    let outcome = controller.run_batch(&first_batch()).unwrap();
    let verdicts = controller.refused(&outcome, &[JobId(1)]).unwrap();
    assert_eq!(verdicts.len(), 1);
    assert_eq!(controller.state().job(JobId(1)).unwrap().phase, JobPhase::Waiting);
    let next = controller.run_batch(&timer(1)).unwrap();
    assert_eq!(started(&next.commands), [0]);
    let told = controller.policy().seen[1].verdicts.clone().unwrap();
    assert_eq!((told.job, told.reason), (vec![1], vec![Refusal::BackendRefused]));
}

#[test]
fn an_event_that_cannot_be_true_ends_the_run() {
    let mut controller = Controller::new(Scripted::new(Vec::new()));
    let batch = Batch { now_ns: 0, events: vec![Event::JobStopped { id: JobId(4) }], timer: false };
    let error = controller.run_batch(&batch).unwrap_err();
    assert!(matches!(error, CycleError::Event { index: 0, .. }), "{error}");
}

#[test]
fn wake_ups_lie_ahead_and_apart() {
    fn check(wake_at_ns: u64, batch: Batch, expected: Option<u64>) {
        let plan = Plan { wake_at_ns, ..Plan::default() };
        let mut controller = Controller::new(Scripted::new(vec![Ok(plan)]));
        assert_eq!(controller.run_batch(&batch).unwrap().report.wake_at_ns, expected);
    }
    let batch = Batch { now_ns: 5_000_000, ..first_batch() };
    check(0, batch.clone(), None);
    check(5_000_000, batch.clone(), None);
    check(5_000_001, batch.clone(), Some(6_000_000));
    check(60_000_000_000, batch.clone(), Some(60_000_000_000));
    check(u64::MAX, batch, Some(u64::MAX));
    check(60_000_000_000, timer(0), None);
}

#[test]
fn a_fault_does_not_lose_a_wake_up() {
    let round = Plan { wake_at_ns: 60_000_000_000, ..Plan::default() };
    let mut controller = Controller::new(Scripted::new(vec![Ok(round), Err(fault(FaultKind::Trap))]));
    controller.run_batch(&first_batch()).unwrap();
    let outcome = controller.run_batch(&timer(30_000_000_000)).unwrap();
    assert_eq!((outcome.report.fallback, outcome.report.wake_at_ns), (true, Some(60_000_000_000)));
    assert_eq!(controller.run_batch(&timer(60_000_000_000)).unwrap().report.wake_at_ns, None);
}

/// Has one batch, then only wake-ups; refuses what it is told to.
struct Clockwork {
    first: Option<Batch>,
    refuse: Vec<u32>,
}

#[derive(Debug, thiserror::Error)]
#[error("no")]
struct Never;

impl Backend for Clockwork {
    type Error = Never;

    fn next(&mut self, wake_at_ns: Option<TimeNs>) -> Result<Option<Batch>, Never> {
        Ok(self.first.take().or_else(|| wake_at_ns.map(timer)))
    }

    fn execute(&mut self, _: TimeNs, commands: &[Command]) -> Result<Vec<(JobId, String)>, Never> {
        let refused = commands.iter().map(Command::job).filter(|job| self.refuse.contains(&job.0));
        Ok(refused.map(|job| (job, "no".to_owned())).collect())
    }
}

#[test]
fn a_run_ends_with_its_backend_and_tells_its_observer() {
    let mut controller = Controller::new(Scripted::new(vec![Ok(start(1, 0))]));
    let mut backend = Clockwork { first: Some(first_batch()), refuse: vec![1] };
    let mut seen = Vec::new();
    let mut observer = |cycle: &Observed<'_>| {
        seen.push((cycle.outcome.commands.len(), cycle.backend_refused.len(), cycle.backend_verdicts.len()));
    };
    controller.run(&mut backend, &mut observer).unwrap();
    assert_eq!(seen, [(1, 1, 1)]);
}

#[test]
fn wake_ups_without_end_are_an_error() {
    fn check(answers: Vec<Result<Plan, PolicyFault>>, expected_wakes: u32) {
        let mut policy = Scripted::new(answers);
        policy.wake_every_ns = 1;
        let limits = WakeLimits { idle_max: 5, quiet_max: 50, ..WakeLimits::default() };
        let mut controller = Controller::new(policy).wake_limits(limits);
        let mut backend = Clockwork { first: Some(first_batch()), refuse: Vec::new() };
        let error = controller.run(&mut backend, &mut ()).unwrap_err();
        let RunError::Cycle(CycleError::Stalled { wakes, since_ns, .. }) = error else { panic!("{error}") };
        assert_eq!((wakes, since_ns), (expected_wakes, 1_000_000));
    }
    check(Vec::new(), 6);
    check(vec![Ok(start(0, 0))], 51);
}

#[test]
fn rounds_that_nobody_asked_for_are_no_stall() {
    let mut controller =
        Controller::new(Scripted::new(Vec::new())).wake_limits(WakeLimits { idle_max: 2, ..WakeLimits::default() });
    controller.run_batch(&first_batch()).unwrap();
    for now_ns in 1..50 {
        controller.run_batch(&timer(now_ns)).unwrap();
    }
}
