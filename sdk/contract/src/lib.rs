//! The policy contract `coretuner:policy@0.1` as plain Rust types, and the rules that host and guest share.
//!
//! No dependencies: `coretuner-core` fills these tables, `coretuner-sdk` reads them, both count and hash by [`rules`].
#![forbid(unsafe_code)]

pub mod cluster;
pub mod plan;
pub mod rules;

/// Version of the contract that these types describe.
pub const VERSION: &str = "0.1.0";

/// "No such thing" in an id or index column.
pub const NONE: u32 = u32::MAX;

/// Most GPU devices of one node: a device is a bit of a `u32` mask.
pub const DEVICES_MAX: u32 = 32;

/// One whole GPU device.
pub const GPU_MILLI: u32 = 1000;
