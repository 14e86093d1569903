//! Events of a backend. Each is checked whole before anything changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::contract::{DEVICES_MAX, GPU_MILLI};
use crate::event::Event;
use crate::model::{
    Allocation, ChangePoint, ClassId, Eligibility, GroupSpec, JobId, JobPhase, JobSpec, NodeId, NodeSpec, QueueId,
    QueueSpec, TimeNs,
};

use super::changes::Report;
use super::{Change, Foreign, JobView, Latest, NodeView, Room, State, StateError, Usage};

/// Most metric names of one job.
const METRICS_MAX: usize = 256;

impl State {
    /// Applies one event of the backend. An error leaves the state as it was.
    pub fn apply(&mut self, now_ns: TimeNs, event: &Event) -> Result<(), StateError> {
        if now_ns < self.now_ns {
            return Err(StateError::TimeRunsBack { event_ns: now_ns, state_ns: self.now_ns });
        }
        self.revision += 1;
        let applied = self.dispatch(now_ns, event);
        if applied.is_ok() {
            self.now_ns = now_ns;
        }
        applied
    }

    fn dispatch(&mut self, now_ns: TimeNs, event: &Event) -> Result<(), StateError> {
        match event {
            Event::NodeSet { id, spec } => self.set_node(*id, spec),
            Event::NodeStateSet { id, state } => self.change_node(*id, |node| node.state = *state),
            Event::ForeignUse { node, cpu_milli, memory_mib, device_mask } => {
                let foreign = Foreign { cpu_milli: *cpu_milli, memory_mib: *memory_mib, device_mask: *device_mask };
                self.change_node(*node, |node| {
                    let used = node.used();
                    node.foreign = foreign;
                    node.room = Room::empty_node(&node.spec, &foreign).less(&used);
                })
            }
            Event::NodeRemoved { id } => self.remove_node(now_ns, *id),
            Event::QueueSet { id, spec } => self.set_queue(*id, spec),
            Event::ClassSet { id, nodes } => self.set_class(*id, nodes),
            Event::JobSubmitted { id, spec } => self.submit(*id, spec),
            Event::JobRemoved { id, .. } => self.remove_job(now_ns, *id),
            Event::JobStopped { id } => self.stop_job(now_ns, *id),
            Event::Progress { job, point } => self.set_progress(*job, *point),
            Event::Observation { job, metric, at_ns, value } => self.observe(*job, metric, *at_ns, *value),
            Event::EstimatesChanged { jobs } => self.note_estimates(jobs),
        }
    }

    fn set_node(&mut self, id: NodeId, spec: &NodeSpec) -> Result<(), StateError> {
        if spec.devices > DEVICES_MAX {
            return Err(StateError::TooManyDevices { node: id, devices: spec.devices, limit: DEVICES_MAX });
        }
        match self.nodes.get_mut(&id) {
            Some(node) => {
                let used = node.used();
                if !Room::empty_node(spec, &Foreign::default()).less(&used).is_legal() {
                    return Err(StateError::CapacityBelowUse(id));
                }
                node.room = Room::empty_node(spec, &node.foreign).less(&used);
                node.spec = spec.clone();
                self.note(Change::NodeSpec(id));
            }
            None if self.used_nodes.contains(id.0) => return Err(StateError::ReusedNode(id)),
            None => {
                self.used_nodes.insert(id.0);
                self.nodes.insert(id, NodeView::new(id, spec.clone()));
                self.note(Change::NodeAdded(id));
            }
        }
        self.touch_node(id);
        Ok(())
    }

    fn change_node(&mut self, id: NodeId, change: impl FnOnce(&mut NodeView)) -> Result<(), StateError> {
        change(self.nodes.get_mut(&id).ok_or(StateError::UnknownNode(id))?);
        self.touch_node(id);
        Ok(())
    }

