//! Long random sequences of events and hostile plans: the invariants hold after each step, and a view that is built
//! from deltas equals a full image.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::contract::NONE;
use crate::contract::cluster::Trigger;
use crate::contract::plan::{Plan, Verb};
use crate::event::{Command, Event, RemovalReason};
use crate::fallback;
use crate::model::{ChangePoint, ClassId, Eligibility, GroupSpec, JobId, NodeId, NodeState, QueueId, ResizeRights};
use crate::state::State;
use crate::view::Cursor;

use super::build::{Planned, Row, group, job, queue, server};
use super::mirror::Mirror;

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Node {
        id: u32,
        devices: u32,
        cpu_milli: u32,
    },
    NodeState {
        id: u32,
        state: NodeState,
    },
    Foreign {
        node: u32,
        cpu_milli: u32,
        memory_mib: u32,
        device_mask: u32,
    },
    RemoveNode(u32),
    Submit {
        shape: u8,
        workers: u32,
        queue: u32,
        class: u32,
        preemptible: bool,
    },
    RemoveJob(u32),
    StopJob(u32),
    Progress {
        job: u32,
        rate: f64,
    },
    Observe {
        job: u32,
        metric: u8,
    },
    Estimates(u32),
    Queue {
        id: u32,
        maximum: Option<u32>,
        parent: Option<u32>,
    },
    Class {
        id: u32,
        nodes: Vec<u32>,
    },
    Plan(Vec<Wish>),
    Garbage(Vec<u32>),
    Fallback,
    /// Looks at the state through the cursor.
    Look,
}

/// An action, near enough to a legal one to be accepted often.
#[derive(Clone, Debug)]
struct Wish {
    verb: Verb,
    job: u32,
    nodes: Vec<u32>,
    /// Added to the group's smallest gang.
    extra: i32,
    cpu_per_worker: u32,
    mask: u32,
    joins: bool,
    spoil: u8,
}

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0..12_u32, 1 => any::<u32>()]
}

fn node() -> impl Strategy<Value = u32> {
    prop_oneof![40 => 0..3_u32, 6 => 3..6_u32, 1 => any::<u32>()]
}

fn wish() -> impl Strategy<Value = Wish> {
    let verb = prop_oneof![
        6 => Just(Verb::Start), 2 => Just(Verb::Resize), 3 => Just(Verb::Rescale), 2 => Just(Verb::Preempt),
        1 => Just(Verb::Hold)
    ];
    let cpu = prop_oneof![4 => Just(0), 4 => Just(1_000), 4 => Just(3_000), 4 => Just(6_000), 1 => any::<u32>()];
    let mask = prop_oneof![12 => Just(0_u32), 2 => 0..256_u32, 1 => any::<u32>()];
    let spoil = prop_oneof![12 => Just(0_u8), 1 => any::<u8>()];
    let extra = prop_oneof![5 => Just(0), 1 => -2..3_i32];
    let nodes = prop_oneof![6 => vec(node(), 1..2), 4 => vec(node(), 2..4), 1 => Just(Vec::new())];
    (verb, id(), nodes, extra, cpu, mask, proptest::bool::weighted(0.25), spoil).prop_map(
        |(verb, job, nodes, extra, cpu_per_worker, mask, joins, spoil)| Wish {
            verb,
            job,
            nodes,
            extra,
            cpu_per_worker,
            mask,
            joins,
            spoil,
        },
    )
}

