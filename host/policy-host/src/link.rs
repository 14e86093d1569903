//! Links the granted capabilities. Host functions never fail: they answer in the contract's own result types.

use std::time::Duration;

use coretuner_contract::VERSION;
use coretuner_core::model::JobId;
use wasmtime::component::{Component, ComponentNamedList, Instance, InstancePre, Lift, Linker, LinkerInstance, Lower};
use wasmtime::{AsContextMut, StoreContextMut};

use crate::bindings::coretuner::policy::cluster::Delta;
use crate::bindings::coretuner::policy::kv::KvError;
use crate::bindings::coretuner::policy::log::Level as WitLevel;
use crate::bindings::coretuner::policy::plan::Plan;
use crate::bindings::coretuner::policy::predict::{CurveRequest, Curves, PredictError};
use crate::bindings::exports::coretuner::policy::policy::{Description, StateParam, StateResult};
use crate::bindings::{SchedulingPolicy, SchedulingPolicyIndices};
use crate::engine::{Mode, PolicyEngine};
use crate::grants::{Capability, Grants};
use crate::guest::{Guest, Level};
use crate::kv::KvRefusal;
use crate::shape::PACKAGE;

type Store<'a> = StoreContextMut<'a, Guest>;

/// A component with its imports resolved and its exports found; types of exports are checked when an instance is bound.
pub(crate) struct Linked {
    pub(crate) pre: InstancePre<Guest>,
    indices: SchedulingPolicyIndices,
    /// Full name of the exported interface.
    export: String,
}

/// An export has not the type that the contract gives it.
#[derive(Debug, thiserror::Error)]
#[error("{function}: {message}")]
pub(crate) struct WrongType {
    function: &'static str,
    message: String,
}

impl Linked {
    /// Resolves the imports of a component whose names were checked before.
    pub(crate) fn new(
        engine: &PolicyEngine,
        component: &Component,
        grants: &Grants,
        export: &str,
    ) -> wasmtime::Result<Self> {
        let pre = linker(engine, grants)?.instantiate_pre(component)?;
        let indices = SchedulingPolicyIndices::new(&pre)?;
        Ok(Self { pre, indices, export: export.to_owned() })
    }

    /// Binds an instance's exports.
    pub(crate) fn bind(
        &self,
        store: &mut wasmtime::Store<Guest>,
        instance: &Instance,
    ) -> Result<SchedulingPolicy, WrongType> {
        self.indices.load(&mut *store, instance).map_err(|error| {
            self.mistyped(store, instance)
                .unwrap_or_else(|| WrongType { function: "its exports", message: format!("{error:#}") })
        })
    }

