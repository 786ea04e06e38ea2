//! The dependency arrows between the crates, as `cargo metadata` sees them.
//!
//! The control plane, the firmware and the harness meet only over HTTP and consoles; a shared type would hide a
//! shared mistake. The simulated rig is the one crate that may see both sides. A crate that is missing from
//! the table below fails the test, so that every new crate states what it may depend on.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

/// Each workspace crate, and the workspace crates it may depend on (dev-dependencies included).
const ALLOWED: &[(&str, &[&str])] = &[
    ("control-plane-core", &[]),
    ("control-plane-api", &["control-plane-core"]),
    ("control-plane", &["control-plane-api", "control-plane-core"]),
    // It copies sources and builds the copies; of the crates themselves it knows none, and none knows it.
    ("control-plane-faulty", &[]),
    ("control-plane-bench", &["control-plane", "control-plane-core"]),
    ("toy-scheduler", &[]),
    ("kubelet", &[]),
    ("boards-host", &["kubelet"]),
    ("rigor-model", &[]),
    ("rigor-trace", &["rigor-model"]),
    ("rigor-switch", &[]),
    ("rigor-rigs", &["rigor-model", "rigor-switch", "rigor-trace"]),
    (
        "rigor-sim",
        &[
            "boards-host",
            "control-plane",
            "kubelet",
            "rigor-model",
            "rigor-rigs",
            "rigor-trace",
            "toy-scheduler",
        ],
    ),
    ("rigor", &["rigor-model", "rigor-rigs", "rigor-sim", "rigor-trace"]),
    ("suites", &["rigor", "rigor-model"]),
];

/// Crates that know no I/O: none of these may appear among their direct dependencies.
const PURE: &[&str] =
    &["control-plane-core", "control-plane-api", "kubelet", "rigor-model", "rigor-switch", "rigor-trace"];
const IO: &[&str] = &["axum", "fastrand", "hyper", "redb", "reqwest", "rustix", "tokio", "uuid"];

fn metadata() -> Metadata {
    MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml"))
        .other_options(["--offline".to_owned(), "--locked".to_owned()])
        .no_deps()
        .exec()
        .expect("cargo metadata of the workspace")
}

#[test]
fn workspace_crates_depend_only_along_the_arrows() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ALLOWED.iter().map(|(name, to)| (*name, to.iter().copied().collect())).collect();
    let metadata = metadata();
    let members: BTreeSet<String> = metadata.packages.iter().map(|p| p.name.to_string()).collect();
    let mut wrong = Vec::new();
    for package in &metadata.packages {
        let Some(allowed) = allowed.get(package.name.as_str()) else {
            wrong.push(format!("{} has no row in ALLOWED: say what it may depend on", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            if members.contains(&dependency.name) && !allowed.contains(dependency.name.as_str()) {
                wrong.push(format!("{} must not depend on {}", package.name, dependency.name));
            }
        }
    }
    for (name, _) in ALLOWED {
        if !members.contains(*name) {
            wrong.push(format!("ALLOWED names {name}, which is no crate of the workspace"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What breaks the control plane on purpose is built where it is asked for by name, and nothing else is left out.
#[test]
fn every_crate_but_the_faulty_one_is_built_by_default() {
    let metadata = metadata();
    let default = metadata.workspace_default_packages();
    let left_out: Vec<&str> = metadata
        .packages
        .iter()
        .map(|package| package.name.as_str())
        .filter(|name| default.iter().all(|package| package.name != *name))
        .collect();
    assert_eq!(
        left_out,
        ["control-plane-faulty"],
        "default-members of Cargo.toml are all members but this one"
    );
}

#[test]
fn pure_crates_have_no_io_dependency() {
    let mut wrong = Vec::new();
    for package in metadata().packages.iter().filter(|p| PURE.contains(&p.name.as_str())) {
        for dependency in package.dependencies.iter().filter(|d| d.kind != DependencyKind::Development) {
            if IO.contains(&dependency.name.as_str()) {
                wrong.push(format!("{} is pure and must not depend on {}", package.name, dependency.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
