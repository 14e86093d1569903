//! Elastic jobs: GPUs that nobody waits for go to whom they help most, and back to those who wait.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::{Job, JobId, NodeId};

use crate::admit::Admission;
use crate::berth::{Berth, Resident};
use crate::classes::Pin;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::members::{
    HORIZON_S, Member, Scene, base_value, has_room_to_grow, is_elastic, member, sized, value, wanted,
};
use crate::place::Seeker;
use crate::profile::Gang;
use crate::rank::ticket as ticket_of;
use crate::reasons::Cause;
use crate::roster::Ticket;

const SECOND_NS: f64 = 1e9;

/// Elastic jobs looked at per plan, as many of those that start as of those that run.
const LOOKED_AT_MAX: usize = 256;

/// Other nodes than its own that a job may grow on: those with most free GPUs.
const OTHER_NODES_MAX: usize = 4;

/// Least gain that counts, in GPUs at the share.
const GAIN_MIN: f64 = 1e-6;

/// When numbers of workers changed, and how many may change in this plan.
#[derive(Debug, Default)]
pub(crate) struct Elastic {
    changed_ns: BTreeMap<JobId, u64>,
    left: u32,
}

/// Elastic jobs of one node that give GPUs to a waiting one.
struct Deal {
    node: NodeId,
    /// With their new residents.
    givers: Vec<(Member, Resident)>,
    comes: Resident,
    /// Change of the sum of values.
    gain: f64,
    net: f64,
}

/// A job that gets more workers.
#[derive(Clone, Copy)]
struct Growth {
    member: Member,
    to: NodeId,
    resident: Resident,
    gain: f64,
    net_per_gpu: f64,
}

/// How a job would grow, as far as these nodes stay as they are and no other gets more free GPUs.
#[derive(Default)]
struct Outlook {
    best: Option<Growth>,
    nodes: Vec<NodeId>,
}

impl Elastic {
    /// Begins a plan.
    pub(crate) fn begin(&mut self, moves_max: u32, gone: &[JobId]) {
        self.left = moves_max;
        for job in gone {
            self.changed_ns.remove(job);
        }
    }

    /// Shrinks running jobs where a waiting job then starts: one that goes before them takes back what is above their
    /// least, one that goes after them gets it if the sum of predicted values rises by more than the restarts cost.
    pub(crate) fn reclaim(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        admission: &mut Admission<'_>,
        scene: Scene<'_>,
    ) {
        let mut line = admission.roster.line();
        let mut by_node = self.givers(desk, draft, scene);
        while let Some((ticket, profile)) = line.pop() {
            if self.left == 0 || by_node.is_empty() {
                return;
            }
            if admission.is_placed(ticket.job) {
                line.advance(profile);
                continue;
            }
            let gpus = desk.profile(profile).gang().map_or(0, Gang::gpus);
            let seeker = Seeker { job: ticket.job, profile, gpus };
            let deals = by_node.iter().filter(|_| gpus > 0).filter_map(|(node, givers)| {
                let deal = self.deal(desk, draft, seeker, (*node, givers))?;
                pays(desk, scene, ticket, &deal).then_some(deal)
            });
            let best = deals.max_by(|a, b| a.net.total_cmp(&b.net).then(b.node.cmp(&a.node)));
            if let Some(deal) = best {
                self.shrink(desk, draft, ticket.job, deal);
                admission.note_placed(ticket.job, &mut draft.changes);
                line.advance(profile);
                by_node = self.givers(desk, draft, scene);
            }
        }
    }

    /// Running jobs with more than their least, by node.
    fn givers(&self, desk: &mut Desk<'_, '_>, draft: &Draft<'_>, scene: Scene<'_>) -> BTreeMap<NodeId, Vec<Member>> {
        let mut by_node: BTreeMap<NodeId, Vec<Member>> = BTreeMap::new();
        for job in scene.elastic.iter().take(LOOKED_AT_MAX) {
            let Some(member) = member(desk, draft, scene, *job) else { continue };
            let least = desk.profile(member.profile).gang().map_or(u32::MAX, |gang| gang.workers_least);
            if member.workers > least && self.free_from_ns(desk, *job) <= desk.cluster.now_ns() {
                by_node.entry(member.node).or_default().push(member);
            }
        }
        by_node
    }

    /// When a job may change again.
    fn free_from_ns(&self, desk: &Desk<'_, '_>, job: JobId) -> u64 {
        let gap_ns = (desk.config.elastic_gap_s * SECOND_NS) as u64;
        self.changed_ns.get(&job).map_or(0, |at_ns| at_ns.saturating_add(gap_ns))
    }

