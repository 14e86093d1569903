//! Rows that say what nodes and jobs are in, and removals.

use coretuner_contract::cluster::{AllocationRows, DeviceShareRows, JobStateRows, NodeStateRows, ProgressRows};
use coretuner_contract::rules;

use super::read::{Result, allocation, at, range};
use crate::changes::Changes;
use crate::cluster::view::MAX_QUEUE_DEPTH;
use crate::cluster::{Allocation, ApplyError, Cluster, Free, Job, NodeState, Phase, Progress, Share};
use crate::id::{JobId, NodeId};

impl Cluster {
    pub(super) fn set_node_state(&mut self, rows: &NodeStateRows, i: usize, changes: &mut Changes) -> Result<()> {
        const T: &str = "node-states";
        let id = at(T, &rows.id, i)?;
        let state = match at(T, &rows.state, i)? {
            0 => NodeState::Schedulable,
            1 => NodeState::Cordoned,
            _ => NodeState::Draining,
        };
        let free = Free {
            cpu_milli: at(T, &rows.cpu_milli_free, i)?,
            memory_mib: at(T, &rows.memory_mib_free, i)?,
            devices: at(T, &rows.devices_free_mask, i)?,
            shares: Vec::new(),
        };
        let node = self.nodes.get_mut(id).ok_or(ApplyError::Unknown { what: "node", id })?;
        let hash = rules::node_state_hash(rows, i);
        self.checksum = self.checksum.wrapping_sub(node.hash).wrapping_add(hash);
        changes.released |= (node.state != state && state == NodeState::Schedulable) || node.free.misses_some_of(&free);
        node.hash = hash;
        node.state = state;
        node.free = free;
        changes.nodes.push(NodeId(id));
        Ok(())
    }

    /// Rows of a node come whole, and only with a state row, which cleared the old ones.
    pub(super) fn set_share(&mut self, rows: &DeviceShareRows, i: usize) -> Result<()> {
        const T: &str = "device-shares";
        let id = at(T, &rows.node, i)?;
        let share = Share { device: at(T, &rows.device, i)?, gpu_milli_free: at(T, &rows.gpu_milli_free, i)? };
        let node = self.nodes.get_mut(id).ok_or(ApplyError::Unknown { what: "node", id })?;
        let place = node.free.shares.partition_point(|other| other.device < share.device);
        node.free.shares.insert(place, share);
        Ok(())
    }

    pub(super) fn set_job_state(
        &mut self,
        rows: &JobStateRows,
        allocations: &AllocationRows,
        i: usize,
        changes: &mut Changes,
    ) -> Result<()> {
        const T: &str = "job-states";
        let id = at(T, &rows.id, i)?;
        let (start, count) = (at(T, &rows.allocation_start, i)?, at(T, &rows.allocation_count, i)?);
        let range = range(T, start, count, allocations.job.len(), i)?;
        let held = range.map(|row| allocation(allocations, row)).collect::<Result<Vec<_>>>()?;
        let (state, mine, restarts) = (at(T, &rows.state, i)?, at(T, &rows.mine, i)? != 0, at(T, &rows.restarts, i)?);
        let mut job = self.jobs.take(id).ok_or(ApplyError::Unknown { what: "job", id })?;
        let hash = rules::job_state_hash(rows, allocations, i);
        self.checksum = self.checksum.wrapping_sub(job.hash.unwrap_or(0)).wrapping_add(hash);
        if job.hash.is_some() {
            changes.changed.push(JobId(id));
        }
        self.unlist(&job);
        self.use_queue(&job, false);
        self.leave_nodes(&job);
        let phase = match state {
            0 => Phase::Waiting,
            1 => Phase::Running,
            _ => Phase::Stopping,
        };
        (job.hash, job.phase, job.mine, job.restarts, job.allocations) = (Some(hash), phase, mine, restarts, held);
        self.list(&job);
        self.use_queue(&job, true);
        self.join_nodes(&job);
        self.jobs.insert(id, job);
        Ok(())
    }

