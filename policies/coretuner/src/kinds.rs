//! GPU kinds: the fast ones for the jobs that gain most by them.
//!
//! The measure is a job's own speed on the slowest kind that may hold it, as in heterogeneity-aware scheduling (Gavel,
//! OSDI '20): a fast GPU that doubles one job and quadruples another belongs to the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use coretuner_sdk::{GpuKind, Job, JobId, NodeId};

use crate::admit::Admission;
use crate::berth::Berth;
use crate::classes::Pin;
use crate::desk::{Desk, only_node};
use crate::draft::Draft;
use crate::members::wanted;
use crate::place::{Seeker, base_fits, settle, shapes_of};
use crate::reasons::Cause;
use crate::room::ProfileOf;
use crate::shape::ShapeId;

/// A gain is counted for at most this long, seconds.
const HORIZON_S: f64 = 3600.0;

/// Running jobs looked at per plan, and those of them that may change places: the oldest.
const LOOKED_AT_MAX: usize = 4096;
const MOVERS_MAX: usize = 512;

/// Jobs of each side tried for an exchange.
const TRIED_MAX: usize = 4;

/// How much more another job must gain by a kind to be let first.
const AHEAD: f64 = 1.05;

/// A job that wants its fastest kind.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Claim {
    job: JobId,
    kind: GpuKind,
    gpus: u32,
    /// Speed there against that on the slowest kind.
    gain: f64,
}

/// What jobs that are yet to be placed gain by their fastest kinds. Empty where all GPUs are of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims {
    claims: BTreeMap<JobId, Claim>,
    /// GPUs wanted of each kind, by the bits of the gain, which is above 0.
    wanted: BTreeMap<GpuKind, BTreeMap<u64, u64>>,
}

impl Claims {
    pub(crate) fn new(desk: &mut Desk<'_, '_>, seekers: &[Seeker]) -> Self {
        if !desk.config.kinds_by_gain || !several_kinds(desk) {
            return Self::default();
        }
        let gangs = seekers.iter().filter(|seeker| desk.profile(seeker.profile).gang().is_some());
        let gangs: Vec<Seeker> = gangs.copied().collect();
        let mut claims = Self::default();
        for claim in gangs.into_iter().filter_map(|seeker| claim(desk, seeker)) {
            *claims.wanted.entry(claim.kind).or_default().entry(claim.gain.to_bits()).or_insert(0) +=
                u64::from(claim.gpus);
            claims.claims.insert(claim.job, claim);
        }
        claims
    }

    /// Kinds whose free GPUs others that gain more want as well, so that the seeker had better look elsewhere.
    pub(crate) fn spoken_for(&self, desk: &Desk<'_, '_>, draft: &Draft<'_>, seeker: Seeker) -> BTreeSet<GpuKind> {
        let Some(own) = self.claims.get(&seeker.job) else { return BTreeSet::new() };
        let more = (Bound::Excluded((own.gain * AHEAD).to_bits()), Bound::Unbounded);
        let free = |kind: GpuKind| {
            let of_kind = desk.shapes.ids().filter(|shape| desk.shapes.get(*shape).gpu_kind == kind);
            of_kind.map(|shape| draft.fleet.index().gpus_free_of(shape)).sum::<u64>()
        };
        let spoken = |(kind, wanted): (&GpuKind, &BTreeMap<u64, u64>)| {
            let ahead: u64 = wanted.range(more).map(|(_, gpus)| gpus).sum();
            (ahead > 0 && free(*kind) < ahead + u64::from(seeker.gpus)).then_some(*kind)
        };
        self.wanted.iter().filter_map(spoken).collect()
    }

    /// A job has its place, or none.
    pub(crate) fn settle(&mut self, job: JobId) {
        let Some(claim) = self.claims.remove(&job) else { return };
        let wanted = self.wanted.get_mut(&claim.kind).and_then(|wanted| wanted.get_mut(&claim.gain.to_bits()));
        if let Some(gpus) = wanted {
            *gpus = gpus.saturating_sub(u64::from(claim.gpus));
        }
    }
}

fn several_kinds(desk: &Desk<'_, '_>) -> bool {
    let mut kinds = desk.shapes.ids().map(|shape| desk.shapes.get(shape).gpu_kind);
    let first = kinds.next();
    kinds.any(|kind| Some(kind) != first)
}

