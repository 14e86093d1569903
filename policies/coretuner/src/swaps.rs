//! A few exchanges of jobs between nodes, where both then divide better.

use std::collections::BTreeSet;

use coretuner_sdk::solve::{Exchange, Exchanges, Side, Tenant};
use coretuner_sdk::{Job, NodeId};

use crate::classes::{Classes, Pin};
use crate::desk::Desk;
use crate::draft::Draft;
use crate::fleet::{Berth, Resident};
use crate::place::{Seeker, settle};
use crate::reasons::Cause;
use crate::room::{ProfileOf, may_move};

/// Partners looked at for a changed node: those with most and with least left, so many of both.
const PARTNERS_EACH: usize = 32;

/// Pairs of nodes searched per plan.
const PAIRS_MAX: u32 = 512;

/// A gain is counted for at most this long.
const HORIZON_S: f64 = 3600.0;

/// What moving a job costs, and for how long its gain counts.
#[derive(Clone, Copy, Debug)]
struct Stake {
    lost: f64,
    horizon_s: f64,
}

/// Makes at most `swaps_max` exchanges that involve a node of `changed` or one touched by the draft.
pub(crate) fn swap(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    exchanges: &mut Exchanges,
    changed: &BTreeSet<NodeId>,
    profile_of: ProfileOf<'_>,
) {
    let mut pairs_left = PAIRS_MAX;
    for _ in 0..desk.config.swaps_max {
        let mut nodes: BTreeSet<NodeId> = changed.iter().copied().collect();
        nodes.extend(draft.touched().map(|berth| berth.id));
        let found =
            nodes.into_iter().find_map(|node| best_for(desk, draft, exchanges, node, &mut pairs_left, profile_of));
        let Some((a, b, exchange)) = found else { return };
        apply(desk, draft, (a, b), exchange, profile_of);
    }
}

/// The best exchange of a node with any partner, as (first side, second side, exchange).
fn best_for(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    exchanges: &mut Exchanges,
    node: NodeId,
    pairs_left: &mut u32,
    profile_of: ProfileOf<'_>,
) -> Option<(NodeId, NodeId, Exchange)> {
    let berth = draft.get(node).filter(|berth| berth.open)?;
    let partners = draft.fleet.extremes(berth.shape?, PARTNERS_EACH);
    let mut best: Option<(NodeId, NodeId, Exchange)> = None;
    for partner in partners.into_iter().filter(|partner| *partner != node) {
        for (a, b) in [(node, partner), (partner, node)] {
            if *pairs_left == 0 {
                return best;
            }
            let found = between(desk, draft, exchanges, (a, b), pairs_left, profile_of);
            let found = found.filter(|found| best.is_none_or(|(_, _, best)| found.gain > best.gain + 1e-9));
            best = found.map(|found| (a, b, found)).or(best);
        }
    }
    best
}

fn between(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    exchanges: &mut Exchanges,
    (a, b): (NodeId, NodeId),
    pairs_left: &mut u32,
    profile_of: ProfileOf<'_>,
) -> Option<Exchange> {
    let (a, b) = (draft.get(a)?, draft.get(b)?);
    let lattice = desk.shapes.get(a.shape.filter(|shape| Some(*shape) == b.shape)?).lattice;
    // Without a job that wants more there is nothing to gain.
    if !wants_more(desk, a) && !wants_more(desk, b) {
        return None;
    }
    let (side_a, side_b) = (side(desk, a, profile_of), side(desk, b, profile_of));
    let stakes = |desk: &Desk<'_, '_>, berth: &Berth| -> Vec<Stake> {
        berth.gangs.iter().map(|gang| stake(desk, gang)).collect()
    };
    let (stakes_a, stakes_b) = (stakes(desk, a), stakes(desk, b));
    let allowed = |desk: &Desk<'_, '_>, berth: &Berth, to: NodeId| -> Vec<bool> {
        berth.gangs.iter().map(|gang| profile_of(gang.job).is_some_and(|profile| desk.allows(profile, to))).collect()
    };
    let (allowed_a, allowed_b) = (allowed(desk, a, b.id), allowed(desk, b, a.id));
    let mut pays = |exchange: &Exchange| {
        if !allowed_a[exchange.there] || !exchange.back.is_none_or(|back| allowed_b[back]) {
            return false;
        }
        let there = stakes_a[exchange.there];
        let back = exchange.back.map(|back| stakes_b[back]);
        let lost = there.lost + back.map_or(0.0, |back| back.lost);
        let horizon_s = there.horizon_s.min(back.map_or(HORIZON_S, |back| back.horizon_s));
        lost == 0.0 || exchange.gain * horizon_s > lost
    };
    let Classes { book, values, .. } = &mut *desk.classes;
    let computed = values.computed();
    let found = exchanges.best((book, values, lattice), (&side_a, &side_b), &mut pays);
    *pairs_left -= u32::from(found.is_some() || desk.classes.values.computed() > computed);
    found
}

fn wants_more(desk: &mut Desk<'_, '_>, berth: &Berth) -> bool {
    let Some(shape) = berth.shape else { return false };
    let lattice = desk.shapes.get(shape).lattice;
    let classes: Vec<u32> = berth.by_class().iter().map(|(class, _)| *class).collect();
    let Classes { book, values, .. } = &mut *desk.classes;
    let peak: f64 = classes.iter().map(|class| book.get(*class).peak().value).sum();
    values.get(book, &classes, lattice, berth.capacity).is_some_and(|division| peak > division.value + 1e-6)
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

fn apply(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    (a, b): (NodeId, NodeId),
    exchange: Exchange,
    profile_of: ProfileOf<'_>,
) {
    let job_at = |node: NodeId, at: usize| draft.get(node).and_then(|berth| berth.gangs.get(at)).copied();
    let there = job_at(a, exchange.there);
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
