//! `cargo xtask test`: set-up, then every check, then a table of what ran, how long it took and what was skipped.

use crate::error::Error;
use crate::setup::{guests, onnxruntime, toolchain};
use crate::step::{Done, Steps};
use crate::{cargo, files, process};
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self) -> Result<(), Error> {
        let mut steps = Steps::new();
        let result = set_up(&mut steps).map(|library| check(&mut steps, &library));
        println!("\n{}", steps.table());
        let skipped = std::fs::read_to_string(skipped_tests()).unwrap_or_default();
        match skipped.trim() {
            "" => println!("no test was skipped"),
            tests => println!("skipped tests:\n{tests}"),
        }
        result?;
        match steps.failures() {
            0 => Ok(()),
            count => Err(Error::Checks { count }),
        }
    }
}

/// Gives the path of the ONNX Runtime library.
fn set_up(steps: &mut Steps) -> Result<PathBuf, Error> {
    // Tests that skip themselves write here why; see `coretuner_tests::data`.
    files::write(&skipped_tests(), b"")?;
    guests::build(steps, &[])?;
    onnxruntime::fetch(steps)
}

fn skipped_tests() -> PathBuf {
    files::target().join("skipped-tests.txt")
}

/// The cargo workspaces: name and manifest. The last one, guests that misbehave on purpose, has no tests of its own.
const WORKSPACES: [(&str, &str); 3] =
    [("host", "Cargo.toml"), ("policies", "policies/Cargo.toml"), ("bad guests", "tests/fixtures/bad/Cargo.toml")];

/// All checks; one that fails does not stop the others.
fn check(steps: &mut Steps, library: &Path) {
    let [host, policies, _] = WORKSPACES;
    for (name, manifest) in WORKSPACES {
        let command = on(manifest, "fmt", &["--all", "--check"]);
        optional(steps, &format!("{name}: formatting"), "rustfmt", command);
    }
    for (name, manifest) in WORKSPACES {
        let arguments = ["--workspace", "--all-targets", "--", "--deny", "warnings"];
        optional(steps, &format!("{name}: lints"), "clippy", on(manifest, "clippy", &arguments));
    }
    for (name, manifest) in [host, policies] {
        let mut command = on(manifest, "doc", &["--workspace", "--no-deps", "--document-private-items"]);
        // Private items are documented too, so links to them resolve.
        command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links");
        always(steps, &format!("{name}: documentation"), command);
    }
    always(steps, "host: build", on(host.1, "build", &["--workspace", "--all-targets"]));
    for (name, manifest) in [host, policies] {
        let mut command = on(manifest, "test", &["--workspace", "--no-fail-fast"]);
        command.env(onnxruntime::OVERRIDE, library).env("CORETUNER_SKIPPED_TESTS", skipped_tests());
        always(steps, &format!("{name}: tests"), command);
    }
}

/// A cargo command on one workspace. The policies' has a target folder of its own: both build the SDK from the same path
/// with other features below it, and would take each other's files for their own when run again.
fn on(manifest: &str, verb: &str, arguments: &[&str]) -> Command {
    let mut command = cargo::cargo();
    command.arg(verb).arg("--manifest-path").arg(files::root().join(manifest)).args(arguments);
    let host = *manifest == files::root().join("Cargo.toml");
    command.env("CARGO_TARGET_DIR", if host { files::target() } else { files::target().join("policies") });
    command
}

fn always(steps: &mut Steps, title: &str, mut command: Command) {
    steps.attempt(title, || process::run(&mut command).map(|()| Done::Worked));
}

/// A check by a tool that a bare toolchain may lack and that cannot always be added.
fn optional(steps: &mut Steps, title: &str, component: &str, mut command: Command) {
    steps.attempt(title, || {
        if !toolchain::has_component(component) {
            return Ok(Done::Skipped(format!("{component} is not installed and rustup cannot add it here")));
        }
        process::run(&mut command).map(|()| Done::Worked)
    });
}
