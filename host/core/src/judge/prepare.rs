//! One action on its own: who, what, and the rows it asks for; capacity is the bundle's affair.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::contract::NONE;
use crate::contract::cluster::Refusal;
use crate::contract::plan::{Plan, Reason, Verb};
use crate::model::{Allocation, JobId, JobPhase, NodeState, ResizeRights};
use crate::state::{JobView, Owner, State};

use super::placement;

/// An action that is legal but for capacity.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) action: usize,
    pub(super) job: JobId,
    pub(super) step: Step,
    /// The whole new allocation of the job, ascending by (group, node).
    pub(super) rows: Vec<Allocation>,
    pub(super) reason: Option<Arc<Reason>>,
}

/// What an action does, in the order in which a bundle's commands go out: first what gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Preempt,
    /// A resize in which nothing grows.
    Shrink,
    Rescale {
        batch_per_gpu: u32,
    },
    Grow,
    Start,
    Hold,
}

impl Step {
    pub(super) fn is_resize(self) -> bool {
        matches!(self, Self::Shrink | Self::Grow)
    }
}

/// Reads actions off a plan, with what was seen so far.
pub(super) struct Reader<'a> {
    plan: &'a Plan,
    owner: Owner,
    /// Jobs that an earlier action spoke of.
    seen: BTreeSet<JobId>,
    /// Placement rows named so far: ranges that overlap would make judging dearer than the plan is long.
    rows_named: usize,
    /// Shared copies, made when first used.
    reasons: Vec<Option<Arc<Reason>>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(plan: &'a Plan, owner: Owner) -> Self {
        let reasons = vec![None; plan.reasons.len()];
        Self { plan, owner, seen: BTreeSet::new(), rows_named: 0, reasons }
    }

    pub(super) fn job(&self, action: usize) -> JobId {
        JobId(self.plan.actions.job.get(action).copied().unwrap_or(NONE))
    }

    pub(super) fn prepare(&mut self, state: &State, action: usize) -> Result<Prepared, Refusal> {
        let id = self.job(action);
        let job = state.job(id).ok_or(Refusal::UnknownId)?;
        if job.owner != self.owner {
            return Err(Refusal::NotMine);
        }
        if !self.seen.insert(id) {
            return Err(Refusal::Superseded);
        }
        let reason = self.reason(action)?;
        let verb = *self.plan.actions.verb.get(action).ok_or(Refusal::OutOfRange)?;
        let rows = match verb {
            Verb::Start | Verb::Resize | Verb::Rescale => {
                let range = self.range(action).ok_or(Refusal::OutOfRange)?;
                placement::rows(&self.plan.placements, range)
            }
            Verb::Preempt | Verb::Hold => Vec::new(),
        };
        let (step, rows) = match verb {
            Verb::Start => (Step::Start, start(state, job, rows)?),
            Verb::Resize => resize(job, &rows)?,
            Verb::Rescale => {
                let batch_per_gpu = self.plan.actions.batch_per_gpu.get(action).copied().unwrap_or(0);
                (Step::Rescale { batch_per_gpu }, rescale(state, job, rows)?)
            }
            Verb::Preempt => (Step::Preempt, preempt(state, job)?),
            Verb::Hold => (Step::Hold, hold(job)?),
        };
        Ok(Prepared { action, job: id, step, rows, reason })
    }

    fn range(&mut self, action: usize) -> Option<Range<usize>> {
        let start = *self.plan.actions.placement_start.get(action)? as usize;
        let count = *self.plan.actions.placement_count.get(action)? as usize;
        let total = self.plan.placements.group.len();
        let end = start.checked_add(count).filter(|end| *end <= total)?;
        self.rows_named = self.rows_named.checked_add(count).filter(|named| *named <= total)?;
        Some(start..end)
    }

    fn reason(&mut self, action: usize) -> Result<Option<Arc<Reason>>, Refusal> {
        let index = *self.plan.actions.reason.get(action).ok_or(Refusal::OutOfRange)?;
        if index == NONE {
            return Ok(None);
        }
        let text = self.plan.reasons.get(index as usize).ok_or(Refusal::OutOfRange)?;
        let kept = self.reasons.get_mut(index as usize).ok_or(Refusal::OutOfRange)?;
        Ok(Some(Arc::clone(kept.get_or_insert_with(|| Arc::new(text.clone())))))
    }
}

