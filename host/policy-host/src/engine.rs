//! One wasmtime engine per way of metering.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Config, Engine, OptLevel, PoolingAllocationConfig};

use crate::limits::Limits;
use crate::ticker::{self, Ticks};

/// How guest time is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Wall-clock deadlines by epochs. For `serve`.
    Production,
    /// Fuel, canonical NaNs, no wall clock anywhere: the same bits on every run. For simulation and benches.
    Metered,
}

impl Mode {
    /// `production` or `metered`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Metered => "metered",
        }
    }
}

/// Where instances live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocator {
    /// Slots reserved in advance.
    Pooling,
    /// Address space could not be reserved: each instance maps its own.
    OnDemand,
}

/// An engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the WebAssembly engine does not start ({mode} mode): {message}")]
    Configuration { mode: &'static str, message: String },
    #[error("the epoch thread does not start: {0}")]
    Ticker(#[source] std::io::Error),
}

/// Compiles and runs policies in one mode. Cheap to clone; clones are the same engine.
#[derive(Clone)]
pub struct PolicyEngine {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    mode: Mode,
    limits: Limits,
    allocator: Allocator,
    /// Production mode only.
    ticks: Option<Arc<Ticks>>,
}

impl PolicyEngine {
    /// Makes an engine; in production mode also the thread that ticks it. Engine and ticks are one type, so no deadline
    /// can be set that nobody ticks.
    pub fn new(mode: Mode, limits: Limits) -> Result<Self, EngineError> {
        let (engine, allocator) = build(mode, &limits)?;
        let tick = Duration::from_millis(limits.epoch_tick_ms.max(1));
        let ticks = match mode {
            Mode::Production => Some(ticker::start(&engine, tick).map_err(EngineError::Ticker)?),
            Mode::Metered => None,
        };
        tracing::debug!(mode = mode.name(), ?allocator, "policy engine started");
        Ok(Self { inner: Arc::new(Inner { engine, mode, limits, allocator, ticks }) })
    }

    /// How its guests are metered.
    pub fn mode(&self) -> Mode {
        self.inner.mode
    }

    /// Limits in force.
    pub fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// Which allocator the address space allowed.
    pub fn allocator(&self) -> Allocator {
        self.inner.allocator
    }

    /// Epoch ticks that came too late because the machine is short of CPU: tells host starvation from a slow guest.
    pub fn ticks_missed(&self) -> u64 {
        self.inner.ticks.as_ref().map_or(0, |ticks| ticks.missed())
    }

    /// Ticks given so far; 0 in metered mode.
    pub(crate) fn ticks_given(&self) -> u64 {
        self.inner.ticks.as_ref().map_or(0, |ticks| ticks.given())
    }

    pub(crate) fn wasm(&self) -> &Engine {
        &self.inner.engine
    }

    /// Names everything in the configuration that changes compiled code and that wasmtime's own hash might leave out.
    pub(crate) fn code_identity(&self) -> String {
        format!("{}/{}", self.inner.mode.name(), self.inner.limits.memory_bytes)
    }
}

fn build(mode: Mode, limits: &Limits) -> Result<(Engine, Allocator), EngineError> {
    let mut config = configuration(mode, limits);
    config.allocation_strategy(pool(limits));
    match Engine::new(&config) {
        Ok(engine) => return Ok((engine, Allocator::Pooling)),
        Err(error) => {
            tracing::info!("no pooling allocator, instances are mapped one by one: {error:#}");
        }
    }
    let engine = Engine::new(&configuration(mode, limits))
        .map_err(|error| EngineError::Configuration { mode: mode.name(), message: format!("{error:#}") })?;
    Ok((engine, Allocator::OnDemand))
}

fn configuration(mode: Mode, limits: &Limits) -> Config {
    let mut config = Config::new();
    config
        .concurrency_support(false)
        .cranelift_opt_level(OptLevel::Speed)
        .max_wasm_stack(Limits::size(limits.wasm_stack_bytes))
        .wasm_backtrace_max_frames(NonZeroUsize::new(Limits::size(limits.backtrace_frames)))
        .epoch_interruption(mode == Mode::Production)
        .consume_fuel(mode == Mode::Metered)
        .cranelift_nan_canonicalization(mode == Mode::Metered)
        .relaxed_simd_deterministic(true);
    config
}

fn pool(limits: &Limits) -> PoolingAllocationConfig {
    let instances = u32::try_from(limits.pool_instances).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(instances)
        // A component made by wit-component has its module and up to a few shims.
        .total_core_instances(instances.saturating_mul(4))
        .total_memories(instances)
        .total_tables(instances.saturating_mul(2))
        .max_memory_size(Limits::size(limits.memory_bytes))
        .table_elements(Limits::size(limits.table_elements));
    pool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_modes_start_and_say_where_instances_live() {
        for mode in [Mode::Production, Mode::Metered] {
            let engine = PolicyEngine::new(mode, Limits::default()).unwrap();
            assert_eq!(engine.mode(), mode);
            assert!(matches!(engine.allocator(), Allocator::Pooling | Allocator::OnDemand));
        }
    }

    #[test]
    fn too_large_a_pool_falls_back_to_single_mappings() {
        // 256 TiB of address space are more than a process has.
        let limits = Limits { pool_instances: 1 << 16, memory_bytes: 4 << 30, ..Limits::default() };
        let engine = PolicyEngine::new(Mode::Metered, limits).unwrap();
        assert_eq!(engine.allocator(), Allocator::OnDemand);
    }
}
