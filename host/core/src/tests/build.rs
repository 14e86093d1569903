use crate::contract::NONE;
use crate::contract::plan::{Plan, Reason, Verb};
use crate::event::Event;
use crate::model::{
    ClassId, Eligibility, GroupSpec, JobId, JobSpec, NodeId, NodeSpec, QueueId, QueueSpec, ResizeRights,
};
use crate::state::State;

/// A node with 8 GPUs, 24 cores and 512,000 MiB, Synergy's server.
pub(crate) fn server(name: &str) -> NodeSpec {
    NodeSpec {
        name: name.to_owned(),
        gpu_kind: "V100".to_owned(),
        cpu_milli: 24_000,
        memory_mib: 512_000,
        storage_mib_per_s: 500,
        devices: 8,
        device_memory_mib: 16_384,
        zone: None,
        rack: Some("r0".to_owned()),
        link_domain: None,
    }
}

/// `workers` workers of one GPU, 3 cores (1 to 12) and 64,000 MiB (10,000 to 128,000) each.
pub(crate) fn group(workers: u32) -> GroupSpec {
    GroupSpec {
        role: "worker".to_owned(),
        workers_min: workers,
        workers_max: workers,
        gpu_milli: 1000,
        cpu_milli: 3_000,
        memory_mib: 64_000,
        cpu_milli_min: 1_000,
        cpu_milli_max: 12_000,
        memory_mib_min: 10_000,
        memory_mib_max: 128_000,
        resize_rights: ResizeRights::ALL,
    }
}

pub(crate) fn job(groups: Vec<GroupSpec>) -> JobSpec {
    JobSpec {
        name: "job".to_owned(),
        user: "user".to_owned(),
        queue: QueueId(0),
        eligibility: ClassId(0),
        priority: 0,
        tier: 0,
        preemptible: true,
        submit_ns: 0,
        groups,
        work_iterations: 1_000,
        estimated_duration_ns: 0,
        deadline_ns: 0,
        kind: None,
        labels: Vec::new(),
    }
}

pub(crate) fn queue(maximum_gpu_milli: Option<u32>, parent: Option<u32>) -> QueueSpec {
    QueueSpec {
        name: "q".to_owned(),
        parent: parent.map(QueueId),
        weight_milli: 1000,
        guaranteed_gpu_milli: None,
        maximum_gpu_milli,
        guaranteed_cpu_milli: None,
        maximum_cpu_milli: None,
    }
}

/// A cluster of `nodes` servers with queue 0 and class 0 (all nodes).
pub(crate) fn cluster(nodes: u32) -> State {
    let mut state = State::new();
    apply(&mut state, &Event::QueueSet { id: QueueId(0), spec: queue(None, None) });
    apply(&mut state, &Event::ClassSet { id: ClassId(0), nodes: Eligibility::All });
    for id in 0..nodes {
        apply(&mut state, &Event::NodeSet { id: NodeId(id), spec: server(&format!("n{id}")) });
    }
    state
}

pub(crate) fn apply(state: &mut State, event: &Event) {
    let now_ns = state.now_ns();
    state.apply(now_ns, event).unwrap();
}

pub(crate) fn submit(state: &mut State, id: u32, spec: JobSpec) {
    apply(state, &Event::JobSubmitted { id: JobId(id), spec });
}

/// A placement row: group, node, workers, cores, GiB-ish thousands of MiB, whole devices, mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) group: u32,
    pub(crate) node: u32,
    pub(crate) workers: u32,
    pub(crate) cpu_milli: u32,
    pub(crate) memory_mib: u32,
    pub(crate) gpu_milli: u32,
    pub(crate) device_mask: u32,
}

/// `workers` workers of [`group`] as requested.
pub(crate) fn row(node: u32, workers: u32) -> Row {
    Row {
        group: 0,
        node,
        workers,
        cpu_milli: workers * 3_000,
        memory_mib: workers * 64_000,
        gpu_milli: workers * 1_000,
        device_mask: 0,
    }
}

/// A plan in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned(pub(crate) Plan);

impl Planned {
    /// In a bundle of its own.
    pub(crate) fn alone(mut self, verb: Verb, job: u32, rows: &[Row]) -> Self {
        let bundle = self.0.actions.bundle.last().map_or(0, |last| last + 1);
        self.push(verb, job, rows, bundle);
        self
    }

    /// In the bundle of the action before.
    pub(crate) fn with(mut self, verb: Verb, job: u32, rows: &[Row]) -> Self {
        let bundle = self.0.actions.bundle.last().copied().unwrap_or(0);
        self.push(verb, job, rows, bundle);
        self
    }

    pub(crate) fn because(mut self, code: &str) -> Self {
        let reason = Reason { code: code.to_owned(), arguments: vec![1.0], node: NONE, other_job: NONE };
        *self.0.actions.reason.last_mut().unwrap() = self.0.reasons.len() as u32;
        self.0.reasons.push(reason);
        self
    }

    pub(crate) fn push(&mut self, verb: Verb, job: u32, rows: &[Row], bundle: u32) {
        let (actions, table) = (&mut self.0.actions, &mut self.0.placements);
        actions.verb.push(verb);
        actions.job.push(job);
        actions.bundle.push(bundle);
        actions.placement_start.push(table.group.len() as u32);
        actions.placement_count.push(rows.len() as u32);
        actions.batch_per_gpu.push(0);
        actions.reason.push(NONE);
        for row in rows {
            table.group.push(row.group);
            table.node.push(row.node);
            table.workers.push(row.workers);
            table.cpu_milli.push(row.cpu_milli);
            table.memory_mib.push(row.memory_mib);
            table.gpu_milli.push(row.gpu_milli);
            table.device_mask.push(row.device_mask);
        }
    }
}
