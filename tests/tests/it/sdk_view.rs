//! The SDK against the core: a view that only deltas change must stay the host's, and what the plan builder accepts the
//! judge must accept too, over long random histories.

use coretuner_core::event::{Event, RemovalReason};
use coretuner_core::model::{
    ChangePoint, ClassId, Eligibility, GroupSpec, JobId, JobSpec, NodeId, NodeSpec, NodeState, QueueId, QueueSpec,
    ResizeRights,
};
use coretuner_core::state::State;
use coretuner_core::view::Cursor;
use coretuner_sdk::contract::cluster::Trigger;
use coretuner_sdk::order::{Las, Order};
use coretuner_sdk::place::{Demand, Fit, Gang, gang};
use coretuner_sdk::queueing::{Mode, Preemption, Queueing, REASONS, Settings};
use coretuner_sdk::{Cycle, HostHandle, Instance, NoHost, Placement, Policy, Reason, Resize};

const SECOND_NS: u64 = 1_000_000_000;

/// Numbers that look random and are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(bound)) as u32
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u32) as usize]
    }
}

/// Queueing in random settings, mixed with random resizes, moves and preemptions.
struct Restless {
    queueing: Queueing,
    dice: Dice,
}

impl Policy for Restless {
    type Config = u64;
    const NAME: &'static str = "restless";
    const SUMMARY: &'static str = "does a bit of everything";
    const REASONS: &'static [Reason] = REASONS;

    fn new(seed: u64) -> Result<Self, String> {
        let mut dice = Dice(seed);
        let mode =
            dice.one_of(&[Mode::Strict, Mode::Backfill { searches_max: 3 }, Mode::Backfill { searches_max: 100 }]);
        let order = dice.one_of(&[Order::Fifo, Order::Las, Order::Srtf, Order::Srsf]);
        let gang = Gang {
            fit: dice.one_of(&[Fit::FewestNodes, Fit::BestFit, Fit::FirstFit]),
            demand: dice.one_of(&[Demand::Requested, Demand::Proportional]),
        };
        let preemption = Some(Preemption { hysteresis: 0.1, restart_s: 5.0, victims_max: 8 });
        let las = Las { thresholds_gpu_s: vec![100.0, 1000.0], promote_after: Some(3.0) };
        let settings = Settings { order, las, mode, gang, preemption };
        Ok(Self { queueing: Queueing::new(settings)?, dice })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        let running: Vec<_> = cycle.cluster.running().map(|job| job.id).collect();
        for id in running {
            match self.dice.below(12) {
                0 => _ = cycle.plan.preempt(id),
                1 => self.move_somewhere(cycle, id),
                2 | 3 => self.resize(cycle, id),
                _ => {}
            }
        }
        self.queueing.run(cycle);
    }
}

impl Restless {
    fn resize(&mut self, cycle: &mut Cycle<'_>, id: coretuner_sdk::JobId) {
        let Some(job) = cycle.cluster.job(id) else { return };
        let rows = job.allocations.iter().map(|held| {
            let group = &job.groups[held.group as usize];
            let per_worker = group.cpu_milli_min + self.dice.below(group.cpu_milli_max - group.cpu_milli_min + 1);
            let cpu_milli = per_worker * held.workers;
            Resize { group: held.group, node: held.node, cpu_milli, memory_mib: held.memory_mib }
        });
        let rows: Vec<Resize> = rows.collect();
        _ = cycle.plan.resize(id, &rows);
    }

    /// A try that may fail half-way: then nothing of it may stay.
    fn move_somewhere(&mut self, cycle: &mut Cycle<'_>, id: coretuner_sdk::JobId) {
        let Some(job) = cycle.cluster.job(id) else { return };
        let Some(rows) = gang(&mut cycle.plan, job, Gang::default()) else { return };
        let other = cycle.cluster.running().map(|job| job.id).find(|other| *other > id);
        let one_more: Vec<Placement> = rows.clone();
        _ = cycle.plan.bundle(|plan| {
            plan.rescale(id, &one_more, 0)?;
            if let Some(other) = other {
                plan.preempt(other)?;
            }
            Ok::<_, coretuner_sdk::PlanError>(())
        });
    }
}

