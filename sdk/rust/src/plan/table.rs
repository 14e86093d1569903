//! The plan's tables while they grow.

use coretuner_contract::NONE;
use coretuner_contract::plan::{Plan, Verb};

use crate::cluster::{Allocation, Job};
use crate::id::{JobId, NodeId};

/// Where workers of one group shall run, and with what, in total on that node. GPUs follow from the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Index into the job's groups.
    pub group: u32,
    pub node: NodeId,
    pub workers: u32,
    pub cpu_milli: u32,
    pub memory_mib: u32,
    /// Bit i = device i of the node; 0 = the SDK picks.
    pub device_mask: u32,
}

impl Placement {
    /// The row as `job` would hold it.
    pub(crate) fn allocation(&self, job: &Job) -> Allocation {
        let gpu_milli = job.groups.get(self.group as usize).map_or(0, |group| group.gpu_milli);
        Allocation {
            group: self.group,
            node: self.node,
            workers: self.workers,
            cpu_milli: self.cpu_milli,
            memory_mib: self.memory_mib,
            gpu_milli: self.workers.saturating_mul(gpu_milli),
            device_mask: self.device_mask,
        }
    }
}

/// New CPU and memory for what a running job holds of one group on one node, in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resize {
    pub group: u32,
    pub node: NodeId,
    pub cpu_milli: u32,
    pub memory_mib: u32,
}

/// Lengths to cut back to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lengths {
    pub(super) actions: usize,
    placements: usize,
    reasons: usize,
}

pub(super) fn lengths(plan: &Plan) -> Lengths {
    Lengths { actions: plan.actions.job.len(), placements: plan.placements.node.len(), reasons: plan.reasons.len() }
}

pub(super) fn truncate(plan: &mut Plan, to: Lengths) {
    let rows = &mut plan.actions;
    rows.verb.truncate(to.actions);
    for column in [
        &mut rows.job,
        &mut rows.bundle,
        &mut rows.placement_start,
        &mut rows.placement_count,
        &mut rows.batch_per_gpu,
        &mut rows.reason,
    ] {
        column.truncate(to.actions);
    }
    let rows = &mut plan.placements;
    for column in [
        &mut rows.group,
        &mut rows.node,
        &mut rows.workers,
        &mut rows.cpu_milli,
        &mut rows.memory_mib,
        &mut rows.gpu_milli,
        &mut rows.device_mask,
    ] {
        column.truncate(to.placements);
    }
    plan.reasons.truncate(to.reasons);
}

/// Appends an action with its rows; returns its index.
pub(super) fn push(plan: &mut Plan, verb: Verb, job: JobId, bundle: u32, batch: u32, rows: &[Allocation]) -> usize {
    let (start, table) = (plan.placements.node.len(), &mut plan.placements);
    for row in rows {
        table.group.push(row.group);
        table.node.push(row.node.0);
        table.workers.push(row.workers);
        table.cpu_milli.push(row.cpu_milli);
        table.memory_mib.push(row.memory_mib);
        table.gpu_milli.push(row.gpu_milli);
        table.device_mask.push(row.device_mask);
    }
    let actions = &mut plan.actions;
    actions.verb.push(verb);
    actions.job.push(job.0);
    actions.bundle.push(bundle);
    actions.placement_start.push(start as u32);
    actions.placement_count.push(rows.len() as u32);
    actions.batch_per_gpu.push(batch);
    actions.reason.push(NONE);
    actions.job.len() - 1
}