fn world() -> impl Strategy<Value = Step> {
    let state = prop_oneof![
        4 => Just(NodeState::Schedulable), 1 => Just(NodeState::Cordoned), 1 => Just(NodeState::Draining)
    ];
    let cpu = prop_oneof![Just(24_000_u32), 0..40_000_u32];
    prop_oneof![
        3 => (node(), 0..34_u32, cpu).prop_map(|(id, devices, cpu_milli)| Step::Node { id, devices, cpu_milli }),
        2 => (node(), state).prop_map(|(id, state)| Step::NodeState { id, state }),
        1 => (node(), 0..30_000_u32, 0..600_000_u32, 0..256_u32).prop_map(|(node, cpu_milli, memory_mib, device_mask)| {
            Step::Foreign { node, cpu_milli, memory_mib, device_mask }
        }),
        1 => node().prop_map(Step::RemoveNode),
        8 => (0..5_u8, 1..9_u32, 0..3_u32, 0..2_u32, any::<bool>()).prop_map(
            |(shape, workers, queue, class, preemptible)| Step::Submit { shape, workers, queue, class, preemptible }
        ),
        2 => id().prop_map(Step::RemoveJob),
        1 => id().prop_map(Step::StopJob),
        2 => (id(), 0.0..10.0_f64).prop_map(|(job, rate)| Step::Progress { job, rate }),
        1 => (id(), 0..4_u8).prop_map(|(job, metric)| Step::Observe { job, metric }),
        1 => id().prop_map(Step::Estimates),
        1 => (0..4_u32, proptest::option::of(0..20_000_u32), proptest::option::of(0..4_u32))
            .prop_map(|(id, maximum, parent)| Step::Queue { id, maximum, parent }),
        1 => (1..3_u32, vec(node(), 0..4)).prop_map(|(id, nodes)| Step::Class { id, nodes }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => world(),
        8 => vec(wish(), 1..6).prop_map(Step::Plan),
        1 => vec(any::<u32>(), 0..40).prop_map(Step::Garbage),
        2 => Just(Step::Fallback),
        4 => Just(Step::Look),
    ]
}

/// The system under test with what happened to it.
struct World {
    state: State,
    cursor: Cursor,
    mirror: Mirror,
    submitted: u32,
    now_ns: u64,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            state: super::build::cluster(3),
            cursor: Cursor::new(),
            mirror: Mirror::default(),
            submitted: 0,
            now_ns: 0,
        };
        let class = Event::ClassSet { id: ClassId(1), nodes: Eligibility::Nodes(vec![NodeId(1), NodeId(0)]) };
        super::build::apply(&mut world.state, &class);
        for (id, maximum) in [(1, Some(12_000)), (2, None)] {
            let spec = queue(maximum, Some(0));
            super::build::apply(&mut world.state, &Event::QueueSet { id: QueueId(id), spec });
        }
        world
    }

    fn run(&mut self, step: &Step) {
        self.now_ns += 1_000_000_000;
        match step {
            Step::Plan(wishes) => {
                let plan = self.plan(wishes);
                self.judge(&plan);
            }
            Step::Garbage(words) => self.judge(&garbage(words)),
            Step::Fallback => {
                let plan = fallback::plan(&self.state);
                let judgement = self.state.judge(self.now_ns, &plan);
                assert_eq!(judgement.verdicts, [], "the fallback asks only for what it gets");
                assert_eq!(judgement.accepted as usize, plan.actions.verb.len());
            }
            Step::Look => self.look(),
            _ => _ = self.state.apply(self.now_ns, &self.event(step)),
        }
        if matches!(step, Step::Submit { .. }) {
            self.submitted += 1;
        }
        self.state.check_invariants().unwrap();
    }

    fn judge(&mut self, plan: &Plan) {
        let judgement = self.state.judge(self.now_ns, plan);
        assert!(judgement.commands.len() + judgement.holds.len() <= judgement.accepted as usize);
        assert!(judgement.verdicts.is_sorted_by_key(|verdict| verdict.action));
        let jobs: Vec<JobId> = judgement.commands.iter().map(Command::job).collect();
        if self.now_ns.is_multiple_of(5_000_000_000) {
            // The whole plan is refused by the backend: always possible, nobody else took anything.
            let verdicts = self.state.roll_back(&judgement, &jobs).unwrap();
            assert_eq!(verdicts.len(), jobs.len());
        }
    }

    fn look(&mut self) {
        let delta = self.cursor.delta(&self.state, Trigger::empty(), &[]);
        self.mirror.apply(&delta);
        let mut image = Mirror::default();
        image.apply(&Cursor::new().delta(&self.state, Trigger::empty(), &[]));
        assert_eq!(self.mirror.without_strings(), image.without_strings());
    }

    fn event(&self, step: &Step) -> Event {
        match step.clone() {
            Step::Node { id, devices, cpu_milli } => {
                let mut spec = server(&format!("n{id}"));
                (spec.devices, spec.cpu_milli) = (devices, cpu_milli);
                Event::NodeSet { id: NodeId(id), spec }
            }
            Step::NodeState { id, state } => Event::NodeStateSet { id: NodeId(id), state },
            Step::Foreign { node, cpu_milli, memory_mib, device_mask } => {
                Event::ForeignUse { node: NodeId(node), cpu_milli, memory_mib, device_mask }
            }
            Step::RemoveNode(id) => Event::NodeRemoved { id: NodeId(id) },
            Step::Submit { shape, workers, queue, class, preemptible } => {
                let mut spec = job(groups(shape, workers));
                (spec.queue, spec.eligibility) = (QueueId(queue), ClassId(class));
                (spec.preemptible, spec.submit_ns) = (preemptible, self.now_ns);
                Event::JobSubmitted { id: JobId(self.submitted), spec }
            }
            Step::RemoveJob(id) => Event::JobRemoved { id: JobId(self.recent(id)), reason: RemovalReason::Completed },
            Step::StopJob(id) => Event::JobStopped { id: JobId(self.recent(id)) },
            Step::Progress { job, rate } => {
                let point = ChangePoint { since_ns: self.now_ns, iterations_per_s: rate, ..ChangePoint::default() };
                Event::Progress { job: JobId(self.recent(job)), point }
            }
            Step::Observe { job, metric } => Event::Observation {
                job: JobId(self.recent(job)),
                metric: format!("m{metric}"),
                at_ns: self.now_ns,
                value: 1.0,
            },
            Step::Estimates(job) => Event::EstimatesChanged { jobs: vec![JobId(self.recent(job))] },
            Step::Queue { id, maximum, parent } => Event::QueueSet { id: QueueId(id), spec: queue(maximum, parent) },
            Step::Class { id, nodes } => {
                let nodes = Eligibility::Nodes(nodes.into_iter().map(NodeId).collect());
                Event::ClassSet { id: ClassId(id), nodes }
            }
            Step::Plan(_) | Step::Garbage(_) | Step::Fallback | Step::Look => unreachable!(),
        }
    }

    /// Small numbers mean the last jobs, so that they are mostly there.
    fn recent(&self, id: u32) -> u32 {
        if id < 12 { self.submitted.saturating_sub(id + 1) } else { id }
    }

    /// Mostly a job that the action can be about.
    fn aim(&self, wish: &Wish) -> u32 {
        let fitting: Vec<JobId> = match wish.verb {
            Verb::Start | Verb::Hold => self.state.waiting().collect(),
            Verb::Resize | Verb::Rescale | Verb::Preempt => self.state.running().collect(),
        };
        let hit = wish.job < 11 && !fitting.is_empty();
        if hit { fitting[wish.job as usize % fitting.len()].0 } else { self.recent(wish.job) }
    }

    fn plan(&self, wishes: &[Wish]) -> Plan {
        let mut plan = Planned::default();
        let mut bundle = 0;
        for wish in wishes {
            bundle += u32::from(!wish.joins);
            let id = self.aim(wish);
            plan.push(wish.verb, id, &self.rows(id, wish), bundle);
        }
        for (action, wish) in wishes.iter().enumerate().filter(|(_, wish)| wish.spoil != 0) {
            spoil(&mut plan.0, action, wish.spoil);
        }
        plan.0
    }

    fn rows(&self, id: u32, wish: &Wish) -> Vec<Row> {
        let Some(job) = self.state.job(JobId(id)) else { return Vec::new() };
        if wish.verb == Verb::Resize {
            let held = job.allocations.iter().map(|row| Row {
                group: row.group,
                node: row.node.0,
                workers: row.workers,
                cpu_milli: row.workers.wrapping_mul(wish.cpu_per_worker),
                memory_mib: row.memory_mib,
                gpu_milli: row.gpu_milli,
                device_mask: 0,
            });
            return held.collect();
        }
        let spread = |(group, spec): (usize, &GroupSpec)| {
            let workers = spec.workers_min.saturating_add_signed(wish.extra);
            let nodes = wish.nodes.len() as u32;
            let share = |i: u32| workers / nodes + u32::from(i < workers % nodes);
            let row = move |(i, node): (usize, &u32)| Row {
                group: group as u32,
                node: *node,
                workers: share(i as u32),
                cpu_milli: share(i as u32).wrapping_mul(if wish.cpu_per_worker == 0 {
                    spec.cpu_milli
                } else {
                    wish.cpu_per_worker
                }),
                memory_mib: share(i as u32).wrapping_mul(spec.memory_mib),
                gpu_milli: share(i as u32).wrapping_mul(spec.gpu_milli),
                device_mask: wish.mask,
            };
            wish.nodes.iter().enumerate().map(row).filter(|row| row.workers > 0).collect::<Vec<_>>()
        };
        job.spec.groups.iter().enumerate().flat_map(spread).collect()
    }
}

