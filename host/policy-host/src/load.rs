//! From bytes to a policy that can be instantiated: each step refuses in a sentence of its own.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coretuner_core::port::{PolicyFault, PolicyIdentity};
use wasmtime::component::Component;

use crate::bindings::exports::coretuner::policy::policy::Description;
use crate::cache::{CacheOutcome, CodeCache};
use crate::engine::PolicyEngine;
use crate::grants::Grants;
use crate::guest::Guest;
use crate::host::Services;
use crate::instance::{Live, StartFailure};
use crate::link::Linked;
use crate::policy::WasmPolicy;
use crate::shape::{ComponentShape, ContractVersion, EXPORT, FUNCTIONS, ImportKind, PACKAGE, ShapeError};

/// Longest name that a policy may give itself.
const NAME_BYTES_MAX: usize = 64;

/// Why a component is not taken. `policy` is the name that it was loaded under.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("policy file `{path}` cannot be read: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("policy `{policy}` is larger than {limit} bytes (limit component_bytes)")]
    TooLarge { policy: String, limit: u64 },
    #[error("`{policy}` is not a policy component: {source}")]
    NotAComponent { policy: String, source: ShapeError },
    #[error(
        "policy `{policy}` is built for contract {built_for}; this host runs {runs}. Rebuild it with a matching SDK"
    )]
    ContractVersion { policy: String, built_for: ContractVersion, runs: String },
    #[error(
        "`{policy}` is a component, but no policy: it does not export `{PACKAGE}/{EXPORT}` (its exports: {exports})"
    )]
    NotAPolicy { policy: String, exports: String },
    #[error("policy `{policy}` lacks the function `{function}` in its export `{PACKAGE}/{EXPORT}`")]
    MissingFunction { policy: String, function: &'static str },
    #[error("policy `{policy}` imports `{import}`, which is not granted; grant it or build the policy without it")]
    NotGranted { policy: String, import: String },
    #[error("policy `{policy}` imports `{import}`, which is not part of the contract; this host cannot offer it")]
    ForeignImport { policy: String, import: String },
    #[error("policy `{policy}` cannot be compiled: {message}")]
    Compile { policy: String, message: String },
    #[error("policy `{policy}` does not have the types of contract {contract}: {message}")]
    WrongTypes { policy: String, contract: ContractVersion, message: String },
    #[error("policy `{policy}` does not start: {fault}")]
    Start { policy: String, fault: PolicyFault },
    #[error("policy `{policy}` describes itself wrongly: {message}")]
    Description { policy: String, message: String },
    #[error("policy `{policy}` refuses its configuration: {message}")]
    Configuration { policy: String, message: String },
}

/// A component, checked, compiled and linked. Cheap to clone; instances of it may run on several threads.
#[derive(Clone)]
pub struct LoadedPolicy {
    inner: Arc<Loaded>,
}

struct Loaded {
    engine: PolicyEngine,
    linked: Linked,
    shape: ComponentShape,
    identity: PolicyIdentity,
    inspection: Inspection,
    cache_outcome: CacheOutcome,
}

/// What `coretuner policy inspect` shows.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Inspection {
    pub name: String,
    pub version: String,
    pub summary: String,
    /// `blake3:` + hex.
    pub digest: String,
    pub size_bytes: u64,
    pub contract: ContractVersion,
    #[serde(flatten)]
    pub shape: ComponentShape,
    pub reasons: Vec<ReasonCode>,
    /// JSON Schema.
    pub configuration_schema: String,
    pub state_version: u32,
    pub resources: Option<Resources>,
    /// Fuel of `describe` does not tell anything; memory after it tells the smallest footprint.
    pub memory_bytes_at_start: u64,
}

/// A reason that a policy may give.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ReasonCode {
    pub code: String,
    pub text: String,
    /// Meaning of the numbers behind it, in order.
    pub arguments: Vec<String>,
}