    pub(super) fn set_progress(&mut self, rows: &ProgressRows, i: usize, changes: &mut Changes) -> Result<()> {
        const T: &str = "progress";
        let id = at(T, &rows.job, i)?;
        let point = Progress {
            iterations: at(T, &rows.iterations, i)?,
            iterations_per_s: at(T, &rows.iterations_per_s, i)?,
            service_gpu_s: at(T, &rows.service_gpu_s, i)?,
            service_gpu_s_per_s: at(T, &rows.service_gpu_s_per_s, i)?,
        };
        let job = self.jobs.get_mut(id).ok_or(ApplyError::Unknown { what: "job", id })?;
        job.since_ns = at(T, &rows.since_ns, i)?;
        job.point = point;
        changes.progressed.push(JobId(id));
        Ok(())
    }

    pub(super) fn remove_job(&mut self, id: JobId, changes: &mut Changes) -> Result<()> {
        let job = self.jobs.remove(id.0).ok_or(ApplyError::Unknown { what: "job", id: id.0 })?;
        self.checksum = self.checksum.wrapping_sub(job.hash.unwrap_or(0));
        self.unlist(&job);
        self.use_queue(&job, false);
        self.leave_nodes(&job);
        changes.removed.push(id);
        Ok(())
    }

    pub(super) fn remove_node(&mut self, id: NodeId, changes: &mut Changes) -> Result<()> {
        let node = self.nodes.remove(id.0).ok_or(ApplyError::Unknown { what: "node", id: id.0 })?;
        self.checksum = self.checksum.wrapping_sub(node.hash);
        changes.described_nodes = true;
        changes.removed_nodes.push(id);
        Ok(())
    }

    pub(super) fn list(&mut self, job: &Job) {
        match job.phase {
            Phase::Waiting if job.mine => _ = self.waiting.insert((job.submit_ns, job.id)),
            Phase::Running if job.mine => _ = self.running.insert(job.id),
            _ => {}
        }
    }

    pub(super) fn unlist(&mut self, job: &Job) {
        match job.phase {
            Phase::Waiting => _ = self.waiting.remove(&(job.submit_ns, job.id)),
            Phase::Running => _ = self.running.remove(&job.id),
            Phase::Stopping => {}
        }
    }

    fn join_nodes(&mut self, job: &Job) {
        for row in &job.allocations {
            if let Some(node) = self.nodes.get_mut(row.node.0)
                && let Err(place) = node.jobs.binary_search(&job.id)
            {
                node.jobs.insert(place, job.id);
            }
        }
    }

    fn leave_nodes(&mut self, job: &Job) {
        for row in &job.allocations {
            if let Some(node) = self.nodes.get_mut(row.node.0)
                && let Ok(place) = node.jobs.binary_search(&job.id)
            {
                node.jobs.remove(place);
            }
        }
    }

    /// Adds what a job holds to its queue and those above, or takes it away.
    pub(super) fn use_queue(&mut self, job: &Job, add: bool) {
        if job.allocations.is_empty() {
            return;
        }
        let sum =
            |amount: fn(&Allocation) -> u32| job.allocations.iter().map(|row| u64::from(amount(row))).sum::<u64>();
        let (gpu, cpu) = (sum(|row| row.gpu_milli), sum(|row| row.cpu_milli));
        let change = |used: &mut u64, by: u64| *used = if add { *used + by } else { used.saturating_sub(by) };
        let mut next = Some(job.queue);
        for _ in 0..MAX_QUEUE_DEPTH {
            let Some(queue) = next.and_then(|id| self.queues.get_mut(id.0)) else { break };
            change(&mut queue.used_gpu_milli, gpu);
            change(&mut queue.used_cpu_milli, cpu);
            next = queue.parent;
        }
    }

    /// After queues changed: parents may have moved, so everything is summed anew.
    pub(super) fn recount_queues(&mut self) {
        let ids: Vec<u32> = self.queues.iter().map(|queue| queue.id.0).collect();
        for id in ids {
            if let Some(queue) = self.queues.get_mut(id) {
                (queue.used_gpu_milli, queue.used_cpu_milli) = (0, 0);
            }
        }
        let jobs = std::mem::take(&mut self.jobs);
        for job in jobs.iter() {
            self.use_queue(job, true);
        }
        self.jobs = jobs;
    }
}
