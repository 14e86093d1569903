//! What cargo knows of the workspace's packages and their dependencies.

use coretuner_tests::paths;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// One package of the resolved graph.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    /// Belongs to this workspace.
    pub(crate) ours: bool,
    /// Ids of what it needs to run or to build; needs of its tests are left out.
    pub(crate) needs: Vec<String>,
}

/// The resolved graph for this machine: package id → package.
pub(crate) fn packages() -> BTreeMap<String, Package> {
    let metadata = metadata();
    let ours: BTreeSet<&str> = list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let mut packages = BTreeMap::new();
    for package in list(&metadata["packages"]) {
        let id = text(&package["id"]);
        let ours = ours.contains(id.as_str());
        let licence = package["license"].as_str().map(str::to_owned);
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        packages.insert(id, Package { name, version, licence, ours, needs: Vec::new() });
    }
    for node in list(&metadata["resolve"]["nodes"]) {
        let needs = list(&node["deps"]).filter(|need| !only_for_tests(need)).map(|need| text(&need["pkg"])).collect();
        packages.get_mut(&text(&node["id"])).expect("a node is a package").needs = needs;
    }
    packages
}

/// The id of a package of this workspace.
pub(crate) fn id_of(packages: &BTreeMap<String, Package>, name: &str) -> String {
    let found = packages.iter().find(|(_, package)| package.ours && package.name == name);
    found.map(|(id, _)| id.clone()).unwrap_or_else(|| panic!("no package of the workspace is named {name}"))
}

/// Names of all that a package reaches, itself left out.
pub(crate) fn reach(packages: &BTreeMap<String, Package>, name: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![id_of(packages, name)];
    while let Some(id) = open.pop() {
        for need in &packages[&id].needs {
            if seen.insert(need.clone()) {
                open.push(need.clone());
            }
        }
    }
    seen.iter().map(|id| packages[id].name.clone()).collect()
}

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let host = host();
    let manifest = paths::root().join("Cargo.toml");
    let arguments = ["metadata", "--format-version=1", "--filter-platform", &host, "--manifest-path"];
    let output = Command::new(cargo).args(arguments).arg(manifest).output().expect("cargo metadata starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON")
}

/// The machine's target triple, as rustc names it.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.expect("rustc names its host").to_owned()
}

fn only_for_tests(need: &Value) -> bool {
    list(&need["dep_kinds"]).all(|kind| kind["kind"] == "dev")
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}