/// What an instance needs at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Resources {
    pub memories: u32,
    pub tables: u32,
    pub largest_initial_memory_bytes: u64,
    pub largest_initial_table_elements: u64,
}

impl LoadedPolicy {
    /// Loads a file; the policy is called after it in errors.
    pub fn from_file(
        engine: &PolicyEngine,
        path: &Path,
        grants: &Grants,
        cache: &CodeCache,
    ) -> Result<Self, LoadError> {
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy();
        let bytes = read(path, &name, engine.limits().component_bytes)?;
        Self::from_bytes(engine, &name, &bytes, grants, cache)
    }

    /// Checks, compiles, links and starts a component once; `name` stands for it in errors.
    pub fn from_bytes(
        engine: &PolicyEngine,
        name: &str,
        bytes: &[u8],
        grants: &Grants,
        cache: &CodeCache,
    ) -> Result<Self, LoadError> {
        let policy = || name.to_owned();
        let limit = engine.limits().component_bytes;
        if bytes.len() as u64 > limit {
            return Err(LoadError::TooLarge { policy: policy(), limit });
        }
        let shape =
            ComponentShape::read(bytes).map_err(|source| LoadError::NotAComponent { policy: policy(), source })?;
        let contract = check(name, &shape, grants)?;
        let digest = blake3::hash(bytes);
        let (component, cache_outcome) = cache
            .component(engine, bytes, &digest)
            .map_err(|error| LoadError::Compile { policy: policy(), message: format!("{error:#}") })?;
        let linked = Linked::new(engine, &component, grants, shape.policy_export().unwrap_or_default())
            .map_err(|error| LoadError::WrongTypes { policy: policy(), contract, message: one_line(&error) })?;
        let first = first_instance(engine, name, contract, &shape, &linked)?;
        let facts = Facts { digest, size_bytes: bytes.len() as u64, contract, resources: resources(&component) };
        let inspection = inspection(facts, &shape, first);
        let identity = PolicyIdentity {
            name: inspection.name.clone(),
            version: inspection.version.clone(),
            digest: inspection.digest.clone(),
        };
        let inner = Loaded { engine: engine.clone(), linked, shape, identity, inspection, cache_outcome };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Starts and configures an instance.
    pub fn instantiate(&self, configuration_json: &str, services: Services) -> Result<WasmPolicy, LoadError> {
        WasmPolicy::start(self.clone(), configuration_json, services)
    }

    /// Name and version that the policy gives itself, and the component's digest.
    pub fn identity(&self) -> &PolicyIdentity {
        &self.inner.identity
    }

    /// What can be said about it.
    pub fn inspection(&self) -> &Inspection {
        &self.inner.inspection
    }

    /// Whether compiled code came from the cache.
    pub fn cache_outcome(&self) -> CacheOutcome {
        self.inner.cache_outcome
    }

    /// The engine that it is compiled for.
    pub fn engine(&self) -> &PolicyEngine {
        &self.inner.engine
    }

    pub(crate) fn linked(&self) -> &Linked {
        &self.inner.linked
    }

    /// Data for a store of one more instance.
    pub(crate) fn guest(&self, services: &Services) -> Guest {
        Guest::new(&self.inner.engine, &self.inner.identity.name, &self.inner.shape, services)
    }
}

/// Reads at most one byte more than allowed.
fn read(path: &Path, name: &str, limit: u64) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(LoadError::TooLarge { policy: name.to_owned(), limit });
    }
    Ok(bytes)
}

