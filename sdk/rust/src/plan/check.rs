//! The host's rules for one action, capacity apart, so that a policy learns of a mistake where it makes it.

use coretuner_contract::GPU_MILLI;

use crate::cluster::{Allocation, Cluster, Group, Job, NodeState};
use crate::id::NodeId;
use crate::plan::{Placement, PlanError, Resize};

/// The rows that `placements` ask for: legal for the job's groups, ascending by (group, node).
pub(super) fn whole(cluster: &Cluster, job: &Job, placements: &[Placement]) -> Result<Vec<Allocation>, PlanError> {
    let mut rows = Vec::with_capacity(placements.len());
    for placement in placements {
        rows.push(row(cluster, job, placement)?);
    }
    rows.sort_unstable_by_key(|row| (row.group, row.node));
    for pair in rows.windows(2) {
        if (pair[0].group, pair[0].node) == (pair[1].group, pair[1].node) {
            return Err(bad(job, pair[0].group, pair[0].node));
        }
    }
    for (index, group) in job.groups.iter().enumerate() {
        let workers = rows.iter().filter(|row| row.group as usize == index).map(|row| row.workers).sum();
        if workers < group.workers_min || workers > group.workers_max {
            return Err(PlanError::Gang { job: job.id, group: index as u32, workers });
        }
    }
    if rows.is_empty() {
        return Err(PlanError::Gang { job: job.id, group: 0, workers: 0 });
    }
    Ok(rows)
}

fn bad(job: &Job, group: u32, node: NodeId) -> PlanError {
    PlanError::Row { job: job.id, group, node }
}

fn row(cluster: &Cluster, job: &Job, placement: &Placement) -> Result<Allocation, PlanError> {
    let &Placement { group: index, node: id, workers, cpu_milli, memory_mib, device_mask } = placement;
    let group = job.groups.get(index as usize).ok_or_else(|| bad(job, index, id))?;
    let node = cluster.node(id).ok_or(PlanError::UnknownNode(id))?;
    let stays = node.state == NodeState::Cordoned && job.allocations.iter().any(|held| held.node == id);
    if !(node.is_schedulable() || stays) || !cluster.is_eligible(job.class, id) {
        return Err(PlanError::NotEligible { job: job.id, node: id });
    }
    let gpu_milli = workers.checked_mul(group.gpu_milli).ok_or_else(|| bad(job, index, id))?;
    let devices = if group.is_share() { 1 } else { gpu_milli / GPU_MILLI };
    let masked = device_mask == 0
        || (device_mask.count_ones() == devices && device_mask.checked_shr(node.devices).unwrap_or(0) == 0);
    let share_fits = !group.is_share() || gpu_milli <= GPU_MILLI;
    if workers == 0 || !masked || !share_fits || !in_ranges(group, workers, cpu_milli, memory_mib) {
        return Err(bad(job, index, id));
    }
    Ok(Allocation { group: index, node: id, workers, cpu_milli, memory_mib, gpu_milli, device_mask })
}

fn in_ranges(group: &Group, workers: u32, cpu_milli: u32, memory_mib: u32) -> bool {
    let inside = |total: u32, min: u32, max: u32| {
        let workers = u64::from(workers);
        (workers * u64::from(min)..=workers * u64::from(max)).contains(&u64::from(total))
    };
    inside(cpu_milli, group.cpu_milli_min, group.cpu_milli_max)
        && inside(memory_mib, group.memory_mib_min, group.memory_mib_max)
}

/// Rows held before and after a resize, only those that change.
pub(super) fn resize(job: &Job, resizes: &[Resize]) -> Result<Vec<(Allocation, Allocation)>, PlanError> {
    let mut rows = Vec::with_capacity(resizes.len());
    for (i, resize) in resizes.iter().enumerate() {
        let key = (resize.group, resize.node);
        let wrong = || bad(job, resize.group, resize.node);
        let held = job.allocations.iter().find(|held| (held.group, held.node) == key).ok_or_else(wrong)?;
        let group = job.groups.get(resize.group as usize).ok_or_else(wrong)?;
        let new = Allocation { cpu_milli: resize.cpu_milli, memory_mib: resize.memory_mib, ..*held };
        let rights = group.resize;
        let allowed = (rights.cpu || new.cpu_milli == held.cpu_milli)
            && (rights.memory_grow || new.memory_mib <= held.memory_mib)
            && (rights.memory_shrink || new.memory_mib >= held.memory_mib);
        let twice = resizes[..i].iter().any(|other| (other.group, other.node) == key);
        if !allowed || twice || !in_ranges(group, held.workers, new.cpu_milli, new.memory_mib) {
            return Err(wrong());
        }
        if new != *held {
            rows.push((*held, new));
        }
    }
    Ok(rows)
}

/// A job that may not be preempted is interrupted only where it must leave its node.
pub(super) fn may_interrupt(cluster: &Cluster, job: &Job) -> Result<(), PlanError> {
    let leaves = |row: &Allocation| cluster.node(row.node).is_some_and(|node| node.state == NodeState::Draining);
    if job.preemptible || job.allocations.iter().any(leaves) { Ok(()) } else { Err(PlanError::NotPreemptible(job.id)) }
}
