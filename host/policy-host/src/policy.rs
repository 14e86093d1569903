//! A component as a [`Policy`].

use coretuner_contract::cluster::Delta;
use coretuner_core::port::{Answer, Policy, PolicyFault, PolicyIdentity};

use crate::fault::start_fault;
use crate::guest::{Guest, MetricBook};
use crate::host::Services;
use crate::instance::Live;
use crate::limits::Limits;
use crate::load::{LoadError, LoadedPolicy};

/// One instance of a loaded policy: one live store, replaced after every fault and when worn.
pub struct WasmPolicy {
    loaded: LoadedPolicy,
    configuration: String,
    services: Services,
    /// `None` after a fault, until [`Policy::reset`].
    live: Option<Live>,
    /// No image was sent to the live instance yet.
    fresh: bool,
    /// Metrics of ended instances.
    metrics: MetricBook,
    instances: u64,
}

/// What `save-state` wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// The policy's own version of the blob.
    pub version: u32,
    pub bytes: Vec<u8>,
}

/// State could not be handed over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    #[error("the policy refused: {0}")]
    Refused(String),
    #[error("the state has {bytes} bytes, {limit} are allowed")]
    TooLarge { bytes: u64, limit: u64 },
    #[error(transparent)]
    Fault(#[from] PolicyFault),
}

impl WasmPolicy {
    /// Starts and configures the first instance.
    pub(crate) fn start(loaded: LoadedPolicy, configuration: &str, services: Services) -> Result<Self, LoadError> {
        let policy = loaded.identity().name.clone();
        let limit = loaded.engine().limits().configuration_bytes;
        if configuration.len() as u64 > limit {
            let message = format!("it has {} bytes, {limit} are allowed", configuration.len());
            return Err(LoadError::Configuration { policy, message });
        }
        let (configuration, metrics) = (configuration.to_owned(), MetricBook::default());
        let mut own = Self { loaded, configuration, services, live: None, fresh: true, metrics, instances: 0 };
        let mut live = own.spawn().map_err(|fault| LoadError::Start { policy: policy.clone(), fault })?;
        match live.configure(&own.configuration) {
            Ok(Ok(())) => own.live = Some(live),
            Ok(Err(message)) => return Err(LoadError::Configuration { policy, message }),
            Err(fault) => return Err(LoadError::Start { policy, fault }),
        }
        Ok(own)
    }

    /// The component that this is an instance of.
    pub fn loaded(&self) -> &LoadedPolicy {
        &self.loaded
    }

    /// Hands a new configuration to the live instance. When the policy refuses it, the old one stays in force.
    pub fn reconfigure(&mut self, json: &str) -> Result<(), StateError> {
        let answer = self.call(|live| live.configure(json))?;
        answer.map_err(StateError::Refused)?;
        json.clone_into(&mut self.configuration);
        Ok(())
    }

    /// Asks the policy for a blob to hand to its successor; `None` when it keeps nothing.
    pub fn save_state(&mut self) -> Result<Option<SavedState>, StateError> {
        let answer = self.call(Live::save_state)?.map_err(StateError::Refused)?;
        let limit = self.loaded.engine().limits().state_bytes;
        match answer {
            Some(state) if state.bytes.len() as u64 > limit => {
                Err(StateError::TooLarge { bytes: state.bytes.len() as u64, limit })
            }
            state => Ok(state.map(|state| SavedState { version: state.version, bytes: state.bytes })),
        }
    }

    /// Hands a predecessor's blob over. The policy may refuse: the swap is then off.
    pub fn restore_state(&mut self, state: &SavedState) -> Result<(), StateError> {
        let limit = self.loaded.engine().limits().state_bytes;
        if state.bytes.len() as u64 > limit {
            return Err(StateError::TooLarge { bytes: state.bytes.len() as u64, limit });
        }
        self.call(|live| live.restore_state(state.version, &state.bytes))?.map_err(StateError::Refused)
    }

    /// Metric series that the policy wrote, by name; they outlive instances.
    pub fn metrics(&self) -> Vec<(String, f64)> {
        self.live.as_ref().map_or(&self.metrics, |live| &live.guest().metrics).values()
    }

    /// Metric writes that were refused since the last instance started.
    pub fn metrics_dropped(&self) -> u64 {
        self.live.as_ref().map_or(&self.metrics, |live| &live.guest().metrics).dropped()
    }

    /// Log messages that the live instance wrote over its allowance.
    pub fn log_dropped(&self) -> u64 {
        self.live.as_ref().map_or(0, |live| live.guest().log.dropped())
    }

    /// Last log lines of the live instance, oldest first.
    pub fn log_tail(&self) -> Vec<String> {
        self.live.as_ref().map_or_else(Vec::new, |live| live.guest().log.tail())
    }

    /// Instances started so far; the first one counts.
    pub fn instances_started(&self) -> u64 {
        self.instances
    }

    /// A new instance, not configured.
    fn spawn(&mut self) -> Result<Live, PolicyFault> {
        let mut guest: Guest = self.loaded.guest(&self.services);
        guest.metrics = std::mem::take(&mut self.metrics);
        self.instances += 1;
        Ok(Live::start(self.loaded.linked(), guest)?)
    }

    /// Drops the store: a store that has trapped must never be entered again.
    fn retire(&mut self) {
        if let Some(live) = self.live.take() {
            self.metrics = live.end();
        }
    }

    fn call<R>(&mut self, run: impl FnOnce(&mut Live) -> Result<R, PolicyFault>) -> Result<R, PolicyFault> {
        let live = self.live.as_mut().ok_or_else(|| start_fault("no instance is live; reset it first".into()))?;
        let answer = run(live);
        if answer.is_err() {
            self.retire();
        }
        answer
    }

    fn is_worn(&self) -> bool {
        self.live.as_ref().is_some_and(Live::is_worn)
    }
}

impl Policy for WasmPolicy {
    fn identity(&self) -> &PolicyIdentity {
        self.loaded.identity()
    }

    fn decide(&mut self, delta: &Delta) -> Result<Answer, PolicyFault> {
        let image = delta.base_revision == 0;
        if image && self.is_worn() {
            self.reset()?;
        }
        if self.fresh && !image {
            return Err(start_fault("the first delta of an instance must be a full image".into()));
        }
        let answer = self.call(|live| live.decide(delta))?;
        self.fresh = false;
        Ok(answer)
    }

    fn reset(&mut self) -> Result<(), PolicyFault> {
        self.retire();
        self.fresh = true;
        let mut live = self.spawn()?;
        match live.configure(&self.configuration)? {
            Ok(()) => self.live = Some(live),
            Err(message) => return Err(start_fault(format!("the policy refused its configuration: {message}"))),
        }
        Ok(())
    }

    fn needs_image(&self) -> bool {
        self.fresh || self.is_worn()
    }

    fn commit(&mut self) {
        if let Some(live) = &mut self.live {
            live.guest_mut().kv.commit();
        }
    }
}

/// Compile-time proof that a policy may move to a worker thread.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<WasmPolicy>();
    let _ = Limits::size;
};
