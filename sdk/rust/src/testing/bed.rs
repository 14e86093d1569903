//! The test bed itself.

use std::sync::Arc;

use coretuner_contract::plan::{Plan, Verb};

use super::delta::{Strings, delta};
use super::job::JobBuilder;
use super::world::{Machine, World};
use crate::cluster::{Allocation, Class, Cluster, Eligible, NodeState, Queue};
use crate::host::{Host, HostHandle, NoHost};
use crate::id::{ClassId, NodeId, QueueId};
use crate::instance::Instance;
use crate::policy::Policy;

const SECOND_NS: u64 = 1_000_000_000;

/// What one cycle did, job numbers in plan order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    pub started: Vec<u32>,
    pub resized: Vec<u32>,
    pub rescaled: Vec<u32>,
    pub preempted: Vec<u32>,
    /// Held jobs with the reason's code.
    pub held: Vec<(u32, String)>,
    /// 0 = no wish.
    pub wake_at_ns: u64,
    pub plan: Plan,
}

/// A small cluster with a policy on it. It checks every plan by itself and panics on what a host would refuse: it is for
/// tests.
pub struct Bed<P> {
    instance: Instance<P>,
    world: World,
    strings: Strings,
    host: Box<dyn Host>,
}

impl<P: Policy> Bed<P> {
    /// A bed with a policy configured by JSON, no nodes, class 0 = every node and queue 0 without ceiling.
    #[expect(clippy::panic, reason = "a test with a wrong configuration must fail")]
    pub fn new(config: &str) -> Self {
        let mut instance = Instance::new();
        if let Err(error) = instance.configure(config) {
            panic!("{error}");
        }
        let mut bed = Self { instance, world: World::default(), strings: Strings::default(), host: Box::new(NoHost) };
        bed.class(0, None);
        bed.queue(0, None);
        bed
    }

    /// The host that answers predictions, logs and so on.
    pub fn host(&mut self, host: impl Host + 'static) {
        self.host = Box::new(host);
    }

    /// Adds nodes, numbered on from the last: GPUs, cores, memory of each.
    pub fn nodes(&mut self, count: u32, gpus: u32, cores: u32, memory_mib: u32) {
        self.nodes_of("V100", count, gpus, cores, memory_mib);
    }

    /// Adds nodes with a GPU product.
    pub fn nodes_of(&mut self, gpu_kind: &str, count: u32, gpus: u32, cores: u32, memory_mib: u32) {
        let first = self.world.machines.last_key_value().map_or(0, |(id, _)| id + 1);
        for id in first..first + count {
            let machine = Machine {
                gpu_kind: gpu_kind.to_owned(),
                cpu_milli: cores * 1000,
                memory_mib,
                devices: gpus,
                state: NodeState::Schedulable,
            };
            self.world.machines.insert(id, machine);
            self.world.dirty.nodes.insert(id);
            self.world.dirty.node_states.insert(id);
        }
    }

    /// Opens, cordons or drains a node.
    pub fn node_state(&mut self, node: u32, state: NodeState) {
        if let Some(machine) = self.world.machines.get_mut(&node) {
            machine.state = state;
            self.world.dirty.node_states.insert(node);
        }
    }

    /// Takes an empty node away.
    pub fn remove_node(&mut self, node: u32) {
        self.world.machines.remove(&node);
        self.world.dirty.removed_nodes.insert(node);
    }

    /// Says which nodes a class may use; none = all.
    pub fn class(&mut self, id: u32, nodes: Option<&[u32]>) {
        let nodes = nodes.map_or(Eligible::All, |nodes| Eligible::Nodes(nodes.iter().copied().map(NodeId).collect()));
        self.world.classes.insert(id, Class { id: ClassId(id), nodes });
        self.world.dirty.classes.insert(id);
    }

    /// A queue with a ceiling on GPUs.
    pub fn queue(&mut self, id: u32, gpus_max: Option<u32>) {
        let queue = Queue {
            id: QueueId(id),
            name: Arc::from(format!("queue-{id}")),
            parent: None,
            weight_milli: 1000,
            guaranteed_gpu_milli: None,
            maximum_gpu_milli: gpus_max.map(|gpus| gpus * 1000),
            guaranteed_cpu_milli: None,
            maximum_cpu_milli: None,
            used_gpu_milli: 0,
            used_cpu_milli: 0,
        };
        self.world.queues.insert(id, queue);
        self.world.dirty.queues.insert(id);
    }