/// A random history of the cluster.
struct History {
    dice: Dice,
    state: State,
    next_job: u32,
    next_node: u32,
}

impl History {
    fn node(&mut self) -> Event {
        let devices = self.dice.one_of(&[0, 1, 4, 8]);
        let cores = self.dice.one_of(&[8, 24, 32]);
        self.next_node += 1;
        let gpu_kind = self.dice.one_of(&["V100", "A100"]).to_owned();
        let spec = NodeSpec {
            name: format!("node-{}", self.next_node),
            gpu_kind: if devices == 0 { String::new() } else { gpu_kind },
            cpu_milli: cores * 1000,
            memory_mib: cores * 4000,
            storage_mib_per_s: 0,
            devices,
            device_memory_mib: 16_000,
            zone: None,
            rack: Some("r1".to_owned()),
            link_domain: None,
        };
        Event::NodeSet { id: NodeId(self.next_node), spec }
    }

    fn group(&mut self, role: &str) -> GroupSpec {
        let workers = self.dice.one_of(&[1, 1, 2, 3, 8]);
        let cpu_milli = self.dice.one_of(&[500, 1000, 3000]);
        let tunable = self.dice.below(2) == 0;
        GroupSpec {
            role: role.to_owned(),
            workers_min: workers,
            workers_max: workers + self.dice.below(2),
            gpu_milli: self.dice.one_of(&[0, 300, 500, 1000, 1000, 2000]),
            cpu_milli,
            memory_mib: 2000,
            cpu_milli_min: if tunable { cpu_milli / 2 } else { cpu_milli },
            cpu_milli_max: if tunable { cpu_milli * 3 } else { cpu_milli },
            memory_mib_min: 2000,
            memory_mib_max: if tunable { 8000 } else { 2000 },
            resize_rights: self.dice.one_of(&[ResizeRights::ALL, ResizeRights::NONE]),
        }
    }

    fn job(&mut self, now_ns: u64) -> Event {
        self.next_job += 1;
        let mut groups = vec![self.group("worker")];
        if self.dice.below(4) == 0 {
            groups.push(self.group("ps"));
        }
        let spec = JobSpec {
            name: format!("job-{}", self.next_job),
            user: "u".to_owned(),
            queue: QueueId(self.dice.below(3)),
            eligibility: ClassId(self.dice.below(3)),
            priority: 0,
            tier: 0,
            preemptible: self.dice.below(5) > 0,
            submit_ns: now_ns,
            groups,
            work_iterations: u64::from(self.dice.below(3)) * 500,
            estimated_duration_ns: u64::from(self.dice.below(3)) * 300 * SECOND_NS,
            deadline_ns: 0,
            kind: None,
            labels: Vec::new(),
        };
        Event::JobSubmitted { id: JobId(self.next_job), spec }
    }

    fn some_job(&mut self) -> Option<JobId> {
        let jobs: Vec<JobId> = self.state.jobs().map(|job| job.id).collect();
        (!jobs.is_empty()).then(|| self.dice.one_of(&jobs))
    }

    fn some_node(&mut self) -> NodeId {
        NodeId(1 + self.dice.below(self.next_node))
    }

    fn event(&mut self, now_ns: u64) -> Option<Event> {
        Some(match self.dice.below(16) {
            0..5 => self.job(now_ns),
            5..8 => Event::JobRemoved { id: self.some_job()?, reason: RemovalReason::Completed },
            8 => Event::JobStopped { id: self.some_job()? },
            9 => self.node(),
            10 if self.dice.below(3) == 0 => Event::NodeRemoved { id: self.some_node() },
            11 => {
                let state = self.dice.one_of(&[
                    NodeState::Schedulable,
                    NodeState::Schedulable,
                    NodeState::Cordoned,
                    NodeState::Draining,
                ]);
                Event::NodeStateSet { id: self.some_node(), state }
            }
            12 => Event::QueueSet { id: QueueId(2), spec: queue(Some(QueueId(1)), Some(self.dice.below(12))) },
            13 => {
                let nodes = (1..=self.next_node).filter(|_| self.dice.below(2) == 0).map(NodeId).collect();
                Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(nodes) }
            }
            _ => {
                let job = self.some_job()?;
                let view = self.state.job(job)?;
                let point = ChangePoint {
                    since_ns: now_ns,
                    iterations: view.iterations_at(now_ns),
                    iterations_per_s: f64::from(self.dice.below(4)),
                    service_gpu_s: view.service_gpu_s_at(now_ns),
                    service_gpu_s_per_s: view.gpu_milli() as f64 / 1000.0,
                };
                Event::Progress { job, point }
            }
        })
    }
}

