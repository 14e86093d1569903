//! The component side (wasm only): generated bindings and the host's functions on top of them.
//!
//! The tables of `cluster` and `plan` are the contract crate's types, so that a delta is lifted straight into what the
//! SDK reads and a plan is lowered from what it built.

use coretuner_contract::cluster::Delta;
use coretuner_contract::plan::Plan;

use crate::host::{HostHandle, KvError, Level};
use crate::id::JobId;
use crate::instance::Instance;
use crate::policy::{Policy, Reason, SavedState};
use crate::predict::{CurveRequest, Curves, PredictError};
use bindings::coretuner::policy::{job_details, kv, log, metrics, predict};
use bindings::exports::coretuner::policy::policy as wire;

/// What wit-bindgen makes of the contract.
#[allow(unsafe_code, missing_docs, clippy::all, reason = "generated code")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/v0_1",
        world: "scheduling-policy",
        with: {
            "coretuner:policy/cluster@0.1.0": coretuner_contract::cluster,
            "coretuner:policy/plan@0.1.0": coretuner_contract::plan,
        },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "coretuner_sdk::wasm::bindings",
    });
}

/// Sends the text of a panic to the host before the instance traps.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| log::write(log::Level::Error, &info.to_string())));
}

/// Ends the call with a message for the operator.
pub fn fail(message: &str) -> ! {
    log::write(log::Level::Error, message);
    std::process::abort()
}

impl HostHandle<'_> {
    /// The imports of this component.
    #[allow(clippy::new_without_default, reason = "a handle is made for a cycle, not by default")]
    pub fn new() -> Self {
        Self { host: std::marker::PhantomData }
    }

    pub(crate) fn reborrow(&mut self) -> HostHandle<'_> {
        HostHandle { host: std::marker::PhantomData }
    }

    /// Predictions; see the native handle.
    pub fn curves(&mut self, request: &CurveRequest) -> Result<Curves, PredictError> {
        let curves = predict::query(&predict::CurveRequest {
            model: request.model.clone(),
            jobs: request.jobs.iter().map(|job| job.0).collect(),
            gpu_kind_name: request.gpu_kind,
            gpus: request.gpus.clone(),
            nodes_spanned: request.nodes_spanned.clone(),
            cpu_milli: request.cpu_milli.clone(),
            memory_mib: request.memory_mib.clone(),
        });
        match curves {
            Ok(predict::Curves { mean, low, high, version }) => Ok(Curves { mean, low, high, version }),
            Err(error) => Err(match error {
                predict::PredictError::UnknownModel => PredictError::UnknownModel,
                predict::PredictError::UnknownJob => PredictError::UnknownJob,
                predict::PredictError::TooManyRows => PredictError::TooManyRows,
                predict::PredictError::Unavailable => PredictError::Unavailable,
                predict::PredictError::Late => PredictError::Late,
            }),
        }
    }

    /// Core count at which one observation would tell most.
    pub fn next_probe(&mut self, job: JobId) -> Option<u32> {
        predict::next_probe(job.0)
    }

    /// Writes a line to the operator's log.
    pub fn log(&mut self, level: Level, message: &str) {
        let level = match level {
            Level::Error => log::Level::Error,
            Level::Warn => log::Level::Warn,
            Level::Info => log::Level::Info,
            Level::Debug => log::Level::Debug,
            Level::Trace => log::Level::Trace,
        };
        log::write(level, message);
    }

    /// Value kept under `key`, if any.
    pub fn kv_get(&mut self, key: &str) -> Option<Vec<u8>> {
        kv::get(key)
    }

    /// Keeps `value` under `key`; takes effect with the accepted cycle.
    pub fn kv_set(&mut self, key: &str, value: &[u8]) -> Result<(), KvError> {
        kv::set(key, value).map_err(|error| match error {
            kv::KvError::TooLarge => KvError::TooLarge,
            kv::KvError::TooManyKeys => KvError::TooManyKeys,
        })
    }

    /// Forgets `key`.
    pub fn kv_delete(&mut self, key: &str) {
        kv::delete(key);
    }

    /// Keys that start with `prefix`, sorted.
    pub fn kv_keys(&mut self, prefix: &str) -> Vec<String> {
        kv::keys(prefix)
    }

    /// Sets a metric of this policy.
    pub fn gauge(&mut self, name: &str, value: f64) {
        metrics::gauge(name, value);
    }

    /// Adds to a counter of this policy.
    pub fn count(&mut self, name: &str, increment: f64) {
        metrics::count(name, increment);
    }

    /// Labels and annotations of a job, as key and value.
    pub fn labels(&mut self, job: JobId) -> Vec<(String, String)> {
        job_details::labels(job.0)
    }

    /// Descriptor of a job's model as JSON.
    pub fn model(&mut self, job: JobId) -> Option<String> {
        job_details::model(job.0)
    }
}

/// What `describe` answers.
pub fn describe<P: Policy>(version: &str) -> wire::Description {
    let about = Instance::<P>::describe();
    let reason = |reason: &Reason| wire::ReasonCode {
        code: reason.code.to_owned(),
        text: reason.text.to_owned(),
        arguments: reason.arguments.iter().map(|name| (*name).to_owned()).collect(),
    };
    wire::Description {
        name: about.name.to_owned(),
        version: version.to_owned(),
        summary: about.summary.to_owned(),
        configuration_schema: about.configuration_schema,
        reasons: about.reasons.iter().map(reason).collect(),
        state_version: about.state_version,
    }
}

/// What `decide` answers; a delta that does not fit ends the instance.
pub fn decide<P: Policy>(instance: &mut Instance<P>, delta: &Delta) -> Plan {
    instance.decide(delta, HostHandle::new()).unwrap_or_else(|error| fail(&error.to_string()))
}

/// What `save-state` answers.
pub fn save_state<P: Policy>(instance: &Instance<P>) -> Result<Option<wire::State>, String> {
    Ok(instance.save_state()?.map(|SavedState { version, bytes }| wire::State { version, bytes }))
}

/// What `restore-state` does.
pub fn restore_state<P: Policy>(instance: &mut Instance<P>, state: wire::State) -> Result<(), String> {
    instance.restore_state(SavedState { version: state.version, bytes: state.bytes })
}
