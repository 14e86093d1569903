//! Rounds: order, admission, placement anew, and what differs from what runs.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::place::{self, Fit};
use coretuner_sdk::{Cluster, Cycle, Job, JobId, Level, Policy, Reason};

use crate::allocate::{Grant, Request, allocate};
use crate::config::{Config, Order};
use crate::demands::Demands;
use crate::differences::step;
use crate::rounds::Rounds;
use crate::servers::Servers;

/// Jobs that the host's rules exclude from a round before it is given up.
const EXCLUDED_MAX: usize = 16;

/// Synergy-Tune.
pub struct SynergyTune {
    config: Config,
    rounds: Rounds,
    demands: Demands,
    /// Jobs that the last round put to their share.
    reduced: BTreeSet<JobId>,
    /// Waiting jobs that were told why.
    told: BTreeSet<JobId>,
}

impl Policy for SynergyTune {
    type Config = Config;

    const NAME: &'static str = "synergy-tune";
    const SUMMARY: &'static str = "Synergy-Tune (OSDI '22): every round all jobs are placed anew with their full demand, \
                                   or at their proportional share where that does not fit";
    const REASONS: &'static [Reason] = &[
        Reason { code: "full", text: "placed with its full demand", arguments: &[] },
        Reason { code: "share", text: "its full demand does not fit: its proportional share", arguments: &[] },
        Reason { code: "order", text: "jobs that go first take all GPUs of this round", arguments: &[] },
        Reason { code: "wait-gpus", text: "waits for {0} GPUs", arguments: &["GPUs needed"] },
        Reason { code: "wait-round", text: "the next round is in {0} s", arguments: &["seconds to the next round"] },
    ];

    fn new(config: Config) -> Result<Self, String> {
        config.check()?;
        let rounds = Rounds::new(&config);
        Ok(Self { config, rounds, demands: Demands::default(), reduced: BTreeSet::new(), told: BTreeSet::new() })
    }

    fn decide(&mut self, cycle: &mut Cycle<'_>) {
        let changes = cycle.changes;
        if changes.image {
            (self.reduced, self.told) = Default::default();
        }
        self.demands.forget(cycle.cluster, changes);
        for job in &changes.removed {
            self.reduced.remove(job);
            self.told.remove(job);
        }
        let due = self.rounds.due(cycle.now_ns());
        if due {
            self.round(cycle);
            start_others(cycle);
        }
        self.tell_waits(cycle, due);
        if cycle.cluster.waiting_count() + cycle.cluster.running_count() > 0 {
            cycle.plan.wake_at(self.rounds.next_ns());
        }
    }
}

/// A job with its place in line.
struct Candidate<'a> {
    job: &'a Job,
    request: Request,
}

impl SynergyTune {
    fn round(&mut self, cycle: &mut Cycle<'_>) {
        let mut excluded = BTreeSet::new();
        while excluded.len() <= EXCLUDED_MAX {
            match self.try_round(cycle, &excluded) {
                Ok(reduced) => {
                    self.reduced = reduced;
                    return;
                }
                Err(job) => {
                    excluded.insert(job);
                }
            }
        }
        cycle.host.log(Level::Warn, "the host's rules exclude too many jobs: this round changes nothing");
    }

    /// One round without the `excluded` jobs. Jobs that were put to their share; or the job that the host's rules exclude.
    fn try_round(&mut self, cycle: &mut Cycle<'_>, excluded: &BTreeSet<JobId>) -> Result<BTreeSet<JobId>, JobId> {
        let cluster = cycle.cluster;
        let movable = |job: &&Job| is_gang(job) && !excluded.contains(&job.id);
        let running = || cluster.running().filter(|job| job.preemptible).filter(movable);
        let mut servers = Servers::new(cluster, running());
        let jobs: Vec<&Job> = running().chain(cluster.waiting().filter(movable)).collect();
        let mut admitted = self.admit(cycle, &mut servers, jobs);
        if self.config.order == Order::Las {
            admitted.sort_by_key(|candidate| {
                std::cmp::Reverse(candidate.request.workers * candidate.request.gpus_per_worker)
            });
        }
        let requests: Vec<Request> = admitted.iter().map(|candidate| candidate.request.clone()).collect();
        let grants = allocate(servers.servers.clone(), &servers.sets, &requests, self.config.placement);
        let granted: BTreeMap<JobId, (&Grant, &Request)> = admitted
            .iter()
            .zip(&grants)
            .filter_map(|(candidate, grant)| Some((candidate.job.id, (grant.as_ref()?, &candidate.request))))
            .collect();
        let placed = admitted.iter().map(|candidate| candidate.job);
        let stopped = running().filter(|job| !granted.contains_key(&job.id));
        let all: BTreeMap<JobId, &Job> = placed.chain(stopped).map(|job| (job.id, job)).collect();
        let steps = all.values().filter_map(|job| step(job, granted.get(&job.id).map(|grant| grant.0), &servers.nodes));
        cycle.plan.trade(steps.collect()).map_err(|(job, _)| job)?;
        Ok(granted.iter().filter(|(_, (grant, _))| grant.reduced).map(|(job, _)| *job).collect())
    }

