//! Gangs over several nodes: over which, and whether that is better than to wait.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use coretuner_sdk::solve::Amount;
use coretuner_sdk::{Allocation, Job, JobId, KindId, NodeId};

use crate::berth::Berth;
use crate::classes::ClassNo;
use crate::desk::Desk;
use crate::draft::Draft;
use crate::oracle::Question;
use crate::place::{OnShape, Seeker, all_open, part_fits, place_gang, portion, row, shapes_of};
use crate::profile::Gang;
use crate::reasons::{Cause, Wait};
use crate::room::ProfileOf;
use crate::shape::ShapeId;
use crate::targets::Market;

const SECOND_NS: f64 = 1e9;

/// A gain is counted for at most this long.
const HORIZON_S: f64 = 3600.0;

/// Nodes looked at for when enough GPUs come free on one: those with most free ones. More matter only in clusters that are
/// larger than that, and then whole nodes may come sooner than is said.
const EXPECTED_MAX: usize = 256;

/// A split that costs less than this is not worth waiting for whole nodes.
const WAIT_MIN_S: f64 = 1.0;

/// Predicted speeds of gangs over more nodes than they need, against that on as few as can hold them.
#[derive(Default)]
pub(crate) struct Spans {
    known: BTreeMap<(KindId, ShapeId, u32, u32, Amount), Option<f64>>,
}

impl Spans {
    pub(crate) fn forget_kind(&mut self, kind: KindId) {
        self.known.retain(|key, _| key.0 != kind);
    }
}

/// A node that can hold some of a gang's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    workers: Reverse<u32>,
    node: NodeId,
}

/// A way to split a gang. The least is taken.
#[derive(Clone, Debug, PartialEq)]
struct Split {
    /// Nodes, then how far apart they are: 0 = one link domain, 3 = anywhere.
    cost: (usize, u8),
    class: ClassNo,
    /// Speed against that on the fewest nodes that could hold it; none where nobody knows.
    speed: Option<f64>,
    rows: Vec<Allocation>,
}

/// Splits a gang over the fewest nodes that are close together, unless it would run too slowly or whole nodes are expected
/// soon enough.
pub(crate) fn split(desk: &mut Desk<'_, '_>, draft: &mut Draft<'_>, seeker: Seeker) -> Result<(), Wait> {
    let beside = Wait::Beside { gpus: seeker.gpus };
    let gang = desk.profile(seeker.profile).gang().cloned().filter(|gang| gang.workers > 1).ok_or(beside)?;
    let shapes = shapes_of(desk, seeker);
    let found = shapes.iter().filter_map(|entry| split_on(desk, draft, seeker, &gang, entry));
    let best = found.min_by_key(|split| split.cost).ok_or(beside)?;
    let (speed, least) = (best.speed.unwrap_or(1.0), desk.config.span_speed_min);
    if speed < least {
        return Err(Wait::Span { nodes: best.rows.len() as u32, speed, least });
    }
    if let Some(wait) = worth_waiting(desk, draft, seeker, (best.class, speed)) {
        return Err(wait);
    }
    draft.set_apart(seeker.job, best.rows);
    Ok(())
}

/// The best split over nodes of one shape.
fn split_on(desk: &mut Desk<'_, '_>, draft: &Draft<'_>, seeker: Seeker, gang: &Gang, entry: &OnShape) -> Option<Split> {
    let parts = parts(desk, draft, seeker, gang, entry);
    let (level, chosen) = nearest(desk, &parts, gang.workers)?;
    let base = desk.options(entry.class).base().amount();
    let speed = span_speed(desk, seeker, (entry.shape, entry.class), chosen.len() as u32);
    let rows = chosen.iter().map(|(node, workers)| row(*node, gang, *workers, portion(base, *workers, gang.workers)));
    Some(Split { cost: (chosen.len(), level), class: entry.class, speed, rows: rows.collect() })
}