/// Everything that names alone tell.
fn check(name: &str, shape: &ComponentShape, grants: &Grants) -> Result<ContractVersion, LoadError> {
    let policy = || name.to_owned();
    if let Some(built_for) = shape.contract.filter(|version| !version.is_supported()) {
        let runs = ContractVersion::supported_text();
        return Err(LoadError::ContractVersion { policy: policy(), built_for, runs });
    }
    for import in &shape.imports {
        let import_name = || import.name.clone();
        match import.kind {
            ImportKind::Types => {}
            ImportKind::Capability(capability) if grants.contains(capability) => {}
            ImportKind::Capability(_) => return Err(LoadError::NotGranted { policy: policy(), import: import_name() }),
            ImportKind::Foreign => return Err(LoadError::ForeignImport { policy: policy(), import: import_name() }),
        }
    }
    let (Some(version), Some(_)) = (shape.contract, shape.policy_export()) else {
        let exports = if shape.exports.is_empty() { "none".into() } else { shape.exports.join(", ") };
        return Err(LoadError::NotAPolicy { policy: policy(), exports });
    };
    match FUNCTIONS.into_iter().find(|function| !shape.functions.iter().any(|own| own == function)) {
        Some(function) => Err(LoadError::MissingFunction { policy: policy(), function }),
        None => Ok(version),
    }
}

/// Starts an instance to see that it can be, and lets it describe itself. Returns also its memory in bytes.
fn first_instance(
    engine: &PolicyEngine,
    name: &str,
    contract: ContractVersion,
    shape: &ComponentShape,
    linked: &Linked,
) -> Result<(Description, u64), LoadError> {
    let policy = || name.to_owned();
    let guest = Guest::new(engine, name, shape, &Services::default());
    let mut live = Live::start(linked, guest).map_err(|failure| match failure {
        StartFailure::Fault(fault) => LoadError::Start { policy: policy(), fault },
        StartFailure::WrongType(wrong) => {
            LoadError::WrongTypes { policy: policy(), contract, message: wrong.to_string() }
        }
    })?;
    let description = live.describe().map_err(|fault| LoadError::Start { policy: policy(), fault })?;
    check_description(&description).map_err(|message| LoadError::Description { policy: policy(), message })?;
    Ok((description, live.guest().memory.bytes()))
}

/// The name goes into reports, metrics and `kv`; the schema is shown to operators.
fn check_description(description: &Description) -> Result<(), String> {
    let name = &description.name;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
        let shown: String = name.chars().take(NAME_BYTES_MAX).collect();
        return Err(format!("its name {shown:?} is not 1 to {NAME_BYTES_MAX} of a-z, 0-9 and `-`"));
    }
    serde_json::from_str::<serde_json::Value>(&description.configuration_schema)
        .map(|_| ())
        .map_err(|error| format!("its configuration schema is not JSON: {error}"))
}

/// The linker's chain of causes in one line.
fn one_line(error: &wasmtime::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    causes.join(": ").replace('\n', " ")
}

fn resources(component: &Component) -> Option<Resources> {
    component.resources_required().map(|needs| Resources {
        memories: needs.num_memories,
        tables: needs.num_tables,
        largest_initial_memory_bytes: needs.max_initial_memory_size.unwrap_or(0),
        largest_initial_table_elements: needs.max_initial_table_size.unwrap_or(0),
    })
}

struct Facts {
    digest: blake3::Hash,
    size_bytes: u64,
    contract: ContractVersion,
    resources: Option<Resources>,
}

fn inspection(facts: Facts, shape: &ComponentShape, first: (Description, u64)) -> Inspection {
    let (description, memory_bytes) = first;
    let reasons = description.reasons.into_iter();
    Inspection {
        name: description.name,
        version: description.version,
        summary: description.summary,
        digest: format!("blake3:{}", facts.digest.to_hex()),
        size_bytes: facts.size_bytes,
        contract: facts.contract,
        shape: shape.clone(),
        reasons: reasons.map(|r| ReasonCode { code: r.code, text: r.text, arguments: r.arguments }).collect(),
        configuration_schema: description.configuration_schema,
        state_version: description.state_version,
        resources: facts.resources,
        memory_bytes_at_start: memory_bytes,
    }
}

#[cfg(test)]
mod tests;
