//! Keeps what is derived from the view in step with it; work follows what changed.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Cycle, Job, JobId, KindId, Node, NodeId, NodeState, Refusal};

use crate::berth::Berth;
use crate::classes::{Classes, Pin};
use crate::config::Config;
use crate::desk::Desk;
use crate::fleet::Fleet;
use crate::mix::Mix;
use crate::oracle::Oracle;
use crate::probe::Probes;
use crate::profile::{ProfileId, Profiles};
use crate::rank::{Paces, ticket};
use crate::reasons::Wait;
use crate::roster::Roster;
use crate::shape::Shapes;
use crate::tenure::Tenure;

const SECOND_NS: f64 = 1e9;

/// What is derived from the view.
#[derive(Default)]
pub(crate) struct Book {
    pub(crate) shapes: Shapes,
    pub(crate) profiles: Profiles,
    pub(crate) classes: Classes,
    pub(crate) fleet: Fleet,
    pub(crate) roster: Roster,
    /// Own jobs.
    pub(crate) jobs: BTreeMap<JobId, ProfileId>,
    /// What came lately.
    pub(crate) mix: Mix,
    /// Own running gangs over several nodes.
    pub(crate) apart: BTreeSet<JobId>,
    /// Own running jobs that may have another number of workers.
    pub(crate) elastic: BTreeSet<JobId>,
    by_kind: BTreeMap<KindId, BTreeSet<JobId>>,
    /// Jobs left alone until then, because the host refused an action for them.
    blocked: BTreeMap<JobId, u64>,
    pub(crate) probes: Probes,
    pub(crate) paces: Paces,
    pub(crate) tenure: Tenure,
    /// Waiting jobs whose reason is still to be told, and codes told.
    untold: BTreeSet<JobId>,
    waits: BTreeMap<ProfileId, Wait>,
    /// Gangs that nodes are kept for.
    reserved: BTreeMap<JobId, Wait>,
}

/// What a cycle must look at.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Nodes to divide again.
    pub(crate) stale: BTreeSet<NodeId>,
    /// Those of them whose gangs or capacity changed, not only what gangs hold.
    pub(crate) moved: BTreeSet<NodeId>,
    /// A waiting job may find a place that it did not find before.
    pub(crate) places: bool,
    /// Class numbers given before mean nothing any more.
    pub(crate) classes_void: bool,
}

impl Book {
    /// Takes over what changed.
    pub(crate) fn follow(&mut self, config: &Config, cycle: &mut Cycle<'_>) -> News {
        let mut news = News::default();
        let changes = cycle.changes;
        if changes.image || self.classes.is_full() {
            *self = Self::default();
            news.classes_void = true;
        }
        self.profiles.elastic = config.elastic;
        let everything = changes.image || news.classes_void;
        let mut nodes: BTreeSet<NodeId> = changes.nodes.iter().copied().collect();
        let mut jobs: BTreeSet<JobId> = changes.arrived.iter().chain(&changes.changed).copied().collect();
        if everything {
            nodes.extend(cycle.cluster.nodes().map(|node| node.id));
            jobs.extend(cycle.cluster.jobs().map(|job| job.id));
        }
        self.tenure.begin(cycle.now_ns());
        let observed = self.forget_estimates(cycle, &mut jobs);
        nodes.extend(self.probes.end(config, cycle.cluster, &observed));
        self.unblock(cycle.now_ns(), &mut jobs);
        self.block_refused(config, cycle, &mut jobs);
        changes.removed.iter().for_each(|job| self.drop_job(*job));
        for job in jobs.iter().filter_map(|job| cycle.cluster.job(*job)) {
            self.know(job);
            nodes.extend(job.allocations.iter().map(|row| row.node));
        }
        news.places = everything || changes.released || changes.classes || !changes.arrived.is_empty();
        let home = self.fleet.commonest_shape();
        let reshaped = self.follow_nodes(config, cycle, nodes, &mut news);
        self.start_probes(config, cycle, &mut news);
        if config.order.by_length() {
            news.places |= (reshaped || changes.classes) && cycle.cluster.waiting_count() > 0;
            if self.fleet.commonest_shape() != home {
                self.paces.clear();
                jobs.extend(self.roster.jobs());
            }
        }
        self.queue(config, cycle, &jobs);
        news.places |= jobs.iter().any(|job| cycle.cluster.job(*job).is_some_and(Job::is_waiting));
        news
    }

    /// Predictions that changed, or that the host failed to give. Returns the kinds of those that changed.
    fn forget_estimates(&mut self, cycle: &Cycle<'_>, jobs: &mut BTreeSet<JobId>) -> BTreeSet<KindId> {
        let named = cycle.changes.estimates.iter().filter_map(|job| cycle.cluster.job(*job)?.kind);
        let changed: BTreeSet<KindId> = named.collect();
        for kind in &changed | &self.classes.take_unanswered() {
            self.classes.forget_kind(kind, &self.profiles);
            self.paces.forget_kind(kind, &self.profiles);
            jobs.extend(self.by_kind.get(&kind).into_iter().flatten());
        }
        changed
    }

