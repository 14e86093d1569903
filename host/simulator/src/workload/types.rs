//! A complete workload.

use std::sync::Arc;

use coretuner_core::catalog::KindCatalog;
use coretuner_core::model::{Eligibility, JobSpec, NodeId, NodeSpec, QueueSpec};

use crate::result::WorkloadInfo;
use crate::truth::{GroundTruth, Share, TruthId};

/// A cluster and the jobs that come to it. Ids are indexes: node i is [`NodeId`] i, and so on.
#[derive(Clone, Debug)]
pub struct Workload {
    pub nodes: Vec<NodeSpec>,
    pub queues: Vec<QueueSpec>,
    pub classes: Vec<Eligibility>,
    /// By submit time, ties in the trace's order.
    pub jobs: Vec<TraceJob>,
    pub kinds: Arc<KindCatalog>,
    pub truth: GroundTruth,
    pub info: WorkloadInfo,
}

/// A job with the truth about it.
#[derive(Clone, Debug)]
pub struct TraceJob {
    pub spec: JobSpec,
    pub truth: TruthId,
    /// Model as reports name it.
    pub model: String,
    /// Why it can never run on this cluster, if so.
    pub never: Option<String>,
}

impl TraceJob {
    /// GPUs of the smallest gang; a share of one counts as one.
    pub fn gpus(&self) -> u32 {
        u32::try_from(self.spec.gpu_milli_min().div_ceil(1000)).unwrap_or(u32::MAX)
    }

    /// The requested allocation on one node of `gpu_kind`.
    pub fn requested<'a>(&self, gpu_kind: &'a str) -> Share<'a> {
        let gpus = self.gpus();
        let groups = self.spec.groups.iter().filter(|group| group.gpu_milli > 0 || gpus == 0);
        let total = |of: fn(&coretuner_core::model::GroupSpec) -> u32| -> u64 {
            groups.clone().map(|group| u64::from(group.workers_min) * u64::from(of(group))).sum()
        };
        let per = u64::from(gpus.max(1));
        Share {
            gpu_kind,
            gpus,
            nodes: 1,
            cores_per_gpu: total(|group| group.cpu_milli) as f64 / (1000.0 * per as f64),
            memory_mib_per_gpu: u32::try_from(total(|group| group.memory_mib) / per).unwrap_or(u32::MAX),
        }
    }
}

impl Workload {
    /// Nodes of an eligibility class, ascending.
    pub fn nodes_of(&self, class: usize) -> Vec<NodeId> {
        match self.classes.get(class) {
            Some(Eligibility::Nodes(nodes)) => nodes.clone(),
            _ => (0..self.nodes.len() as u32).map(NodeId).collect(),
        }
    }

    /// GPU kind of the first node that `job` may use: what "speed at the request" refers to.
    pub fn reference_gpu(&self, job: &TraceJob) -> &str {
        let kind = |node: &NodeSpec| node.devices > 0;
        let found = match self.classes.get(job.spec.eligibility.0 as usize) {
            Some(Eligibility::Nodes(nodes)) => {
                nodes.iter().filter_map(|id| self.nodes.get(id.0 as usize)).find(|node| kind(node))
            }
            _ => self.nodes.iter().find(|node| kind(node)),
        };
        found.map_or("", |node| node.gpu_kind.as_str())
    }

    /// Seconds that `job` takes alone at its request on its reference GPU kind.
    pub fn alone_s(&self, job: &TraceJob) -> f64 {
        let share = job.requested(self.reference_gpu(job));
        let iteration_s = self.truth.iteration_s(job.truth, &share).unwrap_or(0.0);
        job.spec.work_iterations as f64 * iteration_s
    }

    /// All GPUs of the cluster.
    pub fn gpus(&self) -> u64 {
        self.nodes.iter().map(|node| u64::from(node.devices)).sum()
    }
}
