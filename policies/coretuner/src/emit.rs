//! From grants to the plan: what differs from what is, in bundles that stand or fall together.

use std::collections::{BTreeMap, BTreeSet};

use coretuner_sdk::{Allocation, Change, Job, JobId, NodeId, Placement, PlanBuilder, Resize, Step, Why};

use crate::desk::{Desk, only_node};
use crate::draft::Draft;
use crate::probe::Probes;
use crate::reasons::{Because, Cause};
use crate::share_out::Grant;

const HOUR_NS: f64 = 3600e9;

/// A job's step and the nodes that it ties together.
struct Move {
    step: Step,
    nodes: Vec<NodeId>,
    turn: Turn,
}

/// What is given back comes before what is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Stop,
    Shrink,
    Move,
    Grow,
    Start,
}

/// Notes all differences. Returns the jobs whose step the SDK refused; nothing of their bundles is in the plan.
pub(crate) fn emit(
    desk: &Desk<'_, '_>,
    draft: &Draft<'_>,
    grants: &BTreeMap<JobId, Grant>,
    (price, probes): (f64, &Probes),
    plan: &mut PlanBuilder<'_>,
) -> Vec<JobId> {
    let mut moves = Vec::new();
    for (job, grant) in grants {
        let step = desk.cluster.job(*job).and_then(|job| settle(desk, draft, job, grant, price));
        moves.extend(step.map(|step| tell_probe(desk, probes, step)));
    }
    for (job, rows) in &draft.changes.apart {
        moves.extend(desk.cluster.job(*job).map(|job| start_apart(desk, draft, job, rows, price)));
    }
    for job in &draft.changes.stopped {
        moves.extend(desk.cluster.job(*job).map(|job| stop(draft, job)));
    }
    let mut refused = Vec::new();
    for bundle in bundles(moves) {
        if let Err((job, _)) = plan.trade(bundle) {
            refused.push(job);
        }
    }
    refused
}

/// A gang on one node: start, move, resize or nothing.
fn settle(desk: &Desk<'_, '_>, draft: &Draft<'_>, job: &Job, grant: &Grant, price: f64) -> Option<Move> {
    let group = job.groups.first()?;
    let (cpu_milli, memory_mib) = (grant.amount.cpu, grant.amount.memory);
    let gang = draft.get(grant.node)?.gangs.iter().find(|gang| gang.job == job.id)?;
    let workers = gang.gpus / group.gpus().max(1);
    let placement = || Placement { group: 0, node: grant.node, workers, cpu_milli, memory_mib, device_mask: 0 };
    let cause = draft.changes.causes.get(&job.id).copied();
    let because = Because { node: grant.node, value: grant.value, price };
    if job.is_waiting() {
        let change = Change::Start(vec![placement()]);
        let step = Step { job: job.id, change, why: start_why(desk, draft, job, because, cpu_milli) };
        return Some(Move { step, nodes: vec![grant.node], turn: Turn::Start });
    }
    let held = job.allocations.first()?;
    if only_node(job) != Some(grant.node) || held.workers != workers {
        let change = Change::Rescale(vec![placement()], 0);
        let nodes = job.allocations.iter().map(|row| row.node).chain([grant.node]).collect();
        let step = Step { job: job.id, change, why: because.moved(cause) };
        return Some(Move { step, nodes, turn: Turn::Move });
    }
    if (held.cpu_milli, held.memory_mib) == (cpu_milli, memory_mib) {
        return None;
    }
    let change = Change::Resize(vec![Resize { group: 0, node: grant.node, cpu_milli, memory_mib }]);
    let turn = if cpu_milli < held.cpu_milli { Turn::Shrink } else { Turn::Grow };
    let step = Step { job: job.id, change, why: because.divided(value_held(desk, draft, job)) };
    Some(Move { step, nodes: vec![grant.node], turn })
}