/// Predicted speed over so many nodes against that on as few as can hold the gang, both at the base; none where unknown.
fn span_speed(
    desk: &mut Desk<'_, '_>,
    seeker: Seeker,
    (shape, class): (ShapeId, ClassNo),
    nodes_spanned: u32,
) -> Option<f64> {
    let kind = desk.profile(seeker.profile).kind?;
    let of = desk.shapes.get(shape);
    if nodes_spanned <= seeker.gpus.div_ceil(of.devices.max(1)) {
        return Some(1.0);
    }
    let base = *desk.options(class).base();
    let key = (kind, shape, seeker.gpus, nodes_spanned, base.amount());
    if let Some(known) = desk.classes.spans.known.get(&key) {
        return *known;
    }
    let (cpu, memory) = (vec![base.cpu], vec![base.memory]);
    let question = Question { gpu_kind: of.gpu_kind, gpus: seeker.gpus, nodes_spanned, cpu, memory };
    desk.oracle.speaker = Some(seeker.job);
    let failures = desk.oracle.failures;
    let spanning = desk.oracle.ask(&question).and_then(|answer| answer.mean.first().copied()).map(f64::from);
    let whole = desk.classes.speed(class, base.value);
    let part = spanning.zip(whole).map(|(spanning, whole)| spanning / whole).filter(|part| part.is_finite());
    if desk.oracle.failures == failures {
        desk.classes.spans.known.insert(key, part);
    }
    part
}

/// How many workers each node can hold beside the bases of its gangs; most first.
fn parts(desk: &Desk<'_, '_>, draft: &Draft<'_>, seeker: Seeker, gang: &Gang, entry: &OnShape) -> Vec<Part> {
    let base = desk.options(entry.class).base().amount();
    let mut parts = Vec::new();
    let mut visit = |berth: &Berth| {
        let most = gang.workers.min(berth.gpus_free / gang.gpus_per_worker.max(1));
        let fits = |workers: &u32| part_fits(desk, berth, entry, portion(base, *workers, gang.workers));
        let found = (1..=most).rev().find(fits).filter(|_| berth.shape == Some(entry.shape));
        parts.extend(found.map(|workers| Part { workers: Reverse(workers), node: berth.id }));
        found.is_some()
    };
    all_open(desk, draft, seeker, gang.gpus_per_worker, &mut visit);
    parts.sort_unstable();
    parts
}

/// Fewest nodes; of equally many those of one link domain, else of one rack, else of one zone. With how far apart they are.
fn nearest(desk: &Desk<'_, '_>, parts: &[Part], workers: u32) -> Option<(u8, Vec<(NodeId, u32)>)> {
    let anywhere = (3, fewest(parts, workers)?);
    let domain = |level: u8, part: &Part| {
        let node = desk.cluster.node(part.node)?;
        [&node.link_domain, &node.rack, &node.zone].into_iter().nth(usize::from(level))?.clone()
    };
    let mut best = anywhere;
    for level in (0..3_u8).rev() {
        let mut domains: BTreeMap<_, Vec<Part>> = BTreeMap::new();
        for part in parts {
            if let Some(name) = domain(level, part) {
                domains.entry(name).or_default().push(*part);
            }
        }
        let closer = domains.values().filter_map(|parts| fewest(parts, workers)).min_by_key(Vec::len);
        if let Some(nodes) = closer.filter(|nodes| nodes.len() <= best.1.len()) {
            best = (level, nodes);
        }
    }
    Some(best)
}

/// Fewest nodes: the largest parts, and for the rest the smallest that is enough.
fn fewest(parts: &[Part], workers: u32) -> Option<Vec<(NodeId, u32)>> {
    let mut left = workers;
    let mut chosen = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        if part.workers.0 >= left {
            let enough = parts[at..].partition_point(|part| part.workers.0 >= left);
            let least = parts[at + enough - 1].workers;
            let tight = parts[at..].iter().find(|part| part.workers == least)?;
            chosen.push((tight.node, left));
            return Some(chosen);
        }
        chosen.push((part.node, part.workers.0));
        left -= part.workers.0;
    }
    None
}