fn groups(shape: u8, workers: u32) -> Vec<GroupSpec> {
    let rigid = group(workers);
    match shape {
        0 => vec![rigid],
        1 => vec![GroupSpec { workers_max: workers + 4, ..rigid }],
        2 => vec![GroupSpec { gpu_milli: 300, ..group(1 + workers % 3) }],
        3 => vec![GroupSpec { gpu_milli: 2_000, ..group(1 + workers % 4) }, GroupSpec { gpu_milli: 0, ..group(1) }],
        _ => vec![GroupSpec { resize_rights: ResizeRights::NONE, cpu_milli_min: 3_000, cpu_milli_max: 3_000, ..rigid }],
    }
}

/// Breaks one column of one action.
fn spoil(plan: &mut Plan, action: usize, how: u8) {
    match how % 8 {
        0 => plan.actions.placement_start[action] = u32::from(how) << 24,
        1 => plan.actions.placement_count[action] = u32::MAX,
        2 => plan.actions.bundle[action] = u32::from(how),
        3 => _ = plan.actions.reason.pop(),
        4 => plan.actions.reason.iter_mut().skip(action).take(1).for_each(|reason| *reason = 77),
        5 => plan.placements.gpu_milli.iter_mut().for_each(|gpu| *gpu = gpu.wrapping_add(500)),
        6 => plan.placements.group.iter_mut().for_each(|group| *group = NONE - *group),
        _ => plan.revision = u64::MAX,
    }
}

