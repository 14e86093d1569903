//! Tools of the Rust toolchain that a minimal installation lacks.

use crate::cargo;
use crate::process;
use std::process::Command;

/// Whether `cargo fmt` (rustfmt) or `cargo clippy` (clippy) can run; rustup is asked to add what is missing.
pub(crate) fn has_component(component: &str) -> bool {
    runs(component)
        || (process::capture(Command::new("rustup").args(["component", "add", component])).is_ok() && runs(component))
}

fn runs(component: &str) -> bool {
    let verb = if component == "rustfmt" { "fmt" } else { component };
    process::capture(cargo::cargo().args([verb, "--version"])).is_ok()
}
