use std::collections::BTreeMap;
use std::sync::Arc;

use crate::contract::cluster::Refusal;
use crate::contract::plan::Reason;
use crate::event::Command;
use crate::model::JobId;
use crate::state::Before;

/// What became of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// Accepted actions in the order in which they must be carried out; already applied to the state.
    pub commands: Vec<Command>,
    /// Refused actions, ascending.
    pub verdicts: Vec<Verdict>,
    /// Accepted reasons for waiting; also kept on the job.
    pub holds: Vec<Hold>,
    /// Accepted actions, holds and resizes that change nothing included.
    pub accepted: u32,
    /// What each command changed.
    pub(crate) before: Vec<Before>,
}

impl Judgement {
    /// Refused actions by reason.
    pub fn refused(&self) -> BTreeMap<Refusal, u32> {
        let mut counts = BTreeMap::new();
        for verdict in &self.verdicts {
            *counts.entry(verdict.reason).or_default() += 1;
        }
        counts
    }
}

/// An action was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Index in the plan.
    pub action: u32,
    pub job: JobId,
    pub reason: Refusal,
}

/// A policy says why a job waits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    pub job: JobId,
    pub reason: Option<Arc<Reason>>,
}
