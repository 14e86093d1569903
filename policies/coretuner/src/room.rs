//! Making room for a gang that no node has room for: smaller jobs of one node move elsewhere.

use coretuner_sdk::{Job, JobId, NodeId};

use crate::berth::Resident;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::place::{Seeker, base_fits, place_gang, settle, shapes_of};
use crate::profile::ProfileId;
use crate::reasons::Cause;
use crate::targets::Market;

/// Tells a running or newly placed job's profile.
pub(crate) type ProfileOf<'a> = &'a dyn Fn(JobId) -> Option<ProfileId>;

/// Frees a node for the whole gang where the fewest GPUs must move, then the fewest jobs, and moves those. Nothing changes
/// when it fails.
pub(crate) fn make_room(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    market: &Market,
    seeker: Seeker,
    profile_of: ProfileOf<'_>,
) -> bool {
    let Some((node, movers)) = cheapest(desk, draft, seeker) else { return false };
    draft.try_out();
    for mover in &movers {
        draft.edit(node, |berth| {
            berth.remove(mover.job);
        });
    }
    let shapes = shapes_of(desk, seeker);
    let berth = draft.get(node);
    let entry = berth.and_then(|berth| shapes.iter().find(|entry| Some(entry.shape) == berth.shape));
    let entry = berth.zip(entry).filter(|(berth, entry)| base_fits(desk, berth, entry)).map(|(_, entry)| entry);
    if let Some(entry) = entry {
        settle(desk, draft, seeker, (node, entry.shape, entry.class));
        if movers.iter().all(|mover| rehouse(desk, draft, market, mover, profile_of)) {
            draft.keep();
            note(desk, draft, seeker.job, &movers);
            return true;
        }
    }
    draft.take_back();
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

/// The node to make room on, and who leaves it, in the order in which they look for another place.
fn cheapest(desk: &Desk<'_, '_>, draft: &mut Draft<'_>, seeker: Seeker) -> Option<(NodeId, Vec<Resident>)> {
    draft.fleet.keep_sites(seeker.gpus);
    let usable = |node: &NodeId| !draft.reserved.contains(node) && desk.allows(seeker.profile, *node);
    let node = draft.fleet.index().sites(seeker.gpus).find(usable)?;
    Some((node, draft.get(node)?.movers(seeker.gpus)?))
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
            let gang = draft.original(node).and_then(|berth| berth.gangs.iter().find(|gang| gang.job == job.id));
            let profile = profile_of(job.id);
            let seeker = gang.zip(profile).map(|(gang, profile)| Seeker { job: job.id, profile, gpus: gang.gpus });
            if !seeker.is_some_and(|seeker| place_gang(desk, draft, market, seeker)) {
                draft.changes.stopped.insert(job.id);
            }
        }
    }
}
