//! The cluster behind the test bed.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_contract::GPU_MILLI;
use coretuner_contract::plan::{Plan, Verb};

use crate::cluster::{Allocation, Class, Job, NodeState, Phase, Queue};
use crate::id::NodeId;

/// A machine of the test bed.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) gpu_kind: String,
    pub(super) cpu_milli: u32,
    pub(super) memory_mib: u32,
    pub(super) devices: u32,
    pub(super) state: NodeState,
}

/// What is free on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) cpu_milli: i64,
    pub(super) memory_mib: i64,
    pub(super) device_milli: Vec<i64>,
}

/// What the next delta must tell.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    pub(super) nodes: BTreeSet<u32>,
    pub(super) node_states: BTreeSet<u32>,
    pub(super) removed_nodes: BTreeSet<u32>,
    pub(super) classes: BTreeSet<u32>,
    pub(super) queues: BTreeSet<u32>,
    pub(super) jobs: BTreeSet<u32>,
    pub(super) job_states: BTreeSet<u32>,
    pub(super) progress: BTreeSet<u32>,
    pub(super) removed_jobs: BTreeSet<u32>,
    pub(super) estimates: BTreeSet<u32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct World {
    pub(super) now_ns: u64,
    pub(super) machines: BTreeMap<u32, Machine>,
    pub(super) classes: BTreeMap<u32, Class>,
    pub(super) queues: BTreeMap<u32, Queue>,
    pub(super) jobs: BTreeMap<u32, (Job, f64)>,
    pub(super) dirty: Dirty,
}

impl World {
    /// What is free on a machine: capacity less all that jobs hold there.
    pub(super) fn room(&self, node: u32) -> Room {
        let Some(machine) = self.machines.get(&node) else { return Room::default() };
        let mut room = Room {
            cpu_milli: i64::from(machine.cpu_milli),
            memory_mib: i64::from(machine.memory_mib),
            device_milli: vec![i64::from(GPU_MILLI); machine.devices as usize],
        };
        let rows = self.jobs.values().flat_map(|(job, _)| &job.allocations);
        for row in rows.filter(|row| row.node.0 == node) {
            room.cpu_milli -= i64::from(row.cpu_milli);
            room.memory_mib -= i64::from(row.memory_mib);
            let count = row.device_mask.count_ones();
            for (device, free) in room.device_milli.iter_mut().enumerate() {
                if row.device_mask >> device & 1 == 1 {
                    *free -= i64::from(row.gpu_milli / count.max(1));
                }
            }
        }
        room
    }

    /// Carries out a plan, bundle by bundle, and fails on what a host would refuse.
    pub(super) fn carry_out(&mut self, plan: &Plan) -> Result<(), String> {
        let actions = &plan.actions;
        let mut seen = BTreeSet::new();
        for (i, job) in actions.job.iter().enumerate() {
            if !seen.insert(*job) {
                return Err(format!("two actions for job {job}"));
            }
            self.act(plan, i)?;
            if actions.bundle.get(i + 1) != Some(&actions.bundle[i]) {
                self.check()?;
            }
        }
        Ok(())
    }

    fn act(&mut self, plan: &Plan, i: usize) -> Result<(), String> {
        let (verb, id) = (plan.actions.verb[i], plan.actions.job[i]);
        let rows = rows(plan, i);
        let now_ns = self.now_ns;
        let (job, speed) = self.jobs.get_mut(&id).ok_or_else(|| format!("no job {id}"))?;
        let phase = if matches!(verb, Verb::Start | Verb::Hold) { Phase::Waiting } else { Phase::Running };
        if job.phase != phase || !job.mine {
            return Err(format!("{verb:?} of job {id} in {:?}", job.phase));
        }
        if verb == Verb::Hold {
            return Ok(());
        }
        let touched: Vec<NodeId> = job.allocations.iter().chain(&rows).map(|row| row.node).collect();
        job.point = job.progress(now_ns);
        job.since_ns = now_ns;
        match verb {
            Verb::Start | Verb::Rescale => {
                check_gang(job, &rows)?;
                job.restarts += u32::from(job.point.service_gpu_s > 0.0);
                job.allocations = rows;
                job.phase = Phase::Running;
                job.point.iterations_per_s = *speed;
            }
            Verb::Resize => {
                for row in rows {
                    let key = |held: &&mut Allocation| (held.group, held.node) == (row.group, row.node);
                    let held = job.allocations.iter_mut().find(key).ok_or("resize of what is not held")?;
                    *held = row;
                }
            }
            Verb::Preempt | Verb::Hold => {
                job.allocations.clear();
                job.phase = Phase::Waiting;
                job.point.iterations_per_s = 0.0;
            }
        }
        job.point.service_gpu_s_per_s = job.gpu_milli_held() as f64 / f64::from(GPU_MILLI);
        self.dirty.job_states.insert(id);
        self.dirty.progress.insert(id);
        self.dirty.node_states.extend(touched.iter().map(|node| node.0));
        Ok(())
    }

    /// Nothing is over its capacity.
    fn check(&self) -> Result<(), String> {
        for node in self.machines.keys() {
            let room = self.room(*node);
            if room.cpu_milli < 0 || room.memory_mib < 0 || room.device_milli.iter().any(|free| *free < 0) {
                return Err(format!("node {node} is over its capacity: {room:?}"));
            }
        }
        Ok(())
    }
}

fn rows(plan: &Plan, i: usize) -> Vec<Allocation> {
    let table = &plan.placements;
    let (start, count) = (plan.actions.placement_start[i] as usize, plan.actions.placement_count[i] as usize);
    (start..start + count)
        .map(|row| Allocation {
            group: table.group[row],
            node: NodeId(table.node[row]),
            workers: table.workers[row],
            cpu_milli: table.cpu_milli[row],
            memory_mib: table.memory_mib[row],
            gpu_milli: table.gpu_milli[row],
            device_mask: table.device_mask[row],
        })
        .collect()
}

fn check_gang(job: &Job, rows: &[Allocation]) -> Result<(), String> {
    for (index, group) in job.groups.iter().enumerate() {
        let workers: u32 = rows.iter().filter(|row| row.group as usize == index).map(|row| row.workers).sum();
        if workers < group.workers_min || workers > group.workers_max {
            return Err(format!("job {}: {workers} workers are no gang of group {index}", job.id));
        }
    }
    Ok(())
}
