//! The cluster as the host knows it: changed by a backend's events and by accepted plans, by nothing else.

mod apply;
mod capacity;
mod changes;
mod commit;
mod error;
mod ids;
mod invariants;
mod job;
mod node;
mod queue;
mod store;
#[cfg(test)]
mod tests;

pub use error::StateError;
pub use job::{JobView, Latest, Owner};
pub use node::{Foreign, NodeView};
pub use queue::{QueueView, Usage};
pub use store::State;

pub use crate::judge::{Hold, Judgement, Verdict};

pub(crate) use capacity::Room;
pub(crate) use changes::Change;
pub(crate) use commit::{After, Before, Savepoint};
pub(crate) use queue::QueueBook;