    /// Submits a job now.
    pub fn submit(&mut self, builder: JobBuilder) {
        let JobBuilder { mut job, iterations_per_s } = builder;
        job.since_ns = self.world.now_ns;
        let id = job.id.0;
        self.world.jobs.insert(id, (job, iterations_per_s));
        let dirty = &mut self.world.dirty;
        for set in [&mut dirty.jobs, &mut dirty.job_states, &mut dirty.progress] {
            set.insert(id);
        }
    }

    /// A job ends and leaves.
    pub fn finish(&mut self, job: u32) {
        if let Some((gone, _)) = self.world.jobs.remove(&job) {
            self.world.dirty.node_states.extend(gone.allocations.iter().map(|row| row.node.0));
            self.world.dirty.removed_jobs.insert(job);
        }
    }

    /// The backend lost a job's workers: it waits again.
    pub fn lose(&mut self, job: u32) {
        let now_ns = self.world.now_ns;
        let Some((lost, _)) = self.world.jobs.get_mut(&job) else { return };
        lost.point = lost.progress(now_ns);
        lost.since_ns = now_ns;
        (lost.point.iterations_per_s, lost.point.service_gpu_s_per_s) = (0.0, 0.0);
        lost.phase = crate::cluster::Phase::Waiting;
        let nodes: Vec<u32> = lost.allocations.drain(..).map(|row| row.node.0).collect();
        self.world.dirty.node_states.extend(nodes);
        self.world.dirty.job_states.insert(job);
        self.world.dirty.progress.insert(job);
    }

    /// Predictions of a job are no longer what they were.
    pub fn estimate_changed(&mut self, job: u32) {
        self.world.dirty.estimates.insert(job);
    }

    /// Lets time pass.
    pub fn pass_s(&mut self, seconds: u64) {
        self.world.now_ns += seconds * SECOND_NS;
    }

    /// Lets time pass until `at_ns`.
    pub fn pass_until(&mut self, at_ns: u64) {
        self.world.now_ns = self.world.now_ns.max(at_ns);
    }

    /// Time now.
    pub fn now_ns(&self) -> u64 {
        self.world.now_ns
    }

    /// Runs one cycle and carries the plan out.
    #[expect(clippy::panic, reason = "a test whose policy answers nonsense must fail")]
    pub fn cycle(&mut self) -> Outcome {
        let base = self.instance.cluster().revision();
        let delta = delta(&mut self.world, &mut self.strings, base);
        let plan = match self.instance.decide(&delta, HostHandle::new(self.host.as_mut())) {
            Ok(plan) => plan,
            Err(error) => panic!("the instance failed: {error}"),
        };
        if let Err(error) = self.world.carry_out(&plan) {
            panic!("a host would refuse this plan: {error}");
        }
        outcome(plan)
    }

    /// What a job holds as (node, workers, cores), by node.
    pub fn held(&self, job: u32) -> Vec<(u32, u32, u32)> {
        let rows: &[Allocation] = self.world.jobs.get(&job).map_or(&[], |(job, _)| &job.allocations);
        rows.iter().map(|row| (row.node.0, row.workers, row.cpu_milli / 1000)).collect()
    }

    /// The policy's view.
    pub fn view(&self) -> &Cluster {
        self.instance.cluster()
    }

    /// The instance, for what the bed does not do.
    pub fn instance(&mut self) -> &mut Instance<P> {
        &mut self.instance
    }
}

fn outcome(plan: Plan) -> Outcome {
    let mut outcome = Outcome { wake_at_ns: plan.wake_at_ns, ..Outcome::default() };
    for (i, (verb, job)) in plan.actions.verb.iter().zip(&plan.actions.job).enumerate() {
        match verb {
            Verb::Start => outcome.started.push(*job),
            Verb::Resize => outcome.resized.push(*job),
            Verb::Rescale => outcome.rescaled.push(*job),
            Verb::Preempt => outcome.preempted.push(*job),
            Verb::Hold => {
                let reason = plan.actions.reason.get(i).and_then(|reason| plan.reasons.get(*reason as usize));
                outcome.held.push((*job, reason.map(|reason| reason.code.clone()).unwrap_or_default()));
            }
        }
    }
    outcome.plan = plan;
    outcome
}
