//! Elastic jobs as a plan sees them: where they are, what they lose by a change, what another size is worth.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::{JobId, NodeId};

use crate::admit::Admission;
use crate::berth::{Berth, Resident};
use crate::classes::{ClassNo, Classes, Pin};
use crate::desk::{Desk, only_node};
use crate::draft::Draft;
use crate::profile::ProfileId;
use crate::rank::Paces;
use crate::reasons::Cause;

/// A gain is counted for at most this long, seconds.
pub(crate) const HORIZON_S: f64 = 3600.0;

/// What a plan knows of running jobs.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) jobs: &'a BTreeMap<JobId, ProfileId>,
    pub(crate) paces: &'a Paces,
    /// Own running jobs that may have another number of workers.
    pub(crate) elastic: &'a BTreeSet<JobId>,
}

/// An elastic job on its node in the draft.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) job: JobId,
    pub(crate) profile: ProfileId,
    pub(crate) node: NodeId,
    pub(crate) gang: Resident,
    pub(crate) workers: u32,
    pub(crate) gpus_per_worker: u32,
    /// GPU-seconds of work that a change costs it.
    pub(crate) lost: f64,
    /// How long a gain counts for it, seconds.
    pub(crate) horizon_s: f64,
}

/// What a job is worth with so many workers at its base.
pub(crate) fn base_value(desk: &mut Desk<'_, '_>, member: &Member, shape: u32, workers: u32) -> Option<f64> {
    let class = class_at(desk, member, shape, workers)?;
    Some(desk.options(class).base().value)
}

/// Class of a job with so many workers; none where its speed is not predicted.
fn class_at(desk: &mut Desk<'_, '_>, member: &Member, shape: u32, workers: u32) -> Option<ClassNo> {
    let profile = desk.profiles.sized(member.profile, workers)?;
    let class = desk.class(member.job, profile, shape, Pin::FREE);
    desk.classes.speed(class, 1.0).map(|_| class)
}

/// A job with so many workers on a node of `shape`.
pub(crate) fn sized(desk: &mut Desk<'_, '_>, member: &Member, shape: u32, workers: u32) -> Option<Resident> {
    let class = class_at(desk, member, shape, workers)?;
    Some(desk.resident(member.job, class, shape, workers * member.gpus_per_worker, None))
}

/// Sum of values of a node's gangs when it is divided best.
pub(crate) fn value(desk: &mut Desk<'_, '_>, berth: &Berth) -> Option<f64> {
    let lattice = desk.shapes.get(berth.shape?).lattice;
    let classes: Vec<ClassNo> = berth.by_class().into_iter().map(|(class, _)| class).collect();
    let Classes { book, values, .. } = &mut *desk.classes;
    values.get(book, &classes, lattice, berth.capacity).map(|division| division.value)
}

/// Whether a job may have several numbers of workers.
pub(crate) fn is_elastic(desk: &Desk<'_, '_>, scene: Scene<'_>, job: JobId) -> bool {
    let gang = scene.jobs.get(&job).and_then(|profile| desk.profile(*profile).gang());
    gang.is_some_and(|gang| gang.workers_most > gang.workers_least)
}

/// Whether a running job has fewer workers than it may have.
pub(crate) fn has_room_to_grow(desk: &Desk<'_, '_>, scene: Scene<'_>, job: JobId) -> bool {
    let gang = scene.jobs.get(&job).and_then(|profile| desk.profile(*profile).gang());
    gang.is_some_and(|gang| gang.workers < gang.workers_most)
}

/// A job where the draft has it: newly placed, or running, settled and not yet touched by this plan, unless to grow.
pub(crate) fn member(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, scene: Scene<'_>, id: JobId) -> Option<Member> {
    let job = desk.cluster.job(id)?;
    let profile = *scene.jobs.get(&id)?;
    let cause = draft.changes.causes.get(&id);
    let (node, gang) = if job.is_waiting() || cause.is_some() {
        let own = matches!(cause, Some(Cause::Start | Cause::Grow { .. }));
        draft.home(id).filter(|_| own).map(|(berth, gang)| (berth.id, *gang))?
    } else {
        let node = only_node(job)?;
        (node, *draft.get(node)?.gangs.iter().find(|gang| gang.job == id)?)
    };
    if !draft.get(node)?.open {
        return None;
    }
    let gpus_per_worker = desk.profile(profile).gang()?.gpus_per_worker;
    let (mut lost, mut horizon_s) = (0.0, HORIZON_S);
    if job.is_running() {
        let now_ns = desk.cluster.now_ns();
        let rate = Some(job.progress(now_ns).iterations_per_s).filter(|rate| *rate > 0.0)?;
        let left_s = job.remaining_iterations(now_ns).map_or(HORIZON_S, |left| left / rate);
        horizon_s = HORIZON_S.min(left_s / 2.0);
        lost = desk.config.restart_cost_s * desk.options(gang.class).base().value;
    }
    let workers = gang.gpus / gpus_per_worker.max(1);
    Some(Member { job: id, profile, node, gang, workers, gpus_per_worker, lost, horizon_s })
}

/// Whether a waiting job could use free GPUs, now or as soon as there are a few more beside them.
pub(crate) fn wanted(desk: &Desk<'_, '_>, draft: &Draft<'_>, admission: &Admission<'_>) -> bool {
    let mut line = admission.roster.line();
    let mut none_for = BTreeSet::new();
    while let Some((ticket, profile)) = line.pop() {
        if admission.is_placed(ticket.job) {
            line.advance(profile);
            continue;
        }
        let gpus = u64::from(desk.profile(profile).gpus());
        let may_use = gpus > 0 && gpus <= draft.gpus_free;
        let class = desk.profile(profile).class;
        if !may_use || none_for.contains(&class) {
            continue;
        }
        if draft.all_spots(1).any(|berth| desk.allows(profile, berth.id)) {
            return true;
        }
        none_for.insert(class);
    }
    false
}