/// Columns of noise.
fn garbage(words: &[u32]) -> Plan {
    let mut plan = Plan::default();
    let at = |i: usize| words.get(i % words.len().max(1)).copied().unwrap_or(7);
    for i in 0..words.len() / 2 {
        plan.actions.verb.push(Verb::ALL[at(i) as usize % 5]);
        plan.actions.job.push(at(i) % 40);
        plan.actions.bundle.push(i as u32 / 2);
        plan.actions.placement_start.push(at(i + 1) % 20);
        plan.actions.placement_count.push(at(i + 2) % 9);
        plan.actions.batch_per_gpu.push(at(i + 3));
        plan.actions.reason.push(NONE);
    }
    for i in 0..words.len() {
        plan.placements.group.push(at(i) % 3);
        plan.placements.node.push(at(i + 1) % 6);
        plan.placements.workers.push(at(i + 2));
        plan.placements.cpu_milli.push(at(i + 3));
        plan.placements.memory_mib.push(at(i + 4));
        plan.placements.gpu_milli.push(at(i + 5) % 9_000);
        plan.placements.device_mask.push(at(i + 6));
    }
    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn invariants_and_views_hold(steps in vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
        }
        world.look();
    }
}

/// The generator must reach what it is meant to try; otherwise the property above says little.
#[test]
fn hostile_plans_are_often_accepted_and_often_refused() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut refused) = (std::collections::BTreeMap::new(), std::collections::BTreeMap::new());
    for _ in 0..100 {
        let steps = vec(step(), 100).new_tree(&mut runner).unwrap().current();
        let mut world = World::new();
        for step in &steps {
            if let Step::Plan(wishes) = step {
                let plan = world.plan(wishes);
                let judgement = world.state.clone().judge(world.now_ns, &plan);
                for command in &judgement.commands {
                    let name = format!("{command:?}").split(' ').next().unwrap().to_owned();
                    *accepted.entry(name).or_insert(0) += 1;
                }
                for verdict in &judgement.verdicts {
                    *refused.entry(verdict.reason).or_insert(0) += 1;
                }
            }
            world.run(step);
        }
    }
    println!("accepted {accepted:?}, refused {refused:?}");
    assert!(accepted.len() == 4 && accepted.values().all(|count| *count >= 20), "{accepted:?}");
    assert!(refused.len() >= 11, "{refused:?}");
}
