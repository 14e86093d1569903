//! Deltas of the test bed, written as the host writes them.

use coretuner_contract::cluster::{
    AllocationRows, Delta, DeviceShareRows, EligibilityRows, GroupRows, JobRows, JobStateRows, NodeRows, NodeStateRows,
    ProgressRows, QueueRows,
};
use coretuner_contract::{GPU_MILLI, NONE, rules};

use super::world::{Dirty, World};
use crate::cluster::{Eligible, Job, NodeState, Phase};

/// Strings that the instance has, and those that the next delta adds.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    all: Vec<String>,
    sent: usize,
}

impl Strings {
    fn index(&mut self, text: &str) -> u32 {
        let place = self.all.iter().position(|known| known == text);
        place.unwrap_or_else(|| {
            self.all.push(text.to_owned());
            self.all.len() - 1
        }) as u32
    }

    fn new_ones(&mut self) -> Vec<String> {
        let new = self.all[self.sent..].to_vec();
        self.sent = self.all.len();
        new
    }
}

fn table<T>(rows: T, empty: bool) -> Option<T> {
    (!empty).then_some(rows)
}

/// What changed since the last delta, with the checksum of the whole view.
pub(super) fn delta(world: &mut World, strings: &mut Strings, base: u64) -> Delta {
    let dirty = std::mem::take(&mut world.dirty);
    let (node_states, device_shares) = node_states(world, dirty.node_states.iter().copied());
    let (job_states, allocations) = job_states(world, dirty.job_states.iter().copied());
    let (jobs, groups) = jobs(world, strings, &dirty);
    let nodes = nodes(world, strings, &dirty);
    let queues = queues(world, strings, &dirty);
    Delta {
        base_revision: base,
        revision: base + 1,
        now_ns: world.now_ns,
        strings: strings.new_ones(),
        node_states: table(node_states, dirty.node_states.is_empty()),
        device_shares: table(device_shares, dirty.node_states.is_empty()),
        eligibility: table(classes(world, &dirty), dirty.classes.is_empty()),
        nodes: table(nodes, dirty.nodes.is_empty()),
        queues: table(queues, dirty.queues.is_empty()),
        groups: table(groups, dirty.jobs.is_empty()),
        jobs: table(jobs, dirty.jobs.is_empty()),
        job_states: table(job_states, dirty.job_states.is_empty()),
        allocations: table(allocations, dirty.job_states.is_empty()),
        progress: table(progress(world, &dirty), dirty.progress.is_empty()),
        removed_jobs: dirty.removed_jobs.into_iter().collect(),
        removed_nodes: dirty.removed_nodes.into_iter().collect(),
        estimates_changed: dirty.estimates.into_iter().collect(),
        checksum: checksum(world),
        ..Delta::default()
    }
}

fn checksum(world: &World) -> u32 {
    let (nodes, _) = node_states(world, world.machines.keys().copied());
    let (jobs, allocations) = job_states(world, world.jobs.keys().copied());
    let nodes = (0..nodes.id.len()).map(|i| rules::node_state_hash(&nodes, i)).fold(0, u32::wrapping_add);
    (0..jobs.id.len()).map(|i| rules::job_state_hash(&jobs, &allocations, i)).fold(nodes, u32::wrapping_add)
}

fn nodes(world: &World, strings: &mut Strings, dirty: &Dirty) -> NodeRows {
    let mut rows = NodeRows::default();
    for (id, machine) in dirty.nodes.iter().filter_map(|id| Some((id, world.machines.get(id)?))) {
        rows.id.push(*id);
        rows.name.push(strings.index(&format!("node-{id}")));
        rows.gpu_kind_name.push(strings.index(&machine.gpu_kind));
        rows.cpu_milli.push(machine.cpu_milli);
        rows.memory_mib.push(machine.memory_mib);
        rows.storage_mib_per_s.push(0);
        rows.device_count.push(machine.devices);
        rows.device_memory_mib.push(16_384);
        for column in [&mut rows.zone_name, &mut rows.rack_name, &mut rows.link_domain_name] {
            column.push(NONE);
        }
    }
    rows
}

fn node_states(world: &World, ids: impl Iterator<Item = u32>) -> (NodeStateRows, DeviceShareRows) {
    let (mut rows, mut shares) = (NodeStateRows::default(), DeviceShareRows::default());
    for (id, machine) in ids.filter_map(|id| Some((id, world.machines.get(&id)?))) {
        let room = world.room(id);
        rows.id.push(id);
        rows.state.push(match machine.state {
            NodeState::Schedulable => 0,
            NodeState::Cordoned => 1,
            NodeState::Draining => 2,
        });
        rows.cpu_milli_free.push(room.cpu_milli as u32);
        rows.memory_mib_free.push(room.memory_mib as u32);
        let mut mask = 0;
        for (device, free) in room.device_milli.iter().enumerate() {
            if *free == i64::from(GPU_MILLI) {
                mask |= 1 << device;
            } else if *free > 0 {
                shares.node.push(id);
                shares.device.push(device as u8);
                shares.gpu_milli_free.push(*free as u32);
            }
        }
        rows.devices_free_mask.push(mask);
    }
    (rows, shares)
}