fn in_phase(job: &JobView, phase: JobPhase) -> Result<(), Refusal> {
    if job.phase == phase { Ok(()) } else { Err(Refusal::WrongState) }
}

fn start(state: &State, job: &JobView, rows: Vec<Allocation>) -> Result<Vec<Allocation>, Refusal> {
    in_phase(job, JobPhase::Waiting)?;
    placement::check_whole(state, job, &rows)?;
    Ok(rows)
}

fn rescale(state: &State, job: &JobView, rows: Vec<Allocation>) -> Result<Vec<Allocation>, Refusal> {
    in_phase(job, JobPhase::Running)?;
    may_interrupt(state, job)?;
    placement::check_whole(state, job, &rows)?;
    Ok(rows)
}

fn preempt(state: &State, job: &JobView) -> Result<Vec<Allocation>, Refusal> {
    in_phase(job, JobPhase::Running)?;
    may_interrupt(state, job)?;
    Ok(Vec::new())
}

fn hold(job: &JobView) -> Result<Vec<Allocation>, Refusal> {
    in_phase(job, JobPhase::Waiting)?;
    Ok(Vec::new())
}

/// A job that may not be preempted is interrupted only where it must leave its node.
fn may_interrupt(state: &State, job: &JobView) -> Result<(), Refusal> {
    let must_leave = |row: &Allocation| state.node(row.node).is_some_and(|node| node.state == NodeState::Draining);
    if job.spec.preemptible || job.allocations.iter().any(must_leave) { Ok(()) } else { Err(Refusal::WrongState) }
}

/// The job's rows with CPU and memory of those named replaced; everything else must be as it is.
fn resize(job: &JobView, rows: &[Allocation]) -> Result<(Step, Vec<Allocation>), Refusal> {
    in_phase(job, JobPhase::Running)?;
    placement::check_distinct(rows)?;
    if rows.is_empty() {
        return Err(Refusal::OutOfRange);
    }
    let mut resized = job.allocations.clone();
    let mut grows = false;
    for row in rows {
        let at = resized.binary_search_by_key(&(row.group, row.node), |held| (held.group, held.node));
        let held = at.ok().and_then(|at| resized.get_mut(at)).ok_or(Refusal::OutOfRange)?;
        let group = job.spec.groups.get(row.group as usize).ok_or(Refusal::OutOfRange)?;
        let same_devices = row.device_mask == 0 || row.device_mask == held.device_mask;
        if row.workers != held.workers || row.gpu_milli != held.gpu_milli || !same_devices {
            return Err(Refusal::OutOfRange);
        }
        check_rights(group.resize_rights, held, row)?;
        placement::check_ranges(group, row)?;
        grows |= row.cpu_milli > held.cpu_milli || row.memory_mib > held.memory_mib;
        (held.cpu_milli, held.memory_mib) = (row.cpu_milli, row.memory_mib);
    }
    Ok((if grows { Step::Grow } else { Step::Shrink }, resized))
}

/// What the backend cannot change is outside the range of the action.
fn check_rights(rights: ResizeRights, held: &Allocation, row: &Allocation) -> Result<(), Refusal> {
    let cpu = rights.cpu || row.cpu_milli == held.cpu_milli;
    let grow = rights.memory_grow || row.memory_mib <= held.memory_mib;
    let shrink = rights.memory_shrink || row.memory_mib >= held.memory_mib;
    if cpu && grow && shrink { Ok(()) } else { Err(Refusal::OutOfRange) }
}
