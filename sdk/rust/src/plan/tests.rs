use crate::testing::{Bed, JobBuilder, Outcome, job};
use crate::{Cycle, JobId, NodeId, Placement, PlanError, Policy, Reason, Resize};

type Script = fn(&mut Cycle<'_>);

thread_local! {
    static SCRIPT: std::cell::Cell<Script> = const { std::cell::Cell::new(|_| {}) };
}

/// Does what the test says.
struct Scripted;

impl Policy for Scripted {
    type Config = ();
    const NAME: &'static str = "scripted";
    const SUMMARY: &'static str = "";
    const REASONS: &'static [Reason] = &[Reason { code: "why", text: "", arguments: &["a"] }];

    fn new((): ()) -> Result<Self, String> {
        Ok(Self)
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        (SCRIPT.get())(cycle);
    }
}

/// Two nodes with 4 GPUs, 8 cores and 10,000 MiB.
fn bed(jobs: impl IntoIterator<Item = JobBuilder>) -> Bed<Scripted> {
    let mut bed = Bed::new("null");
    bed.nodes(2, 4, 8, 10_000);
    jobs.into_iter().for_each(|job| bed.submit(job));
    bed
}

fn run(bed: &mut Bed<Scripted>, script: Script) -> Outcome {
    SCRIPT.set(script);
    bed.cycle()
}

fn row(node: u32, workers: u32, cores: u32) -> Placement {
    Placement {
        group: 0,
        node: NodeId(node),
        workers,
        cpu_milli: cores * 1000,
        memory_mib: workers * 1000,
        device_mask: 0,
    }
}

fn start(cycle: &mut Cycle<'_>, id: u32, rows: &[Placement]) -> Result<(), PlanError> {
    cycle.plan.start(JobId(id), rows).map(|_| ())
}

#[test]
fn what_a_plan_takes_is_gone_and_what_it_gives_back_is_free() {
    let mut bed = bed([job(1).gpus(4), job(2).gpus(2), job(3).gpus(2)]);
    let outcome = run(&mut bed, |cycle| {
        assert_eq!(start(cycle, 1, &[row(0, 4, 4)]), Ok(()));
        assert_eq!(start(cycle, 2, &[row(0, 2, 2)]), Err(PlanError::NoGpu(NodeId(0))));
        assert_eq!(cycle.plan.free(NodeId(0)).map(|free| (free.gpus(), free.cpu_milli)), Some((0, 4000)));
        assert_eq!(cycle.cluster.node(NodeId(0)).map(|node| node.free.gpus()), Some(4));
    });
    assert_eq!(outcome.started, [1]);
    let outcome = run(&mut bed, |cycle| {
        assert!(cycle.plan.preempt(JobId(1)).is_ok());
        assert_eq!(start(cycle, 2, &[row(0, 2, 2)]), Ok(()));
        assert_eq!(start(cycle, 3, &[row(0, 2, 2)]), Ok(()));
    });
    assert_eq!((outcome.preempted, outcome.started), (vec![1], vec![2, 3]));
}

#[test]
fn a_bundle_that_fails_leaves_nothing() {
    let mut bed = bed([job(1).gpus(4), job(2).gpus(8)]);
    let outcome = run(&mut bed, |cycle| {
        let failed = cycle.plan.bundle(|plan| {
            plan.start(JobId(1), &[row(0, 4, 4)])?.because("why", &[1.0]);
            plan.start(JobId(2), &[row(0, 4, 4), row(1, 4, 4)])?;
            Ok::<_, PlanError>(())
        });
        assert_eq!(failed, Err(PlanError::NoGpu(NodeId(0))));
        assert!(cycle.plan.is_empty());
        assert!(!cycle.plan.has_acted_on(JobId(1)));
        assert_eq!(cycle.plan.free(NodeId(0)).map(crate::Free::gpus), Some(4));
        assert!(cycle.plan.start(JobId(1), &[row(1, 4, 4)]).is_ok());
    });
    assert_eq!((outcome.started, outcome.plan.reasons.len()), (vec![1], 0));
}

#[test]
fn bundles_are_numbered_and_reasons_travel() {
    let mut bed = bed([job(1), job(2), job(3), job(4)]);
    let outcome = run(&mut bed, |cycle| {
        let plan = &mut cycle.plan;
        assert!(plan.start(JobId(1), &[row(0, 1, 1)]).is_ok());
        let both = plan.bundle(|plan| {
            plan.start(JobId(2), &[row(0, 1, 1)])?.because("why", &[2.5]).about_node(NodeId(0)).about_job(JobId(1));
            plan.start(JobId(3), &[row(0, 1, 1)]).map(|_| ())
        });
        assert_eq!(both, Ok(()));
        assert!(plan.hold(JobId(4), "why", &[4.0]).is_ok());
        plan.wake_at(900);
        plan.wake_at(500);
        plan.wake_at(0);
    });
    assert_eq!(outcome.plan.actions.bundle, [0, 1, 1, 2]);
    assert_eq!(outcome.wake_at_ns, 500);
    let reason = &outcome.plan.reasons[outcome.plan.actions.reason[1] as usize];
    assert_eq!((reason.code.as_str(), reason.node, reason.other_job), ("why", 0, 1));
    assert_eq!(reason.arguments, [2.5]);
}

#[test]
fn what_the_host_would_refuse_is_refused_at_once() {
    let mut bed = bed([job(1).gpus(2), job(2).class(1), job(3).not_mine(), job(4).queue(1).gpus(2)]);
    bed.class(1, Some(&[1]));
    bed.queue(1, Some(1));
    run(&mut bed, |cycle| {
        let job = JobId(1);
        assert_eq!(start(cycle, 9, &[]), Err(PlanError::UnknownJob(JobId(9))));
        assert_eq!(start(cycle, 1, &[row(9, 2, 2)]), Err(PlanError::UnknownNode(NodeId(9))));
        assert_eq!(start(cycle, 1, &[row(0, 1, 1)]), Err(PlanError::Gang { job, group: 0, workers: 1 }));
        assert_eq!(start(cycle, 1, &[row(0, 3, 3)]), Err(PlanError::Gang { job, group: 0, workers: 3 }));
        let bad = Err(PlanError::Row { job, group: 0, node: NodeId(0) });
        assert_eq!(start(cycle, 1, &[row(0, 2, 3)]), bad);
        assert_eq!(start(cycle, 1, &[row(0, 1, 1), row(0, 1, 1)]), bad);
        assert_eq!(start(cycle, 1, &[Placement { device_mask: 0b111, ..row(0, 2, 2) }]), bad);
        assert_eq!(start(cycle, 1, &[Placement { device_mask: 0b11_0000, ..row(0, 2, 2) }]), bad);
        let closed = PlanError::NotEligible { job: JobId(2), node: NodeId(0) };
        assert_eq!(start(cycle, 2, &[row(0, 1, 1)]), Err(closed));
        assert_eq!(start(cycle, 3, &[row(0, 1, 1)]), Err(PlanError::NotMine(JobId(3))));
        assert_eq!(start(cycle, 4, &[row(0, 2, 2)]), Err(PlanError::Quota(crate::QueueId(1))));
        assert_eq!(cycle.plan.preempt(job).err(), Some(PlanError::WrongPhase(job)));
        assert_eq!(start(cycle, 1, &[row(0, 2, 2)]), Ok(()));
        assert_eq!(start(cycle, 1, &[row(0, 2, 2)]), Err(PlanError::Twice(job)));
        assert_eq!(cycle.plan.len(), 1);
    });
}

#[test]
fn resizes_keep_to_ranges_and_rights_and_skip_what_stays() {
    let tunable = |id| job(id).gpus(2).tunable((1, 4), (1000, 4000));
    let mut bed = bed([tunable(1), job(2).gpus(2)]);
    run(&mut bed, |cycle| {
        assert_eq!(start(cycle, 1, &[row(0, 2, 2)]), Ok(()));
        assert_eq!(start(cycle, 2, &[row(0, 2, 2)]), Ok(()));
    });
    let outcome = run(&mut bed, |cycle| {
        let resize = |cores: u32, memory_mib| Resize { group: 0, node: NodeId(0), cpu_milli: cores * 1000, memory_mib };
        let plan = &mut cycle.plan;
        let bad = |job| Some(PlanError::Row { job: JobId(job), group: 0, node: NodeId(0) });
        assert_eq!(plan.resize(JobId(1), &[resize(9, 2000)]).err(), bad(1));
        assert_eq!(plan.resize(JobId(2), &[resize(3, 2000)]).err(), bad(2));
        assert_eq!(plan.resize(JobId(1), &[resize(8, 2000)]).err(), Some(PlanError::NoCpu(NodeId(0))));
        assert!(plan.resize(JobId(1), &[resize(2, 2000)]).is_ok());
        assert!(plan.is_empty());
        assert!(plan.resize(JobId(1), &[resize(6, 8000)]).is_ok());
    });
    assert_eq!(outcome.resized, [1]);
    assert_eq!(bed.held(1), [(0, 2, 6)]);
}

#[test]
fn a_job_that_must_stay_is_not_interrupted_unless_its_node_drains() {
    let mut bed = bed([job(1).not_preemptible()]);
    run(&mut bed, |cycle| assert_eq!(start(cycle, 1, &[row(0, 1, 1)]), Ok(())));
    run(&mut bed, |cycle| {
        let refused = Some(PlanError::NotPreemptible(JobId(1)));
        assert_eq!(cycle.plan.preempt(JobId(1)).err(), refused);
        assert_eq!(cycle.plan.rescale(JobId(1), &[row(1, 1, 1)], 0).err(), refused);
    });
    bed.node_state(0, crate::NodeState::Draining);
    let outcome = run(&mut bed, |cycle| assert!(cycle.plan.rescale(JobId(1), &[row(1, 1, 1)], 0).is_ok()));
    assert_eq!((outcome.rescaled, bed.held(1)), (vec![1], vec![(1, 1, 1)]));
}

#[test]
fn an_undeclared_reason_is_an_error_of_the_policy() {
    let mut bed = bed([job(1)]);
    SCRIPT.set(|cycle| assert!(cycle.plan.hold(JobId(1), "because", &[]).is_ok()));
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bed.cycle()));
    let message = failed.err().and_then(|panic| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    assert!(message.contains("`because`"), "{message}");
}
