//! What a policy may ask of the host. In a component each function used becomes an import that the operator grants.

use crate::id::JobId;
use crate::predict::{CurveRequest, Curves, PredictError};

/// How much a log line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Why a value was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvError {
    TooLarge,
    TooManyKeys,
}

impl std::fmt::Display for KvError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the value is larger than the host keeps",
            Self::TooManyKeys => "the host keeps no more keys",
        })
    }
}

impl std::error::Error for KvError {}

/// The host as native code provides it; the default methods grant nothing.
pub trait Host {
    fn curves(&mut self, _request: &CurveRequest) -> Result<Curves, PredictError> {
        Err(PredictError::Unavailable)
    }

    fn next_probe(&mut self, _job: JobId) -> Option<u32> {
        None
    }

    fn log(&mut self, _level: Level, _message: &str) {}

    fn kv_get(&mut self, _key: &str) -> Option<Vec<u8>> {
        None
    }

    fn kv_set(&mut self, _key: &str, _value: &[u8]) -> Result<(), KvError> {
        Err(KvError::TooManyKeys)
    }

    fn kv_delete(&mut self, _key: &str) {}

    fn kv_keys(&mut self, _prefix: &str) -> Vec<String> {
        Vec::new()
    }

    fn gauge(&mut self, _name: &str, _value: f64) {}

    fn count(&mut self, _name: &str, _increment: f64) {}

    fn labels(&mut self, _job: JobId) -> Vec<(String, String)> {
        Vec::new()
    }

    fn model(&mut self, _job: JobId) -> Option<String> {
        None
    }
}

/// A host that grants nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {}

/// The host of the running cycle. Not a trait object in a component: what a policy never calls must not be imported.
pub struct HostHandle<'a> {
    #[cfg(not(target_arch = "wasm32"))]
    host: &'a mut dyn Host,
    #[cfg(target_arch = "wasm32")]
    pub(crate) host: std::marker::PhantomData<&'a mut ()>,
}

impl std::fmt::Debug for HostHandle<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostHandle")
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl<'a> HostHandle<'a> {
    /// A handle on native code's host.
    pub fn new(host: &'a mut dyn Host) -> Self {
        Self { host }
    }

    pub(crate) fn reborrow(&mut self) -> HostHandle<'_> {
        HostHandle { host: &mut *self.host }
    }

    /// Predictions; [`crate::Cycle::speeds`] is easier.
    pub fn curves(&mut self, request: &CurveRequest) -> Result<Curves, PredictError> {
        self.host.curves(request)
    }

    /// Core count (`cpu_milli` of the whole job) at which one observation of this job would tell most.
    pub fn next_probe(&mut self, job: JobId) -> Option<u32> {
        self.host.next_probe(job)
    }

    /// Writes a line to the operator's log.
    pub fn log(&mut self, level: Level, message: &str) {
        self.host.log(level, message);
    }

    /// A value that outlives swaps and restarts.
    pub fn kv_get(&mut self, key: &str) -> Option<Vec<u8>> {
        self.host.kv_get(key)
    }

    /// Takes effect with the accepted cycle.
    pub fn kv_set(&mut self, key: &str, value: &[u8]) -> Result<(), KvError> {
        self.host.kv_set(key, value)
    }

    /// Forgets a value; takes effect with the accepted cycle.
    pub fn kv_delete(&mut self, key: &str) {
        self.host.kv_delete(key);
    }

    /// Keys that start with `prefix`, ascending.
    pub fn kv_keys(&mut self, prefix: &str) -> Vec<String> {
        self.host.kv_keys(prefix)
    }

    /// Sets a metric.
    pub fn gauge(&mut self, name: &str, value: f64) {
        self.host.gauge(name, value);
    }

    /// Adds to a metric.
    pub fn count(&mut self, name: &str, increment: f64) {
        self.host.count(name, increment);
    }

    /// Labels and annotations of a job.
    pub fn labels(&mut self, job: JobId) -> Vec<(String, String)> {
        self.host.labels(job)
    }

    /// Descriptor of a job's model as JSON.
    pub fn model(&mut self, job: JobId) -> Option<String> {
        self.host.model(job)
    }
}
