//! A few exchanges of jobs between nodes, where both then divide better.

use std::collections::BTreeSet;

use coretuner_sdk::solve::{Candidate, Exchange, Exchanges, Side, Tenant};
use coretuner_sdk::{Job, NodeId};

use crate::classes::{Classes, Pin};
use crate::desk::Desk;
use crate::draft::Draft;
use crate::fleet::{Berth, Resident};
use crate::place::{Seeker, settle};
use crate::profile::ProfileId;
use crate::reasons::Cause;
use crate::room::{ProfileOf, may_move};

/// Partners looked at for a changed node: those with most and with least left, so many of both.
const PARTNERS_EACH: usize = 8;

/// Pairs of nodes searched per plan.
const PAIRS_MAX: u32 = 128;

/// A gain is counted for at most this long.
const HORIZON_S: f64 = 3600.0;

/// What moving a job costs, and for how long its gain counts.
#[derive(Clone, Copy, Debug)]
struct Stake {
    lost: f64,
    horizon_s: f64,
}

/// A node in the search, with what its moves cost and whether it wants more than it has.
struct Party {
    node: NodeId,
    candidate: Candidate,
    profiles: Vec<Option<ProfileId>>,
    stakes: Vec<Stake>,
    hungry: bool,
}

/// What a search goes by.
struct Search<'s> {
    exchanges: &'s mut Exchanges,
    profile_of: ProfileOf<'s>,
    pairs_left: u32,
}

/// An exchange between two nodes.
#[derive(Clone, Copy, Debug)]
struct Found {
    a: NodeId,
    b: NodeId,
    exchange: Exchange,
}

/// Makes at most `swaps_max` exchanges that involve a node of `changed` or one touched by the draft.
pub(crate) fn swap(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    exchanges: &mut Exchanges,
    changed: &BTreeSet<NodeId>,
    profile_of: ProfileOf<'_>,
) {
    let mut search = Search { exchanges, profile_of, pairs_left: PAIRS_MAX };
    for _ in 0..desk.config.swaps_max {
        let mut nodes: BTreeSet<NodeId> = changed.iter().copied().collect();
        nodes.extend(draft.touched().map(|berth| berth.id));
        let found = nodes.into_iter().find_map(|node| search.best_for(desk, draft, node));
        let Some(found) = found else { return };
        apply(desk, draft, found, profile_of);
    }
}

impl Search<'_> {
    /// The best exchange of a node with any partner.
    fn best_for(&mut self, desk: &mut Desk<'_, '_>, draft: &Draft<'_>, node: NodeId) -> Option<Found> {
        let berth = draft.get(node).filter(|berth| berth.open)?;
        let mut own = self.party(desk, berth)?;
        let mut best: Option<Found> = None;
        let partners = draft.fleet.extremes(berth.shape?, PARTNERS_EACH);
        for partner in partners.into_iter().filter(|partner| *partner != node) {
            let Some(other) = draft.get(partner).filter(|other| other.shape == berth.shape) else { continue };
            let Some(mut other) = self.party(desk, other) else { continue };
            if self.pairs_left == 0 {
                break;
            }
            // Without a job that wants more there is nothing to gain.
            if own.hungry || other.hungry {
                let found = self.between(desk, &mut own, &mut other);
                let gain = best.map_or(0.0, |best| best.exchange.gain);
                best = found.filter(|found| found.exchange.gain > gain + 1e-9).or(best);
            }
        }
        best
    }

    /// None where the bases do not fit.
    fn party(&self, desk: &mut Desk<'_, '_>, berth: &Berth) -> Option<Party> {
        let lattice = desk.shapes.get(berth.shape?).lattice;
        let mut candidate = Candidate::new(side(desk, berth, self.profile_of), lattice);
        let stakes = berth.gangs.iter().map(|gang| stake(desk, gang)).collect();
        let profiles = berth.gangs.iter().map(|gang| (self.profile_of)(gang.job)).collect();
        let Classes { book, values, .. } = &mut *desk.classes;
        let value = candidate.value(book, values)?;
        let peak: f64 = berth.gangs.iter().map(|gang| book.get(gang.class).peak().value).sum();
        Some(Party { node: berth.id, candidate, profiles, stakes, hungry: peak > value + 1e-6 })
    }

    fn between(&mut self, desk: &mut Desk<'_, '_>, a: &mut Party, b: &mut Party) -> Option<Found> {
        let allowed = |party: &Party, to: NodeId| -> Vec<bool> {
            let may = |profile: &Option<ProfileId>| profile.is_some_and(|profile| desk.allows(profile, to));
            party.profiles.iter().map(may).collect()
        };
        let (allowed_a, allowed_b) = (allowed(a, b.node), allowed(b, a.node));
        let mut pays = |exchange: &Exchange| {
            let there = exchange.there.map(|at| (allowed_a[at], a.stakes[at]));
            let back = exchange.back.map(|at| (allowed_b[at], b.stakes[at]));
            let movers = || there.iter().chain(&back);
            let lost: f64 = movers().map(|(_, stake)| stake.lost).sum();
            let horizon_s = movers().map(|(_, stake)| stake.horizon_s).fold(HORIZON_S, f64::min);
            movers().all(|(allowed, _)| *allowed) && (lost == 0.0 || exchange.gain * horizon_s > lost)
        };
        let Classes { book, values, .. } = &mut *desk.classes;
        let computed = values.computed();
        let sides = (&mut a.candidate, &mut b.candidate);
        let exchange = self.exchanges.best((book, values), sides, &mut pays);
        let searched = exchange.is_some() || desk.classes.values.computed() > computed;
        self.pairs_left -= u32::from(searched);
        Some(Found { a: a.node, b: b.node, exchange: exchange? })
    }
}

