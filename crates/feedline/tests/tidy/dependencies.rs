//! The stated Rust version is enough to build what is shipped, and features leave out what they say.
//!
//! Clippy's `incompatible_msrv` looks at our own calls into the standard library; this looks at what the
//! dependencies state. `cargo deny` checks their licenses and sources.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::root;

/// All packages that a build of the workspace uses here, and which uses which.
fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc's host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().unwrap().iter()
}

/// (major, minor) of a crate's `rust-version`; (0, 0) where it states none.
fn rust_version(package: &Value) -> (u32, u32) {
    let Some(version) = package["rust_version"].as_str() else { return (0, 0) };
    let mut parts = version.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap_or(0))
}

/// What only tests use may be newer: `cargo build` has to work with the stated version, `make test` need not.
#[test]
fn no_dependency_needs_a_newer_rust_than_its_user_states() {
    let metadata = metadata();
    let by_id: BTreeMap<_, _> =
        packages(&metadata).map(|package| (package["id"].as_str().unwrap(), package)).collect();
    let mut seen = 0;
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let user = by_id[node["id"].as_str().unwrap()];
        if !user["source"].is_null() {
            continue;
        }
        seen += 1;
        for used in node["deps"].as_array().unwrap() {
            let kinds = used["dep_kinds"].as_array().unwrap();
            if kinds.iter().all(|kind| kind["kind"] == "dev") {
                continue;
            }
            for package in with_dependencies(used["pkg"].as_str().unwrap(), &metadata) {
                let package = by_id[package];
                assert!(
                    rust_version(package) <= rust_version(user),
                    "{} needs Rust {}, {} states {}",
                    package["name"],
                    package["rust_version"],
                    user["name"],
                    user["rust_version"]
                );
            }
        }
    }
    assert_eq!(seen, std::fs::read_dir(root().join("crates")).unwrap().count() - 1, "all but sql");
}

/// Names of all packages in a build of the store with these features.
fn store_packages(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--package", "feedline-store", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--no-default-features"])
        .args(features)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let names = String::from_utf8(output.stdout).unwrap();
    names.lines().filter_map(|line| Some(line.split_once(' ')?.0.to_owned())).collect()
}

#[test]
fn a_store_without_object_stores_has_no_network_stack() {
    let network = ["http", "hyper", "object_store", "ring", "rustls", "tokio"];
    let without = store_packages(&[]);
    assert!(without.contains("io-uring"), "{without:?}");
    assert_eq!(network.map(|name| without.contains(name)), [false; 6], "{without:?}");
    let with = store_packages(&["--features", "remote"]);
    assert_eq!(network.map(|name| with.contains(name)), [true; 6], "{with:?}");
}

/// A package and everything that it uses outside of its tests.
fn with_dependencies<'a>(id: &'a str, metadata: &'a Value) -> BTreeSet<&'a str> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    let uses: BTreeMap<_, _> =
        nodes.iter().map(|node| (node["id"].as_str().unwrap(), &node["deps"])).collect();
    let (mut found, mut open) = (BTreeSet::new(), vec![id]);
    while let Some(id) = open.pop() {
        if found.insert(id) {
            let used = uses[id].as_array().unwrap().iter().filter(|used| {
                used["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev")
            });
            open.extend(used.map(|used| used["pkg"].as_str().unwrap()));
        }
    }
    found
}
