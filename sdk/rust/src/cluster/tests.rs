use coretuner_contract::cluster::{Delta, JobStateRows, NodeRows, NodeStateRows};

use crate::cluster::{ApplyError, NodeState};
use crate::testing::{Bed, job};
use crate::{Cycle, HostHandle, Instance, InstanceError, JobId, NoHost, NodeId, Policy, QueueId, place};

/// Starts what fits and remembers what it was told.
struct Recorder {
    seen: Vec<Seen>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    image: bool,
    arrived: Vec<u32>,
    changed: Vec<u32>,
    removed: Vec<u32>,
    released: bool,
}

impl Policy for Recorder {
    type Config = ();
    const NAME: &'static str = "recorder";
    const SUMMARY: &'static str = "";

    fn new((): ()) -> Result<Self, String> {
        Ok(Self { seen: Vec::new() })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        let numbers = |jobs: &[JobId]| jobs.iter().map(|job| job.0).collect();
        let changes = cycle.changes;
        self.seen.push(Seen {
            image: changes.image,
            arrived: numbers(&changes.arrived),
            changed: numbers(&changes.changed),
            removed: numbers(&changes.removed),
            released: changes.released,
        });
        for job in cycle.cluster.waiting() {
            if let Some(rows) = place::gang(&mut cycle.plan, job, place::Gang::default()) {
                assert!(cycle.plan.start(job.id, &rows).is_ok());
            }
        }
    }
}

fn bed() -> Bed<Recorder> {
    let mut bed = Bed::new("null");
    bed.nodes(2, 4, 8, 10_000);
    bed
}

fn last(bed: &mut Bed<Recorder>) -> Seen {
    bed.cycle();
    bed.instance().policy().and_then(|policy| policy.seen.last().cloned()).unwrap_or_default()
}

#[test]
fn changes_name_what_is_new() {
    let mut bed = bed();
    bed.submit(job(1).gpus(4));
    assert_eq!(last(&mut bed), Seen { image: true, arrived: vec![1], released: true, ..Seen::default() });
    bed.submit(job(2).gpus(8));
    assert_eq!(last(&mut bed), Seen { arrived: vec![2], changed: vec![1], ..Seen::default() });
    assert_eq!(last(&mut bed), Seen::default());
    bed.finish(1);
    assert_eq!(last(&mut bed), Seen { removed: vec![1], released: true, ..Seen::default() });
    bed.lose(2);
    assert_eq!(last(&mut bed), Seen { changed: vec![2], released: true, ..Seen::default() });
}

#[test]
fn a_job_that_came_and_went_between_two_cycles_is_a_release() {
    let mut bed = bed();
    bed.submit(job(1).gpus(8));
    bed.cycle();
    bed.finish(1);
    assert_eq!(last(&mut bed), Seen { removed: vec![1], released: true, ..Seen::default() });
}

#[test]
fn a_new_configuration_shows_everything_as_new() {
    let mut bed = bed();
    bed.submit(job(1));
    bed.cycle();
    bed.cycle();
    assert_eq!(bed.instance().configure("null"), Ok(()));
    assert_eq!(last(&mut bed), Seen { image: true, arrived: vec![1], released: true, ..Seen::default() });
}

