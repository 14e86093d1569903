//! A small cluster for tests of policies: the host's own state and judge around a policy compiled natively, with the
//! published Synergy tables as predictor.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod chaos;

use std::collections::BTreeMap;

use coretuner_core::event::{Command, Event, RemovalReason};
use coretuner_core::judge::Judgement;
use coretuner_core::model::{
    ChangePoint, ClassId, Eligibility, GroupSpec, JobId, JobPhase, JobSpec, KindId, NodeId, NodeSpec, NodeState,
    QueueId, QueueSpec, ResizeRights,
};
use coretuner_core::state::State;
use coretuner_core::view::Cursor;
use coretuner_sdk::contract::cluster::Trigger;
use coretuner_sdk::contract::plan::Plan;
use coretuner_sdk::predict::{CurveRequest, Curves};
use coretuner_sdk::solve::synergy::{MODELS, model};
use coretuner_sdk::{Host, HostHandle, Instance, Level, Policy, PredictError};

pub const SECOND: u64 = 1_000_000_000;

/// Answers curves from the tables: iterations/s of a job of one model on any grid.
#[derive(Default)]
pub struct Tables {
    /// Model by job; jobs without one are unknown.
    pub models: BTreeMap<u32, &'static str>,
    /// Factor on all speeds of a model.
    pub scale: BTreeMap<&'static str, f64>,
    /// Half width of the logarithmic band of a model at other CPU than the proportional share of 3 cores per GPU.
    pub doubt: BTreeMap<&'static str, f64>,
    /// What an observation would tell most at, thousandths of a core for one GPU.
    pub probe: Option<u32>,
    /// Exponent of the number of GPUs in the speed of a job; none: a step of all GPUs takes as long as of one.
    pub scaling: Option<f64>,
    /// Speed of a model on other GPU kinds than that of the first node.
    pub slower: BTreeMap<&'static str, f64>,
    /// GPU kinds asked for; the first node's is the least.
    kinds: std::collections::BTreeSet<u32>,
    /// Factor on the speed of a job for each node beyond the fewest that can hold it; none: 1.
    pub spanning: Option<f64>,
    pub questions: u32,
    pub fails: bool,
    /// Answers instead of the tables.
    pub chaos: Option<chaos::Chaos>,
    pub log: Vec<String>,
}

impl Tables {
    /// Iterations per second of a whole job.
    pub fn speed(&self, name: &str, gpus: u32, cpu_milli: u32, memory_mib: u32) -> f64 {
        let per_gpu = |all: f64| all / f64::from(gpus);
        let units = per_gpu(f64::from(memory_mib) + 8.0) * 24.0 / 512_000.0;
        let relative = model(name).relative_speed(per_gpu(f64::from(cpu_milli) / 1000.0), units);
        let relative = relative * f64::from(gpus).powf(self.scaling.unwrap_or(0.0));
        relative / model(name).iteration_s * self.scale.get(name).copied().unwrap_or(1.0)
    }
}

impl Tables {
    fn slow(&self, name: &str, first: bool) -> f64 {
        if first { 1.0 } else { self.slower.get(name).copied().unwrap_or(1.0) }
    }

    /// Factor on the speed of `gpus` GPUs over so many published servers.
    fn spread(&self, gpus: u32, nodes: u32) -> f64 {
        self.spanning.unwrap_or(1.0).powi(nodes as i32 - gpus.div_ceil(SERVER.0) as i32)
    }
}

impl Host for Tables {
    fn curves(&mut self, request: &CurveRequest) -> Result<Curves, PredictError> {
        self.questions += 1;
        if self.fails {
            return Err(PredictError::Late);
        }
        if let (Some(chaos), Some(name)) = (&mut self.chaos, self.models.get(&request.jobs[0].0)) {
            return chaos.answer(request, name);
        }
        let (mut mean, mut half) = (Vec::new(), Vec::new());
        self.kinds.insert(request.gpu_kind);
        let first = self.kinds.first() == Some(&request.gpu_kind);
        for job in &request.jobs {
            for (gpus, nodes) in request.gpus.iter().zip(&request.nodes_spanned) {
                let spread = self.spread(*gpus, *nodes);
                for cpu in &request.cpu_milli {
                    for memory in &request.memory_mib {
                        let name = self.models.get(&job.0);
                        let speed = |name: &&str| {
                            (self.speed(name, *gpus, *cpu, *memory) * spread * self.slow(name, first)) as f32
                        };
                        mean.push(name.as_ref().map_or(f32::NAN, |name| speed(name)));
                        let doubt = name.and_then(|name| self.doubt.get(name)).filter(|_| *cpu != gpus * 3000);
                        half.push(doubt.copied().unwrap_or(0.0) as f32);
                    }
                }
            }
        }
        let version = vec![1; request.jobs.len()];
        let band = |sign: f32| mean.iter().zip(&half).map(|(mean, half)| mean * (sign * half).exp()).collect();
        Ok(Curves { low: band(-1.0), high: band(1.0), mean, version })
    }