fn side(desk: &Desk<'_, '_>, berth: &Berth, profile_of: ProfileOf<'_>) -> Side {
    let tenant = |gang: &Resident| {
        let job = desk.cluster.job(gang.job);
        // A job that is still restarting is left alone.
        let settled = job.is_some_and(|job| job.is_waiting() || speed(desk, job) > 0.0);
        // The class of a job with fewer rights holds only where it is.
        let rights = profile_of(gang.job).and_then(|profile| desk.profile(profile).gang()).map(|gang| gang.rights);
        let free = rights.is_some_and(|rights| rights.cpu && rights.memory_grow && rights.memory_shrink);
        Tenant { class: gang.class, gpus: gang.gpus, movable: settled && free && may_move(desk, gang.job) }
    };
    Side { tenants: berth.gangs.iter().map(tenant).collect(), gpus_free: berth.gpus_free, capacity: berth.capacity }
}

fn speed(desk: &Desk<'_, '_>, job: &Job) -> f64 {
    job.progress(desk.cluster.now_ns()).iterations_per_s
}

fn stake(desk: &Desk<'_, '_>, gang: &Resident) -> Stake {
    let free = Stake { lost: 0.0, horizon_s: HORIZON_S };
    let Some(job) = desk.cluster.job(gang.job).filter(|job| job.is_running()) else { return free };
    let options = desk.options(gang.class);
    let held = options.points().iter().find(|point| Some(point.amount()) == gang.held);
    let value = held.unwrap_or(options.base()).value;
    let left_s = job.remaining_iterations(desk.cluster.now_ns()).map(|left| left / speed(desk, job).max(1e-9));
    let horizon_s = left_s.map_or(HORIZON_S, |left_s| HORIZON_S.min(left_s / 2.0));
    Stake { lost: desk.config.restart_cost_s * value, horizon_s }
}

fn apply(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, Found { a, b, exchange }: Found, profile_of: ProfileOf<'_>) {
    let job_at = |node: NodeId, at: usize| draft.get(node).and_then(|berth| berth.gangs.get(at)).copied();
    let there = exchange.there.and_then(|there| job_at(a, there));
    let back = exchange.back.and_then(|back| job_at(b, back));
    let other = |gang: Option<Resident>| gang.map(|gang| gang.job);
    // Both leave before either arrives: there may be no free GPUs.
    for (gang, from) in [(there, a), (back, b)] {
        draft.edit(from, |berth| {
            gang.and_then(|gang| berth.remove(gang.job));
        });
    }
    for (gang, to, with) in [(there, b, other(back)), (back, a, other(there))] {
        let Some(gang) = gang else { continue };
        house(desk, draft, gang, to, profile_of);
        if desk.cluster.job(gang.job).is_some_and(Job::is_running) {
            draft.changes.causes.insert(gang.job, Cause::Swap { gain: exchange.gain, with });
        }
    }
}

fn house(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, gang: Resident, to: NodeId, profile_of: ProfileOf<'_>) {
    let Some((profile, shape)) = profile_of(gang.job).zip(draft.get(to).and_then(|berth| berth.shape)) else { return };
    let class = desk.class(gang.job, profile, shape, Pin::FREE);
    settle(desk, draft, Seeker { job: gang.job, profile, gpus: gang.gpus }, (to, shape, class));
}
