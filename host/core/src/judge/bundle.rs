//! Bundles: give back everything, take everything, or leave no trace.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::contract::cluster::Refusal;
use crate::contract::plan::Plan;
use crate::event::Command;
use crate::model::{JobPhase, TimeNs};
use crate::state::{After, Owner, Room, Savepoint, State, Usage};

use super::prepare::{Prepared, Reader, Step};
use super::{Hold, Judgement, PLAN_ACTIONS_MAX, Verdict, check_shape, placement};

impl State {
    /// Judges a plan of the active policy and applies what is accepted.
    ///
    /// Actions are judged in order; a bundle stands or falls by its net effect. A plan that cannot be read
    /// ([`check_shape`]) is refused as a whole; callers that can answer with a fallback check the shape first.
    pub fn judge(&mut self, now_ns: TimeNs, plan: &Plan) -> Judgement {
        self.judge_as(Owner::ACTIVE, now_ns, plan)
    }

    /// The same for an instance that owns `owner`'s jobs.
    pub fn judge_as(&mut self, owner: Owner, now_ns: TimeNs, plan: &Plan) -> Judgement {
        let mut reader = Reader::new(plan, owner);
        let mut out = Judgement::default();
        if check_shape(plan, self.revision()).is_err() {
            out.verdicts.push(Verdict { action: 0, job: reader.job(0), reason: Refusal::OutOfRange });
            return out;
        }
        for actions in bundles(&plan.actions.bundle) {
            if actions.end > PLAN_ACTIONS_MAX {
                let action = actions.start as u32;
                out.verdicts.push(Verdict { action, job: reader.job(actions.start), reason: Refusal::PlanTooLong });
                break;
            }
            self.judge_bundle(&mut reader, now_ns, actions, &mut out);
        }
        out
    }

    fn judge_bundle(&mut self, reader: &mut Reader, now_ns: TimeNs, actions: Range<usize>, out: &mut Judgement) {
        let mut prepared = Vec::with_capacity(actions.len());
        let mut failures = BTreeMap::new();
        for action in actions.clone() {
            match reader.prepare(self, action) {
                Ok(action) => prepared.push(action),
                Err(reason) => _ = failures.insert(action, reason),
            }
        }
        if failures.is_empty() {
            match self.exchange(&mut prepared) {
                Ok(save) => return self.accept(now_ns, &save, prepared, out),
                Err((action, reason)) => _ = failures.insert(action, reason),
            }
        }
        out.verdicts.extend(actions.map(|action| Verdict {
            action: action as u32,
            job: reader.job(action),
            reason: failures.get(&action).copied().unwrap_or(Refusal::GroupBroken),
        }));
    }

    /// Gives back all that the bundle gives back, then takes all that it takes; on failure nothing happened.
    fn exchange(&mut self, bundle: &mut [Prepared]) -> Result<Savepoint, (usize, Refusal)> {
        let mut save = Savepoint::default();
        for action in bundle.iter() {
            if !matches!(action.step, Step::Start | Step::Hold) {
                self.give_back(&mut save, action.job);
            }
        }
        match self.take_all(&mut save, bundle) {
            Ok(()) => Ok(save),
            Err(failure) => {
                self.undo(save);
                Err(failure)
            }
        }
    }

    /// Running workers keep their devices, so resizes take first; then rows that name devices; the host picks for the
    /// others from what is left.
    fn take_all(&mut self, save: &mut Savepoint, bundle: &mut [Prepared]) -> Result<(), (usize, Refusal)> {
        for resizes in [true, false] {
            for action in bundle.iter().filter(|action| action.step.is_resize() == resizes) {
                self.take_named(save, action).map_err(|reason| (action.action, reason))?;
            }
        }
        for action in bundle.iter_mut() {
            self.take_picked(save, action).map_err(|reason| (action.action, reason))?;
        }
        Ok(())
    }

    fn take_named(&mut self, save: &mut Savepoint, action: &Prepared) -> Result<(), Refusal> {
        for row in &action.rows {
            let room = self.room_mut(save, row.node).ok_or(Refusal::UnknownId)?;
            let floor = if action.step.is_resize() { save.floor(row.node) } else { Room::ZERO };
            room.take_host(row, &floor)?;
            room.take_devices(row, &floor)?;
        }
        match self.job(action.job).map(|job| job.spec.queue) {
            Some(queue) if !action.rows.is_empty() => self.take_quota(save, queue, Usage::of(&action.rows)),
            _ => Ok(()),
        }
    }

    fn take_picked(&mut self, save: &mut Savepoint, action: &mut Prepared) -> Result<(), Refusal> {
        for row in action.rows.iter_mut().filter(|row| row.gpu_milli > 0 && row.device_mask == 0) {
            let group = self.job(action.job).and_then(|job| job.spec.groups.get(row.group as usize));
            let whole = placement::is_whole(group.ok_or(Refusal::UnknownId)?);
            let room = self.room_mut(save, row.node).ok_or(Refusal::UnknownId)?;
            row.device_mask = room.pick_devices(row.gpu_milli, whole)?;
            room.take_devices(row, &Room::ZERO)?;
        }
        Ok(())
    }

    fn accept(&mut self, now_ns: TimeNs, save: &Savepoint, mut bundle: Vec<Prepared>, out: &mut Judgement) {
        out.accepted += bundle.len() as u32;
        bundle.sort_by_key(|action| match action.step {
            Step::Rescale { .. } => Step::Rescale { batch_per_gpu: 0 },
            step => step,
        });
        let mut after = Vec::new();
        for action in bundle {
            if action.step == Step::Hold {
                self.set_reason(action.job, action.reason.clone());
                out.holds.push(Hold { job: action.job, reason: action.reason });
            } else if !self.changes_nothing(&action) {
                out.commands.push(command(&action));
                after.push((action.action as u32, after_of(action)));
            }
        }
        if !after.is_empty() {
            let jobs: Vec<_> = after.iter().map(|(_, after)| after.job).collect();
            out.before.extend(self.commit(now_ns, save, after));
            if cfg!(debug_assertions) {
                let nodes: Vec<_> = save.nodes().collect();
                let broken = self.check_some(&nodes, &jobs).err();
                debug_assert!(broken.is_none(), "a judged bundle broke the state: {broken:?}");
            }
        }
    }

    /// A resize to what the job holds already costs nobody anything.
    fn changes_nothing(&self, action: &Prepared) -> bool {
        action.step.is_resize() && self.job(action.job).is_some_and(|job| job.allocations == action.rows)
    }
}

/// Ranges of actions with one bundle number.
fn bundles(numbers: &[u32]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    numbers.chunk_by(|a, b| a == b).map(move |chunk| {
        let range = start..start + chunk.len();
        start = range.end;
        range
    })
}

fn command(action: &Prepared) -> Command {
    let (job, allocations) = (action.job, action.rows.clone());
    match action.step {
        Step::Start => Command::Start { job, allocations },
        Step::Shrink | Step::Grow => Command::Resize { job, allocations },
        Step::Rescale { batch_per_gpu } => Command::Rescale { job, allocations, batch_per_gpu },
        Step::Preempt | Step::Hold => Command::Preempt { job },
    }
}

fn after_of(action: Prepared) -> After {
    let rescale = if let Step::Rescale { batch_per_gpu } = action.step { Some(batch_per_gpu) } else { None };
    After {
        job: action.job,
        phase: if action.step == Step::Preempt { JobPhase::Waiting } else { JobPhase::Running },
        allocations: action.rows,
        starts: action.step == Step::Start || rescale.is_some(),
        batch_per_gpu: rescale.unwrap_or(0),
        reason: action.reason,
    }
}