    /// On nodes that are divided anew anyway.
    fn start_probes(&mut self, config: &Config, cycle: &mut Cycle<'_>, news: &mut News) {
        let mut nodes = BTreeSet::new();
        for berth in news.stale.iter().filter_map(|node| self.fleet.get(*node)) {
            let gang_of = |job: JobId| self.profiles.get(*self.jobs.get(&job)?).gang().cloned();
            if self.probes.start(config, cycle, (&self.shapes, &self.classes), berth, &gang_of) {
                nodes.insert(berth.id);
            }
        }
        self.follow_nodes(config, cycle, nodes, news);
    }

    fn unblock(&mut self, now_ns: u64, jobs: &mut BTreeSet<JobId>) {
        let over: Vec<JobId> =
            self.blocked.iter().filter(|(_, until_ns)| **until_ns <= now_ns).map(|(job, _)| *job).collect();
        for job in over {
            self.blocked.remove(&job);
            jobs.insert(job);
        }
    }

    fn block_refused(&mut self, config: &Config, cycle: &Cycle<'_>, jobs: &mut BTreeSet<JobId>) {
        // Those that only fell with their bundle are not to blame.
        let blamed = cycle.changes.verdicts.iter().filter(|verdict| verdict.reason != Refusal::GroupBroken);
        for verdict in blamed {
            self.block(config, cycle.now_ns(), verdict.job);
            jobs.insert(verdict.job);
        }
    }

    fn block(&mut self, config: &Config, now_ns: u64, job: JobId) {
        let until_ns = now_ns.saturating_add((config.retry_s * SECOND_NS) as u64);
        self.blocked.insert(job, until_ns);
        self.untold.insert(job);
    }

