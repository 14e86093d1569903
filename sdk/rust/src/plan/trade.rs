//! Bundles whose steps take each other's places: the host judges a bundle by its net effect, and so does this.

use coretuner_contract::NONE;
use coretuner_contract::plan::{Reason, Verb};

use crate::cluster::{Allocation, Job, Phase};
use crate::id::{JobId, NodeId};
use crate::plan::{Placement, PlanBuilder, PlanError, Resize, check, table};

/// What a step does to its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Starts a waiting job; the placements are its whole gang.
    Start(Vec<Placement>),
    /// New CPU or memory in place.
    Resize(Vec<Resize>),
    /// A new placement and batch (0 = unchanged); the job restarts from its checkpoint.
    Rescale(Vec<Placement>, u32),
    /// Stops a running job.
    Preempt,
}

/// A reason with the numbers behind it: a code from the policy's `REASONS`.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    pub code: &'static str,
    pub arguments: Vec<f64>,
    pub node: Option<NodeId>,
    pub other_job: Option<JobId>,
}

impl Why {
    /// A reason with its code and arguments.
    pub fn new(code: &'static str, arguments: &[f64]) -> Self {
        Self { code, arguments: arguments.to_vec(), node: None, other_job: None }
    }

    /// The node that it speaks of.
    pub fn about_node(self, node: NodeId) -> Self {
        Self { node: Some(node), ..self }
    }

    /// The other job that it speaks of.
    pub fn about_job(self, job: JobId) -> Self {
        Self { other_job: Some(job), ..self }
    }
}

/// One job's part of a trade.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub job: JobId,
    pub change: Change,
    pub why: Why,
}

/// A step with its rows, legal apart from what is free.
struct Ready<'a> {
    verb: Verb,
    job: &'a Job,
    batch: u32,
    held: Vec<Allocation>,
    rows: Vec<Allocation>,
    why: Why,
}

impl<'a> PlanBuilder<'a> {
    /// Steps that stand or fall together and may take each other's places: all that they give back is given back before
    /// anything is taken. Steps that change nothing are left out. On error, which names the job, nothing is noted.
    pub fn trade(&mut self, steps: Vec<Step>) -> Result<(), (JobId, PlanError)> {
        let mut ready = Vec::with_capacity(steps.len());
        for step in steps {
            let job = step.job;
            if ready.iter().any(|other: &Ready<'_>| other.job.id == job) {
                return Err((job, PlanError::Twice(job)));
            }
            ready.extend(self.prepare(step).map_err(|error| (job, error))?);
        }
        let mark = self.space.savepoint();
        ready.iter().for_each(|step| self.give_back(step.job, &step.held));
        // Resized jobs keep their devices, so they take first.
        let (kept, placed): (Vec<_>, Vec<_>) = ready.iter_mut().partition(|step| step.verb == Verb::Resize);
        for step in kept.into_iter().chain(placed) {
            if let Err(error) = self.take(step.job, &mut step.rows) {
                self.space.rollback(mark);
                return Err((step.job.id, error));
            }
        }
        self.note_bundle(&ready);
        Ok(())
    }

    fn prepare(&self, step: Step) -> Result<Option<Ready<'a>>, PlanError> {
        let waits = matches!(step.change, Change::Start(_));
        let job = self.actionable(step.job, if waits { Phase::Waiting } else { Phase::Running })?;
        let whole = |placements: &[Placement]| check::whole(self.cluster(), job, placements);
        let (verb, batch, held, rows) = match step.change {
            Change::Start(placements) => (Verb::Start, 0, Vec::new(), whole(&placements)?),
            Change::Resize(resizes) => {
                let (held, new): (Vec<_>, Vec<_>) = check::resize(job, &resizes)?.into_iter().unzip();
                if new.is_empty() {
                    return Ok(None);
                }
                (Verb::Resize, 0, held, new)
            }
            Change::Rescale(placements, batch) => {
                check::may_interrupt(self.cluster(), job)?;
                (Verb::Rescale, batch, job.allocations.clone(), whole(&placements)?)
            }
            Change::Preempt => {
                check::may_interrupt(self.cluster(), job)?;
                (Verb::Preempt, 0, job.allocations.clone(), Vec::new())
            }
        };
        Ok(Some(Ready { verb, job, batch, held, rows, why: step.why }))
    }

    fn note_bundle(&mut self, ready: &[Ready<'_>]) {
        for step in ready {
            self.acted.insert(step.job.id);
            let action = table::push(&mut self.plan, step.verb, step.job.id, self.bundle, step.batch, &step.rows);
            self.plan.actions.reason[action] = self.plan.reasons.len() as u32;
            self.plan.reasons.push(Reason {
                code: step.why.code.to_owned(),
                arguments: step.why.arguments.clone(),
                node: step.why.node.map_or(NONE, |node| node.0),
                other_job: step.why.other_job.map_or(NONE, |job| job.0),
            });
        }
        if !ready.is_empty() && !self.in_bundle {
            self.bundle += 1;
        }
    }
}
