//! Who may know whom: the picture in `ARCHITECTURE.md`, checked on the resolved graph.

use crate::metadata::{Package, id_of, packages, reach};
use std::collections::{BTreeMap, BTreeSet};

/// The crates of ours that each crate may use directly. Not listed: free (the tests wire everything).
const MAY_USE: &[(&str, &[&str])] = &[
    ("coretuner-contract", &[]),
    ("coretuner-sdk", &["coretuner-contract"]),
    ("coretuner-core", &["coretuner-contract"]),
    ("coretuner-controller", &["coretuner-contract", "coretuner-core"]),
    ("coretuner-policy-host", &["coretuner-contract", "coretuner-core"]),
    ("coretuner-predictor", &["coretuner-contract", "coretuner-core"]),
    // `simulate` drives the controller around its own backend; the controller knows no backend.
    ("coretuner-simulator", &["coretuner-contract", "coretuner-core", "coretuner-controller"]),
    (
        "coretuner-cli",
        &[
            "coretuner-contract",
            "coretuner-controller",
            "coretuner-core",
            "coretuner-policy-host",
            "coretuner-predictor",
            "coretuner-simulator",
        ],
    ),
    ("xtask", &[]),
];

/// What the crates without input and output must not reach, on any path.
const EDGES: [&str; 7] = ["tokio", "wasmtime", "ort", "kube", "ureq", "rayon", "clap"];
const PURE: [&str; 5] =
    ["coretuner-contract", "coretuner-core", "coretuner-controller", "coretuner-simulator", "coretuner-sdk"];

/// Slow to build, or holding state of the whole process: one version of each.
const SINGLE: [&str; 12] = [
    "clap",
    "cranelift-codegen",
    "ort",
    "ort-sys",
    "rayon",
    "regalloc2",
    "ring",
    "rustls",
    "serde",
    "tokio",
    "wasmtime",
    "zip",
];

#[test]
fn no_crate_reaches_sideways() {
    let packages = packages();
    for (name, allowed) in MAY_USE {
        let used = direct(&packages, name);
        let wrong: Vec<_> = used.iter().filter(|used| !allowed.contains(&used.as_str())).collect();
        assert!(wrong.is_empty(), "{name} uses {wrong:?}; it may use {allowed:?}");
    }
}

#[test]
fn every_crate_has_a_rule() {
    let ruled: BTreeSet<&str> =
        MAY_USE.iter().map(|(name, _)| *name).chain(["coretuner-tests", "coretuner-bench"]).collect();
    let packages = packages();
    let missing: Vec<_> = packages.values().filter(|one| one.ours && !ruled.contains(one.name.as_str())).collect();
    let missing: Vec<_> = missing.iter().map(|one| &one.name).collect();
    assert!(missing.is_empty(), "say in MAY_USE what these may use: {missing:?}");
}

#[test]
fn pure_crates_reach_no_edge() {
    let packages = packages();
    for name in PURE {
        let reach = reach(&packages, name);
        let edges: Vec<_> = EDGES.iter().filter(|edge| reach.contains(**edge)).collect();
        assert!(edges.is_empty(), "{name} reaches {edges:?}");
    }
}

#[test]
fn xtask_stays_light() {
    let reach = reach(&packages(), "xtask");
    let heavy: Vec<_> = ["wasmtime", "ort", "tokio"].into_iter().filter(|name| reach.contains(*name)).collect();
    assert!(heavy.is_empty(), "xtask reaches {heavy:?}: it is built before everything else");
}

#[test]
fn heavy_dependencies_have_one_version() {
    let packages = packages();
    for name in SINGLE {
        let versions: BTreeSet<&str> =
            packages.values().filter(|package| package.name == name).map(|package| package.version.as_str()).collect();
        assert!(versions.len() <= 1, "{name} has versions {versions:?}");
    }
}

fn direct(packages: &BTreeMap<String, Package>, name: &str) -> Vec<String> {
    let needs = packages[&id_of(packages, name)].needs.iter().map(|id| &packages[id]);
    needs.filter(|package| package.ours).map(|package| package.name.clone()).collect()
}
