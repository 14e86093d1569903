//! Nodes kept for gangs that have waited too long: what comes free there is not given to others.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::order::remaining_ns;
use coretuner_sdk::{Job, JobId, NodeId};

use crate::admit::Admission;
use crate::berth::Berth;
use crate::classes::Pin;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::place::{Seeker, base_fits, place_gang, settle, shapes_of, split_gang};
use crate::profile::ProfileId;
use crate::reasons::{Cause, Wait};
use crate::targets::Market;
use crate::tenure::Tenure;
use crate::tick::Runner;

const SECOND_NS: f64 = 1e9;

/// Gangs that nodes are kept for at once.
const RESERVATIONS_MAX: usize = 4;

/// Gangs that nodes are looked for per plan: each search looks at every node.
const SEARCHES_MAX: u32 = 4;

/// Beyond the first gang's, nodes are kept only up to this part of all: what is free there is idle meanwhile.
const KEPT_PART: usize = 8;

/// Waiting jobs looked at per plan for what is free on kept nodes meanwhile.
const BACKFILLS_MAX: usize = 64;

/// Nodes kept for one gang.
#[derive(Clone, Debug)]
struct Reservation {
    profile: ProfileId,
    nodes: Vec<NodeId>,
    waits_since_ns: u64,
    /// When enough GPUs are expected to be free there, nanoseconds; infinite where nobody knows.
    expected_ns: f64,
}

/// All reservations. Without `reserve_after_s` it never does anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reservations {
    held: BTreeMap<JobId, Reservation>,
    /// Free GPUs of kept nodes, which the draft does not show.
    hidden: BTreeMap<NodeId, u32>,
    /// Gangs without suitable nodes, until they are looked at again.
    hopeless: BTreeMap<JobId, u64>,
    /// Gangs that started after a reservation, until they may be preempted.
    guarded: BTreeMap<JobId, u64>,
}

/// What a plan knows of its jobs.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub(crate) jobs: &'a BTreeMap<JobId, ProfileId>,
    pub(crate) tenure: &'a Tenure,
}

impl Reservations {
    /// Takes kept nodes out of the draft, and starts the gangs for which they have room.
    pub(crate) fn begin(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        market: &Market,
        admission: &mut Admission<'_>,
        waiting: Waiting<'_>,
    ) {
        let Some(after_s) = desk.config.reserve_after_s else { return };
        let after_ns = (after_s * SECOND_NS) as u64;
        self.end(desk, draft, after_ns);
        self.reserve(desk, draft, admission, waiting, after_ns);
        self.hidden.clear();
        let mut order: Vec<(u64, JobId)> = self.held.iter().map(|(job, held)| (held.waits_since_ns, *job)).collect();
        order.sort_unstable();
        order.iter().for_each(|(_, job)| self.hide(draft, *job));
        for (_, job) in order {
            self.start(desk, draft, market, admission, job);
        }
    }

    /// Whether a running job may be preempted: not on nodes that are kept, and not soon after it had to wait so long.
    pub(crate) fn spares(&self, desk: &Desk<'_, '_>, draft: &Draft<'_>, runner: &Runner) -> bool {
        let job = runner.ticket.job;
        let guarded = self.guarded.get(&job).is_some_and(|until_ns| desk.cluster.now_ns() < *until_ns);
        let kept = |job: &Job| job.allocations.iter().any(|row| draft.reserved.contains(&row.node));
        guarded || desk.cluster.job(job).is_some_and(kept)
    }

    /// Why gangs with a reservation wait.
    pub(crate) fn waits(&self, desk: &Desk<'_, '_>) -> BTreeMap<JobId, Wait> {
        let now_ns = desk.cluster.now_ns() as f64;
        let wait = |(job, held): (&JobId, &Reservation)| {
            let left_s = (held.expected_ns - now_ns).max(0.0) / SECOND_NS;
            let expected_s = if left_s.is_finite() { left_s } else { -1.0 };
            let gpus = held.nodes.iter().filter_map(|node| self.hidden.get(node)).sum();
            let needed = desk.profile(held.profile).gpus();
            (*job, Wait::Reserved { nodes: held.nodes.len() as u32, needed, gpus, expected_s })
        };
        self.held.iter().map(wait).collect()
    }

    /// Drops what is over: the gang runs or is gone, or a node does not take it any more.
    fn end(&mut self, desk: &Desk<'_, '_>, draft: &Draft<'_>, after_ns: u64) {
        let now_ns = desk.cluster.now_ns();
        self.hopeless.retain(|job, until_ns| *until_ns > now_ns && desk.cluster.job(*job).is_some());
        self.guarded.retain(|job, until_ns| *until_ns > now_ns && desk.cluster.job(*job).is_some());
        let guarded = &mut self.guarded;
        self.held.retain(|id, held| {
            let Some(job) = desk.cluster.job(*id) else { return false };
            if job.is_running() {
                guarded.insert(*id, now_ns.saturating_add(after_ns));
            }
            let takes =
                |node: &NodeId| draft.get(*node).is_some_and(|berth| berth.open) && desk.allows(held.profile, *node);
            job.is_waiting() && job.mine && held.nodes.iter().all(takes)
        });
    }

