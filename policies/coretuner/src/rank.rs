//! Who goes first: the key of a job by the configured order.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::order::{Las, level, remaining_ns};
use coretuner_sdk::solve::Targets;
use coretuner_sdk::{Cluster, Job, JobId, KindId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classes::Pin;
use crate::config::Config;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::profile::{ProfileId, Profiles};
use crate::roster::{Roster, Ticket};
use crate::targets::Market;
use crate::tenure::Tenure;
use crate::tick::Runner;

const SECOND_NS: f64 = 1e9;
const HOUR_NS: f64 = 3600.0 * SECOND_NS;

/// Who is served first. Ties go to the earlier submission, then to the lower id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The earlier submission.
    Fifo,
    /// The lower queue of attained service (Tiresias); the earlier submission within a queue.
    Las,
    /// The shorter remaining time, at the measured speed or, while waiting, the best predicted one; unknown length last.
    Srtf,
    /// The smaller remaining service: remaining time as for `srtf` × GPUs.
    Srsf,
    /// The smaller remaining service at the predicted speed of the allocation that a job would take at the present price
    /// of CPU and memory, for running and waiting jobs alike.
    Jsrsf,
}

impl Order {
    /// Whether a job that goes first may take the place of a running one.
    pub(crate) fn preempts(self) -> bool {
        self != Self::Fifo
    }

    /// Whether keys are remaining times or services.
    pub(crate) fn by_length(self) -> bool {
        matches!(self, Self::Srtf | Self::Srsf | Self::Jsrsf)
    }

    /// How much a second of a job of `gpus` GPUs weighs in its key.
    fn weight(self, gpus: u32) -> f64 {
        if self == Self::Srtf { 1.0 } else { f64::from(gpus.max(1)) }
    }
}

impl Config {
    /// Queues of attained service.
    pub(crate) fn las(&self) -> Las {
        Las { thresholds_gpu_s: self.las_thresholds_gpu_s.clone(), promote_after: None }
    }

    /// What a key is divided by: 1 without ageing.
    pub(crate) fn ageing(&self, job: &Job, now_ns: u64) -> f64 {
        let age_h = now_ns.saturating_sub(job.submit_ns) as f64 / HOUR_NS;
        self.ageing_h.map_or(1.0, |ageing_h| 1.0 + age_h / ageing_h)
    }

    /// Whether a running job is defended against waiting ones that hardly go first: stopping it costs something.
    fn defends(&self) -> bool {
        self.order.by_length() && self.restart_cost_s > 0.0
    }

    /// Key of a running job as waiting ones have to beat it.
    fn defended(&self, key: f64, gpus: u32) -> f64 {
        if !self.defends() {
            return key;
        }
        key / (1.0 + self.preempt_margin) - self.restart_cost_s * self.order.weight(gpus)
    }
}

/// Speeds by which jobs are ranked. All jobs of a profile have the same, so that their order does not depend on prices.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paces {
    /// Only what [`Targets::best_response`] reads.
    prices: Targets,
    /// Iterations per second; none where nothing is predicted.
    known: RefCell<BTreeMap<ProfileId, Option<f64>>>,
}

impl Paces {
    /// Forgets what was predicted of a kind.
    pub(crate) fn forget_kind(&mut self, kind: KindId, profiles: &Profiles) {
        self.known.get_mut().retain(|profile, _| profiles.get(*profile).kind != Some(kind));
    }

    pub(crate) fn clear(&mut self) {
        self.known.get_mut().clear();
    }

    /// Takes over the present price. Returns whose pace changed by it.
    fn follow_price(&mut self, desk: &mut Desk<'_, '_>, market: &Market, roster: &Roster) -> Vec<ProfileId> {
        self.prices = market.prices();
        let before = self.known.take();
        let changed = |profile: &ProfileId| {
            let speaker = roster.of(*profile).next();
            speaker.is_some_and(|job| before.get(profile) != Some(&self.of(desk, job, *profile)))
        };
        roster.profiles().filter(changed).collect()
    }

    /// Predicted iterations per second of a job of that profile where most GPUs are.
    fn of(&self, desk: &mut Desk<'_, '_>, job: JobId, profile: ProfileId) -> Option<f64> {
        if let Some(pace) = self.known.borrow().get(&profile) {
            return *pace;
        }
        let class = desk.class(job, profile, desk.home?, Pin::FREE);
        let options = desk.options(class);
        let joint = desk.config.order == Order::Jsrsf;
        let point = if joint { self.prices.best_response(options) } else { options.peak() };
        let pace = desk.classes.speed(class, point.value);
        self.known.borrow_mut().insert(profile, pace);
        pace
    }
}

