//! The cargo that runs us, and what it knows of a workspace.

use crate::error::Error;
use crate::{files, process};
use std::path::Path;
use std::process::Command;

/// The cargo that started xtask.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Builds everything, for the demo as for the tests. With one package or only the programs selected, cargo would choose
/// other features for the dependencies and build the heavy ones twice.
pub(crate) fn build_all() -> Command {
    let mut command = cargo();
    command.args(["build", "--workspace", "--all-targets", "--manifest-path"]).arg(files::root().join("Cargo.toml"));
    command
}

/// The names of a workspace's packages that build as a `cdylib`, sorted.
pub(crate) fn cdylibs(manifest: &Path) -> Result<Vec<String>, Error> {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1", "--no-deps", "--manifest-path"]).arg(manifest);
    let text = process::capture(&mut command)?;
    let metadata: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Error::Output { command: process::shown(&command), detail: error.to_string() })?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut names: Vec<String> = packages
        .filter(|package| is_cdylib(package))
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

fn is_cdylib(package: &serde_json::Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    targets.flat_map(|target| target["crate_types"].as_array().into_iter().flatten()).any(|kind| kind == "cdylib")
}