#[test]
fn the_view_follows_allocations_queues_and_progress() {
    let mut bed = bed();
    bed.queue(5, None);
    bed.submit(job(1).gpus(4).cores(2).queue(5).speed(3.0).work(100));
    bed.submit(job(2).gpus(2).cores(1).queue(5));
    bed.cycle();
    bed.pass_s(10);
    bed.cycle();
    let view = bed.view();
    let on = |node| view.jobs_on(NodeId(node)).map(|job| job.id.0).collect::<Vec<_>>();
    assert_eq!((on(0), on(1)), (vec![1], vec![2]));
    assert_eq!(view.queue(QueueId(5)).map(|queue| (queue.used_gpu_milli, queue.used_cpu_milli)), Some((6000, 10_000)));
    let first = view.job(JobId(1)).map(|job| (job.progress(view.now_ns()), job.remaining_iterations(view.now_ns())));
    let (progress, left) = first.unwrap_or_default();
    assert_eq!((progress.iterations, progress.service_gpu_s, left), (30.0, 40.0, Some(70.0)));
    assert_eq!((view.running_count(), view.waiting_count()), (2, 0));
    assert_eq!(view.node(NodeId(0)).map(|node| (node.free.gpus(), node.free.cpu_milli)), Some((0, 0)));
    bed.finish(1);
    bed.cycle();
    let view = bed.view();
    assert_eq!(view.jobs_on(NodeId(0)).count(), 0);
    assert_eq!(view.queue(QueueId(5)).map(|queue| queue.used_gpu_milli), Some(2000));
}

#[test]
fn only_own_jobs_are_listed_as_waiting() {
    let mut bed = bed();
    bed.submit(job(1).not_mine());
    assert_eq!(bed.cycle().started, [] as [u32; 0]);
    assert_eq!((bed.view().waiting_count(), bed.view().job_count()), (0, 1));
}

#[test]
fn nodes_come_go_and_close() {
    let mut bed = bed();
    bed.node_state(0, NodeState::Cordoned);
    bed.submit(job(1).gpus(4));
    bed.submit(job(2).gpus(4));
    assert_eq!(bed.cycle().started, [1]);
    assert_eq!(bed.held(1), [(1, 4, 4)]);
    bed.node_state(0, NodeState::Schedulable);
    assert_eq!(bed.cycle().started, [2]);
    bed.finish(2);
    bed.remove_node(0);
    bed.submit(job(3));
    assert_eq!(bed.cycle().started, [] as [u32; 0]);
    bed.nodes(1, 4, 8, 10_000);
    assert_eq!(bed.cycle().started, [3]);
}

/// The error that an instance at revision 0 gives for `delta`.
fn check(delta: Delta, expected: ApplyError) {
    let mut instance = Instance::<Recorder>::new();
    assert_eq!(instance.configure(""), Ok(()));
    let error = instance.decide(&delta, HostHandle::new(&mut NoHost)).err();
    assert_eq!(error, Some(InstanceError::Delta(expected)));
}

#[test]
fn a_delta_that_does_not_fit_is_refused() {
    check(Delta { base_revision: 7, revision: 8, ..Delta::default() }, ApplyError::Gap { view: 0, base: 7 });
    let short = NodeRows { id: vec![1], ..NodeRows::default() };
    check(Delta { nodes: Some(short), ..Delta::default() }, ApplyError::Table { table: "nodes", row: 0 });
    let states = NodeStateRows {
        id: vec![9],
        state: vec![0],
        cpu_milli_free: vec![1],
        memory_mib_free: vec![1],
        devices_free_mask: vec![0],
    };
    let unknown = ApplyError::Unknown { what: "node", id: 9 };
    check(Delta { node_states: Some(states), ..Delta::default() }, unknown);
    let rows = JobStateRows {
        id: vec![3],
        state: vec![1],
        mine: vec![1],
        restarts: vec![0],
        allocation_start: vec![u32::MAX],
        allocation_count: vec![2],
    };
    let outside = ApplyError::Table { table: "job-states", row: 0 };
    check(Delta { job_states: Some(rows), ..Delta::default() }, outside);
    check(Delta { removed_jobs: vec![4], ..Delta::default() }, ApplyError::Unknown { what: "job", id: 4 });
    let drift = ApplyError::Drift { view: 0, host: 77, revision: 1 };
    check(Delta { revision: 1, checksum: 77, ..Delta::default() }, drift);
}

#[test]
fn deciding_needs_a_configuration() {
    let mut instance = Instance::<Recorder>::new();
    let answer = instance.decide(&Delta::default(), HostHandle::new(&mut NoHost));
    assert_eq!(answer, Err(InstanceError::NotConfigured));
}
