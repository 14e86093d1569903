//! Writes scheduling policies for CoreTuner: a trait over an idiomatic view of the cluster and a plan builder. The same
//! crate compiles to a WebAssembly component and to native code.
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
pub use {schemars, serde, serde_json};