    /// Finds the first function of a wrong type; the generated code only says that there is one.
    fn mistyped(&self, store: &mut wasmtime::Store<Guest>, instance: &Instance) -> Option<WrongType> {
        self.probe::<(), (Description,)>(store, instance, "describe")
            .or_else(|| self.probe::<(&str,), (Result<(), String>,)>(store, instance, "configure"))
            .or_else(|| self.probe::<(Delta<'_>,), (Plan,)>(store, instance, "decide"))
            .or_else(|| self.probe::<(), (Result<Option<StateResult>, String>,)>(store, instance, "save-state"))
            .or_else(|| self.probe::<(StateParam<'_>,), (Result<(), String>,)>(store, instance, "restore-state"))
    }

    fn probe<P, R>(
        &self,
        store: &mut wasmtime::Store<Guest>,
        instance: &Instance,
        function: &'static str,
    ) -> Option<WrongType>
    where
        P: ComponentNamedList + Lower,
        R: ComponentNamedList + Lift,
    {
        let interface = instance.get_export_index(&mut *store, None, &self.export)?;
        let index = instance.get_export_index(&mut *store, Some(&interface), function)?;
        let error = instance.get_typed_func::<P, R>(&mut *store, index).err()?;
        Some(WrongType { function, message: format!("{error:#}") })
    }
}

/// A linker that offers what is granted and nothing else.
pub(crate) fn linker(engine: &PolicyEngine, grants: &Grants) -> wasmtime::Result<Linker<Guest>> {
    let mut linker = Linker::new(engine.wasm());
    for types in ["cluster", "plan"] {
        linker.instance(&interface(types))?;
    }
    for capability in grants.iter() {
        let mut instance = linker.instance(&interface(capability.name()))?;
        match capability {
            Capability::Log => log(&mut instance)?,
            Capability::Predict => predict(&mut instance)?,
            Capability::Kv => kv(&mut instance)?,
            Capability::Metrics => metrics(&mut instance)?,
            Capability::JobDetails => job_details(&mut instance)?,
        }
    }
    Ok(linker)
}

fn interface(name: &str) -> String {
    format!("{PACKAGE}/{name}@{VERSION}")
}

/// Charges a host call in metered mode: fuel does not run in host code, so a flood of calls must be paid for. Without
/// enough fuel the guest is stopped at its next check.
fn charge(store: &mut Store<'_>, bytes: u64) {
    let flat = store.data().engine.limits().host_call_fuel;
    spend(store, flat.saturating_add(bytes));
}

fn spend(store: &mut Store<'_>, fuel: u64) {
    if store.data().metered() {
        // Both succeed in an engine that consumes fuel.
        let left = store.get_fuel().unwrap_or(0);
        let _ = store.set_fuel(left.saturating_sub(fuel));
    }
}

fn log(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap("write", |mut store: Store<'_>, (level, message): (WitLevel, String)| {
        charge(&mut store, message.len() as u64);
        let level = match level {
            WitLevel::Error => Level::Error,
            WitLevel::Warn => Level::Warn,
            WitLevel::Info => Level::Info,
            WitLevel::Debug => Level::Debug,
            WitLevel::Trace => Level::Trace,
        };
        store.data_mut().log.write(level, message);
        Ok(())
    })
}

fn predict(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap("query", |store: Store<'_>, (request,): (CurveRequest,)| Ok((query(store, &request),)))?;
    instance.func_wrap("next-probe", |mut store: Store<'_>, (job,): (u32,)| {
        charge(&mut store, 0);
        Ok((store.data().predict.next_probe(job),))
    })
}

fn query(mut store: Store<'_>, request: &CurveRequest) -> Result<Curves, PredictError> {
    let guest = store.data_mut();
    let engine = guest.engine.clone();
    let limits = engine.limits();
    let wall = (engine.mode() == Mode::Production).then(|| Duration::from_millis(limits.predict_budget_ms));
    let before = engine.ticks_given();
    let (answer, cost) = guest.predict.query(limits, wall, request);
    charge(&mut store, cost.answer_bytes.saturating_add(cost.rows.saturating_mul(limits.predict_fuel_per_row)));
    extend_deadline(&mut store, engine.ticks_given().saturating_sub(before));
    answer
}

/// Gives back the time that the host took: prediction has a budget of its own and must not eat the guest's deadline.
fn extend_deadline(store: &mut Store<'_>, ticks: u64) {
    if ticks > 0 && !store.data().metered() {
        let guest = store.data_mut();
        guest.deadline_tick = guest.deadline_tick.saturating_add(ticks);
        let left = guest.deadline_tick.saturating_sub(guest.engine.ticks_given());
        store.as_context_mut().set_epoch_deadline(left);
    }
}

fn kv(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap("get", |mut store: Store<'_>, (key,): (String,)| {
        let value = store.data().kv.get(&key);
        charge(&mut store, value.as_ref().map_or(0, Vec::len) as u64);
        Ok((value,))
    })?;
    instance.func_wrap("set", |mut store: Store<'_>, (key, value): (String, Vec<u8>)| {
        charge(&mut store, value.len() as u64);
        let guest = store.data_mut();
        let set = guest.kv.set(guest.engine.limits(), key, value).map_err(|refusal| match refusal {
            KvRefusal::TooLarge => KvError::TooLarge,
            KvRefusal::TooManyKeys => KvError::TooManyKeys,
        });
        Ok((set,))
    })?;
    instance.func_wrap("delete", |mut store: Store<'_>, (key,): (String,)| {
        charge(&mut store, 0);
        store.data_mut().kv.delete(key);
        Ok(())
    })?;
    instance.func_wrap("keys", |mut store: Store<'_>, (prefix,): (String,)| {
        let keys = store.data().kv.keys(&prefix);
        charge(&mut store, keys.iter().map(|key| key.len() as u64).sum());
        Ok((keys,))
    })
}

fn metrics(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap("gauge", |mut store: Store<'_>, (name, value): (String, f64)| {
        charge(&mut store, name.len() as u64);
        let guest = store.data_mut();
        guest.metrics.gauge(guest.engine.limits(), name, value);
        Ok(())
    })?;
    instance.func_wrap("count", |mut store: Store<'_>, (name, increment): (String, f64)| {
        charge(&mut store, name.len() as u64);
        let guest = store.data_mut();
        guest.metrics.count(guest.engine.limits(), name, increment);
        Ok(())
    })
}

fn job_details(instance: &mut LinkerInstance<'_, Guest>) -> wasmtime::Result<()> {
    instance.func_wrap("labels", |mut store: Store<'_>, (job,): (u32,)| {
        let labels = store.data().details.as_ref().map_or_else(Vec::new, |details| details.labels(JobId(job)));
        charge(&mut store, labels.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum());
        Ok((labels,))
    })?;
    instance.func_wrap("model", |mut store: Store<'_>, (job,): (u32,)| {
        let model = store.data().details.as_ref().and_then(|details| details.model(JobId(job)));
        charge(&mut store, model.as_ref().map_or(0, String::len) as u64);
        Ok((model,))
    })
}
