//! Making room for a gang that no node has room for: smaller jobs of one node move elsewhere.

use std::cmp::Reverse;

use coretuner_sdk::{Job, JobId, NodeId};

use crate::desk::{Desk, only_node};
use crate::draft::Draft;
use crate::fleet::{Berth, Resident};
use crate::place::{OnShape, Seeker, base_fits, place_gang, settle, shapes_of};
use crate::profile::ProfileId;
use crate::reasons::Cause;
use crate::targets::Market;

/// Tells a running or newly placed job's profile.
pub(crate) type ProfileOf<'a> = &'a dyn Fn(JobId) -> Option<ProfileId>;

/// Frees a node for the whole gang where the fewest GPUs must move, and moves those jobs. Nothing changes when it fails.
pub(crate) fn make_room(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    market: &Market,
    seeker: Seeker,
    profile_of: ProfileOf<'_>,
) -> bool {
    let shapes = shapes_of(desk, seeker);
    let Some(Site { cost: (.., node), entry, movers }) = cheapest(desk, draft, seeker, &shapes) else { return false };
    let before = draft.changes.clone();
    let gpus_before = draft.gpus_free;
    for mover in &movers {
        draft.edit(node, |berth| {
            berth.remove(mover.job);
        });
    }
    let fits = draft.get(node).is_some_and(|berth| base_fits(desk, berth, &entry));
    if fits {
        settle(desk, draft, seeker, (node, entry.shape, entry.class));
    }
    if fits && movers.iter().all(|mover| rehouse(desk, draft, market, mover, profile_of)) {
        note(desk, draft, seeker.job, &movers);
        return true;
    }
    draft.changes = before;
    draft.gpus_free = gpus_before;
    false
}

/// Places a mover anywhere; back on its node counts as a failure.
fn rehouse(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    market: &Market,
    mover: &Resident,
    profile_of: ProfileOf<'_>,
) -> bool {
    let Some(profile) = profile_of(mover.job) else { return false };
    place_gang(desk, draft, market, Seeker { job: mover.job, profile, gpus: mover.gpus })
}

fn note(desk: &Desk<'_, '_>, draft: &mut Draft<'_>, gang: JobId, movers: &[Resident]) {
    for mover in movers {
        let runs = desk.cluster.job(mover.job).is_some_and(Job::is_running);
        if runs {
            draft.changes.causes.insert(mover.job, Cause::Room { gang });
        }
    }
}

/// A node to make room on.
struct Site {
    /// GPUs to move, jobs to move, node: the least is taken.
    cost: (u32, usize, NodeId),
    entry: OnShape,
    /// In the order in which they look for another place.
    movers: Vec<Resident>,
}

fn cheapest(desk: &Desk<'_, '_>, draft: &Draft<'_>, seeker: Seeker, shapes: &[OnShape]) -> Option<Site> {
    let site = |berth: &Berth| {
        let entry = *shapes.iter().find(|entry| Some(entry.shape) == berth.shape)?;
        if !berth.open
            || draft.reserved.contains(&berth.id)
            || berth.devices < seeker.gpus
            || !desk.allows(seeker.profile, berth.id)
        {
            return None;
        }
        let movers = movers(desk, berth, seeker.gpus)?;
        let gpus = movers.iter().map(|mover| mover.gpus).sum();
        Some(Site { cost: (gpus, movers.len(), berth.id), entry, movers })
    };
    let current = draft.fleet.iter().filter_map(|berth| draft.get(berth.id));
    current.filter_map(site).min_by_key(|site| site.cost)
}

/// Smaller jobs whose GPUs are enough: the largest that the need still covers first.
fn movers(desk: &Desk<'_, '_>, berth: &Berth, gpus: u32) -> Option<Vec<Resident>> {
    let mut need = gpus.saturating_sub(berth.gpus_free);
    let smaller = berth.gangs.iter().filter(|gang| gang.gpus < gpus && may_move(desk, gang.job));
    let mut left: Vec<Resident> = smaller.copied().collect();
    if left.iter().map(|gang| gang.gpus).sum::<u32>() < need {
        return None;
    }
    left.sort_by_key(|gang| (Reverse(gang.gpus), gang.job));
    let mut movers = Vec::new();
    while need > 0 {
        let at = left.iter().position(|gang| gang.gpus <= need).or_else(|| left.len().checked_sub(1))?;
        let mover = left.remove(at);
        need = need.saturating_sub(mover.gpus);
        movers.push(mover);
    }
    Some(movers)
}

/// A job that was only just placed moves freely, a running one if it may be interrupted.
pub(crate) fn may_move(desk: &Desk<'_, '_>, job: JobId) -> bool {
    desk.cluster.job(job).is_some_and(|job| job.is_waiting() || job.preemptible && only_node(job).is_some())
}

/// Jobs of nodes that are being emptied look for another place, or stop.
pub(crate) fn drain(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, market: &Market, profile_of: ProfileOf<'_>) {
    let draining: Vec<NodeId> = draft.fleet.draining().collect();
    for node in draining {
        let jobs: Vec<&Job> = desk.cluster.jobs_on(node).filter(|job| job.mine && job.is_running()).collect();
        for job in jobs {
            if draft.changes.causes.contains_key(&job.id) {
                continue;
            }
            draft.take_off(job);
            draft.changes.causes.insert(job.id, Cause::Drain { node });
            let gang = draft.fleet.get(node).and_then(|berth| berth.gangs.iter().find(|gang| gang.job == job.id));
            let profile = profile_of(job.id);
            let seeker = gang.zip(profile).map(|(gang, profile)| Seeker { job: job.id, profile, gpus: gang.gpus });
            if !seeker.is_some_and(|seeker| place_gang(desk, draft, market, seeker)) {
                draft.changes.stopped.insert(job.id);
            }
        }
    }
}