    /// Keeps nodes for the gangs that have waited longest, and finds out when they will have room.
    fn reserve(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        admission: &Admission<'_>,
        waiting: Waiting<'_>,
        after_ns: u64,
    ) {
        let now_ns = desk.cluster.now_ns();
        let mut kept: BTreeSet<NodeId> = self.held.values().flat_map(|held| held.nodes.iter().copied()).collect();
        let mut searches = 0;
        for (since_ns, job) in waiting.tenure.waiting_longest() {
            let at_ns = since_ns.saturating_add(after_ns);
            if at_ns > now_ns {
                draft.look_again_at(at_ns);
                break;
            }
            let enough = !self.held.is_empty() && kept.len() >= desk.cluster.node_count() / KEPT_PART;
            if enough || self.held.len() >= RESERVATIONS_MAX || searches >= SEARCHES_MAX {
                break;
            }
            let Some(profile) = waiting.jobs.get(&job).copied() else { continue };
            let known = self.held.contains_key(&job) || self.hopeless.contains_key(&job);
            if known || desk.profile(profile).gang().is_none() || !admission.roster.has(job) {
                continue;
            }
            searches += 1;
            match choose(desk, draft, profile, &kept) {
                Some(nodes) => {
                    kept.extend(nodes.iter().copied());
                    let held = Reservation { profile, nodes, waits_since_ns: since_ns, expected_ns: 0.0 };
                    self.held.insert(job, held);
                }
                None => self.give_up(desk, job),
            }
        }
        for held in self.held.values_mut() {
            held.expected_ns = expected_ns(desk, draft, held);
        }
        draft.reserved = kept;
    }

    fn give_up(&mut self, desk: &Desk<'_, '_>, job: JobId) {
        let until_ns = desk.cluster.now_ns().saturating_add((desk.config.tick_s * SECOND_NS) as u64);
        self.hopeless.insert(job, until_ns);
    }

    /// Starts a gang if its nodes have room for it, or any other.
    fn start(
        &mut self,
        desk: &mut Desk<'_, '_>,
        draft: &mut Draft<'_>,
        market: &Market,
        admission: &mut Admission<'_>,
        job: JobId,
    ) {
        let Some(Reservation { profile, nodes, waits_since_ns, .. }) = self.held.get(&job).cloned() else { return };
        let seeker = Seeker { job, profile, gpus: desk.profile(profile).gpus() };
        let gpus: u32 = nodes.iter().filter_map(|node| self.hidden.get(node)).sum();
        if gpus < seeker.gpus || !admission.roster.has(job) {
            return;
        }
        self.show(draft, &nodes);
        if place_gang(desk, draft, market, seeker) || nodes.len() > 1 && split_gang(desk, draft, seeker) {
            let waited_s = desk.cluster.now_ns().saturating_sub(waits_since_ns) as f64 / SECOND_NS;
            admission.note_placed(job, &mut draft.changes);
            draft.changes.causes.insert(job, Cause::Reserved { waited_s });
            // Kept in `held` until the host says that it runs: what is left on its nodes is free for others.
            return;
        }
        // GPUs are not what it lacks there.
        self.held.remove(&job);
        self.give_up(desk, job);
        nodes.iter().for_each(|node| {
            draft.reserved.remove(node);
        });
    }

    fn hide(&mut self, draft: &mut Draft<'_>, job: JobId) {
        for node in self.held.get(&job).map(|held| held.nodes.clone()).into_iter().flatten() {
            draft.edit(node, |berth| {
                self.hidden.insert(node, berth.gpus_free);
                berth.gpus_free = 0;
            });
        }
    }

    fn show(&mut self, draft: &mut Draft<'_>, nodes: &[NodeId]) {
        for node in nodes {
            let gpus = self.hidden.remove(node).unwrap_or(0);
            draft.edit(*node, |berth| berth.gpus_free += gpus);
        }
    }

    /// Jobs that end before a gang's nodes have room for it may use what is free there until then.
    pub(crate) fn backfill(&mut self, desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, admission: &mut Admission<'_>) {
        let mut line = admission.roster.line();
        for _ in 0..BACKFILLS_MAX {
            if self.hidden.values().all(|gpus| *gpus == 0) {
                return;
            }
            let Some((ticket, profile)) = line.pop() else { return };
            line.advance(profile);
            let known = admission.is_placed(ticket.job) || self.held.contains_key(&ticket.job);
            let gpus = desk.profile(profile).gang().map_or(0, crate::profile::Gang::gpus);
            if known || gpus == 0 {
                continue;
            }
            let seeker = Seeker { job: ticket.job, profile, gpus };
            if self.fill(desk, draft, seeker) {
                admission.note_placed(ticket.job, &mut draft.changes);
            }
        }
    }

