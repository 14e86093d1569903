//! Placement rows of one action against the job's groups and the nodes, capacity apart.

use std::ops::Range;

use crate::contract::GPU_MILLI;
use crate::contract::cluster::Refusal;
use crate::contract::plan::PlacementRows;
use crate::model::{Allocation, GroupSpec, NodeId, NodeState};
use crate::state::{JobView, State};

/// Rows `range` of a plan, ascending by (group, node); the range is in bounds.
pub(super) fn rows(table: &PlacementRows, range: Range<usize>) -> Vec<Allocation> {
    let row = |i: usize| {
        Some(Allocation {
            group: *table.group.get(i)?,
            node: NodeId(*table.node.get(i)?),
            workers: *table.workers.get(i)?,
            cpu_milli: *table.cpu_milli.get(i)?,
            memory_mib: *table.memory_mib.get(i)?,
            gpu_milli: *table.gpu_milli.get(i)?,
            device_mask: *table.device_mask.get(i)?,
        })
    };
    let mut rows: Vec<Allocation> = range.filter_map(row).collect();
    rows.sort_by_key(|row| (row.group, row.node));
    rows
}

/// Two rows for one (group, node) would make "the CPU of this group there" ambiguous.
pub(super) fn check_distinct(rows: &[Allocation]) -> Result<(), Refusal> {
    let twice = rows.windows(2).any(|pair| matches!(pair, [a, b] if (a.group, a.node) == (b.group, b.node)));
    if twice { Err(Refusal::OutOfRange) } else { Ok(()) }
}

/// A whole new placement of `job`: every group within its gang size, every row legal.
pub(super) fn check_whole(state: &State, job: &JobView, rows: &[Allocation]) -> Result<(), Refusal> {
    check_distinct(rows)?;
    rows.iter().try_for_each(|row| check_row(state, job, row))?;
    check_gang(job, rows)
}

fn check_row(state: &State, job: &JobView, row: &Allocation) -> Result<(), Refusal> {
    let group = job.spec.groups.get(row.group as usize).ok_or(Refusal::OutOfRange)?;
    let node = state.node(row.node).ok_or(Refusal::UnknownId)?;
    let stays = node.state == NodeState::Cordoned && job.allocations.iter().any(|held| held.node == row.node);
    let open = node.state == NodeState::Schedulable || stays;
    if !open || !state.is_eligible(job.spec.eligibility, row.node) {
        return Err(Refusal::NotEligible);
    }
    check_size(group, row)?;
    check_devices(group, row, node.spec.devices)
}

fn check_size(group: &GroupSpec, row: &Allocation) -> Result<(), Refusal> {
    let workers = u64::from(row.workers);
    if workers == 0 || u64::from(row.gpu_milli) != workers * u64::from(group.gpu_milli) {
        return Err(Refusal::OutOfRange);
    }
    check_ranges(group, row)
}

/// CPU and memory of `row` against the per-worker ranges of its group.
pub(super) fn check_ranges(group: &GroupSpec, row: &Allocation) -> Result<(), Refusal> {
    let workers = u64::from(row.workers);
    let inside = |total: u32, min: u32, max: u32| {
        (workers * u64::from(min)..=workers * u64::from(max)).contains(&u64::from(total))
    };
    let cpu = inside(row.cpu_milli, group.cpu_milli_min, group.cpu_milli_max);
    let memory = inside(row.memory_mib, group.memory_mib_min, group.memory_mib_max);
    if cpu && memory { Ok(()) } else { Err(Refusal::OutOfRange) }
}

fn check_devices(group: &GroupSpec, row: &Allocation, devices: u32) -> Result<(), Refusal> {
    let count = devices_needed(group, row)?;
    let inside = row.device_mask.checked_shr(devices).unwrap_or(0) == 0;
    let right = row.device_mask == 0 || row.device_mask.count_ones() == count;
    if inside && right { Ok(()) } else { Err(Refusal::OutOfRange) }
}

/// Devices of a row: whole ones, or the one that its workers share.
fn devices_needed(group: &GroupSpec, row: &Allocation) -> Result<u32, Refusal> {
    if is_whole(group) {
        return Ok(row.gpu_milli / GPU_MILLI);
    }
    if row.gpu_milli > GPU_MILLI {
        return Err(Refusal::OutOfRange);
    }
    Ok(1)
}

/// Whether the group's workers hold whole devices (or none).
pub(crate) fn is_whole(group: &GroupSpec) -> bool {
    group.gpu_milli.is_multiple_of(GPU_MILLI)
}

fn check_gang(job: &JobView, rows: &[Allocation]) -> Result<(), Refusal> {
    let mut workers = vec![0_u64; job.spec.groups.len()];
    for row in rows {
        if let Some(sum) = workers.get_mut(row.group as usize) {
            *sum += u64::from(row.workers);
        }
    }
    for (group, workers) in job.spec.groups.iter().zip(workers) {
        if workers < u64::from(group.workers_min) {
            return Err(Refusal::GangIncomplete);
        }
        if workers > u64::from(group.workers_max) {
            return Err(Refusal::OutOfRange);
        }
    }
    if rows.is_empty() { Err(Refusal::GangIncomplete) } else { Ok(()) }
}
