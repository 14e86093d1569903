//! Synergy-Tune: see the README.
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

mod allocate;
mod amounts;
mod config;
mod demand;
mod demands;
mod differences;
mod policy;
mod rounds;
mod servers;

pub use allocate::Placement;
pub use config::{Config, Order};
pub use policy::SynergyTune;

coretuner_sdk::export!(SynergyTune);
