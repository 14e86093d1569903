//! Where a gang goes: balanced, so that jobs hungry for CPU share nodes with jobs that are not.

use std::cmp::Reverse;

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Allocation, JobId, NodeId};

use crate::berth::Berth;
use crate::classes::{ClassNo, Pin};
use crate::desk::Desk;
use crate::draft::Draft;
use crate::profile::{Gang, ProfileId};
use crate::shape::ShapeId;
use crate::targets::Market;

/// A gang that looks for a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seeker {
    pub(crate) job: JobId,
    pub(crate) profile: ProfileId,
    pub(crate) gpus: u32,
}

/// How well a node suits; larger is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Suit {
    /// Predicted speed at the base against the fastest GPU kind, per cent.
    speed: u32,
    /// Thousandths of GPUs that become useless for want of CPU or memory beside them.
    strands: Reverse<i64>,
    /// Share of the scarcer resource that is left beside all targets, millionths.
    left: i64,
    fewest_free: Reverse<u32>,
    lowest: Reverse<NodeId>,
}

/// Finds a node for the whole gang and puts it there. Sticky: only jobs without a place are seekers.
pub(crate) fn place_gang(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, market: &Market, seeker: Seeker) -> bool {
    let shapes = shapes_of(desk, seeker);
    let mut best: Option<(Suit, ShapeId, ClassNo)> = None;
    let allowed = |node: NodeId| desk.allows(seeker.profile, node);
    let base = |shape: ShapeId| shapes.iter().find(|entry| entry.shape == shape).map(|entry| entry.base_units);
    draft.fleet.index().spots(seeker.gpus, &base, &allowed, &mut |node| {
        let Some(berth) = draft.get(node) else { return };
        let entry = shapes.iter().find(|entry| Some(entry.shape) == berth.shape);
        let Some(entry) = entry.filter(|entry| base_fits(desk, berth, entry)) else { return };
        let suit = suit(desk, market, berth, (entry, seeker.gpus), draft);
        if best.as_ref().is_none_or(|best| suit > best.0) {
            best = Some((suit, entry.shape, entry.class));
        }
    });
    let Some((suit, shape, class)) = best else { return false };
    settle(desk, draft, seeker, (suit.lowest.0, shape, class));
    true
}

/// Puts a gang on a node. Where it runs already, it stays what it was there.
pub(crate) fn settle(
    desk: &Desk<'_, '_>,
    draft: &mut Draft<'_>,
    seeker: Seeker,
    (node, shape, class): (NodeId, ShapeId, ClassNo),
) {
    let there = draft.original(node).and_then(|berth| berth.gangs.iter().find(|gang| gang.job == seeker.job));
    let resident = there.copied().unwrap_or_else(|| desk.resident(seeker.job, class, shape, seeker.gpus, None));
    draft.add_gang(node, resident);
}

/// A gang's class on nodes of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OnShape {
    pub(crate) shape: ShapeId,
    pub(crate) class: ClassNo,
    speed: u32,
    base_units: (u32, u32),
}

/// The gang's class on every shape that can hold it.
pub(crate) fn shapes_of(desk: &mut Desk<'_, '_>, seeker: Seeker) -> Vec<OnShape> {
    let shapes: Vec<ShapeId> = desk.shapes.ids().collect();
    let classes: Vec<(ShapeId, ClassNo)> =
        shapes.into_iter().map(|shape| (shape, desk.class(seeker.job, seeker.profile, shape, Pin::FREE))).collect();
    let speed = |class: ClassNo| desk.classes.speed(class, desk.options(class).base().value).unwrap_or(0.0);
    let fastest = classes.iter().map(|(_, class)| speed(*class)).fold(0.0, f64::max);
    let per_cent = |speed: f64| if fastest > 0.0 { (100.0 * speed / fastest + 0.5) as u32 } else { 0 };
    let entry = |&(shape, class): &(ShapeId, ClassNo)| {
        let base_units = desk.resident(seeker.job, class, shape, seeker.gpus, None).base_units;
        OnShape { shape, class, speed: per_cent(speed(class)), base_units }
    };
    classes.iter().map(entry).collect()
}

/// Whether the bases of all gangs and of one more fit a node.
pub(crate) fn base_fits(desk: &Desk<'_, '_>, berth: &Berth, entry: &OnShape) -> bool {
    let lattice = desk.shapes.get(entry.shape).lattice;
    let taken = berth.base_units();
    let fits = |capacity: u32, taken: u32, more: u32| taken.checked_add(more).is_some_and(|all| all <= capacity);
    fits(lattice.cpu.units_within(berth.capacity.cpu), taken.0, entry.base_units.0)
        && fits(lattice.memory.units_within(berth.capacity.memory), taken.1, entry.base_units.1)
}