    /// The cheapest way to free enough GPUs of a node, worker by worker.
    fn deal(
        &self,
        desk: &mut Desk<'_, '_>,
        draft: &Draft<'_>,
        seeker: Seeker,
        (node, givers): (NodeId, &[Member]),
    ) -> Option<Deal> {
        let berth = draft.get(node).filter(|berth| berth.open && desk.allows(seeker.profile, node))?;
        let shape = berth.shape?;
        let need = seeker.gpus.checked_sub(berth.gpus_free).filter(|need| *need > 0)?;
        let sizes = fewer(desk, shape, givers, need)?;
        let mut after = berth.clone();
        let mut changed = Vec::new();
        for (giver, workers) in givers.iter().zip(sizes).filter(|(giver, workers)| giver.workers != *workers) {
            let resident = sized(desk, giver, shape, workers)?;
            after.remove(giver.job);
            after.add(resident);
            changed.push((*giver, resident));
        }
        if changed.len() > self.left as usize {
            return None;
        }
        let class = desk.class(seeker.job, seeker.profile, shape, Pin::FREE);
        let comes = desk.resident(seeker.job, class, shape, seeker.gpus, None);
        after.add(comes);
        let gain = value(desk, &after)? - value(desk, berth)?;
        let lost: f64 = changed.iter().map(|(giver, _)| giver.lost).sum();
        let horizon_s = changed.iter().map(|(giver, _)| giver.horizon_s).fold(HORIZON_S, f64::min);
        Some(Deal { node, givers: changed, comes, gain, net: gain * horizon_s - lost })
    }

    fn shrink(&mut self, desk: &Desk<'_, '_>, draft: &mut Draft<'_>, starts: JobId, deal: Deal) {
        for (giver, resident) in deal.givers {
            draft.edit(deal.node, |berth| {
                berth.remove(giver.job);
                berth.add(resident);
            });
            let (from, to) = (giver.workers, resident.gpus / giver.gpus_per_worker.max(1));
            let cause = Cause::Shrink { from, to, gain: deal.gain, starts };
            draft.changes.causes.insert(giver.job, cause);
            self.note(desk, giver.job);
        }
        draft.add_gang(deal.node, deal.comes);
    }

    fn note(&mut self, desk: &Desk<'_, '_>, job: JobId) {
        self.changed_ns.insert(job, desk.cluster.now_ns());
        self.left = self.left.saturating_sub(1);
    }

    /// Gives GPUs that no waiting job could use to the jobs with the best gain for each.
    pub(crate) fn grow(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        admission: &Admission<'_>,
        scene: Scene<'_>,
    ) {
        if draft.gpus_free == 0 || wanted(desk, draft, admission) {
            return;
        }
        let now_ns = desk.cluster.now_ns();
        let placed = admission.placed().filter(|job| is_elastic(desk, scene, *job));
        let mut candidates: Vec<JobId> = placed.take(LOOKED_AT_MAX).collect();
        for job in scene.elastic.iter().take(LOOKED_AT_MAX) {
            let from_ns = self.free_from_ns(desk, *job);
            if from_ns <= now_ns {
                candidates.push(*job);
            } else if has_room_to_grow(desk, scene, *job) {
                draft.look_again_at(from_ns);
            }
        }
        self.grow_best(desk, draft, scene, &candidates);
    }

    /// Again and again the best, until none gains. What a growth does not touch is not weighed again.
    fn grow_best(&mut self, desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, scene: Scene<'_>, candidates: &[JobId]) {
        let mut grown = BTreeSet::new();
        let mut known: BTreeMap<JobId, Outlook> = BTreeMap::new();
        loop {
            let open: Vec<JobId> = candidates.iter().copied().filter(|job| self.may_grow(desk, &grown, *job)).collect();
            for job in &open {
                let weigh = || outlook(desk, draft, scene, *job, grown.contains(job));
                known.entry(*job).or_insert_with(weigh);
            }
            let best = open.iter().filter_map(|job| known.get(job)?.best);
            let best =
                best.max_by(|a, b| a.net_per_gpu.total_cmp(&b.net_per_gpu).then(b.member.job.cmp(&a.member.job)));
            let Some(growth) = best else { return };
            self.enlarge(desk, draft, &mut grown, growth);
            // Where GPUs came free, others may now look.
            let moved = growth.to != growth.member.node;
            known.retain(|_, outlook| !moved && !outlook.nodes.contains(&growth.to));
        }
    }

    fn may_grow(&self, desk: &Desk<'_, '_>, grown: &BTreeSet<JobId>, job: JobId) -> bool {
        self.left > 0 || grown.contains(&job) || desk.cluster.job(job).is_some_and(Job::is_waiting)
    }

