use std::collections::BTreeMap;

use coretuner_contract::cluster::{Refusal, Trigger};
use coretuner_core::judge::{Hold, Verdict};
use coretuner_core::model::TimeNs;
use coretuner_core::port::PolicyFault;

/// What one cycle did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CycleReport {
    pub now_ns: TimeNs,
    /// Revision that the policy saw.
    pub revision: u64,
    pub trigger: Trigger,
    /// Actions accepted, holds included.
    pub accepted: u32,
    /// Refused actions of the plan that was judged, by reason. What the backend refuses comes on top.
    pub refused: BTreeMap<Refusal, u32>,
    pub verdicts: Vec<Verdict>,
    pub holds: Vec<Hold>,
    /// The policy failed in this cycle.
    pub fault: Option<PolicyFault>,
    /// The plan is the fallback's.
    pub fallback: bool,
    /// A fresh instance could not be started after a fault; it is tried again in the next cycle.
    pub reset_failed: Option<PolicyFault>,
    /// Where the engine meters it and the policy answered.
    pub fuel: Option<u64>,
    /// Guest memory after the call, bytes.
    pub memory_bytes: u64,
    /// When the policy wants to be asked next, within the limits.
    pub wake_at_ns: Option<TimeNs>,
}
