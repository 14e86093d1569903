//! The cluster as a policy sees it; only deltas change it.

mod apply;
mod describe;
mod error;
mod group;
mod job;
mod node;
mod read;
mod state;
mod view;

pub use error::ApplyError;
pub use group::{Class, Eligible, Queue};
pub use job::{Allocation, Group, Job, Phase, Progress, ResizeRights};
pub use node::{Free, Node, NodeState, Share};
pub use view::Cluster;

#[cfg(test)]
mod tests;
