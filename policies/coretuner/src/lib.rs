//! The CoreTuner policy, a reconstruction: see the README.
#![cfg_attr(not(target_arch = "wasm32"), forbid(unsafe_code))]

mod admit;
mod axes;
mod berth;
mod classes;
mod config;
mod desk;
mod draft;
#[cfg(test)]
mod effort;
mod elastic;
mod emit;
mod fixed;
mod fleet;
mod follow;
mod index;
mod kinds;
mod members;
mod mix;
mod oracle;
mod place;
mod policy;
mod probe;
mod profile;
mod rank;
mod reasons;
mod reserve;
mod room;
mod roster;
mod shape;
mod share_out;
mod span;
mod spares;
mod swaps;
mod targets;
mod tenure;
mod tick;

pub use config::Config;
pub use policy::CoreTuner;
pub use rank::Order;

coretuner_sdk::export!(CoreTuner);