/// Where age counts, its hours are told as soon as they count as much as the rest of the key.
fn start_why(desk: &Desk<'_, '_>, draft: &Draft<'_>, job: &Job, because: Because, cpu_milli: u32) -> Why {
    if let Some(Cause::Reserved { waited_s }) = draft.changes.causes.get(&job.id) {
        return because.reserved(cpu_milli, *waited_s);
    }
    let now_ns = desk.cluster.now_ns();
    if desk.config.ageing(job, now_ns) < 2.0 {
        return because.start(cpu_milli);
    }
    because.aged(cpu_milli, now_ns.saturating_sub(job.submit_ns) as f64 / HOUR_NS)
}

/// A resize for a probe says so.
fn tell_probe(desk: &Desk<'_, '_>, probes: &Probes, mut step: Move) -> Move {
    let resizes = matches!(step.step.change, Change::Resize(_));
    let probe = desk.cluster.job(step.step.job).filter(|_| resizes).and_then(|job| probes.of(job));
    if let Some(probe) = probe {
        step.step.why = Why::new("probe", &[f64::from(probe.cpu_milli) / 1000.0, desk.config.probe_s]);
    }
    step
}

/// Value of what a running gang holds now, where that is one of its options.
fn value_held(desk: &Desk<'_, '_>, draft: &Draft<'_>, job: &Job) -> Option<f64> {
    let berth = draft.original(only_node(job)?)?;
    let gang = berth.gangs.iter().find(|gang| gang.job == job.id)?;
    let points = desk.options(gang.class).points();
    points.iter().find(|point| Some(point.amount()) == gang.held).map(|point| point.value)
}

fn start_apart(desk: &Desk<'_, '_>, draft: &Draft<'_>, job: &Job, rows: &[Allocation], price: f64) -> Move {
    let placement = |row: &Allocation| Placement {
        group: row.group,
        node: row.node,
        workers: row.workers,
        cpu_milli: row.cpu_milli,
        memory_mib: row.memory_mib,
        device_mask: 0,
    };
    let nodes: Vec<NodeId> = rows.iter().map(|row| row.node).collect();
    let node = nodes.first().copied().unwrap_or(NodeId(u32::MAX));
    let value = f64::from(rows.iter().map(|row| row.gpu_milli).sum::<u32>()) / 1000.0;
    let cpu_milli = rows.iter().map(|row| row.cpu_milli).sum();
    let why = start_why(desk, draft, job, Because { node, value, price }, cpu_milli);
    let change = Change::Start(rows.iter().map(placement).collect());
    Move { step: Step { job: job.id, change, why }, nodes, turn: Turn::Start }
}

fn stop(draft: &Draft<'_>, job: &Job) -> Move {
    let cause = draft.changes.causes.get(&job.id).copied().unwrap_or(Cause::Start);
    let nodes = job.allocations.iter().map(|row| row.node).collect();
    let step = Step { job: job.id, change: Change::Preempt, why: cause.told() };
    Move { step, nodes, turn: Turn::Stop }
}

/// Steps that share nodes, directly or through others, are one bundle. Bundles by their lowest node, steps by job.
fn bundles(moves: Vec<Move>) -> Vec<Vec<Step>> {
    let mut sets = Sets::default();
    for step in &moves {
        for pair in step.nodes.windows(2) {
            sets.join(pair[0], pair[1]);
        }
    }
    let mut bundles: BTreeMap<NodeId, Vec<Move>> = BTreeMap::new();
    for step in moves {
        if let Some(node) = step.nodes.first() {
            bundles.entry(sets.root(*node)).or_default().push(step);
        }
    }
    let ordered = |mut bundle: Vec<Move>| {
        bundle.sort_by_key(|step| (step.turn, step.step.job));
        bundle.into_iter().map(|step| step.step).collect()
    };
    bundles.into_values().map(ordered).collect()
}

/// Disjoint sets of nodes; the root is the lowest.
#[derive(Default)]
struct Sets {
    parents: BTreeMap<NodeId, NodeId>,
}

impl Sets {
    fn root(&self, mut node: NodeId) -> NodeId {
        let mut seen = BTreeSet::new();
        while let Some(parent) = self.parents.get(&node) {
            if !seen.insert(node) {
                break;
            }
            node = *parent;
        }
        node
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parents.insert(a.max(b), a.min(b));
        }
    }
}