    fn next_probe(&mut self, _job: coretuner_sdk::JobId) -> Option<u32> {
        self.probe
    }

    fn log(&mut self, _level: Level, message: &str) {
        self.log.push(message.to_owned());
    }
}

/// Splitmix64.
pub struct Random(pub u64);

impl Random {
    /// Less than `bound`.
    pub fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % u64::from(bound)) as u32
    }
}

/// State, policy and predictor.
pub struct World<P> {
    pub state: State,
    pub host: Tables,
    /// Speed that jobs show, as a part of what is predicted.
    pub truth: f64,
    policy: Instance<P>,
    /// Gets the same deltas and must give the same plans.
    twin: Option<Instance<P>>,
    /// Happens while the next plan is made.
    pub meanwhile: Vec<Event>,
    cursor: Cursor,
    verdicts: Vec<coretuner_core::judge::Verdict>,
    next_job: u32,
}

pub const SERVER: (u32, u32, u32) = (8, 24_000, 512_000);

impl<P: Policy> World<P> {
    /// Published servers: 8 GPUs, 24 cores, 500 GB.
    pub fn new(servers: u32, config: &str) -> Self {
        Self::with_nodes(&vec![SERVER; servers as usize], config)
    }

    /// Nodes of (GPUs, `cpu_milli`, `memory_mib`).
    pub fn with_nodes(nodes: &[(u32, u32, u32)], config: &str) -> Self {
        let spec = |(id, (devices, cpu_milli, memory_mib)): (usize, &(u32, u32, u32))| NodeSpec {
            name: format!("node{id}"),
            gpu_kind: if *devices > 0 { "V100".to_owned() } else { String::new() },
            cpu_milli: *cpu_milli,
            memory_mib: *memory_mib,
            storage_mib_per_s: 500,
            devices: *devices,
            device_memory_mib: 16_384,
            zone: None,
            rack: None,
            link_domain: None,
        };
        Self::with_specs(nodes.iter().enumerate().map(spec).collect(), config)
    }

    pub fn with_specs(nodes: Vec<NodeSpec>, config: &str) -> Self {
        let mut policy = Instance::new();
        policy.configure(config).unwrap();
        let mut state = State::new();
        let queue = QueueSpec {
            name: "default".to_owned(),
            parent: None,
            weight_milli: 1000,
            guaranteed_gpu_milli: None,
            maximum_gpu_milli: None,
            guaranteed_cpu_milli: None,
            maximum_cpu_milli: None,
        };
        state.apply(0, &Event::QueueSet { id: QueueId(0), spec: queue }).unwrap();
        state.apply(0, &Event::ClassSet { id: ClassId(0), nodes: Eligibility::All }).unwrap();
        for (id, spec) in nodes.into_iter().enumerate() {
            state.apply(0, &Event::NodeSet { id: NodeId(id as u32), spec }).unwrap();
        }
        let (host, cursor) = (Tables::default(), Cursor::new());
        Self {
            state,
            host,
            truth: 1.0,
            policy,
            twin: None,
            meanwhile: Vec::new(),
            cursor,
            verdicts: Vec::new(),
            next_job: 0,
        }
    }

    /// From the first cycle on, a second instance gets the same deltas and must give the same plans.
    pub fn with_twin(mut self, config: &str) -> Self {
        let mut twin = Instance::new();
        twin.configure(config).unwrap();
        self.twin = Some(twin);
        self
    }

    pub fn event(&mut self, event: &Event) {
        self.state.apply(self.state.now_ns(), event).unwrap();
    }

    /// A gang of one-GPU workers of a model of the tables, free to be tuned.
    pub fn submit(&mut self, model: &'static str, gpus: u32) -> JobId {
        self.submit_with(Some(model), gpus, |_| ())
    }

    pub fn submit_with(&mut self, model: Option<&'static str>, gpus: u32, change: impl FnOnce(&mut JobSpec)) -> JobId {
        let id = JobId(self.next_job);
        self.next_job += 1;
        let group = GroupSpec {
            role: "worker".to_owned(),
            workers_min: gpus,
            workers_max: gpus,
            gpu_milli: 1000,
            cpu_milli: 3000,
            memory_mib: 64_000,
            cpu_milli_min: 100,
            cpu_milli_max: 24_000,
            memory_mib_min: 1000,
            memory_mib_max: 512_000,
            resize_rights: ResizeRights::ALL,
        };
        let kind = model.and_then(|name| MODELS.iter().position(|model| model.name == name));
        let mut spec = JobSpec {
            name: format!("{} x{gpus}", model.unwrap_or("unknown")),
            user: "user".to_owned(),
            queue: QueueId(0),
            eligibility: ClassId(0),
            priority: 0,
            tier: 0,
            preemptible: true,
            submit_ns: self.state.now_ns(),
            groups: vec![group],
            work_iterations: 1_000_000,
            estimated_duration_ns: 0,
            deadline_ns: 0,
            kind: kind.map(|kind| KindId(kind as u32)),
            labels: Vec::new(),
        };
        change(&mut spec);
        if let Some(model) = model {
            self.host.models.insert(id.0, model);
        }
        self.event(&Event::JobSubmitted { id, spec });
        id
    }