fn classes(world: &World, dirty: &Dirty) -> EligibilityRows {
    let mut rows = EligibilityRows::default();
    for class in dirty.classes.iter().filter_map(|id| world.classes.get(id)) {
        rows.id.push(class.id.0);
        rows.node_start.push(rows.nodes.len() as u32);
        let nodes = match &class.nodes {
            Eligible::All => &[][..],
            Eligible::Nodes(nodes) => nodes,
        };
        rows.all.push(u8::from(class.nodes == Eligible::All));
        rows.node_count.push(nodes.len() as u32);
        rows.nodes.extend(nodes.iter().map(|node| node.0));
    }
    rows
}

fn queues(world: &World, strings: &mut Strings, dirty: &Dirty) -> QueueRows {
    let mut rows = QueueRows::default();
    for queue in dirty.queues.iter().filter_map(|id| world.queues.get(id)) {
        rows.id.push(queue.id.0);
        rows.name.push(strings.index(&queue.name));
        rows.parent.push(queue.parent.map_or(NONE, |parent| parent.0));
        rows.weight_milli.push(queue.weight_milli);
        rows.guaranteed_gpu_milli.push(queue.guaranteed_gpu_milli.unwrap_or(NONE));
        rows.maximum_gpu_milli.push(queue.maximum_gpu_milli.unwrap_or(NONE));
        rows.guaranteed_cpu_milli.push(queue.guaranteed_cpu_milli.unwrap_or(NONE));
        rows.maximum_cpu_milli.push(queue.maximum_cpu_milli.unwrap_or(NONE));
    }
    rows
}

fn jobs(world: &World, strings: &mut Strings, dirty: &Dirty) -> (JobRows, GroupRows) {
    let (mut rows, mut groups) = (JobRows::default(), GroupRows::default());
    for (job, _) in dirty.jobs.iter().filter_map(|id| world.jobs.get(id)) {
        rows.id.push(job.id.0);
        rows.name.push(strings.index(&job.name));
        rows.user_name.push(strings.index(&job.user));
        rows.queue.push(job.queue.0);
        rows.eligibility.push(job.class.0);
        rows.priority.push(job.priority);
        rows.tier.push(job.tier);
        rows.preemptible.push(u8::from(job.preemptible));
        rows.submit_ns.push(job.submit_ns);
        rows.group_start.push(groups.role_name.len() as u32);
        rows.group_count.push(job.groups.len() as u32);
        rows.work_iterations.push(job.work_iterations.unwrap_or(0));
        rows.estimated_duration_ns.push(job.estimated_duration_ns.unwrap_or(0));
        rows.deadline_ns.push(job.deadline_ns.unwrap_or(0));
        rows.kind.push(job.kind.map_or(NONE, |kind| kind.0));
        push_groups(&mut groups, job, strings);
    }
    (rows, groups)
}

fn push_groups(rows: &mut GroupRows, job: &Job, strings: &mut Strings) {
    for group in &job.groups {
        rows.role_name.push(strings.index(&group.role));
        rows.workers_min.push(group.workers_min);
        rows.workers_max.push(group.workers_max);
        rows.gpu_milli.push(group.gpu_milli);
        rows.cpu_milli.push(group.cpu_milli);
        rows.memory_mib.push(group.memory_mib);
        rows.cpu_milli_min.push(group.cpu_milli_min);
        rows.cpu_milli_max.push(group.cpu_milli_max);
        rows.memory_mib_min.push(group.memory_mib_min);
        rows.memory_mib_max.push(group.memory_mib_max);
        let rights = group.resize;
        let bits = [rights.cpu, rights.memory_grow, rights.memory_shrink];
        rows.resize_rights.push(bits.iter().enumerate().map(|(bit, set)| u8::from(*set) << bit).sum());
    }
}

fn job_states(world: &World, ids: impl Iterator<Item = u32>) -> (JobStateRows, AllocationRows) {
    let (mut rows, mut held) = (JobStateRows::default(), AllocationRows::default());
    for (job, _) in ids.filter_map(|id| world.jobs.get(&id)) {
        rows.id.push(job.id.0);
        rows.state.push(match job.phase {
            Phase::Waiting => 0,
            Phase::Running => 1,
            Phase::Stopping => 2,
        });
        rows.mine.push(u8::from(job.mine));
        rows.restarts.push(job.restarts);
        rows.allocation_start.push(held.job.len() as u32);
        rows.allocation_count.push(job.allocations.len() as u32);
        for row in &job.allocations {
            held.job.push(job.id.0);
            held.group.push(row.group);
            held.node.push(row.node.0);
            held.workers.push(row.workers);
            held.cpu_milli.push(row.cpu_milli);
            held.memory_mib.push(row.memory_mib);
            held.gpu_milli.push(row.gpu_milli);
            held.device_mask.push(row.device_mask);
        }
    }
    (rows, held)
}

fn progress(world: &World, dirty: &Dirty) -> ProgressRows {
    let mut rows = ProgressRows::default();
    for (job, _) in dirty.progress.iter().filter_map(|id| world.jobs.get(id)) {
        rows.job.push(job.id.0);
        rows.since_ns.push(job.since_ns);
        rows.iterations.push(job.point.iterations);
        rows.iterations_per_s.push(job.point.iterations_per_s);
        rows.service_gpu_s.push(job.point.service_gpu_s);
        rows.service_gpu_s_per_s.push(job.point.service_gpu_s_per_s);
    }
    rows
}
