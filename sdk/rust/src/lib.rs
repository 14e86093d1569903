//! Writes scheduling policies for CoreTuner: a trait over an idiomatic view of the cluster and a plan builder. The same
//! crate compiles to a WebAssembly component and to native code.
//!
//! A whole policy, first in first out:
//!
//! ```
//! use coretuner_sdk::place::{Gang, gang};
//! use coretuner_sdk::{Cycle, Policy, Reason, schemars, serde};
//!
//! struct Fifo {
//!     config: Config,
//! }
//!
//! #[derive(Default, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(crate = "coretuner_sdk::serde", deny_unknown_fields, default)]
//! #[schemars(crate = "coretuner_sdk::schemars")]
//! struct Config {
//!     /// Whether jobs may overtake one that does not fit.
//!     backfill: bool,
//! }
//!
//! impl Policy for Fifo {
//!     type Config = Config;
//!     const NAME: &'static str = "fifo";
//!     const SUMMARY: &'static str = "First in, first out";
//!     const REASONS: &'static [Reason] =
//!         &[Reason { code: "no-room", text: "{0} GPUs are not free", arguments: &["GPUs of the gang"] }];
//!
//!     fn new(config: Config) -> Result<Self, String> {
//!         Ok(Self { config })
//!     }
//!
//!     fn decide(&mut self, cycle: &mut Cycle<'_>) {
//!         for job in cycle.cluster.waiting() {
//!             let rows = gang(&mut cycle.plan, job, Gang::default());
//!             if rows.is_some_and(|rows| cycle.plan.start(job.id, &rows).is_ok()) {
//!                 continue;
//!             }
//!             if cycle.changes.arrived.contains(&job.id) {
//!                 let _ = cycle.plan.hold(job.id, "no-room", &[job.gpu_milli_min() as f64 / 1000.0]);
//!             }
//!             if !self.config.backfill {
//!                 return;
//!             }
//!         }
//!     }
//! }
//!
//! // In the policy's crate: its component, when it is built for wasm32.
//! coretuner_sdk::export!(Fifo);
//!
//! // In its tests: a small cluster, natively.
//! use coretuner_sdk::testing::{Bed, job};
//! let mut bed = Bed::<Fifo>::new(r#"{"backfill": true}"#);
//! bed.nodes(1, 8, 24, 512_000);
//! for (id, gpus) in [(1, 4), (2, 8), (3, 2)] {
//!     bed.submit(job(id).gpus(gpus).cores(3));
//! }
//! assert_eq!(bed.cycle().started, [1, 3]);
//! ```
//!
//! Where things are:
//! - [`Cluster`], [`Job`], [`Node`]: what is; [`Changes`]: what is new; both come from the host's deltas.
//! - [`PlanBuilder`]: what shall be, checked as the host will check it.
//! - [`place`], [`order`], [`queueing`], [`solve`]: parts that policies share. The example passes over all waiting jobs
//!   in each cycle; [`queueing`] does not.
//! - [`Cycle::speeds`], [`HostHandle`]: what the host answers. Each function used becomes an import of the component.
//! - [`Instance`]: the same path natively.
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

mod changes;
pub mod cluster;
mod export;
pub mod host;
mod id;
mod instance;
pub mod order;
pub mod place;
mod plan;
mod policy;
pub mod predict;
pub mod queueing;
pub mod solve;
mod space;
mod table;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod wasm;

pub use changes::{Changes, Observation, Verdict};
pub use cluster::{
    Allocation, Class, Cluster, Eligible, Free, Group, Job, Node, NodeState, Phase, Progress, Queue, ResizeRights,
    Share,
};
pub use coretuner_contract as contract;
pub use coretuner_contract::cluster::{Refusal, Trigger};
pub use host::{Host, HostHandle, Level, NoHost};
pub use id::{ClassId, GpuKind, JobId, KindId, NodeId, QueueId};
pub use instance::{Description, Instance, InstanceError};
pub use plan::{Change, Noted, Placement, PlanBuilder, PlanError, Resize, Step, Why};
pub use policy::{Cycle, Policy, Reason, SavedState};
pub use predict::{Grid, PredictError, Speed, Speeds};
pub use table::Table;
pub use {schemars, serde, serde_json};