    fn remove_node(&mut self, now_ns: TimeNs, id: NodeId) -> Result<(), StateError> {
        let node = self.nodes.get(&id).ok_or(StateError::UnknownNode(id))?;
        let jobs: Vec<JobId> = node.jobs().collect();
        jobs.into_iter().for_each(|job| self.release(now_ns, job));
        if let Some(node) = self.nodes.remove(&id) {
            self.sums.nodes = self.sums.nodes.wrapping_sub(node.hash);
        }
        self.note(Change::NodeRemoved(id));
        Ok(())
    }

    fn set_queue(&mut self, id: QueueId, spec: &QueueSpec) -> Result<(), StateError> {
        self.queues.set(id, spec.clone())?;
        self.note(Change::Queue(id));
        Ok(())
    }

    fn set_class(&mut self, id: ClassId, nodes: &Eligibility) -> Result<(), StateError> {
        let sorted = match nodes {
            Eligibility::All => Eligibility::All,
            Eligibility::Nodes(nodes) => {
                Eligibility::Nodes(nodes.iter().copied().collect::<BTreeSet<_>>().into_iter().collect())
            }
        };
        self.classes.insert(id, sorted);
        self.note(Change::Class(id));
        Ok(())
    }

    fn submit(&mut self, id: JobId, spec: &JobSpec) -> Result<(), StateError> {
        if self.used_jobs.contains(id.0) {
            return Err(StateError::ReusedJob(id));
        }
        if self.queues.get(spec.queue).is_none() {
            return Err(StateError::JobQueue { job: id, queue: spec.queue });
        }
        if !self.classes.contains_key(&spec.eligibility) {
            return Err(StateError::JobClass { job: id, class: spec.eligibility });
        }
        let spec = with_ranges(spec.clone());
        check_groups(id, &spec.groups)?;
        self.used_jobs.insert(id.0);
        self.jobs.insert(id, JobView::new(id, spec));
        self.note(Change::JobAdded(id));
        self.touch_job(id);
        Ok(())
    }

    fn remove_job(&mut self, now_ns: TimeNs, id: JobId) -> Result<(), StateError> {
        if !self.jobs.contains_key(&id) {
            return Err(StateError::UnknownJob(id));
        }
        self.release(now_ns, id);
        if let Some(job) = self.jobs.remove(&id) {
            self.sums.jobs_visible = self.sums.jobs_visible.wrapping_sub(job.hash_visible);
            self.sums.add_mine(job.owner, job.hash_mine.wrapping_neg());
            self.waiting.remove(&(job.spec.submit_ns, id));
            self.running.remove(&id);
        }
        self.note(Change::JobRemoved(id));
        Ok(())
    }

    fn stop_job(&mut self, now_ns: TimeNs, id: JobId) -> Result<(), StateError> {
        let job = self.jobs.get(&id).ok_or(StateError::UnknownJob(id))?;
        if job.phase == JobPhase::Waiting {
            return Err(StateError::NotRunning { job: id, phase: "waiting" });
        }
        self.release(now_ns, id);
        Ok(())
    }