fn claim(desk: &mut Desk<'_, '_>, seeker: Seeker) -> Option<Claim> {
    let (job, gpus) = (seeker.job, seeker.gpus);
    let speeds = speeds(desk, seeker);
    let slowest = speeds.iter().map(|(_, speed)| *speed).fold(f64::INFINITY, f64::min);
    let (shape, fastest) = speeds.into_iter().max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    let gain = Some(fastest / slowest).filter(|gain| *gain > 0.0)?;
    Some(Claim { job, kind: desk.shapes.get(shape).gpu_kind, gpus, gain })
}

/// Predicted speed at the base on every shape where it is known.
fn speeds(desk: &mut Desk<'_, '_>, seeker: Seeker) -> Vec<(ShapeId, f64)> {
    let shapes: Vec<ShapeId> = desk.shapes.ids().collect();
    let speed = |shape| {
        let class = desk.class(seeker.job, seeker.profile, shape, Pin::FREE);
        let speed = desk.classes.speed(class, desk.options(class).base().value)?;
        (speed > 0.0).then_some((shape, speed))
    };
    shapes.into_iter().filter_map(speed).collect()
}

/// A running gang that may move, and what it is worth on each shape.
#[derive(Clone, Debug)]
struct Mover {
    seeker: Seeker,
    node: NodeId,
    shape: ShapeId,
    /// GPUs × speed against that on the slowest kind.
    worth: Vec<(ShapeId, f64)>,
    horizon_s: f64,
}

impl Mover {
    fn on(&self, shape: ShapeId) -> Option<f64> {
        self.worth.iter().find(|(known, _)| *known == shape).map(|(_, worth)| *worth)
    }

    /// What it gains by being on another shape.
    fn gain(&self, to: ShapeId) -> Option<f64> {
        Some(self.on(to)? - self.on(self.shape)?)
    }
}

/// Lets jobs on a slower kind change places with jobs of as many GPUs that gain less by the faster one, or move into its
/// free GPUs if nobody waits for them: at most `swaps_max`, each for more than its restarts cost.
pub(crate) fn trade(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    profile_of: ProfileOf<'_>,
    admission: &Admission<'_>,
) {
    if !desk.config.kinds_by_gain || desk.config.swaps_max == 0 || !several_kinds(desk) {
        return;
    }
    let mut movers: Vec<Mover> = Vec::new();
    let cluster = desk.cluster;
    for job in cluster.running().take(LOOKED_AT_MAX) {
        movers.extend(mover(desk, draft, job.id, profile_of));
        if movers.len() >= MOVERS_MAX {
            break;
        }
    }
    let idle = !wanted(desk, draft, admission);
    for _ in 0..desk.config.swaps_max {
        if !best_trade(desk, draft, &mut movers, idle) {
            return;
        }
    }
}

fn mover(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, id: JobId, profile_of: ProfileOf<'_>) -> Option<Mover> {
    let job = desk.cluster.job(id).filter(|job| job.is_running() && desk.may_move(id))?;
    let profile = profile_of(id).filter(|_| !draft.changes.causes.contains_key(&id))?;
    let rights = desk.profile(profile).gang()?.rights;
    let node = only_node(job)?;
    let berth = draft.get(node).filter(|berth| berth.open && rights.cpu)?;
    let gang = berth.gangs.iter().find(|gang| gang.job == id)?;
    let (shape, gpus) = (berth.shape?, gang.gpus);
    let horizon_s = horizon_s(desk, job)?;
    let seeker = Seeker { job: id, profile, gpus };
    let speeds = speeds(desk, seeker);
    let slowest = speeds.iter().map(|(_, speed)| *speed).fold(f64::INFINITY, f64::min);
    let worth = speeds.into_iter().map(|(shape, speed)| (shape, f64::from(gpus) * speed / slowest)).collect();
    Some(Mover { seeker, node, shape, worth, horizon_s })
}

/// None while it restarts.
fn horizon_s(desk: &Desk<'_, '_>, job: &Job) -> Option<f64> {
    let now_ns = desk.cluster.now_ns();
    let rate = Some(job.progress(now_ns).iterations_per_s).filter(|rate| *rate > 0.0)?;
    let left_s = job.remaining_iterations(now_ns).map_or(HORIZON_S, |left| left / rate);
    Some(HORIZON_S.min(left_s / 2.0))
}

