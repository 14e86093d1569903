//! All integration tests: one program, one module per subject.

mod cli;
mod layering;
mod licences;
mod metadata;
mod tidy;
mod traces;
