//! A few exchanges of jobs between nodes, where both then divide better.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::solve::{Exchange, Exchanges, MixId, Side, Tenant};
use coretuner_sdk::{Job, JobId, NodeId};

use crate::berth::{Berth, Resident};
use crate::classes::{Classes, Pin};
use crate::desk::Desk;
use crate::draft::Draft;
use crate::place::{Seeker, settle};
use crate::reasons::Cause;
use crate::room::ProfileOf;

/// Partners looked at for a changed node: those with most and with least left, so many of both.
const PARTNERS_EACH: usize = 8;

/// Nodes looked at per plan for exchanges; others come in the next plans.
const NODES_MAX: usize = 64;

/// Pairs of nodes searched per plan, not counting those whose exchanges are known.
const PAIRS_MAX: u32 = 128;

/// A gain is counted for at most this long.
const HORIZON_S: f64 = 3600.0;

/// What tenants gain together before a node counts as wanting more.
const UNMET_MIN: f64 = 1e-6;

/// What moving a job costs, and for how long its gain counts.
#[derive(Clone, Copy, Debug)]
struct Stake {
    lost: f64,
    horizon_s: f64,
}

/// Mix of a node, and what its jobs would gain if each had all that it can use.
#[derive(Clone, Copy, Debug)]
struct Party {
    mix: MixId,
    unmet: f64,
}

/// What a search goes by.
struct Search<'s> {
    exchanges: &'s mut Exchanges,
    profile_of: ProfileOf<'s>,
    /// Nodes looked at so far; none where bases do not fit.
    parties: BTreeMap<NodeId, Option<Party>>,
    pairs_left: u32,
}

/// An exchange between two nodes.
#[derive(Clone, Copy, Debug)]
struct Found {
    a: NodeId,
    b: NodeId,
    there: Option<JobId>,
    back: Option<JobId>,
    gain: f64,
}

/// Makes at most `swaps_max` exchanges that involve a node of `changed` or one touched by the draft. Returns the nodes to
/// look at again in the next plan, because there may be more exchanges than that.
pub(crate) fn swap(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    exchanges: &mut Exchanges,
    changed: &BTreeSet<NodeId>,
    profile_of: ProfileOf<'_>,
) -> BTreeSet<NodeId> {
    exchanges.trim();
    let mut search = Search { exchanges, profile_of, parties: BTreeMap::new(), pairs_left: PAIRS_MAX };
    let mut nodes: BTreeSet<NodeId> = changed.clone();
    nodes.extend(draft.touched().map(|berth| berth.id));
    if desk.config.swaps_max == 0 {
        return BTreeSet::new();
    }
    let later = match nodes.iter().nth(NODES_MAX).copied() {
        Some(first) => nodes.split_off(&first),
        None => BTreeSet::new(),
    };
    for _ in 0..desk.config.swaps_max {
        let Some(found) = search.first(desk, draft, &nodes) else { return later };
        apply(desk, draft, found, profile_of);
        for node in [found.a, found.b] {
            search.parties.remove(&node);
            nodes.insert(node);
        }
    }
    nodes.extend(later);
    nodes
}

