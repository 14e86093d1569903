//! One live instance: a store and the exports bound to it. Nothing of it outlives the store.

use coretuner_contract::cluster::Delta;
use coretuner_core::port::{Answer, PolicyFault};
use wasmtime::Store;

use crate::bindings::SchedulingPolicy;
use crate::bindings::exports::coretuner::policy::policy::{Description, StateParam, StateResult};
use crate::engine::{Mode, PolicyEngine};
use crate::fault::{fault, start_fault};
use crate::guest::{Guest, MetricBook};
use crate::limits::Limits;
use crate::link::{Linked, WrongType};
use crate::lower;

/// One kind of call and what it may cost.
pub(crate) struct Phase {
    pub(crate) call: &'static str,
    pub(crate) deadline_ms: u64,
    pub(crate) fuel: u64,
    pub(crate) instantiates: bool,
}

impl Phase {
    fn start(limits: &Limits) -> Self {
        let call = "instantiate";
        Self { call, deadline_ms: limits.start_deadline_ms, fuel: limits.start_fuel, instantiates: true }
    }

    fn describe(limits: &Limits) -> Self {
        Self { call: "describe", instantiates: false, ..Self::start(limits) }
    }

    fn configure(limits: &Limits) -> Self {
        let (deadline_ms, fuel) = (limits.configure_deadline_ms, limits.configure_fuel);
        Self { call: "configure", deadline_ms, fuel, instantiates: false }
    }

    fn decide(limits: &Limits) -> Self {
        let (deadline_ms, fuel) = (limits.decide_deadline_ms, limits.decide_fuel);
        Self { call: "decide", deadline_ms, fuel, instantiates: false }
    }

    fn state(limits: &Limits, call: &'static str) -> Self {
        Self { call, deadline_ms: limits.state_deadline_ms, fuel: limits.state_fuel, instantiates: false }
    }
}

/// An instance could not be started.
pub(crate) enum StartFailure {
    Fault(PolicyFault),
    /// An export has not the type that the contract gives it; found only on the first instance of a component.
    WrongType(WrongType),
}

impl From<StartFailure> for PolicyFault {
    fn from(failure: StartFailure) -> Self {
        match failure {
            StartFailure::Fault(fault) => fault,
            StartFailure::WrongType(wrong) => start_fault(wrong.to_string()),
        }
    }
}

/// A started instance.
pub(crate) struct Live {
    store: Store<Guest>,
    policy: SchedulingPolicy,
    calls: u64,
    /// Memory after the first cycle, against which growth is measured.
    settled_bytes: Option<u64>,
}

impl Live {
    /// Instantiates. The only place where stores are made: bounded in time, memory and data from the start.
    pub(crate) fn start(linked: &Linked, guest: Guest) -> Result<Self, StartFailure> {
        let engine = guest.engine.clone();
        let phase = Phase::start(engine.limits());
        let mut store = Store::new(engine.wasm(), guest);
        store.limiter(|guest| &mut guest.memory);
        store.set_hostcall_fuel(Limits::size(engine.limits().answer_bytes));
        let missed = engine.ticks_missed();
        let instance = arm(&mut store, &phase).and_then(|()| linked.pre.instantiate(&mut store)).map_err(|error| {
            StartFailure::Fault(fault(&phase, store.data(), engine.ticks_missed() - missed, &error))
        })?;
        let policy = linked.bind(&mut store, &instance).map_err(StartFailure::WrongType)?;
        Ok(Self { store, policy, calls: 0, settled_bytes: None })
    }

    pub(crate) fn describe(&mut self) -> Result<Description, PolicyFault> {
        let phase = Phase::describe(self.limits());
        self.call(&phase, |policy, store| policy.coretuner_policy_policy().call_describe(store))
    }

    /// The inner error is the policy's own refusal.
    pub(crate) fn configure(&mut self, json: &str) -> Result<Result<(), String>, PolicyFault> {
        let phase = Phase::configure(self.limits());
        self.call(&phase, |policy, store| policy.coretuner_policy_policy().call_configure(store, json))
    }

    pub(crate) fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        let phase = Phase::decide(self.limits());
        self.store.data_mut().predict.observe(delta);
        let scratch = lower::Scratch::new(delta);
        let lent = lower::delta(delta, &scratch);
        let plan = self.call(&phase, |policy, store| policy.coretuner_policy_policy().call_decide(store, lent))?;
        self.calls += 1;
        let memory_bytes = self.store.data().memory.bytes();
        self.settled_bytes.get_or_insert(memory_bytes);
        let fuel = self.store.get_fuel().ok().map(|left| phase.fuel.saturating_sub(left));
        Ok(Answer { plan: lower::plan(plan), fuel, memory_bytes })
    }

    pub(crate) fn save_state(&mut self) -> Result<Result<Option<StateResult>, String>, PolicyFault> {
        let phase = Phase::state(self.limits(), "save-state");
        self.call(&phase, |policy, store| policy.coretuner_policy_policy().call_save_state(store))
    }

    pub(crate) fn restore_state(&mut self, version: u32, bytes: &[u8]) -> Result<Result<(), String>, PolicyFault> {
        let phase = Phase::state(self.limits(), "restore-state");
        let state = StateParam { version, bytes };
        self.call(&phase, |policy, store| policy.coretuner_policy_policy().call_restore_state(store, state))
    }

    pub(crate) fn guest(&self) -> &Guest {
        self.store.data()
    }

    pub(crate) fn guest_mut(&mut self) -> &mut Guest {
        self.store.data_mut()
    }

    /// Frees the store; what shall outlive it comes back.
    pub(crate) fn end(self) -> MetricBook {
        self.store.into_data().metrics
    }

    /// Whether the instance is old or large enough to be replaced.
    pub(crate) fn is_worn(&self) -> bool {
        let limits = self.store.data().engine.limits();
        let settled = self.settled_bytes.unwrap_or(u64::MAX);
        let growth = self.store.data().memory.bytes().saturating_sub(settled);
        self.calls >= limits.renew_after_calls || growth > limits.renew_after_growth_bytes
    }

    fn limits(&self) -> &Limits {
        self.store.data().engine.limits()
    }

    /// Every call into the guest goes through here: its allowance is set anew each time.
    fn call<R>(
        &mut self,
        phase: &Phase,
        run: impl FnOnce(&SchedulingPolicy, &mut Store<Guest>) -> wasmtime::Result<R>,
    ) -> Result<R, PolicyFault> {
        let missed = self.store.data().engine.ticks_missed();
        self.store.data_mut().begin_call();
        arm(&mut self.store, phase).and_then(|()| run(&self.policy, &mut self.store)).map_err(|error| {
            let guest = self.store.data();
            fault(phase, guest, guest.engine.ticks_missed() - missed, &error)
        })
    }
}

/// Gives the store its deadline or fuel for one call.
fn arm(store: &mut Store<Guest>, phase: &Phase) -> wasmtime::Result<()> {
    let engine: &PolicyEngine = &store.data().engine;
    match engine.mode() {
        Mode::Production => {
            // One more: the tick under way is not whole.
            let ticks = phase.deadline_ms.div_ceil(engine.limits().epoch_tick_ms.max(1)).saturating_add(1);
            let deadline_tick = engine.ticks_given().saturating_add(ticks);
            store.data_mut().deadline_tick = deadline_tick;
            store.set_epoch_deadline(ticks);
            Ok(())
        }
        Mode::Metered => store.set_fuel(phase.fuel),
    }
}