/// Whether to wait for whole nodes: they are expected before the time is over that the split would cost, and the job has
/// not waited that long yet. So it loses at most twice what the better choice would have cost.
fn worth_waiting(
    desk: &Desk<'_, '_>,
    draft: &mut Draft<'_>,
    seeker: Seeker,
    (class, speed): (ClassNo, f64),
) -> Option<Wait> {
    let job = desk.cluster.job(seeker.job)?;
    let now_ns = desk.cluster.now_ns();
    let whole = desk.classes.speed(class, desk.options(class).base().value).filter(|speed| *speed > 0.0)?;
    let costs_s = job.remaining_iterations(now_ns)? / whole * (1.0 / speed.max(1e-3) - 1.0);
    let waited_s = now_ns.saturating_sub(job.submit_ns) as f64 / SECOND_NS;
    if costs_s < WAIT_MIN_S || waited_s >= costs_s {
        return None;
    }
    let expected_s = whole_in_s(desk, draft, seeker)?;
    if waited_s + expected_s >= costs_s {
        return None;
    }
    let until_ns = now_ns.saturating_add(((costs_s - waited_s) * SECOND_NS) as u64);
    draft.look_again_at(until_ns);
    Some(Wait::Whole { speed, costs_s, expected_s })
}

/// Seconds until enough GPUs come free on the fewest nodes that can hold the gang, if nobody else takes them.
fn whole_in_s(desk: &Desk<'_, '_>, draft: &Draft<'_>, seeker: Seeker) -> Option<f64> {
    let usable = draft.all_spots(0).filter(|berth| desk.allows(seeker.profile, berth.id));
    let usable: Vec<&Berth> = usable.take(EXPECTED_MAX).collect();
    let largest = usable.iter().map(|berth| berth.devices).max()?;
    let nodes = seeker.gpus.div_ceil(largest).max(1);
    let each = seeker.gpus.div_ceil(nodes);
    let mut waits: Vec<f64> = usable.iter().filter_map(|berth| free_in_s(desk, berth, each)).collect();
    waits.sort_by(f64::total_cmp);
    waits.get(nodes as usize - 1).copied()
}

/// Seconds until a node has `gpus` free.
fn free_in_s(desk: &Desk<'_, '_>, berth: &Berth, gpus: u32) -> Option<f64> {
    let mut ends: Vec<(f64, u32)> =
        berth.gangs.iter().filter_map(|gang| Some((ends_in_s(desk, gang.job)?, gang.gpus))).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (mut free, mut at_s) = (berth.gpus_free, 0.0);
    for (end_s, more) in ends {
        if free >= gpus {
            break;
        }
        (free, at_s) = (free + more, end_s);
    }
    (free >= gpus).then_some(at_s)
}

fn ends_in_s(desk: &Desk<'_, '_>, job: JobId) -> Option<f64> {
    let (now_ns, job) = (desk.cluster.now_ns(), desk.cluster.job(job)?);
    let rate = job.progress(now_ns).iterations_per_s;
    job.remaining_iterations(now_ns).filter(|_| rate > 0.0).map(|left| left / rate)
}

