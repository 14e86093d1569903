//! The common part of policies that serve jobs one by one in an order: who is next, where it fits, whom it may stop.
//!
//! Its work follows what changed. Waiting jobs of one shape (class, queue, groups) form a *lane*; when the first of a lane
//! does not fit, none of it does, and the lane is not looked at again until something is released. So an arrival costs a
//! look-up, and a completion costs one search per shape, however many jobs wait or run.

mod backlog;
mod engine;
mod rates;
mod settings;
mod standing;

pub use engine::Queueing;
pub use settings::{Mode, Preemption, REASONS, Settings};
