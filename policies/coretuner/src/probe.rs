//! Running a job for a while where its speed would tell most, when predictions for its kind are unsure.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Cluster, Cycle, Job, JobId, KindId, NodeId};

use crate::axes::units;
use crate::berth::{Berth, Resident};
use crate::classes::Classes;
use crate::config::Config;
use crate::desk::only_node;
use crate::profile::Gang;
use crate::shape::Shapes;

const SECOND_NS: f64 = 1e9;

/// Probes end with an observation, or after `probe_s`; then the kind is left alone for this many times as long.
const REST_FACTOR: f64 = 6.0;

/// A job must have this many times `probe_s` left, or its kind's better division would come too late for it.
const LEFT_FACTOR: f64 = 3.0;

/// A job that runs at an informative allocation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probe {
    pub(crate) job: JobId,
    pub(crate) cpu_milli: u32,
    until_ns: u64,
}

/// All probes, at most one for each kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probes {
    running: BTreeMap<KindId, Probe>,
    /// Kinds left alone until then.
    resting: BTreeMap<KindId, u64>,
}

impl Probes {
    /// The probe that a job runs, if it does.
    pub(crate) fn of(&self, job: &Job) -> Option<Probe> {
        self.running.get(&job.kind?).copied().filter(|probe| probe.job == job.id)
    }

    /// When the first probe ends at the latest.
    pub(crate) fn next_end_ns(&self) -> Option<u64> {
        self.running.values().map(|probe| probe.until_ns).min()
    }

    /// Ends probes that have their observation, whose time is over or whose job does not run any more. Returns the nodes
    /// where they ran.
    pub(crate) fn end(&mut self, config: &Config, cluster: &Cluster, observed: &BTreeSet<KindId>) -> BTreeSet<NodeId> {
        let now_ns = cluster.now_ns();
        self.resting.retain(|_, until_ns| *until_ns > now_ns);
        let over = |kind: &KindId, probe: &Probe| {
            let runs = cluster.job(probe.job).is_some_and(Job::is_running);
            !runs || observed.contains(kind) || probe.until_ns <= now_ns
        };
        let ended: Vec<(KindId, Probe)> = self
            .running
            .iter()
            .filter(|(kind, probe)| over(kind, probe))
            .map(|(kind, probe)| (*kind, *probe))
            .collect();
        for (kind, _) in &ended {
            self.running.remove(kind);
            self.resting.insert(*kind, now_ns.saturating_add((config.probe_s * REST_FACTOR * SECOND_NS) as u64));
        }
        ended.iter().filter_map(|(_, probe)| cluster.job(probe.job).and_then(only_node)).collect()
    }

    /// Starts a probe with a gang of this node, if one is worth it. The node is to be looked at again then.
    pub(crate) fn start(
        &mut self,
        config: &Config,
        cycle: &mut Cycle<'_>,
        (shapes, classes): (&Shapes, &Classes),
        berth: &Berth,
        gang_of: &dyn Fn(JobId) -> Option<Gang>,
    ) -> bool {
        if self.running.len() >= config.probes_max as usize {
            return false;
        }
        let now_ns = cycle.now_ns();
        for resident in &berth.gangs {
            let Some((job, kind)) = cycle.cluster.job(resident.job).and_then(|job| Some((job, job.kind?))) else {
                continue;
            };
            let busy = self.running.contains_key(&kind) || self.resting.contains_key(&kind);
            if busy || classes.doubt(resident.class) < config.probe_doubt_min || !lasts(config, job, now_ns) {
                continue;
            }
            // What it holds was observed: only another allocation tells something.
            let Some(each) = cycle.host.next_probe(job.id) else { continue };
            let cpu_milli = each.saturating_mul(resident.gpus);
            let Some(held) = resident.held.filter(|held| held.cpu != cpu_milli) else { continue };
            let allowed = gang_of(job.id)
                .is_some_and(|gang| gang.rights.cpu && (gang.cpu_milli.0..=gang.cpu_milli.1).contains(&cpu_milli));
            if allowed && fits(shapes, berth, resident, Amount { cpu: cpu_milli, memory: held.memory }) {
                let until_ns = now_ns.saturating_add((config.probe_s * SECOND_NS) as u64);
                self.running.insert(kind, Probe { job: job.id, cpu_milli, until_ns });
                return true;
            }
        }
        false
    }
}

fn lasts(config: &Config, job: &Job, now_ns: u64) -> bool {
    let progress = job.progress(now_ns);
    let left = job.remaining_iterations(now_ns);
    progress.iterations_per_s > 0.0
        && left.is_none_or(|left| left / progress.iterations_per_s > config.probe_s * LEFT_FACTOR)
}

/// Whether all others keep their bases beside the probe.
fn fits(shapes: &Shapes, berth: &Berth, gang: &Resident, amount: Amount) -> bool {
    let Some(shape) = berth.shape else { return false };
    let lattice = shapes.get(shape).lattice;
    let (all, wanted) = (berth.base_units(), units(&lattice, amount));
    let beside = |all: u32, own: u32, wanted: u32| all.saturating_sub(own).saturating_add(wanted);
    beside(all.0, gang.base_units.0, wanted.0) <= lattice.cpu.units_within(berth.capacity.cpu)
        && beside(all.1, gang.base_units.1, wanted.1) <= lattice.memory.units_within(berth.capacity.memory)
}
