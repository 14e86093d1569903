//! Rows of the contract's tables.

use crate::contract::NONE;
use crate::contract::cluster::{
    AllocationRows, DeviceShareRows, EligibilityRows, GroupRows, JobRows, JobStateRows, NodeRows, NodeStateRows,
    ObservationRows, ProgressRows, QueueRows, VerdictRows,
};
use crate::judge::Verdict;
use crate::model::{Allocation, ClassId, Eligibility, GroupSpec, JobId, TimeNs};
use crate::state::{JobView, NodeView, Owner, QueueView};

use super::strings::Strings;

/// A table in the making: absent until it has a row.
pub(super) fn rows<T: Default>(table: &mut Option<T>) -> &mut T {
    table.get_or_insert_default()
}

pub(super) fn node(rows: &mut NodeRows, strings: &mut Strings, node: &NodeView) {
    let spec = &node.spec;
    rows.id.push(node.id.0);
    rows.name.push(strings.id(&spec.name));
    rows.gpu_kind_name.push(strings.id(&spec.gpu_kind));
    rows.cpu_milli.push(spec.cpu_milli);
    rows.memory_mib.push(spec.memory_mib);
    rows.storage_mib_per_s.push(spec.storage_mib_per_s);
    rows.device_count.push(spec.devices);
    rows.device_memory_mib.push(spec.device_memory_mib);
    rows.zone_name.push(strings.optional(spec.zone.as_deref()));
    rows.rack_name.push(strings.optional(spec.rack.as_deref()));
    rows.link_domain_name.push(strings.optional(spec.link_domain.as_deref()));
}

pub(super) fn node_state(rows: &mut NodeStateRows, node: &NodeView) {
    rows.id.push(node.id.0);
    rows.state.push(node.state as u8);
    rows.cpu_milli_free.push(node.cpu_milli_free());
    rows.memory_mib_free.push(node.memory_mib_free());
    rows.devices_free_mask.push(node.devices_free_mask());
}

pub(super) fn shares(table: &mut Option<DeviceShareRows>, node: &NodeView) {
    for (device, free) in node.shares() {
        let rows = rows(table);
        rows.node.push(node.id.0);
        rows.device.push(device as u8);
        rows.gpu_milli_free.push(free);
    }
}

pub(super) fn class(rows: &mut EligibilityRows, id: ClassId, nodes: &Eligibility) {
    let nodes = match nodes {
        Eligibility::All => None,
        Eligibility::Nodes(nodes) => Some(nodes),
    };
    rows.id.push(id.0);
    rows.all.push(u8::from(nodes.is_none()));
    rows.node_start.push(rows.nodes.len() as u32);
    rows.node_count.push(nodes.map_or(0, |nodes| nodes.len() as u32));
    rows.nodes.extend(nodes.into_iter().flatten().map(|node| node.0));
}

pub(super) fn queue(rows: &mut QueueRows, strings: &mut Strings, queue: &QueueView) {
    let spec = &queue.spec;
    rows.id.push(queue.id.0);
    rows.name.push(strings.id(&spec.name));
    rows.parent.push(spec.parent.map_or(NONE, |parent| parent.0));
    rows.weight_milli.push(spec.weight_milli);
    rows.guaranteed_gpu_milli.push(spec.guaranteed_gpu_milli.unwrap_or(NONE));
    rows.maximum_gpu_milli.push(spec.maximum_gpu_milli.unwrap_or(NONE));
    rows.guaranteed_cpu_milli.push(spec.guaranteed_cpu_milli.unwrap_or(NONE));
    rows.maximum_cpu_milli.push(spec.maximum_cpu_milli.unwrap_or(NONE));
}