    /// Frees all that a job holds and lets it wait; nothing for a job that waits already.
    fn release(&mut self, now_ns: TimeNs, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.phase != JobPhase::Waiting) else { return };
        let rows = std::mem::take(&mut job.allocations);
        let queue = job.spec.queue;
        job.phase = JobPhase::Waiting;
        job.progress = frozen(job, now_ns, 0);
        self.queues.give(queue, Usage::of(&rows));
        self.queues.settle(queue);
        for row in &rows {
            self.leave_node(id, row);
        }
        self.touch_job(id);
        self.note(Change::Progress(id));
    }

    fn leave_node(&mut self, job: JobId, row: &Allocation) {
        if let Some(node) = self.nodes.get_mut(&row.node) {
            node.room.give(row);
            node.jobs.remove(&job);
            self.touch_node(row.node);
        }
    }

    fn set_progress(&mut self, id: JobId, point: ChangePoint) -> Result<(), StateError> {
        self.jobs.get_mut(&id).ok_or(StateError::UnknownJob(id))?.progress = point;
        self.note(Change::Progress(id));
        Ok(())
    }

    fn observe(&mut self, id: JobId, metric: &str, at_ns: TimeNs, value: f64) -> Result<(), StateError> {
        let job = self.jobs.get_mut(&id).ok_or(StateError::UnknownJob(id))?;
        let metric = match job.latest.iter().position(|latest| &*latest.metric == metric) {
            Some(at) => {
                let latest = &mut job.latest[at];
                (latest.at_ns, latest.value) = (at_ns, value);
                Arc::clone(&latest.metric)
            }
            None if job.latest.len() == METRICS_MAX => {
                return Err(StateError::TooManyMetrics { job: id, limit: METRICS_MAX });
            }
            None => {
                let metric: Arc<str> = metric.into();
                job.latest.push(Latest { metric: Arc::clone(&metric), at_ns, value });
                metric
            }
        };
        self.log.push_report(self.revision, Report { job: id, metric, at_ns, value });
        Ok(())
    }

    fn note_estimates(&mut self, jobs: &[JobId]) -> Result<(), StateError> {
        if let Some(unknown) = jobs.iter().find(|job| !self.jobs.contains_key(job)) {
            return Err(StateError::UnknownJob(*unknown));
        }
        jobs.iter().for_each(|job| self.note(Change::Estimate(*job)));
        Ok(())
    }
}

/// The job's progress at `now_ns`, standing still, with service running at the GPUs it holds from now on.
pub(super) fn frozen(job: &JobView, now_ns: TimeNs, gpu_milli: u64) -> ChangePoint {
    ChangePoint {
        since_ns: now_ns,
        iterations: job.iterations_at(now_ns),
        iterations_per_s: 0.0,
        service_gpu_s: job.service_gpu_s_at(now_ns),
        service_gpu_s_per_s: gpu_milli as f64 / f64::from(GPU_MILLI),
    }
}

/// A range that was left out is the request.
fn with_ranges(mut spec: JobSpec) -> JobSpec {
    for group in &mut spec.groups {
        if group.cpu_milli_max == 0 {
            (group.cpu_milli_min, group.cpu_milli_max) = (group.cpu_milli, group.cpu_milli);
        }
        if group.memory_mib_max == 0 {
            (group.memory_mib_min, group.memory_mib_max) = (group.memory_mib, group.memory_mib);
        }
    }
    spec
}

fn check_groups(job: JobId, groups: &[GroupSpec]) -> Result<(), StateError> {
    if groups.is_empty() {
        return Err(StateError::NoGroups(job));
    }
    let bad =
        |(group, spec): (usize, &GroupSpec)| group_fault(spec).map(|why| StateError::BadGroup { job, group, why });
    groups.iter().enumerate().find_map(bad).map_or(Ok(()), Err)
}

fn group_fault(group: &GroupSpec) -> Option<&'static str> {
    let inside = |min: u32, value: u32, max: u32| min <= value && value <= max;
    if group.workers_max == 0 || group.workers_min > group.workers_max {
        return Some("workers_min must be at most workers_max, and workers_max at least 1");
    }
    if group.gpu_milli >= GPU_MILLI && !group.gpu_milli.is_multiple_of(GPU_MILLI) {
        return Some("gpu_milli must be whole devices (multiples of 1000) or a share below 1000");
    }
    if group.gpu_milli > DEVICES_MAX * GPU_MILLI {
        return Some("one worker cannot span more devices than a node can have");
    }
    if !inside(group.cpu_milli_min, group.cpu_milli, group.cpu_milli_max) {
        return Some("cpu_milli must lie within cpu_milli_min and cpu_milli_max");
    }
    if !inside(group.memory_mib_min, group.memory_mib, group.memory_mib_max) {
        return Some("memory_mib must lie within memory_mib_min and memory_mib_max");
    }
    None
}