impl Search<'_> {
    /// The best exchange of the first node that has one: nodes whose jobs want most come first.
    fn first(&mut self, desk: &mut Desk<'_, '_>, draft: &Draft<'_>, nodes: &BTreeSet<NodeId>) -> Option<Found> {
        let known = nodes.iter().filter_map(|node| Some((self.party(desk, draft, *node)?, *node)));
        let mut order: Vec<_> = known.map(|(party, node)| (Reverse((party.unmet / UNMET_MIN) as u64), node)).collect();
        order.sort_unstable();
        order.into_iter().find_map(|(_, node)| self.best_for(desk, draft, node))
    }

    /// The best exchange of a node with any partner.
    fn best_for(&mut self, desk: &mut Desk<'_, '_>, draft: &Draft<'_>, node: NodeId) -> Option<Found> {
        let shape = draft.get(node)?.shape?;
        let own = self.party(desk, draft, node)?;
        let mut best: Option<Found> = None;
        let partners = draft.fleet.extremes(shape, PARTNERS_EACH);
        for partner in partners.into_iter().filter(|partner| *partner != node) {
            if draft.get(partner).is_none_or(|berth| berth.shape != Some(shape)) {
                continue;
            }
            let Some(other) = self.party(desk, draft, partner) else { continue };
            // Without a job that wants more there is nothing to gain.
            if own.unmet <= UNMET_MIN && other.unmet <= UNMET_MIN {
                continue;
            }
            let found = self.between(desk, draft, (node, own.mix), (partner, other.mix));
            let gain = best.map_or(0.0, |best| best.gain);
            best = found.filter(|found| found.gain > gain + 1e-9).or(best);
        }
        best
    }

    fn party(&mut self, desk: &mut Desk<'_, '_>, draft: &Draft<'_>, node: NodeId) -> Option<Party> {
        if let Some(known) = self.parties.get(&node) {
            return *known;
        }
        let party = draft.get(node).filter(|berth| berth.open).and_then(|berth| self.look(desk, berth));
        self.parties.insert(node, party);
        party
    }

    fn look(&mut self, desk: &mut Desk<'_, '_>, berth: &Berth) -> Option<Party> {
        let lattice = desk.shapes.get(berth.shape?).lattice;
        let side = side(desk, berth, self.profile_of);
        let Classes { book, values, .. } = &mut *desk.classes;
        let mix = self.exchanges.mix((book, values), side, lattice);
        Some(Party { mix, unmet: self.exchanges.unmet(mix)? })
    }

    /// The best exchange between two nodes that is allowed and pays.
    fn between(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &Draft<'_>,
        (a, mix_a): (NodeId, MixId),
        (b, mix_b): (NodeId, MixId),
    ) -> Option<Found> {
        if !self.exchanges.knows(mix_a, mix_b) {
            self.pairs_left = self.pairs_left.checked_sub(1)?;
        }
        let Classes { book, values, .. } = &mut *desk.classes;
        let known = self.exchanges.between((book, values), mix_a, mix_b);
        known.iter().find_map(|exchange| self.pays(desk, draft, (a, b), exchange))
    }

    fn pays(
        &self,
        desk: &Desk<'_, '_>,
        draft: &Draft<'_>,
        (a, b): (NodeId, NodeId),
        exchange: &Exchange,
    ) -> Option<Found> {
        let there = self.mover(desk, draft, exchange.there, a, b)?;
        let back = self.mover(desk, draft, exchange.back, b, a)?;
        let movers = || there.iter().chain(&back);
        let lost: f64 = movers().map(|(_, stake)| stake.lost).sum();
        let horizon_s = movers().map(|(_, stake)| stake.horizon_s).fold(HORIZON_S, f64::min);
        let job = |mover: Option<(JobId, Stake)>| mover.map(|(job, _)| job);
        let pays = lost == 0.0 || exchange.gain * horizon_s > lost;
        pays.then(|| Found { a, b, there: job(there), back: job(back), gain: exchange.gain })
    }

    /// The job for a tenant's move: of alike ones that may go there the one that loses least. `Some(None)`: nobody moves.
    fn mover(
        &self,
        desk: &Desk<'_, '_>,
        draft: &Draft<'_>,
        tenant: Option<Tenant>,
        from: NodeId,
        to: NodeId,
    ) -> Option<Option<(JobId, Stake)>> {
        let Some(tenant) = tenant else { return Some(None) };
        let alike = draft.get(from)?.gangs.iter().filter(|gang| gang.class == tenant.class);
        let may = |gang: &&Resident| {
            let allowed = (self.profile_of)(gang.job).is_some_and(|profile| desk.allows(profile, to));
            allowed && moves(desk, gang, self.profile_of)
        };
        let stakes = alike.filter(may).map(|gang| (gang.job, stake(desk, gang)));
        stakes.min_by(|one, other| one.1.lost.total_cmp(&other.1.lost)).map(Some)
    }
}

fn side(desk: &Desk<'_, '_>, berth: &Berth, profile_of: ProfileOf<'_>) -> Side {
    let tenant =
        |gang: &Resident| Tenant { class: gang.class, gpus: gang.gpus, movable: moves(desk, gang, profile_of) };
    Side { tenants: berth.gangs.iter().map(tenant).collect(), gpus_free: berth.gpus_free, capacity: berth.capacity }
}

/// Whether a gang may be part of an exchange.
fn moves(desk: &Desk<'_, '_>, gang: &Resident, profile_of: ProfileOf<'_>) -> bool {
    let Some(job) = desk.cluster.job(gang.job) else { return false };
    // A job that is still restarting is left alone.
    let settled = job.is_waiting() || speed(desk, job) > 0.0;
    // The class of a job with fewer rights holds only where it is.
    let rights = profile_of(gang.job).and_then(|profile| desk.profile(profile).gang()).map(|gang| gang.rights);
    let free = rights.is_some_and(|rights| rights.cpu && rights.memory_grow && rights.memory_shrink);
    settled && free && gang.movable
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

fn apply(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, found: Found, profile_of: ProfileOf<'_>) {
    let Found { a, b, there, back, gain } = found;
    // Both leave before either arrives: there may be no free GPUs.
    let mut leave = |job: Option<JobId>, from: NodeId| {
        let mut gang = None;
        draft.edit(from, |berth| gang = job.and_then(|job| berth.remove(job)));
        gang
    };
    let (goes, comes) = (leave(there, a), leave(back, b));
    for (gang, to, with) in [(goes, b, back), (comes, a, there)] {
        let Some(gang) = gang else { continue };
        house(desk, draft, gang, to, profile_of);
        if desk.cluster.job(gang.job).is_some_and(Job::is_running) {
            draft.changes.causes.insert(gang.job, Cause::Swap { gain, with });
        }
    }
}

fn house(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, gang: Resident, to: NodeId, profile_of: ProfileOf<'_>) {
    let Some((profile, shape)) = profile_of(gang.job).zip(draft.get(to).and_then(|berth| berth.shape)) else { return };
    let class = desk.class(gang.job, profile, shape, Pin::FREE);
    settle(desk, draft, Seeker { job: gang.job, profile, gpus: gang.gpus }, (to, shape, class));
}