fn queue(parent: Option<QueueId>, gpus_max: Option<u32>) -> QueueSpec {
    QueueSpec {
        name: "q".to_owned(),
        parent,
        weight_milli: 1000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli: gpus_max.map(|gpus| gpus * 1000),
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: Some(60_000),
    }
}

fn start(seed: u64) -> History {
    let mut history = History { dice: Dice(seed), state: State::new(), next_job: 0, next_node: 0 };
    let mut events = vec![
        Event::QueueSet { id: QueueId(0), spec: queue(None, None) },
        Event::QueueSet { id: QueueId(1), spec: queue(None, Some(20)) },
        Event::QueueSet { id: QueueId(2), spec: queue(Some(QueueId(1)), Some(8)) },
        Event::ClassSet { id: ClassId(0), nodes: Eligibility::All },
        Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(vec![NodeId(1), NodeId(3)]) },
        Event::ClassSet { id: ClassId(2), nodes: Eligibility::Nodes(vec![NodeId(2), NodeId(3)]) },
    ];
    events.extend((0..5).map(|_| history.node()));
    events.iter().for_each(|event| history.state.apply(0, event).expect("the first events are legal"));
    history
}

/// Runs a history and gives the number of accepted actions that are not holds.
fn run(seed: u64) -> u32 {
    let mut history = start(seed);
    let (mut cursor, mut instance) = (Cursor::new(), Instance::<Restless>::new());
    instance.configure(&seed.to_string()).expect("a seed configures");
    let mut verdicts = Vec::new();
    let mut done = 0;
    for step in 0..250 {
        let now_ns = step * 7 * SECOND_NS;
        history.state.advance(now_ns);
        for _ in 0..history.dice.below(4) {
            if let Some(event) = history.event(now_ns) {
                // Some are illegal, such as a node described too small; they change nothing.
                _ = history.state.apply(now_ns, &event);
            }
        }
        if history.dice.below(40) == 0 {
            cursor.reset();
        }
        if history.dice.below(40) == 0 {
            instance.configure(&(seed + step).to_string()).expect("a seed configures");
        }
        let mut delta = cursor.delta(&history.state, Trigger::empty(), &verdicts);
        if delta.base_revision == 0 {
            delta.trigger = Trigger::IMAGE;
        }
        let plan = match instance.decide(&delta, HostHandle::new(&mut NoHost)) {
            Ok(plan) => plan,
            Err(error) => panic!("seed {seed}, step {step}: {error}"),
        };
        let judgement = history.state.judge(now_ns, &plan);
        assert_eq!(judgement.verdicts, [], "seed {seed}, step {step}: {plan:?}");
        history.state.check_invariants().expect("the state stays sound");
        compare(&history.state, &instance, seed);
        done += judgement.accepted - judgement.holds.len() as u32;
        verdicts = judgement.verdicts;
    }
    done
}

/// What the checksum does not cover. The plan's effect is not in the view yet, so only descriptions are compared.
fn compare(state: &State, instance: &Instance<Restless>, seed: u64) {
    let view = instance.cluster();
    assert_eq!(view.node_count(), state.nodes().len(), "seed {seed}");
    assert_eq!(view.job_count(), state.jobs().len(), "seed {seed}");
    for (mine, theirs) in view.jobs().zip(state.jobs()) {
        assert_eq!((mine.id.0, mine.submit_ns), (theirs.id.0, theirs.spec.submit_ns), "seed {seed}");
        assert_eq!(mine.groups.len(), theirs.spec.groups.len(), "seed {seed}");
    }
}

#[test]
fn plans_of_the_sdk_are_never_refused() {
    let done: Vec<u32> = (1..=40).map(run).collect();
    let total: u32 = done.iter().sum();
    assert!(total > 4000, "the histories did too little: {done:?}");
}