/// Makes the best trade; whether there was one.
fn best_trade(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, movers: &mut Vec<Mover>, idle: bool) -> bool {
    let mut trades = Vec::new();
    for (up, riser) in movers.iter().enumerate() {
        for (shape, _) in &riser.worth {
            let other_kind = desk.shapes.get(*shape).gpu_kind != desk.shapes.get(riser.shape).gpu_kind;
            let Some(rise) = riser.gain(*shape).filter(|rise| other_kind && *rise > 0.0) else { continue };
            trades.push((rise, up, *shape));
        }
    }
    trades.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (rise, up, shape) in trades.into_iter().take(TRIED_MAX) {
        let done = idle && move_up(desk, draft, &movers[up], shape, rise);
        let partner = if done { None } else { exchange(desk, draft, movers, (up, shape, rise)) };
        if done || partner.is_some() {
            let gone: BTreeSet<usize> = partner.into_iter().chain([up]).collect();
            let mut at = 0..;
            movers.retain(|_| !gone.contains(&at.next().unwrap_or(0)));
            return true;
        }
    }
    false
}

/// Into free GPUs of that shape.
fn move_up(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, riser: &Mover, shape: ShapeId, rise: f64) -> bool {
    let lost = desk.config.restart_cost_s * riser.on(riser.shape).unwrap_or(0.0);
    if rise * riser.horizon_s <= lost {
        return false;
    }
    let Some(entry) = shapes_of(desk, riser.seeker).into_iter().find(|entry| entry.shape == shape) else {
        return false;
    };
    let fits = |berth: &&Berth| {
        let right = berth.shape == Some(shape) && desk.allows(riser.seeker.profile, berth.id);
        right && base_fits(desk, berth, &entry)
    };
    let spots = draft.fleet.index().least_free(riser.seeker.gpus).filter_map(|node| draft.get(node));
    let Some(node) = spots.filter(fits).map(|berth| berth.id).next() else { return false };
    draft.edit(riser.node, |berth| {
        berth.remove(riser.seeker.job);
    });
    settle(desk, draft, riser.seeker, (node, shape, entry.class));
    draft.changes.causes.insert(riser.seeker.job, Cause::Kind { gain: rise, with: None });
    true
}

/// With the job on that shape that loses least. Returns its place among the movers.
fn exchange(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    movers: &[Mover],
    (up, shape, rise): (usize, ShapeId, f64),
) -> Option<usize> {
    let riser = &movers[up];
    let partners = movers.iter().enumerate().filter(|(_, other)| {
        let alike = other.shape == shape && other.seeker.gpus == riser.seeker.gpus;
        let goes = desk.allows(other.seeker.profile, riser.node) && desk.allows(riser.seeker.profile, other.node);
        alike && goes
    });
    let mut known: Vec<_> = partners.filter_map(|(at, other)| Some((other.gain(riser.shape)?, at))).collect();
    known.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    for (fall, down) in known.into_iter().take(TRIED_MAX) {
        let faller = &movers[down];
        let worth = riser.on(riser.shape)? + faller.on(faller.shape)?;
        let horizon_s = riser.horizon_s.min(faller.horizon_s);
        let gain = rise + fall;
        if gain * horizon_s > desk.config.restart_cost_s * worth && change_places(desk, draft, riser, faller) {
            let cause = |with: &Mover| Cause::Kind { gain, with: Some(with.seeker.job) };
            draft.changes.causes.insert(riser.seeker.job, cause(faller));
            draft.changes.causes.insert(faller.seeker.job, cause(riser));
            return Some(down);
        }
    }
    None
}

/// Nothing changes when a base does not fit.
fn change_places(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, one: &Mover, other: &Mover) -> bool {
    draft.try_out();
    for mover in [one, other] {
        draft.edit(mover.node, |berth| {
            berth.remove(mover.seeker.job);
        });
    }
    for (mover, to) in [(one, other), (other, one)] {
        let entry = shapes_of(desk, mover.seeker).into_iter().find(|entry| entry.shape == to.shape);
        let berth = draft.get(to.node);
        match entry.zip(berth).filter(|(entry, berth)| base_fits(desk, berth, entry)) {
            Some((entry, _)) => settle(desk, draft, mover.seeker, (to.node, to.shape, entry.class)),
            None => {
                draft.take_back();
                return false;
            }
        }
    }
    draft.keep();
    true
}
