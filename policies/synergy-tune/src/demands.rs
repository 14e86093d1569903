//! Requests of jobs, from predictions asked once per kind.

use std::collections::BTreeMap;

use coretuner_sdk::{Changes, Cluster, Cycle, GpuKind, Grid, Job, KindId, Level};

use crate::allocate::Request;
use crate::amounts::Amounts;
use crate::demand::{cheapest_peak, grid};
use crate::servers::{Ground, Servers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: KindId,
    gpus: u32,
    gpu_kind: GpuKind,
    devices: u32,
    cpu_milli: u32,
    memory_mib: u32,
    share: (u64, u64),
}

/// What is predicted of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Demand {
    cpu_milli: u32,
    memory_mib: u32,
    /// Iterations per second with the full demand, and at the share.
    full_speed: f64,
    share_speed: f64,
}

/// Full demands by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands {
    known: BTreeMap<Key, Option<Demand>>,
    /// Speeds of the ground last asked for.
    speeds: BTreeMap<(KindId, u32), (f64, f64)>,
}

impl Demands {
    /// Forgets kinds whose predictions changed.
    pub(crate) fn forget(&mut self, cluster: &Cluster, changes: &Changes) {
        if changes.image {
            *self = Self::default();
        }
        for kind in changes.estimates.iter().filter_map(|job| cluster.job(*job)?.kind) {
            self.known.retain(|key, _| key.kind != kind);
        }
    }

    /// What a gang asks for; none when no server is left for it.
    pub(crate) fn request(&mut self, cycle: &mut Cycle<'_>, servers: &mut Servers, job: &Job) -> Option<Request> {
        let [group] = &job.groups[..] else { return None };
        let ground = servers.ground(cycle.cluster, job.class)?;
        let gpus = group.workers_min * group.gpus();
        let share = ground.share_per_gpu.times(gpus);
        let demand = self.demand(cycle, job, gpus, ground);
        let clamp = |amount: u64, least: u32, most: u32| {
            let all = |one: u32| u64::from(one) * u64::from(group.workers_min);
            amount.max(all(least)).min(all(most.max(least)))
        };
        let within = |cpu_milli: u64, memory_mib: u64| Amounts {
            cpu_milli: clamp(cpu_milli, group.cpu_milli_min, group.cpu_milli_max),
            memory_mib: clamp(memory_mib, group.memory_mib_min, group.memory_mib_max),
            storage_milli: share.storage_milli,
        };
        let share = within(share.cpu_milli, share.memory_mib);
        let full = demand.map_or(share, |full| within(u64::from(full.cpu_milli), u64::from(full.memory_mib)));
        Some(Request { workers: group.workers_min, gpus_per_worker: group.gpus(), full, share, servers: ground.set })
    }

    fn demand(&mut self, cycle: &mut Cycle<'_>, job: &Job, gpus: u32, ground: Ground) -> Option<Demand> {
        let key = Key {
            kind: job.kind?,
            gpus,
            gpu_kind: ground.gpu_kind,
            devices: ground.devices,
            cpu_milli: ground.cpu_milli,
            memory_mib: ground.memory_mib,
            share: (ground.share_per_gpu.cpu_milli, ground.share_per_gpu.memory_mib),
        };
        let demand = match self.known.get(&key) {
            Some(known) => *known,
            None => {
                let demand = predict(cycle, job, gpus, ground);
                self.known.insert(key, demand);
                demand
            }
        };
        if let Some(demand) = demand {
            self.speeds.insert((key.kind, gpus), (demand.full_speed, demand.share_speed));
        }
        demand
    }

    /// Seconds left at the speed of the last round: that of the share if it was put to it, else that of the full demand.
    /// By the submitter's estimate where work or speed is unknown; infinite where that is too.
    pub(crate) fn remaining_s(&self, job: &Job, now_ns: u64, reduced: bool) -> f64 {
        let gpus = (job.gpu_milli_min() / 1000) as u32;
        let speeds = job.kind.and_then(|kind| self.speeds.get(&(kind, gpus)));
        let speed = speeds.map(|(full, share)| if reduced { *share } else { *full }).filter(|speed| *speed > 0.0);
        if let (Some(left), Some(speed)) = (job.remaining_iterations(now_ns), speed) {
            return left / speed;
        }
        let run_s = job.progress(now_ns).service_gpu_s / f64::from(gpus.max(1));
        job.estimated_duration_ns.map_or(f64::INFINITY, |all_ns| (all_ns as f64 / 1e9 - run_s).max(0.0))
    }
}

fn predict(cycle: &mut Cycle<'_>, job: &Job, gpus: u32, ground: Ground) -> Option<Demand> {
    let servers = gpus.div_ceil(ground.devices.max(1)).max(1);
    let (cpu_milli, memory_mib) = grid(gpus, servers, ground.cpu_milli, ground.memory_mib);
    let grid = Grid { gpu_kind: ground.gpu_kind, gpus: vec![(gpus, servers)], cpu_milli, memory_mib };
    let speeds = match cycle.speeds(&[job.id], &grid) {
        Ok(speeds) => speeds,
        Err(error) => {
            let line = format!("no prediction for job {}: {error}; it asks for its proportional share", job.id);
            cycle.host.log(Level::Warn, &line);
            return None;
        }
    };
    let (row, column) = cheapest_peak(speeds.means(0), grid.memory_mib.len())?;
    let share = ground.share_per_gpu.times(gpus);
    let within = |axis: &[u32], share: u64| axis.iter().rposition(|amount| u64::from(*amount) <= share).unwrap_or(0);
    let (share_row, share_column) =
        (within(&grid.cpu_milli, share.cpu_milli), within(&grid.memory_mib, share.memory_mib));
    let full_speed = speeds.get(0, 0, row, column)?.mean;
    let share_speed = speeds.get(0, 0, share_row, share_column).map_or(0.0, |speed| speed.mean);
    Some(Demand { cpu_milli: grid.cpu_milli[row], memory_mib: grid.memory_mib[column], full_speed, share_speed })
}
