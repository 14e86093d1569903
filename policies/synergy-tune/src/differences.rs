//! From a grant to what must change.

use coretuner_sdk::{Allocation, Change, Job, NodeId, Placement, Resize, Step, Why};

use crate::allocate::{Grant, Part};

/// What turns what a job holds into its grant; none if it is that already, or waits on.
pub(crate) fn step(job: &Job, grant: Option<&Grant>, nodes: &[NodeId]) -> Option<Step> {
    let Some(grant) = grant else {
        return job.is_running().then(|| Step { job: job.id, change: Change::Preempt, why: Why::new("order", &[]) });
    };
    let why = Why::new(if grant.reduced { "share" } else { "full" }, &[]);
    let mut parts: Vec<(NodeId, &Part)> = grant.parts.iter().map(|part| (nodes[part.server], part)).collect();
    parts.sort_by_key(|(node, _)| *node);
    let placements = || parts.iter().map(|(node, part)| placement(*node, part)).collect();
    if job.is_waiting() {
        return Some(Step { job: job.id, change: Change::Start(placements()), why });
    }
    if !same_places(job, &parts) {
        return Some(Step { job: job.id, change: Change::Rescale(placements(), 0), why });
    }
    let rows: Vec<(&Allocation, Placement)> =
        job.allocations.iter().zip(parts.iter().map(|(node, part)| placement(*node, part))).collect();
    if rows.iter().all(|(held, new)| (held.cpu_milli, held.memory_mib) == (new.cpu_milli, new.memory_mib)) {
        return None;
    }
    let change = if rows.iter().all(|(held, new)| in_place(job, held, new)) {
        let resize = |(_, new): &(&Allocation, Placement)| Resize {
            group: new.group,
            node: new.node,
            cpu_milli: new.cpu_milli,
            memory_mib: new.memory_mib,
        };
        Change::Resize(rows.iter().map(resize).collect())
    } else {
        Change::Rescale(placements(), 0)
    };
    Some(Step { job: job.id, change, why })
}

fn placement(node: NodeId, part: &Part) -> Placement {
    Placement {
        group: 0,
        node,
        workers: part.workers,
        cpu_milli: part.held.cpu_milli as u32,
        memory_mib: part.held.memory_mib as u32,
        device_mask: 0,
    }
}

/// Same nodes with as many workers on each. Rows of a job of one group are ascending by node.
fn same_places(job: &Job, parts: &[(NodeId, &Part)]) -> bool {
    let held = job.allocations.iter().map(|row| (row.node, row.workers));
    held.eq(parts.iter().map(|(node, part)| (*node, part.workers)))
}

/// Whether the backend can change what is held without a restart.
fn in_place(job: &Job, held: &Allocation, new: &Placement) -> bool {
    let Some(rights) = job.groups.get(new.group as usize).map(|group| group.resize) else { return false };
    (rights.cpu || held.cpu_milli == new.cpu_milli)
        && (rights.memory_grow || new.memory_mib <= held.memory_mib)
        && (rights.memory_shrink || new.memory_mib >= held.memory_mib)
}