    fn fill(&mut self, desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, seeker: Seeker) -> bool {
        let Some(job) = desk.cluster.job(seeker.job) else { return false };
        let ends_ns =
            desk.cluster.now_ns() as f64 + (left_s(desk, job, seeker.profile) + desk.config.restart_cost_s) * SECOND_NS;
        let in_time = self.held.values().filter(|held| held.expected_ns.is_finite() && ends_ns <= held.expected_ns);
        let nodes: Vec<NodeId> = in_time.flat_map(|held| held.nodes.iter().copied()).collect();
        let room = |node: &NodeId| self.hidden.get(node).is_some_and(|gpus| *gpus >= seeker.gpus);
        for node in nodes.into_iter().filter(room).filter(|node| desk.allows(seeker.profile, *node)).collect::<Vec<_>>()
        {
            let shapes = shapes_of(desk, seeker);
            let Some(berth) = draft.get(node) else { continue };
            let entry = shapes.iter().find(|entry| Some(entry.shape) == berth.shape);
            let Some(entry) = entry.filter(|entry| base_fits(desk, berth, entry)) else { continue };
            draft.edit(node, |berth| berth.gpus_free += seeker.gpus);
            settle(desk, draft, seeker, (node, entry.shape, entry.class));
            if let Some(gpus) = self.hidden.get_mut(&node) {
                *gpus -= seeker.gpus;
            }
            return true;
        }
        false
    }
}

/// The nodes that are expected to have room first: one that can hold the whole gang, else the fewest that can together.
fn choose(
    desk: &mut Desk<'_, '_>,
    draft: &Draft<'_>,
    profile: ProfileId,
    kept: &BTreeSet<NodeId>,
) -> Option<Vec<NodeId>> {
    let gpus = desk.profile(profile).gpus();
    let usable = |berth: &&Berth| berth.open && berth.shape.is_some() && !kept.contains(&berth.id);
    let allowed: Vec<&Berth> =
        draft.fleet.iter().filter(usable).filter(|berth| desk.allows(profile, berth.id)).collect();
    let mut whole: Vec<(f64, u32, NodeId)> = Vec::new();
    for berth in &allowed {
        let need = gpus.min(berth.devices);
        if let Some(at_ns) = free_ns(desk, draft, berth, need) {
            whole.push((at_ns, berth.devices, berth.id));
        }
    }
    whole.sort_by(|one, next| one.0.total_cmp(&next.0).then(one.2.cmp(&next.2)));
    if let Some((.., node)) = whole.iter().find(|(_, devices, _)| *devices >= gpus) {
        return Some(vec![*node]);
    }
    let mut together = 0;
    let mut nodes = Vec::new();
    for (_, devices, node) in whole {
        together += devices;
        nodes.push(node);
        if together >= gpus {
            return Some(nodes);
        }
    }
    None
}

/// When all nodes of a reservation have room, nanoseconds.
fn expected_ns(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, held: &Reservation) -> f64 {
    let gpus = desk.profile(held.profile).gpus();
    let at = |desk: &mut Desk<'_, '_>, node: &NodeId| {
        let berth = draft.original(*node)?;
        free_ns(desk, draft, berth, gpus.min(berth.devices))
    };
    held.nodes.iter().map(|node| at(desk, node).unwrap_or(f64::INFINITY)).fold(0.0, f64::max)
}

/// When a node will have so many free GPUs if nothing starts there, nanoseconds; infinite where nobody knows, none where
/// its jobs hold too few.
fn free_ns(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, berth: &Berth, need: u32) -> Option<f64> {
    let cluster = desk.cluster;
    let now_ns = cluster.now_ns() as f64;
    let mut ends: Vec<(f64, u32)> = Vec::new();
    for job in cluster.jobs_on(berth.id) {
        let rows = job.allocations.iter().filter(|row| row.node == berth.id);
        let gpus = rows.map(|row| row.gpu_milli / 1000).sum();
        let left_s = remaining_ns(job, cluster.now_ns(), None);
        let left_ns = if left_s == u64::MAX { f64::INFINITY } else { left_s as f64 };
        ends.push((now_ns + left_ns, gpus));
    }
    ends.sort_by(|one, next| one.0.total_cmp(&next.0));
    let mut free = draft.original(berth.id)?.gpus_free;
    let mut at_ns = now_ns;
    for (end_ns, gpus) in ends {
        if free >= need {
            break;
        }
        free += gpus;
        at_ns = end_ns;
    }
    (free >= need).then_some(at_ns)
}

/// Time that a waiting job needs at its least speed, seconds; infinite where nobody knows.
fn left_s(desk: &mut Desk<'_, '_>, job: &Job, profile: ProfileId) -> f64 {
    let Some(shape) = desk.home else { return f64::INFINITY };
    let class = desk.class(job.id, profile, shape, Pin::FREE);
    let pace = desk.classes.speed(class, desk.options(class).base().value);
    match remaining_ns(job, desk.cluster.now_ns(), pace) {
        u64::MAX => f64::INFINITY,
        left_ns => left_ns as f64 / SECOND_NS,
    }
}