    pub fn complete(&mut self, job: JobId) {
        self.event(&Event::JobRemoved { id: job, reason: RemovalReason::Completed });
    }

    pub fn set_node(&mut self, node: u32, state: NodeState) {
        self.event(&Event::NodeStateSet { id: NodeId(node), state });
    }

    /// One cycle `after_s` later; the running jobs then progress as the tables say. Every plan must be accepted whole.
    pub fn cycle(&mut self, after_s: u64) -> (Plan, Judgement) {
        let (plan, judgement) = self.cycle_unchecked(after_s, Trigger::ARRIVAL | Trigger::TIMER);
        assert_eq!(judgement.verdicts, [], "refused of {plan:?}");
        (plan, judgement)
    }

    pub fn cycle_unchecked(&mut self, after_s: u64, trigger: Trigger) -> (Plan, Judgement) {
        self.state.advance(self.state.now_ns() + after_s * SECOND);
        let delta = self.cursor.delta(&self.state, trigger, &self.verdicts);
        let plan = self.policy.decide(&delta, HostHandle::new(&mut self.host)).unwrap();
        if let Some(twin) = &mut self.twin {
            assert_eq!(twin.decide(&delta, HostHandle::new(&mut self.host)).unwrap(), plan);
        }
        for event in std::mem::take(&mut self.meanwhile) {
            self.event(&event);
        }
        let judgement = self.state.judge(self.state.now_ns(), &plan);
        self.verdicts = judgement.verdicts.clone();
        self.state.check_invariants().unwrap();
        self.report_progress(&judgement.commands);
        (plan, judgement)
    }

    fn report_progress(&mut self, commands: &[Command]) {
        let now_ns = self.state.now_ns();
        for job in commands.iter().map(Command::job) {
            let Some(view) = self.state.job(job).filter(|view| view.phase == JobPhase::Running) else { continue };
            let gpus = view.gpu_milli() as f64 / 1000.0;
            let point = ChangePoint {
                since_ns: now_ns,
                iterations: view.iterations_at(now_ns),
                iterations_per_s: self.speed(job) * self.truth,
                service_gpu_s: view.service_gpu_s_at(now_ns),
                service_gpu_s_per_s: gpus,
            };
            self.state.apply(now_ns, &Event::Progress { job, point }).unwrap();
        }
    }

    /// Iterations per second of a running job by the tables; the slowest part counts.
    pub fn speed(&self, job: JobId) -> f64 {
        let Some(view) = self.state.job(job) else { return 0.0 };
        let Some(name) = self.host.models.get(&job.0) else { return 1.0 };
        let all: u32 = view.allocations.iter().map(|row| row.gpu_milli / 1000).sum();
        let part = |gpus: u32, cpu, memory| self.host.speed(name, gpus, cpu, memory) * f64::from(all) / f64::from(gpus);
        let parts = view.allocations.iter().filter(|row| row.gpu_milli >= 1000);
        let speeds = parts.map(|row| part(row.gpu_milli / 1000, row.cpu_milli, row.memory_mib));
        let spread = self.host.spread(all, view.allocations.len() as u32);
        let kind = |node: NodeId| self.state.node(node).map(|node| node.spec.gpu_kind.as_str());
        let first = view.allocations.iter().all(|row| kind(row.node) == kind(NodeId(0)));
        speeds.fold(f64::INFINITY, f64::min).min(1e9) * spread * self.host.slow(name, first)
    }

    /// GPUs × speed relative to the proportional share, of all running jobs.
    pub fn value(&self) -> f64 {
        self.state.running().map(|job| self.relative(job)).sum()
    }

    /// GPUs × relative speed of one job.
    pub fn relative(&self, job: JobId) -> f64 {
        let Some(view) = self.state.job(job) else { return 0.0 };
        let Some(name) = self.host.models.get(&job.0) else { return 0.0 };
        self.speed(job) * model(name).iteration_s * view.gpu_milli() as f64 / 1000.0
    }

    /// Where a job runs, with cores and 24ths of memory (rounded up).
    pub fn held(&self, job: JobId) -> Vec<(u32, u32, u32)> {
        let rows = self.state.job(job).map_or(&[][..], |view| &view.allocations);
        rows.iter().map(|row| (row.node.0, row.cpu_milli / 1000, (row.memory_mib * 24).div_ceil(512_000))).collect()
    }

    pub fn is_running(&self, job: JobId) -> bool {
        self.state.job(job).is_some_and(|view| view.phase == JobPhase::Running)
    }

    /// Code of the reason last given for a job.
    pub fn reason(&self, job: JobId) -> Option<String> {
        self.state.job(job)?.reason.as_ref().map(|reason| reason.code.clone())
    }

    pub fn policy(&self) -> &P {
        self.policy.policy().unwrap()
    }
}
