use coretuner_contract::cluster::Delta;
use coretuner_contract::plan::Plan;
use coretuner_core::event::{Batch, Command};
use coretuner_core::fallback;
use coretuner_core::judge::{Judgement, Verdict};
use coretuner_core::model::{JobId, TimeNs};
use coretuner_core::port::Policy;
use coretuner_core::state::State;

use crate::slot::{Asked, Slot};
use crate::wake::WakeGuard;
use crate::{CycleError, CycleReport, WakeLimits, trigger};

/// Runs cycles: state, active policy, fallback.
pub struct Controller<P> {
    pub(crate) state: State,
    slot: Slot<P>,
    wake: WakeGuard,
}

/// What one cycle decided.
#[derive(Clone, Debug, PartialEq)]
pub struct CycleOutcome {
    /// To be carried out in this order; the state shows them already.
    pub commands: Vec<Command>,
    pub report: CycleReport,
    /// What the policy was told; absent where no instance could be asked.
    pub delta: Option<Delta>,
    /// The plan that was judged: the policy's or the fallback's.
    pub plan: Plan,
    judgement: Judgement,
}

impl<P: Policy> Controller<P> {
    /// A controller over an empty cluster.
    pub fn new(policy: P) -> Self {
        Self::with_state(State::new(), policy)
    }

    /// A controller over a cluster that is known already; the policy sees it as a full image.
    pub fn with_state(state: State, policy: P) -> Self {
        Self { state, slot: Slot::new(policy), wake: WakeGuard::default() }
    }

    /// The same with other bounds on wake-ups.
    pub fn wake_limits(mut self, limits: WakeLimits) -> Self {
        self.wake.limits = limits;
        self
    }

    /// The cluster, with everything accepted so far.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The active policy.
    pub fn policy(&self) -> &P {
        &self.slot.policy
    }

    /// One cycle: events, delta, plan, verdicts. The commands are in the state already; what the backend refuses of
    /// them must come back through [`Controller::refused`] before the next cycle.
    pub fn run_batch(&mut self, batch: &Batch) -> Result<CycleOutcome, CycleError> {
        for (index, event) in batch.events.iter().enumerate() {
            let applied = self.state.apply(batch.now_ns, event);
            applied.map_err(|source| CycleError::Event { index, now_ns: batch.now_ns, source })?;
        }
        self.state.advance(batch.now_ns);
        let revision = self.state.revision();
        let asked = self.slot.ask(&self.state, trigger::of(batch));
        let mut outcome = self.judge(batch.now_ns, asked);
        outcome.report.revision = revision;
        let name = &self.slot.policy.identity().name;
        self.wake.note(&self.state, batch, outcome.commands.len(), name)?;
        let wanted_ns = if outcome.report.fallback { self.wake.pending_ns() } else { outcome.plan.wake_at_ns };
        outcome.report.wake_at_ns = self.wake.next(&self.state, batch.now_ns, wanted_ns);
        Ok(outcome)
    }

    fn judge(&mut self, now_ns: TimeNs, asked: Asked) -> CycleOutcome {
        let mut report = CycleReport { now_ns, reset_failed: asked.reset_failed, ..CycleReport::default() };
        report.trigger = asked.delta.as_ref().map(|delta| delta.trigger).unwrap_or_default();
        let plan = match asked.answer {
            Ok(answer) => {
                (report.fuel, report.memory_bytes) = (answer.fuel, answer.memory_bytes);
                answer.plan
            }
            Err(fault) => {
                tracing::warn!(kind = fault.kind.name(), message = %fault.message, "the fallback answers this cycle");
                (report.fault, report.fallback) = (Some(fault), true);
                fallback::plan(&self.state)
            }
        };
        let mut judgement = self.state.judge(now_ns, &plan);
        if !report.fallback {
            self.slot.verdicts.clone_from(&judgement.verdicts);
            self.slot.policy.commit();
        }
        report.accepted = judgement.accepted;
        report.refused = judgement.refused();
        report.verdicts.clone_from(&judgement.verdicts);
        report.holds = std::mem::take(&mut judgement.holds);
        let commands = std::mem::take(&mut judgement.commands);
        CycleOutcome { commands, report, delta: asked.delta, plan, judgement }
    }

    /// Takes back the commands of `outcome` that the backend refused. The policy hears of its own with the next delta.
    pub fn refused(&mut self, outcome: &CycleOutcome, jobs: &[JobId]) -> Result<Vec<Verdict>, CycleError> {
        let rolled_back = self.state.roll_back(&outcome.judgement, jobs);
        let verdicts = rolled_back.map_err(|source| CycleError::RollBack { now_ns: outcome.report.now_ns, source })?;
        if !outcome.report.fallback {
            self.slot.verdicts.extend_from_slice(&verdicts);
            self.slot.verdicts.sort_by_key(|verdict| verdict.action);
        }
        Ok(verdicts)
    }
}