/// At a tick: ranks waiting jobs anew where prices or ageing changed their keys.
pub(crate) fn rank_anew(desk: &mut Desk<'_, '_>, market: &Market, paces: &mut Paces, roster: &mut Roster) {
    let mut profiles = Vec::new();
    if desk.config.order == Order::Jsrsf {
        profiles = paces.follow_price(desk, market, roster);
    }
    if desk.config.ageing_h.is_some() {
        profiles = roster.profiles().collect();
    }
    let cluster: &Cluster = desk.cluster;
    for profile in profiles {
        let jobs: Vec<JobId> = roster.of(profile).collect();
        for job in jobs.into_iter().filter_map(|job| cluster.job(job)) {
            roster.set(profile, ticket(desk, paces, job, profile));
        }
    }
}

/// Place of a job in the line.
pub(crate) fn ticket(desk: &mut Desk<'_, '_>, paces: &Paces, job: &Job, profile: ProfileId) -> Ticket {
    let key = key(desk, paces, job, profile) / desk.config.ageing(job, desk.cluster.now_ns());
    Ticket::new(key, job.submit_ns, job.id)
}

/// Running gangs that may be preempted, on nodes that take jobs. Looks at all own jobs: lengths change with time.
pub(crate) fn runners(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    paces: &Paces,
    jobs: &BTreeMap<JobId, ProfileId>,
    tenure: &Tenure,
) -> Vec<Runner> {
    let cluster: &Cluster = desk.cluster;
    let now_ns = cluster.now_ns();
    let started = if desk.config.defends() { tenure.started_within(desk.config.tick_s) } else { BTreeSet::new() };
    let mut runners = Vec::new();
    for (id, profile) in jobs {
        let Some(job) = cluster.job(*id).filter(|job| job.is_running() && job.preemptible) else { continue };
        let profile = *profile;
        let open = job.allocations.iter().all(|row| draft.get(row.node).is_some_and(|berth| berth.open));
        if !open || desk.profile(profile).gang().is_none() || started.contains(id) {
            continue;
        }
        let gpus = (job.gpu_milli_held() / 1000) as u32;
        let key = key(desk, paces, job, profile);
        let key = desk.config.defended(key, gpus) / desk.config.ageing(job, now_ns);
        runners.push(Runner { ticket: Ticket::new(key, job.submit_ns, job.id), profile, gpus });
    }
    runners
}

/// Less goes first: seconds, GPU-seconds or the number of a queue.
fn key(desk: &mut Desk<'_, '_>, paces: &Paces, job: &Job, profile: ProfileId) -> f64 {
    let now_ns = desk.cluster.now_ns();
    match desk.config.order {
        Order::Fifo => 0.0,
        Order::Las => f64::from(level(&desk.config.las_thresholds_gpu_s, job.progress(now_ns).service_gpu_s)),
        order => {
            let gpus = desk.profile(profile).gpus();
            remaining_s(desk, paces, job, profile) * order.weight(gpus)
        }
    }
}

/// Infinite where nobody knows.
fn remaining_s(desk: &mut Desk<'_, '_>, paces: &Paces, job: &Job, profile: ProfileId) -> f64 {
    let now_ns = desk.cluster.now_ns();
    let joint = desk.config.order == Order::Jsrsf;
    let measured = job.progress(now_ns).iterations_per_s > 0.0;
    let pace = if measured && !joint { None } else { paces.of(desk, job.id, profile) };
    let usable = pace.filter(|pace| joint && pace.is_finite() && *pace > 0.0);
    if let Some((left, pace)) = job.remaining_iterations(now_ns).zip(usable) {
        return left / pace;
    }
    match remaining_ns(job, now_ns, pace) {
        u64::MAX => f64::INFINITY,
        left_ns => left_ns as f64 / SECOND_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_job_is_defended_by_its_restart_and_the_margin() {
        let check = |order: Order, restart_cost_s: f64, preempt_margin: f64, gpus: u32, expected: f64| {
            let config = Config { order, restart_cost_s, preempt_margin, ..Config::default() };
            assert!((config.defended(1000.0, gpus) - expected).abs() < 1e-9, "{order:?}");
        };
        check(Order::Srtf, 0.0, 0.25, 4, 1000.0);
        check(Order::Srtf, 30.0, 0.0, 4, 970.0);
        check(Order::Srsf, 30.0, 0.0, 4, 880.0);
        check(Order::Jsrsf, 30.0, 0.25, 4, 680.0);
        check(Order::Las, 30.0, 0.25, 4, 1000.0);
        check(Order::Fifo, 30.0, 0.25, 4, 1000.0);
    }
}