    fn drop_job(&mut self, job: JobId) {
        self.roster.remove(job);
        self.tenure.forget(job);
        self.blocked.remove(&job);
        self.untold.remove(&job);
        self.apart.remove(&job);
        self.elastic.remove(&job);
        let kind = self.jobs.remove(&job).and_then(|profile| self.profiles.get(profile).kind);
        if let Some((kind, jobs)) = kind.and_then(|kind| Some((kind, self.by_kind.get_mut(&kind)?))) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.by_kind.remove(&kind);
            }
        }
    }

    fn know(&mut self, job: &Job) {
        if !job.mine {
            self.drop_job(job.id);
            return;
        }
        self.tenure.know(job);
        let profile = self.profiles.of(job);
        let came = self.jobs.insert(job.id, profile).is_none();
        if came && self.profiles.get(profile).gang().is_some() {
            self.mix.note(profile);
        }
        let gang = self.profiles.get(profile).gang();
        if gang.is_some_and(|gang| gang.workers_most > gang.workers_least) && job.is_running() {
            self.elastic.insert(job.id);
        } else {
            self.elastic.remove(&job.id);
        }
        let gang = gang.is_some();
        if gang && job.is_running() && job.allocations.len() > 1 {
            self.apart.insert(job.id);
        } else {
            self.apart.remove(&job.id);
        }
        if let Some(kind) = job.kind {
            self.by_kind.entry(kind).or_default().insert(job.id);
        }
    }

    /// Whether shapes or states of nodes changed.
    fn follow_nodes(
        &mut self,
        config: &Config,
        cycle: &mut Cycle<'_>,
        nodes: BTreeSet<NodeId>,
        news: &mut News,
    ) -> bool {
        let mut reshaped = !cycle.changes.removed_nodes.is_empty();
        for node in &cycle.changes.removed_nodes {
            self.fleet.remove(*node);
        }
        for node in nodes.into_iter().filter_map(|node| cycle.cluster.node(node)) {
            let berth = self.berth(config, cycle, node);
            news.places |= berth.draining && !node.jobs.is_empty();
            if !berth.gangs.is_empty() {
                news.stale.insert(berth.id);
            }
            if self.fleet.get(berth.id).is_none_or(|before| !before.divides_alike(&berth)) {
                news.moved.insert(berth.id);
            }
            reshaped |= self.fleet.set(berth);
        }
        reshaped
    }

    fn berth(&mut self, config: &Config, cycle: &mut Cycle<'_>, node: &Node) -> Berth {
        let shape = self.shapes.of(node, config);
        let mut berth = Berth {
            id: node.id,
            shape,
            lattice: shape.map(|shape| self.shapes.get(shape).lattice),
            open: node.state == NodeState::Schedulable,
            draining: node.state == NodeState::Draining,
            devices: node.devices,
            gpus_free: node.free.gpus(),
            shares_free: node.free.shares.iter().map(|share| share.gpu_milli_free).collect(),
            capacity: Amount { cpu: node.free.cpu_milli, memory: node.free.memory_mib },
            gangs: Vec::new(),
        };
        let Some(shape) = shape else { return berth };
        let cluster = cycle.cluster;
        for job in cluster.jobs_on(node.id).filter(|job| job.mine && job.is_running()) {
            let Some(profile) = self.jobs.get(&job.id).copied() else { continue };
            let (Some(gang), [row]) = (self.profiles.get(profile).gang(), &job.allocations[..]) else { continue };
            let held = Amount { cpu: row.cpu_milli, memory: row.memory_mib };
            let blocked = self.blocked.contains_key(&job.id);
            let pin = match self.probes.of(job) {
                _ if blocked => Pin::at(held),
                Some(probe) => Pin { cpu_milli: Some(probe.cpu_milli), ..Pin::of(gang, held) },
                None => Pin::of(gang, held),
            };
            let gpus = row.gpu_milli / 1000;
            let mut desk = self.desk(config, cycle);
            let class = desk.class(job.id, profile, shape, pin);
            let resident = desk.resident(job.id, class, shape, gpus, Some(held));
            berth.release(held);
            berth.gpus_free += gpus;
            berth.add(resident);
        }
        berth
    }

    fn desk<'a, 'h>(&'a mut self, config: &'a Config, cycle: &'a mut Cycle<'h>) -> Desk<'a, 'h> {
        let oracle = Oracle { host: &mut cycle.host, speaker: None, failures: 0 };
        let Self { shapes, profiles, classes, fleet, .. } = self;
        let home = fleet.commonest_shape();
        Desk { config, cluster: cycle.cluster, shapes, profiles, classes, oracle, home }
    }

    /// Puts waiting jobs in line and takes others out of it.
    fn queue(&mut self, config: &Config, cycle: &mut Cycle<'_>, jobs: &BTreeSet<JobId>) {
        let cluster = cycle.cluster;
        for job in jobs.iter().filter_map(|job| cluster.job(*job)) {
            let profile = self.jobs.get(&job.id).copied();
            let waits = job.mine && job.is_waiting() && !self.blocked.contains_key(&job.id);
            let Some(profile) = profile.filter(|_| waits) else {
                self.roster.remove(job.id);
                continue;
            };
            let paces = std::mem::take(&mut self.paces);
            let ticket = ticket(&mut self.desk(config, cycle), &paces, job, profile);
            self.paces = paces;
            self.roster.set(profile, ticket);
            self.untold.insert(job.id);
        }
    }

    /// Remembers what came of a plan.
    pub(crate) fn planned(
        &mut self,
        config: &Config,
        cycle: &Cycle<'_>,
        (waits, reserved): (BTreeMap<ProfileId, Wait>, BTreeMap<JobId, Wait>),
        refused: &[JobId],
    ) {
        self.untold.extend(reserved.keys().filter(|job| !self.reserved.contains_key(job)));
        self.reserved = reserved;
        for (profile, wait) in waits {
            let before = self.waits.insert(profile, wait);
            if before.is_none_or(|before| before.code() != wait.code()) {
                self.untold.extend(self.roster.of(profile).take(config.holds_max as usize));
            }
        }
        for job in refused {
            self.block(config, cycle.now_ns(), *job);
            self.roster.remove(*job);
        }
    }

    /// Says why jobs wait, where that is new, the first in line first.
    pub(crate) fn tell_waits(&mut self, config: &Config, cycle: &mut Cycle<'_>) {
        let mut told = 0;
        let now_ns = cycle.now_ns();
        while told < config.holds_max {
            let Some(job) = self.untold.pop_first() else { return };
            let waits = cycle.cluster.job(job).is_some_and(|job| job.is_waiting() && job.mine);
            if !waits || cycle.plan.has_acted_on(job) {
                continue;
            }
            let wait = match self.blocked.get(&job) {
                Some(until_ns) => Wait::Refused { for_s: until_ns.saturating_sub(now_ns) as f64 / SECOND_NS },
                None => self.wait_of(job),
            };
            // A hold that the host would not take says nothing that is missed.
            let _ = cycle.plan.hold(job, wait.code(), &wait.arguments());
            told += 1;
        }
    }

    fn wait_of(&self, job: JobId) -> Wait {
        let of_profile = || self.waits.get(self.jobs.get(&job)?);
        self.reserved.get(&job).or_else(of_profile).copied().unwrap_or(Wait::Turn)
    }

    /// When the first blocked job is tried again.
    pub(crate) fn next_retry_ns(&self) -> Option<u64> {
        self.blocked.values().min().copied()
    }
}
