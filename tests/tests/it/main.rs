//! All integration tests: one program, one module per subject.

mod cli;
mod golden;
mod layering;
mod licences;
mod metadata;
mod policy_host;
mod readme;
mod sdk_view;
mod tidy;
mod traces;
