//! Rows that describe nodes, classes, queues and jobs.

use std::sync::Arc;

use coretuner_contract::cluster::{EligibilityRows, GroupRows, JobRows, NodeRows, QueueRows};

use super::read::{Result, at, nonzero, range, some};
use crate::changes::Changes;
use crate::cluster::{
    ApplyError, Class, Cluster, Eligible, Free, Group, Job, Node, NodeState, Phase, Progress, Queue, ResizeRights,
};
use crate::id::{ClassId, GpuKind, JobId, KindId, NodeId, QueueId};

impl Cluster {
    fn text(&self, index: u32) -> Result<Arc<str>> {
        self.strings.get(index as usize).cloned().ok_or(ApplyError::Unknown { what: "text", id: index })
    }

    fn text_or_none(&self, index: u32) -> Result<Option<Arc<str>>> {
        some(index).map(|index| self.text(index)).transpose()
    }

    pub(super) fn describe_node(&mut self, rows: &NodeRows, i: usize, changes: &mut Changes) -> Result<()> {
        const T: &str = "nodes";
        let id = NodeId(at(T, &rows.id, i)?);
        let kind = at(T, &rows.gpu_kind_name, i)?;
        let old = self.nodes.get(id.0);
        let node = Node {
            id,
            name: self.text(at(T, &rows.name, i)?)?,
            gpu_kind: GpuKind(kind),
            gpu_kind_name: self.text_or_none(kind)?.unwrap_or_else(|| Arc::from("")),
            cpu_milli: at(T, &rows.cpu_milli, i)?,
            memory_mib: at(T, &rows.memory_mib, i)?,
            storage_mib_per_s: at(T, &rows.storage_mib_per_s, i)?,
            devices: at(T, &rows.device_count, i)?,
            device_memory_mib: at(T, &rows.device_memory_mib, i)?,
            zone: self.text_or_none(at(T, &rows.zone_name, i)?)?,
            rack: self.text_or_none(at(T, &rows.rack_name, i)?)?,
            link_domain: self.text_or_none(at(T, &rows.link_domain_name, i)?)?,
            state: old.map_or(NodeState::Cordoned, |old| old.state),
            free: old.map_or_else(Free::default, |old| old.free.clone()),
            jobs: old.map_or_else(Vec::new, |old| old.jobs.clone()),
            hash: old.map_or(0, |old| old.hash),
        };
        self.nodes.insert(id.0, node);
        changes.described_nodes = true;
        changes.nodes.push(id);
        Ok(())
    }

    pub(super) fn set_class(&mut self, rows: &EligibilityRows, i: usize) -> Result<()> {
        const T: &str = "eligibility";
        let id = ClassId(at(T, &rows.id, i)?);
        let nodes = if at(T, &rows.all, i)? != 0 {
            Eligible::All
        } else {
            let range = range(T, at(T, &rows.node_start, i)?, at(T, &rows.node_count, i)?, rows.nodes.len(), i)?;
            let mut nodes: Vec<NodeId> = rows.nodes[range].iter().map(|id| NodeId(*id)).collect();
            nodes.sort_unstable();
            Eligible::Nodes(nodes)
        };
        self.classes.insert(id.0, Class { id, nodes });
        Ok(())
    }

    pub(super) fn set_queue(&mut self, rows: &QueueRows, i: usize) -> Result<()> {
        const T: &str = "queues";
        let id = QueueId(at(T, &rows.id, i)?);
        let queue = Queue {
            id,
            name: self.text(at(T, &rows.name, i)?)?,
            parent: some(at(T, &rows.parent, i)?).map(QueueId),
            weight_milli: at(T, &rows.weight_milli, i)?,
            guaranteed_gpu_milli: some(at(T, &rows.guaranteed_gpu_milli, i)?),
            maximum_gpu_milli: some(at(T, &rows.maximum_gpu_milli, i)?),
            guaranteed_cpu_milli: some(at(T, &rows.guaranteed_cpu_milli, i)?),
            maximum_cpu_milli: some(at(T, &rows.maximum_cpu_milli, i)?),
            used_gpu_milli: 0,
            used_cpu_milli: 0,
        };
        self.queues.insert(id.0, queue);
        Ok(())
    }

    pub(super) fn describe_job(
        &mut self,
        rows: &JobRows,
        groups: &GroupRows,
        i: usize,
        changes: &mut Changes,
    ) -> Result<()> {
        const T: &str = "jobs";
        let id = JobId(at(T, &rows.id, i)?);
        let range = range(T, at(T, &rows.group_start, i)?, at(T, &rows.group_count, i)?, groups.role_name.len(), i)?;
        let described = Job {
            id,
            name: self.text(at(T, &rows.name, i)?)?,
            user: self.text(at(T, &rows.user_name, i)?)?,
            queue: QueueId(at(T, &rows.queue, i)?),
            class: ClassId(at(T, &rows.eligibility, i)?),
            priority: at(T, &rows.priority, i)?,
            tier: at(T, &rows.tier, i)?,
            preemptible: at(T, &rows.preemptible, i)? != 0,
            submit_ns: at(T, &rows.submit_ns, i)?,
            groups: range.map(|row| self.group(groups, row)).collect::<Result<_>>()?,
            work_iterations: nonzero(at(T, &rows.work_iterations, i)?),
            estimated_duration_ns: nonzero(at(T, &rows.estimated_duration_ns, i)?),
            deadline_ns: nonzero(at(T, &rows.deadline_ns, i)?),
            kind: some(at(T, &rows.kind, i)?).map(KindId),
            phase: Phase::Waiting,
            mine: false,
            restarts: 0,
            allocations: Vec::new(),
            since_ns: 0,
            point: Progress::default(),
            hash: None,
        };
        self.place_description(described, changes);
        Ok(())
    }

    /// A re-described job keeps its state.
    fn place_description(&mut self, described: Job, changes: &mut Changes) {
        let id = described.id;
        match self.jobs.take(id.0) {
            None => {
                changes.arrived.push(id);
                self.jobs.insert(id.0, described);
            }
            Some(old) => {
                self.unlist(&old);
                self.use_queue(&old, false);
                let Job { phase, mine, restarts, allocations, since_ns, point, hash, .. } = old;
                let job = Job { phase, mine, restarts, allocations, since_ns, point, hash, ..described };
                self.list(&job);
                self.use_queue(&job, true);
                self.jobs.insert(id.0, job);
                changes.changed.push(id);
            }
        }
    }

    fn group(&self, rows: &GroupRows, i: usize) -> Result<Group> {
        const T: &str = "groups";
        Ok(Group {
            role: self.text(at(T, &rows.role_name, i)?)?,
            workers_min: at(T, &rows.workers_min, i)?,
            workers_max: at(T, &rows.workers_max, i)?,
            gpu_milli: at(T, &rows.gpu_milli, i)?,
            cpu_milli: at(T, &rows.cpu_milli, i)?,
            memory_mib: at(T, &rows.memory_mib, i)?,
            cpu_milli_min: at(T, &rows.cpu_milli_min, i)?,
            cpu_milli_max: at(T, &rows.cpu_milli_max, i)?,
            memory_mib_min: at(T, &rows.memory_mib_min, i)?,
            memory_mib_max: at(T, &rows.memory_mib_max, i)?,
            resize: ResizeRights::from_bits(at(T, &rows.resize_rights, i)?),
        })
    }
}
