//! What a cluster is: nodes, jobs, allocations, plans, and what makes a plan legal. Nothing else.
//!
//! Pure: no I/O, no clock, no randomness, no hash order in any result. Backends feed [`event::Event`]s into
//! [`state::State`], policies see [`coretuner_contract::cluster::Delta`]s of it, and a plan becomes
//! [`event::Command`]s only through [`state::State::judge`].
#![forbid(unsafe_code)]

pub mod catalog;
pub mod event;
pub mod fallback;
pub mod judge;
pub mod model;
pub mod port;
pub mod state;
#[cfg(test)]
mod tests;
pub mod view;

pub use coretuner_contract as contract;