pub(super) fn job(rows: &mut JobRows, groups: &mut GroupRows, strings: &mut Strings, job: &JobView) {
    let spec = &job.spec;
    rows.id.push(job.id.0);
    rows.name.push(strings.id(&spec.name));
    rows.user_name.push(strings.id(&spec.user));
    rows.queue.push(spec.queue.0);
    rows.eligibility.push(spec.eligibility.0);
    rows.priority.push(spec.priority);
    rows.tier.push(spec.tier);
    rows.preemptible.push(u8::from(spec.preemptible));
    rows.submit_ns.push(spec.submit_ns);
    rows.group_start.push(groups.role_name.len() as u32);
    rows.group_count.push(spec.groups.len() as u32);
    rows.work_iterations.push(spec.work_iterations);
    rows.estimated_duration_ns.push(spec.estimated_duration_ns);
    rows.deadline_ns.push(spec.deadline_ns);
    rows.kind.push(spec.kind.map_or(NONE, |kind| kind.0));
    spec.groups.iter().for_each(|spec| group(groups, strings, spec));
}

fn group(rows: &mut GroupRows, strings: &mut Strings, spec: &GroupSpec) {
    rows.role_name.push(strings.id(&spec.role));
    rows.workers_min.push(spec.workers_min);
    rows.workers_max.push(spec.workers_max);
    rows.gpu_milli.push(spec.gpu_milli);
    rows.cpu_milli.push(spec.cpu_milli);
    rows.memory_mib.push(spec.memory_mib);
    rows.cpu_milli_min.push(spec.cpu_milli_min);
    rows.cpu_milli_max.push(spec.cpu_milli_max);
    rows.memory_mib_min.push(spec.memory_mib_min);
    rows.memory_mib_max.push(spec.memory_mib_max);
    rows.resize_rights.push(spec.resize_rights.bits());
}

pub(super) fn job_state(
    rows: &mut JobStateRows,
    allocations: &mut Option<AllocationRows>,
    owner: Owner,
    job: &JobView,
) {
    rows.id.push(job.id.0);
    rows.state.push(job.phase as u8);
    rows.mine.push(u8::from(job.owner == owner));
    rows.restarts.push(job.restarts);
    let start = allocations.as_ref().map_or(0, |rows| rows.job.len());
    rows.allocation_start.push(start as u32);
    rows.allocation_count.push(job.allocations.len() as u32);
    job.allocations.iter().for_each(|row| allocation(self::rows(allocations), job.id, row));
}

fn allocation(rows: &mut AllocationRows, job: JobId, row: &Allocation) {
    rows.job.push(job.0);
    rows.group.push(row.group);
    rows.node.push(row.node.0);
    rows.workers.push(row.workers);
    rows.cpu_milli.push(row.cpu_milli);
    rows.memory_mib.push(row.memory_mib);
    rows.gpu_milli.push(row.gpu_milli);
    rows.device_mask.push(row.device_mask);
}

pub(super) fn progress(rows: &mut ProgressRows, job: &JobView) {
    let point = &job.progress;
    rows.job.push(job.id.0);
    rows.since_ns.push(point.since_ns);
    rows.iterations.push(point.iterations);
    rows.iterations_per_s.push(point.iterations_per_s);
    rows.service_gpu_s.push(point.service_gpu_s);
    rows.service_gpu_s_per_s.push(point.service_gpu_s_per_s);
}

pub(super) fn observation(
    rows: &mut ObservationRows,
    strings: &mut Strings,
    (job, metric): (JobId, &str),
    (at_ns, value): (TimeNs, f64),
) {
    rows.job.push(job.0);
    rows.metric_name.push(strings.id(metric));
    rows.at_ns.push(at_ns);
    rows.value.push(value);
}

pub(super) fn verdicts(verdicts: &[Verdict]) -> Option<VerdictRows> {
    if verdicts.is_empty() {
        return None;
    }
    Some(VerdictRows {
        action: verdicts.iter().map(|verdict| verdict.action).collect(),
        reason: verdicts.iter().map(|verdict| verdict.reason).collect(),
        job: verdicts.iter().map(|verdict| verdict.job.0).collect(),
    })
}
