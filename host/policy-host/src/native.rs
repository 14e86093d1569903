//! The policy port over Rust code in this process: the same policy natively, for unit tests and cost comparison.

use coretuner_contract::cluster::Delta;
use coretuner_contract::plan::Plan;
use coretuner_core::port::{Answer, Policy, PolicyFault, PolicyIdentity};

use crate::fault::start_fault;

/// One instance's `decide`.
pub type NativeDecide = Box<dyn FnMut(&Delta) -> Plan + Send>;

/// Makes an instance, configured; an error is its refusal of the configuration.
pub type NativeFactory = Box<dyn FnMut() -> Result<NativeDecide, String> + Send>;

/// A policy without sandbox and without limits: trusted code only.
pub struct NativePolicy {
    identity: PolicyIdentity,
    factory: NativeFactory,
    live: NativeDecide,
    fresh: bool,
}

impl NativePolicy {
    /// Starts the first instance.
    pub fn new(
        name: &str,
        version: &str,
        mut factory: impl FnMut() -> Result<NativeDecide, String> + Send + 'static,
    ) -> Result<Self, PolicyFault> {
        let identity = PolicyIdentity { name: name.into(), version: version.into(), digest: "native".into() };
        let live = factory().map_err(start_fault)?;
        Ok(Self { identity, factory: Box::new(factory), live, fresh: true })
    }
}

impl Policy for NativePolicy {
    fn identity(&self) -> &PolicyIdentity {
        &self.identity
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        self.fresh = false;
        Ok(Answer { plan: (self.live)(delta), fuel: None, memory_bytes: 0 })
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        self.live = (self.factory)().map_err(start_fault)?;
        self.fresh = true;
        Ok(())
    }

    fn needs_image(&self) -> bool {
        self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coretuner_core::port::FaultKind;

    #[test]
    fn each_reset_makes_an_instance_of_its_own() {
        let mut made = 0;
        let mut policy = NativePolicy::new("count", "1", move || {
            made += 1;
            let mut cycles = 0;
            let decide = move |_: &Delta| {
                cycles += 1;
                Plan { revision: cycles, ..Plan::default() }
            };
            if made < 3 { Ok(Box::new(decide) as NativeDecide) } else { Err("no more".into()) }
        })
        .unwrap();
        let revision = |policy: &mut NativePolicy| policy.decide(&Delta::default()).unwrap().plan.revision;
        assert!(policy.needs_image());
        assert_eq!((revision(&mut policy), revision(&mut policy)), (1, 2));
        assert!(!policy.needs_image());
        policy.reset().unwrap();
        assert_eq!(revision(&mut policy), 1);
        assert_eq!(policy.reset().unwrap_err().kind, FaultKind::Start);
    }
}
