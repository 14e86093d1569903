//! What must hold at every step.

use std::collections::BTreeMap;

use crate::contract::GPU_MILLI;
use crate::model::{Allocation, JobId, JobPhase, NodeId, QueueId};

use super::capacity::devices_of;
use super::store::Sums;
use super::{Foreign, JobView, NodeView, Room, State, Usage};

impl State {
    /// Checks everything; `Err` says what is broken.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.nodes.values().try_for_each(|node| self.check_node(node))?;
        self.jobs.values().try_for_each(|job| self.check_job(job))?;
        self.check_queues()?;
        self.check_indices()?;
        self.check_sums()
    }

    /// Checks these nodes and jobs only.
    pub(crate) fn check_some(&self, nodes: &[NodeId], jobs: &[JobId]) -> Result<(), String> {
        nodes.iter().filter_map(|id| self.nodes.get(id)).try_for_each(|node| self.check_node(node))?;
        jobs.iter().filter_map(|id| self.jobs.get(id)).try_for_each(|job| self.check_job(job))
    }

    fn check_node(&self, node: &NodeView) -> Result<(), String> {
        let id = node.id;
        let whole = Room::empty_node(&node.spec, &Foreign::default());
        let mut left = whole;
        for job in &node.jobs {
            let job = self.jobs.get(job).ok_or_else(|| format!("node {id} lists job {job}, which is not there"))?;
            let rows = job.allocations.iter().filter(|row| row.node == id);
            let mut rows = rows.peekable();
            rows.peek().ok_or_else(|| format!("node {id} lists job {}, which holds nothing there", job.id))?;
            for row in rows {
                left.take_host(row, &Room::ZERO)
                    .and_then(|()| left.take_devices(row, &Room::ZERO))
                    .map_err(|why| format!("node {id} is over capacity ({}) with job {}", why.name(), job.id))?;
            }
        }
        if left.taken_from(&whole) != node.used() {
            return Err(format!("node {id}: the sum over its jobs is not its use"));
        }
        if node.hash != node.row_hash() {
            return Err(format!("node {id}: changed without a touch"));
        }
        Ok(())
    }

    fn check_job(&self, job: &JobView) -> Result<(), String> {
        let id = job.id;
        if (job.phase == JobPhase::Waiting) != job.allocations.is_empty() {
            return Err(format!("job {id} is {:?} with {} allocations", job.phase, job.allocations.len()));
        }
        if (job.hash_visible, job.hash_mine) != job.row_hashes() {
            return Err(format!("job {id}: changed without a touch"));
        }
        if job.phase == JobPhase::Waiting {
            return Ok(());
        }
        if !job.allocations.is_sorted_by_key(|row| (row.group, row.node)) {
            return Err(format!("job {id}: allocations out of order"));
        }
        job.allocations.iter().try_for_each(|row| self.check_row(job, row))?;
        check_gang(job)
    }

    fn check_row(&self, job: &JobView, row: &Allocation) -> Result<(), String> {
        let id = job.id;
        let node =
            self.nodes.get(&row.node).ok_or_else(|| format!("job {id} is on node {}, which is gone", row.node))?;
        if !node.jobs.contains(&id) {
            return Err(format!("node {} does not list job {id}", row.node));
        }
        let group =
            job.spec.groups.get(row.group as usize).ok_or_else(|| format!("job {id} has no group {}", row.group))?;
        if u64::from(row.gpu_milli) != u64::from(row.workers) * u64::from(group.gpu_milli) {
            return Err(format!("job {id} holds {} gpu_milli for {} workers", row.gpu_milli, row.workers));
        }
        let devices = devices_of(row.device_mask).count() as u32;
        if devices != row.gpu_milli.div_ceil(GPU_MILLI) {
            return Err(format!("job {id} holds {devices} devices for {} gpu_milli", row.gpu_milli));
        }
        Ok(())
    }

    fn check_queues(&self) -> Result<(), String> {
        let mut sums: BTreeMap<QueueId, Usage> = BTreeMap::new();
        for job in self.jobs.values() {
            let amount = Usage::of(&job.allocations);
            for queue in self.queues.line(job.spec.queue) {
                let sum = sums.entry(queue.id).or_default();
                sum.gpu_milli += amount.gpu_milli;
                sum.cpu_milli += amount.cpu_milli;
            }
        }
        for queue in self.queues.iter() {
            if sums.get(&queue.id).copied().unwrap_or_default() != queue.usage {
                return Err(format!("queue {}: the sum over its jobs is not its use", queue.id));
            }
            if !queue.lowered && !queue.within() {
                return Err(format!("queue {} is over its ceiling", queue.id));
            }
        }
        Ok(())
    }

    fn check_indices(&self) -> Result<(), String> {
        let waits = |job: &&JobView| job.phase == JobPhase::Waiting;
        let waiting = self.jobs.values().filter(waits).map(|job| (job.spec.submit_ns, job.id)).collect();
        let running = self.jobs.values().filter(|job| !waits(job)).map(|job| job.id).collect();
        if self.waiting != waiting || self.running != running {
            return Err("a job is not in the index of its phase".to_owned());
        }
        Ok(())
    }

    fn check_sums(&self) -> Result<(), String> {
        let nodes = self.nodes.values().fold(0_u32, |sum, node| sum.wrapping_add(node.row_hash()));
        let mut sums = Sums { nodes, ..Sums::default() };
        for job in self.jobs.values() {
            let (visible, mine) = job.row_hashes();
            sums.jobs_visible = sums.jobs_visible.wrapping_add(visible);
            sums.add_mine(job.owner, mine);
        }
        let mut kept = self.sums.clone();
        kept.jobs_mine.retain(|owner, sum| *sum != 0 || sums.jobs_mine.contains_key(owner));
        if kept != sums {
            return Err("the running checksum differs from the sum over all rows".to_owned());
        }
        Ok(())
    }
}

fn check_gang(job: &JobView) -> Result<(), String> {
    for (index, group) in job.spec.groups.iter().enumerate() {
        let rows = job.allocations.iter().filter(|row| row.group as usize == index);
        let workers: u64 = rows.map(|row| u64::from(row.workers)).sum();
        if workers < u64::from(group.workers_min) || workers > u64::from(group.workers_max) {
            return Err(format!("job {}: group {index} has {workers} workers", job.id));
        }
    }
    Ok(())
}
