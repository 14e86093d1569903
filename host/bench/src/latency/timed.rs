//! A policy whose decisions are timed.

use coretuner_core::contract::cluster::Delta;
use coretuner_core::port::{Answer, Policy, PolicyFault, PolicyIdentity};
use std::time::{Duration, Instant};

/// One decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) time: Duration,
    /// What was answered, to compare runs.
    pub(super) actions: usize,
    /// Whether it saw the whole cluster for the first time.
    pub(super) image: bool,
}

/// Passes every call on.
pub(super) struct Timed<'a, P> {
    pub(super) policy: P,
    pub(super) decisions: &'a mut Vec<Decision>,
}

impl<P: Policy> Policy for Timed<'_, P> {
    fn identity(&self) -> &PolicyIdentity {
        self.policy.identity()
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        let image = self.policy.needs_image();
        let start = Instant::now();
        let answer = self.policy.decide(delta);
        let time = start.elapsed();
        let actions = answer.as_ref().map_or(0, |answer| answer.plan.actions.job.len());
        self.decisions.push(Decision { time, actions, image });
        answer
    }

    fn needs_image(&self) -> bool {
        self.policy.needs_image()
    }

    fn commit(&mut self) {
        self.policy.commit();
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        self.policy.reset()
    }
}
