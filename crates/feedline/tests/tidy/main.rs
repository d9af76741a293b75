//! The code keeps to ARCHITECTURE.md and to the limits of the style, the reference pages keep to the code, and
//! the dependencies to `deny.toml`.

mod dependencies;
mod differences;
mod formats;
mod limits;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `feedline-store` is called `store` in the table, `feedline` keeps its name.
fn short(package: &str) -> &str {
    package.strip_prefix("feedline-").unwrap_or(package)
}

/// Crate -> crates it may use, from the table in ARCHITECTURE.md.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.lines().skip_while(|line| !line.starts_with("| crate |")).skip(2);
    let names = |cell: &str| {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<String>>()
    };
    table
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line.trim_matches('|').split('|').collect();
            (names(cells[0]).pop_first().expect("a crate's name"), names(cells[2]))
        })
        .collect()
}

/// The packages of the workspace, and of `crates/sql`, which is one of its own.
fn packages() -> Vec<Value> {
    let folders = [root(), root().join("crates/sql")];
    let packages = folders.iter().flat_map(|folder| {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
            .current_dir(folder)
            .output()
            .unwrap();
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    });
    packages.collect()
}

/// Crate -> crates it uses; what only its tests use is left out.
fn used() -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let own: BTreeSet<_> = packages.iter().map(|p| p["name"].as_str().unwrap()).collect();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let uses = dependencies
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| dependency["name"].as_str().unwrap())
                .filter(|name| own.contains(name))
                .map(|name| short(name).to_owned());
            (short(package["name"].as_str().unwrap()).to_owned(), uses.collect())
        })
        .collect()
}

#[test]
fn crates_use_what_the_table_allows_and_nothing_else() {
    assert_eq!(used(), allowed());
}

#[test]
fn reference_pages_say_what_the_command_says() {
    let rewrite = std::env::var("FEEDLINE_GOLDEN").is_ok_and(|value| value == "rewrite");
    for page in ["cli", "workload-keys", "metrics"] {
        let output = Command::new(env!("CARGO_BIN_EXE_feedline"))
            .args(["reference", page])
            .output()
            .unwrap();
        assert!(output.status.success(), "{page}");
        let path = root().join(format!("docs/{page}.md"));
        if rewrite {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &output.stdout).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        let made = String::from_utf8(output.stdout).unwrap();
        assert!(stored == made, "docs/{page}.md is out of date: run `make golden`");
    }
}

#[test]
fn files_are_named_by_what_is_in_them() {
    let banned = ["utils", "common", "helpers", "misc", "manager", "handler"];
    for path in rust_files(&root().join("crates")) {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        assert!(!banned.contains(&stem), "{} says nothing about what is in it", path.display());
    }
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