    /// Jobs in order while GPUs last; those that need more than are left are skipped.
    fn admit<'a>(&mut self, cycle: &mut Cycle<'_>, servers: &mut Servers, jobs: Vec<&'a Job>) -> Vec<Candidate<'a>> {
        let mut line: Vec<(f64, &Job, Request)> = Vec::with_capacity(jobs.len());
        for job in jobs {
            let Some(request) = self.demands.request(cycle, servers, job) else { continue };
            let key = self.key(cycle.cluster, job);
            line.push((key, job, request));
        }
        line.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1.submit_ns, a.1.id).cmp(&(b.1.submit_ns, b.1.id))));
        let mut free: u32 = servers.servers.iter().map(|server| server.gpus).sum();
        let mut admitted = Vec::new();
        for (_, job, request) in line {
            let gpus = request.workers * request.gpus_per_worker;
            if gpus <= free {
                free -= gpus;
                admitted.push(Candidate { job, request });
            }
        }
        admitted
    }

    fn key(&self, cluster: &Cluster, job: &Job) -> f64 {
        let now_ns = cluster.now_ns();
        match self.config.order {
            Order::Fifo => 0.0,
            Order::Las => job.progress(now_ns).service_gpu_s,
            Order::Srtf => self.demands.remaining_s(job, now_ns, self.reduced.contains(&job.id)),
        }
    }

    fn tell_waits(&mut self, cycle: &mut Cycle<'_>, due: bool) {
        let fresh: Vec<&Job> = if due {
            cycle.cluster.waiting().take(self.config.holds_max as usize).collect()
        } else {
            cycle.changes.arrived.iter().filter_map(|job| cycle.cluster.job(*job)).collect()
        };
        let to_next_s = self.rounds.next_ns().saturating_sub(cycle.now_ns()) as f64 / 1e9;
        for job in fresh {
            if !job.mine || !job.is_waiting() || cycle.plan.has_acted_on(job.id) || self.told.contains(&job.id) {
                continue;
            }
            // A hold that the host would not take says nothing that is missed.
            let _ = if due {
                self.told.insert(job.id);
                cycle.plan.hold(job.id, "wait-gpus", &[job.gpu_milli_min() as f64 / 1000.0]).map(drop)
            } else {
                cycle.plan.hold(job.id, "wait-round", &[to_next_s]).map(drop)
            };
        }
    }
}

/// Jobs that Synergy does not know (CPU-only, parts of a GPU, several groups) start at their request where the round
/// leaves room.
fn start_others(cycle: &mut Cycle<'_>) {
    let how = place::Gang { fit: Fit::FirstFit, demand: place::Demand::Requested };
    for job in cycle.cluster.waiting().filter(|job| !is_gang(job)) {
        let found = place::gang(&mut cycle.plan, job, how);
        // What the host's rules forbid, a ceiling of its queue for one, waits on.
        let _ = found.map(|placements| cycle.plan.start(job.id, &placements).map(|noted| noted.because("full", &[])));
    }
}

/// One group of workers with whole GPUs: what Synergy places.
pub(crate) fn is_gang(job: &Job) -> bool {
    matches!(&job.groups[..], [group] if group.gpus() > 0 && group.gpu_milli % 1000 == 0 && group.workers_min > 0)
}
