//! Turns untrusted component bytes into a policy that answers in bounded time and memory, or fails in a typed way.
//!
//! ```no_run
//! use coretuner_policy_host::{CodeCache, Grants, Limits, LoadedPolicy, Mode, PolicyEngine, Services};
//!
//! let engine = PolicyEngine::new(Mode::Metered, Limits::default())?;
//! let loaded = LoadedPolicy::from_file(&engine, "fifo.wasm".as_ref(), &Grants::all(), &CodeCache::disabled())?;
//! let policy = loaded.instantiate("{}", Services::default())?;
//! # let _ = policy;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`PolicyEngine`]: one per way of metering ([`Mode`]); owns the thread that ticks epochs.
//! - [`LoadedPolicy`]: a component, checked, compiled (through [`CodeCache`]) and linked once; instantiated many times.
//! - [`WasmPolicy`]: one live instance; implements [`coretuner_core::port::Policy`].
//! - [`NativePolicy`]: the same port over Rust code in this process, for tests and cost comparison.
//!
//! Unsafe code is written by hand in one place, `code`, which loads compiled code that this crate itself has made; the
//! generated `bindings` have some of their own.
#![deny(unsafe_code)]

mod bindings;
mod cache;
mod code;
mod engine;
mod fault;
mod grants;
mod guest;
mod host;
mod instance;
mod kv;
mod limits;
mod link;
mod load;
mod lower;
mod native;
mod policy;
mod shape;
mod ticker;

pub use cache::{CacheOutcome, CodeCache};
pub use engine::{Allocator, EngineError, Mode, PolicyEngine};
pub use grants::{Capability, Grants};
pub use host::{JobDetails, Services};
pub use kv::KvStore;
pub use limits::{Limit, LimitOwner, Limits};
pub use load::{Inspection, LoadError, LoadedPolicy, ReasonCode, Resources};
pub use native::NativePolicy;
pub use policy::{SavedState, StateError, WasmPolicy};
pub use shape::{ComponentShape, ContractVersion, Import, ImportKind, ShapeError};
