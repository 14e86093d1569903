//! The components, compiled once.

use crate::error::Error;
use coretuner_core::port::Predictor;
use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, Services, WasmPolicy};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Compiled policies by name.
pub(crate) struct Stage {
    policies: BTreeMap<String, (PathBuf, LoadedPolicy)>,
}

impl Stage {
    /// Compiles `names` from the folder of components.
    pub(crate) fn new(guests: &Path, names: &[&str], mode: Mode) -> Result<Self, Error> {
        Self::with_limits(guests, names, mode, Limits::default())
    }

    /// The same with limits of one's own.
    pub(crate) fn with_limits(guests: &Path, names: &[&str], mode: Mode, limits: Limits) -> Result<Self, Error> {
        let engine = PolicyEngine::new(mode, limits)?;
        let mut policies = BTreeMap::new();
        for name in names {
            let path = guests.join(format!("{name}.wasm"));
            let loaded = LoadedPolicy::from_file(&engine, &path, &Grants::all(), &CodeCache::disabled())
                .map_err(|source| Error::Load { path: path.clone(), source: Box::new(source) })?;
            policies.insert((*name).to_owned(), (path, loaded));
        }
        Ok(Self { policies })
    }

    /// A new instance.
    pub(crate) fn instance(
        &self,
        name: &str,
        config: &Json,
        predictor: Arc<dyn Predictor>,
    ) -> Result<WasmPolicy, Error> {
        let (path, loaded) = self.policies.get(name).ok_or_else(|| Error::NotLoaded(name.to_owned()))?;
        let services = Services { predictor: Some(predictor), ..Services::default() };
        let failed = |source| Error::Load { path: path.clone(), source: Box::new(source) };
        loaded.instantiate(&config.to_string(), services).map_err(failed)
    }
}
