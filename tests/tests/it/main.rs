//! All integration tests: one program, one module per subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail")]

mod cli;
mod golden;
mod layering;
mod licences;
mod metadata;
mod policy_host;
mod readme;
mod sdk_view;
mod simulate;
mod tidy;
mod traces;
