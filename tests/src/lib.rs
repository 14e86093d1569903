//! What the integration tests share: where things are, and what to do when one is missing.
#![forbid(unsafe_code)]
#![expect(clippy::panic, reason = "a test that lacks what it needs fails by panicking")]

pub mod data;
pub mod paths;
pub mod source;
