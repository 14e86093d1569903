//! `cargo xtask test`: set-up, then every check, then a table of what ran, how long it took and what was skipped.

use crate::error::Error;
use crate::setup::{guests, onnxruntime, toolchain};
use crate::step::{Done, Steps};
use crate::{cargo, files, model, process};
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

/// A cargo workspace of this repository.
struct Workspace {
    name: &'static str,
    manifest: &'static str,
    /// Folder below the target folder, empty for the target folder itself. The policies' has one of its own: host and
    /// policies build the SDK from the same path with other features below it, and in one folder each would take the
    /// other's files for its own.
    target: &'static str,
}

const HOST: Workspace = Workspace { name: "host", manifest: "Cargo.toml", target: "" };
const POLICIES: Workspace = Workspace { name: "policies", manifest: "policies/Cargo.toml", target: "policies" };
/// Guests that misbehave on purpose; no tests of their own.
const BAD_GUESTS: Workspace =
    Workspace { name: "bad guests", manifest: "tests/fixtures/bad/Cargo.toml", target: "policies" };

/// All checks; one that fails does not stop the others.
fn check(steps: &mut Steps, library: &Path) {
    for workspace in [HOST, POLICIES, BAD_GUESTS] {
        let command = workspace.cargo("fmt", &["--all", "--check"]);
        optional(steps, &format!("{}: formatting", workspace.name), "rustfmt", command);
    }
    for workspace in [HOST, POLICIES, BAD_GUESTS] {
        let command = workspace.cargo("clippy", &["--workspace", "--all-targets", "--", "--deny", "warnings"]);
        optional(steps, &format!("{}: lints", workspace.name), "clippy", command);
    }
    for workspace in [HOST, POLICIES] {
        let mut command = workspace.cargo("doc", &["--workspace", "--no-deps", "--document-private-items"]);
        // Private items are documented too, so links to them resolve.
        command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links");
        always(steps, &format!("{}: documentation", workspace.name), command);
    }
    always(steps, "host: build", HOST.cargo("build", &["--workspace", "--all-targets"]));
    for workspace in [HOST, POLICIES] {
        let mut command = workspace.cargo("test", &["--workspace", "--no-fail-fast"]);
        command.env(onnxruntime::OVERRIDE, library).env("CORETUNER_SKIPPED_TESTS", skipped_tests());
        always(steps, &format!("{}: tests", workspace.name), command);
    }
    model::check(steps);
}

impl Workspace {
    /// A cargo command on it.
    fn cargo(&self, verb: &str, arguments: &[&str]) -> Command {
        let mut command = cargo::cargo();
        command.arg(verb).arg("--manifest-path").arg(files::root().join(self.manifest)).args(arguments);
        command.env("CARGO_TARGET_DIR", files::target().join(self.target));
        command
    }
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
