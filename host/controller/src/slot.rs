use coretuner_contract::cluster::{Delta, Trigger};
use coretuner_core::judge::{Verdict, check_shape};
use coretuner_core::port::{Answer, FaultKind, Policy, PolicyFault};
use coretuner_core::state::State;
use coretuner_core::view::Cursor;

/// The active policy with what it has seen.
pub(crate) struct Slot<P> {
    pub(crate) policy: P,
    cursor: Cursor,
    /// Verdicts that its next delta brings.
    pub(crate) verdicts: Vec<Verdict>,
    /// The last instance failed and no fresh one could be started.
    down: bool,
}

/// How a policy took one cycle.
pub(crate) struct Asked {
    /// Absent where there was no instance to ask.
    pub(crate) delta: Option<Delta>,
    pub(crate) answer: Result<Answer, PolicyFault>,
    pub(crate) reset_failed: Option<PolicyFault>,
}

impl<P: Policy> Slot<P> {
    pub(crate) fn new(policy: P) -> Self {
        Self { policy, cursor: Cursor::new(), verdicts: Vec::new(), down: false }
    }

    /// Asks the policy; after a fault it is replaced by a fresh instance, which will see a full image.
    pub(crate) fn ask(&mut self, state: &State, trigger: Trigger) -> Asked {
        if self.down
            && let Err(fault) = self.restart()
        {
            return Asked { delta: None, answer: Err(fault.clone()), reset_failed: Some(fault) };
        }
        if self.policy.needs_image() {
            self.cursor.reset();
        }
        let delta = self.cursor.delta(state, trigger, &std::mem::take(&mut self.verdicts));
        let answer = self.policy.decide(&delta).and_then(|answer| readable(answer, state));
        let reset_failed = answer.as_ref().err().and_then(|_| self.restart().err());
        Asked { delta: Some(delta), answer, reset_failed }
    }

    fn restart(&mut self) -> Result<(), PolicyFault> {
        self.cursor.reset();
        self.verdicts.clear();
        let started = self.policy.reset();
        self.down = started.is_err();
        started
    }
}

/// A plan whose columns disagree is no answer.
fn readable(answer: Answer, state: &State) -> Result<Answer, PolicyFault> {
    check_shape(&answer.plan, state.revision()).map(|()| answer).map_err(|defect| PolicyFault {
        kind: FaultKind::InvalidAnswer,
        message: defect.to_string(),
        backtrace: Vec::new(),
        output_tail: Vec::new(),
    })
}