fn suit(
    desk: &Desk<'_, '_>,
    market: &Market,
    berth: &Berth,
    (entry, gpus): (&OnShape, u32),
    draft: &Draft<'_>,
) -> Suit {
    let book = &desk.classes.book;
    let of = desk.shapes.get(entry.shape);
    let (total, kind) = (of.total(), of.gpu_kind);
    let own = market.target(book, entry.class);
    let taken = berth.gangs.iter().map(|gang| market.target(book, gang.class));
    let taken = taken.fold(own, |sum, target| (sum.0 + target.0, sum.1 + target.1));
    let left = |capacity: u32, taken: f64, total: u32| (f64::from(capacity) - taken) / f64::from(total.max(1));
    let left = left(berth.capacity.cpu, taken.0, total.cpu).min(left(berth.capacity.memory, taken.1, total.memory));
    Suit {
        speed: if draft.spoken_for.contains(&kind) { 0 } else { entry.speed },
        strands: Reverse(draft.typical.strands_gang(desk, berth, (gpus, entry.base_units))),
        left: (left * 1e6).round_ties_even() as i64,
        fewest_free: Reverse(berth.gpus_free),
        lowest: Reverse(berth.id),
    }
}

/// Last resort for a gang: over the fewest nodes of one shape, each part at the base.
pub(crate) fn split_gang(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, seeker: Seeker) -> bool {
    let Some(gang) = desk.profile(seeker.profile).gang().cloned() else { return false };
    if gang.workers < 2 {
        return false;
    }
    let shapes = shapes_of(desk, seeker);
    let found = shapes.iter().filter_map(|entry| split_on(desk, draft, seeker, &gang, entry));
    match found.min_by_key(Vec::len) {
        Some(rows) => {
            draft.set_apart(seeker.job, rows);
            true
        }
        None => false,
    }
}

fn split_on(
    desk: &Desk<'_, '_>,
    draft: &Draft<'_>,
    seeker: Seeker,
    gang: &Gang,
    entry: &OnShape,
) -> Option<Vec<Allocation>> {
    let mut open: Vec<(Reverse<u32>, NodeId)> = Vec::new();
    let base = desk.options(entry.class).base().amount();
    let most = |berth: &Berth, left: u32| {
        let most = left.min(berth.gpus_free / gang.gpus_per_worker.max(1));
        (1..=most).rev().find(|workers| part_fits(desk, berth, entry, portion(base, *workers, gang.workers)))
    };
    let mut visit = |berth: &Berth| {
        let fits = berth.shape == Some(entry.shape) && most(berth, gang.workers).is_some();
        if fits {
            open.push((Reverse(berth.gpus_free), berth.id));
        }
        fits
    };
    all_open(desk, draft, seeker, gang.gpus_per_worker, &mut visit);
    open.sort_unstable();
    let mut left = gang.workers;
    let mut rows = Vec::new();
    for (_, node) in open {
        let Some(berth) = draft.get(node) else { continue };
        let Some(workers) = most(berth, left) else { continue };
        rows.push(row(node, gang, workers, portion(base, workers, gang.workers)));
        left -= workers;
        if left == 0 {
            return Some(rows);
        }
    }
    None
}

/// Nodes with as many free GPUs that a gang is split over, and that are looked at for it. More of either matter only in
/// clusters that have them.
const PARTS_MAX: usize = 128;
const LOOKED_AT_MAX: usize = 1024;

/// Open nodes with enough free GPUs that the job may use, by how many are free, until enough of them would do.
pub(crate) fn all_open(
    desk: &Desk<'_, '_>,
    draft: &Draft<'_>,
    seeker: Seeker,
    gpus: u32,
    visit: &mut dyn FnMut(&Berth) -> bool,
) {
    for nodes in draft.fleet.index().groups_by_free(gpus.max(1)) {
        let allowed = nodes.filter(|node| desk.allows(seeker.profile, *node)).take(LOOKED_AT_MAX);
        let fitting = allowed.filter_map(|node| draft.get(node)).filter(|berth| visit(berth));
        fitting.take(PARTS_MAX).for_each(drop);
    }
}

pub(crate) fn part_fits(desk: &Desk<'_, '_>, berth: &Berth, entry: &OnShape, part: Amount) -> bool {
    let lattice = desk.shapes.get(entry.shape).lattice;
    let taken = berth.base_units();
    let left = |capacity: u32, part: u32| capacity.checked_sub(part);
    left(berth.capacity.cpu, part.cpu).is_some_and(|left| lattice.cpu.units_within(left) >= taken.0)
        && left(berth.capacity.memory, part.memory).is_some_and(|left| lattice.memory.units_within(left) >= taken.1)
}

pub(crate) fn portion(all: Amount, workers: u32, of: u32) -> Amount {
    let part = |amount: u32| (u64::from(amount) * u64::from(workers) / u64::from(of.max(1))) as u32;
    Amount { cpu: part(all.cpu), memory: part(all.memory) }
}

pub(crate) fn row(node: NodeId, gang: &Gang, workers: u32, amount: Amount) -> Allocation {
    Allocation {
        group: 0,
        node,
        workers,
        cpu_milli: amount.cpu,
        memory_mib: amount.memory,
        gpu_milli: workers * gang.gpus_per_worker * 1000,
        device_mask: 0,
    }
}