/// Brings split gangs together on a node that has room for them now, where that gains more than the restart costs.
pub(crate) fn join(
    desk: &mut Desk<'_, '_>,
    draft: &mut Draft<'_>,
    market: &Market,
    apart: impl Iterator<Item = JobId>,
    profile_of: ProfileOf<'_>,
) {
    let mut left = desk.config.swaps_max;
    for id in apart {
        let Some((job, profile)) = desk.cluster.job(id).zip(profile_of(id)) else { continue };
        if left == 0 || !may_join(desk, draft, job) {
            continue;
        }
        let seeker = Seeker { job: id, profile, gpus: desk.profile(profile).gpus() };
        if !may_be_whole(draft, job, seeker.gpus) || !gains_anywhere(desk, job, seeker) {
            continue;
        }
        draft.try_out();
        draft.take_off(job);
        let placed = place_gang(desk, draft, market, seeker);
        let there = draft.home(id).filter(|_| placed).and_then(|(berth, gang)| Some((berth.shape?, gang.class)));
        let gain = there.and_then(|there| gain_whole(desk, job, seeker, there));
        match gain {
            Some(gain) => {
                draft.keep();
                draft.changes.causes.insert(id, Cause::Join { gain });
                left -= 1;
            }
            None => draft.take_back(),
        }
    }
}

fn may_join(desk: &Desk<'_, '_>, draft: &Draft<'_>, job: &Job) -> bool {
    let settled = job.is_running() && job.progress(desk.cluster.now_ns()).iterations_per_s > 0.0;
    let open = job.allocations.iter().all(|row| draft.get(row.node).is_some_and(|berth| berth.open));
    settled && open && job.preemptible && !draft.changes.stopped.contains(&job.id)
}

/// Whether some node has enough free GPUs once the job is off its nodes. Most have none, and a search is dear.
fn may_be_whole(draft: &Draft<'_>, job: &Job, gpus: u32) -> bool {
    let free = |row: &Allocation| draft.get(row.node).map_or(0, |berth| berth.gpus_free + row.gpu_milli / 1000);
    draft.fleet.index().free_max() >= gpus || job.allocations.iter().any(|row| free(row) >= gpus)
}

/// Whether it gains on nodes of any shape.
fn gains_anywhere(desk: &mut Desk<'_, '_>, job: &Job, seeker: Seeker) -> bool {
    let shapes = shapes_of(desk, seeker);
    shapes.iter().any(|entry| gain_whole(desk, job, seeker, (entry.shape, entry.class)).is_some())
}

/// What a job gains, in GPUs at the speed of its share, by being whole; none if the restart eats it.
fn gain_whole(desk: &mut Desk<'_, '_>, job: &Job, seeker: Seeker, (shape, class): (ShapeId, ClassNo)) -> Option<f64> {
    let part = span_speed(desk, seeker, (shape, class), job.allocations.len() as u32)?;
    let gpus = f64::from(seeker.gpus);
    let gain = gpus * (1.0 - part);
    let now_ns = desk.cluster.now_ns();
    let rate = job.progress(now_ns).iterations_per_s;
    let left_s = job.remaining_iterations(now_ns).map_or(HORIZON_S, |left| left / rate / 2.0);
    (gain * HORIZON_S.min(left_s) > desk.config.restart_cost_s * gpus * part).then_some(gain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(free: &[u32], workers: u32, expected: Option<&[(u32, u32)]>) {
        let mut parts: Vec<Part> =
            (0..).zip(free).map(|(node, free)| Part { workers: Reverse(*free), node: NodeId(node) }).collect();
        parts.sort_unstable();
        let found = fewest(&parts, workers);
        let found = found.map(|chosen| chosen.iter().map(|(node, workers)| (node.0, *workers)).collect::<Vec<_>>());
        assert_eq!(found.as_deref(), expected, "{workers} over {free:?}");
    }

    #[test]
    fn the_fewest_nodes_are_taken_and_the_rest_goes_where_it_fits_tightly() {
        check(&[8, 8, 8], 16, Some(&[(0, 8), (1, 8)]));
        check(&[3, 8, 4, 8], 12, Some(&[(1, 8), (2, 4)]));
        check(&[3, 4, 3], 6, Some(&[(1, 4), (0, 2)]));
        check(&[8, 5, 6], 5, Some(&[(1, 5)]));
        check(&[2, 2], 5, None);
    }
}
