//! Builders and property tests shared by this crate's unit tests.

pub(crate) mod build;
mod mirror;
mod properties;