    fn enlarge(&mut self, desk: &Desk<'_, '_>, draft: &mut Draft<'_>, grown: &mut BTreeSet<JobId>, growth: Growth) {
        let Growth { member, to, resident, gain, .. } = growth;
        draft.edit(member.node, |berth| {
            berth.remove(member.job);
        });
        draft.add_gang(to, resident);
        if grown.insert(member.job) && desk.cluster.job(member.job).is_some_and(Job::is_running) {
            self.note(desk, member.job);
        }
        let workers = |gpus: u32| gpus / member.gpus_per_worker.max(1);
        let from = match draft.changes.causes.get(&member.job) {
            Some(Cause::Grow { from, .. }) => *from,
            _ => member.workers,
        };
        draft.changes.causes.insert(member.job, Cause::Grow { from, to: workers(resident.gpus), gain });
    }
}

/// Whether a waiting job that goes before all givers takes back what is above their least, or the sum of values rises by
/// more than the restarts cost.
fn pays(desk: &mut Desk<'_, '_>, scene: Scene<'_>, ticket: Ticket, deal: &Deal) -> bool {
    if deal.net > 0.0 {
        return true;
    }
    let first = deal.givers.iter().all(|(giver, _)| {
        let job = desk.cluster.job(giver.job);
        job.is_some_and(|job| ticket < ticket_of(desk, scene.paces, job, giver.profile))
    });
    let lost: f64 = deal.givers.iter().map(|(giver, _)| giver.lost).sum();
    first && desk.options(deal.comes.class).base().value * HORIZON_S > lost
}

/// Workers of each giver when `need` GPUs are taken one worker at a time from whom it costs least.
fn fewer(desk: &mut Desk<'_, '_>, shape: u32, givers: &[Member], need: u32) -> Option<Vec<u32>> {
    let mut sizes: Vec<u32> = givers.iter().map(|giver| giver.workers).collect();
    let mut freed = 0;
    while freed < need {
        let mut best: Option<(f64, usize)> = None;
        for (at, giver) in givers.iter().enumerate() {
            let least = desk.profile(giver.profile).gang()?.workers_least;
            if sizes[at] <= least {
                continue;
            }
            let now = base_value(desk, giver, shape, sizes[at])?;
            let loss = (now - base_value(desk, giver, shape, sizes[at] - 1)?) / f64::from(giver.gpus_per_worker.max(1));
            if best.is_none_or(|best| loss < best.0) {
                best = Some((loss, at));
            }
        }
        let (_, at) = best?;
        sizes[at] -= 1;
        freed += givers[at].gpus_per_worker;
    }
    Some(sizes)
}

/// The most worthwhile larger size of a job, on its node or on one with more room.
fn outlook(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, scene: Scene<'_>, job: JobId, grown: bool) -> Outlook {
    let Some(mut member) = member(desk, draft, scene, job) else { return Outlook::default() };
    if grown {
        member.lost = 0.0;
    }
    let nodes = grounds(desk, draft, &member);
    Outlook { best: best_growth(desk, draft, &member, &nodes), nodes }
}

fn best_growth(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, member: &Member, grounds: &[NodeId]) -> Option<Growth> {
    let most = desk.profile(member.profile).gang()?.workers_most;
    let mut best: Option<Growth> = None;
    for to in grounds.iter().copied() {
        for workers in member.workers + 1..=most {
            let Some(growth) = growth(desk, draft, member, to, workers) else { break };
            if growth.net_per_gpu > best.as_ref().map_or(0.0, |best| best.net_per_gpu) {
                best = Some(growth);
            }
        }
    }
    best
}

/// Its own node and those with most free GPUs.
fn grounds(desk: &Desk<'_, '_>, draft: &Draft<'_>, member: &Member) -> Vec<NodeId> {
    let allowed = |berth: &&Berth| berth.id != member.node && desk.allows(member.profile, berth.id);
    let others = draft.all_spots(member.gang.gpus + member.gpus_per_worker).filter(allowed);
    std::iter::once(member.node).chain(others.take(OTHER_NODES_MAX).map(|berth| berth.id)).collect()
}

/// What a job with so many workers gains there; none where it does not fit.
fn growth(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, member: &Member, to: NodeId, workers: u32) -> Option<Growth> {
    let (from, there) = (draft.get(member.node)?, draft.get(to)?);
    let resident = sized(desk, member, there.shape?, workers)?;
    let mut left = from.clone();
    left.remove(member.job);
    let mut after = if to == member.node { left.clone() } else { there.clone() };
    if after.gpus_free < resident.gpus {
        return None;
    }
    after.add(resident);
    let mut gain = value(desk, &after)? - value(desk, from)?;
    if to != member.node {
        gain += value(desk, &left)? - value(desk, there)?;
    }
    let net = gain * member.horizon_s - member.lost;
    let gpus = f64::from(resident.gpus - member.gang.gpus);
    // Too little at this size; a larger one may still pay.
    let net_per_gpu = if gain > GAIN_MIN { net / gpus } else { f64::NEG_INFINITY };
    Some(Growth { member: *member, to, resident, gain, net_per_gpu })
}
