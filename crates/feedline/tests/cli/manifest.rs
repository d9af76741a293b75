//! The manifest of a data set, and generations that go on where an earlier one ended.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use serde_json::{Value, json};

use crate::bed::{Bed, FILE_BYTES};

const MANIFEST: &str = "data/feedline.manifest.json";

/// Inode and time of change of every data file.
fn identities(bed: &Bed) -> BTreeMap<String, (u64, i64, i64)> {
    let files = bed.tree().into_iter().filter(|path| path.ends_with(".npz"));
    let identity = |path: &str| {
        let found = fs::metadata(bed.path(path)).expect("a data file");
        (found.ino(), found.mtime(), found.mtime_nsec())
    };
    files.map(|path| (path.clone(), identity(&path))).collect()
}

/// The manifest's entries by name, each compared with its file.
#[track_caller]
fn entries(bed: &Bed) -> BTreeMap<String, Value> {
    let manifest = bed.json(MANIFEST);
    assert_eq!(manifest["complete"], true);
    let mut found = BTreeMap::new();
    for entry in manifest["files"].as_array().expect("a list") {
        let name = entry["name"].as_str().expect("a name");
        let bytes = fs::read(bed.path("data").join(name)).expect("a data file");
        let crc32 = format!("{:08x}", crc32fast::hash(&bytes));
        assert_eq!(*entry, json!({"name": name, "bytes": bytes.len(), "crc32": crc32}));
        found.insert(name.to_owned(), entry.clone());
    }
    let bytes: u64 = found.values().map(|entry| entry["bytes"].as_u64().unwrap()).sum();
    assert_eq!(manifest["totals"], json!({"files": found.len(), "bytes": bytes}));
    found
}

fn generate(bed: &Bed, out: &str, more: &[&str]) -> String {
    bed.runs(&[&["small.yaml", "--generate-only", "--out", out], more].concat()).stdout
}

#[test]
fn a_manifest_tells_what_was_made_from_what() {
    let bed = Bed::new();
    let sets = ["dataset.num_files_train=2", "dataset.num_files_eval=1", "train.seed=7"];
    let sets: Vec<_> = sets.iter().flat_map(|set| ["--set", set]).collect();
    generate(&bed, "out", &sets);
    let mut manifest = bed.json(MANIFEST);
    let names = ["train/img_0_of_2.npz", "train/img_1_of_2.npz", "valid/img_0_of_1.npz"];
    assert!(entries(&bed).keys().eq(names.iter()));
    manifest["files"] = json!([]);
    let version = env!("CARGO_PKG_VERSION");
    let expected = json!({
        "feedline_manifest": 1,
        "complete": true,
        "workload": "small",
        "made_by": format!("feedline {version}"),
        "recipe": {
            "content_version": 2,
            "format": "npz",
            "options": {
                "compression": "none",
                "level": 4,
                "datasets": 1,
                "chunk_dims": [],
                "max_shape": [],
                "explicit_dims": false,
            },
            "seed": 7,
            "element_type": "uint8",
            "record_length_bytes": 4096.0,
            "record_length_bytes_stdev": 0.0,
            "record_dims": [],
            "samples_per_file": 1,
            "train_files": 2,
            "train_subfolders": 0,
            "eval_files": 1,
            "eval_subfolders": 0,
            "file_prefix": "img",
        },
        "files": [],
        "totals": {"files": 3, "bytes": 3 * FILE_BYTES},
    });
    assert_eq!(manifest, expected);
    let order: Vec<_> = manifest.as_object().unwrap().keys().collect();
    let expected: Vec<_> = expected.as_object().unwrap().keys().collect();
    assert_eq!(order, expected);
}

#[test]
fn a_set_that_is_there_is_not_made_again() {
    let bed = Bed::with_data();
    let (before, manifest) = (identities(&bed), bed.read(MANIFEST));
    let screen = generate(&bed, "out", &[]);
    assert!(
        screen.starts_with("DATA READY: all files already existed, nothing trained\n"),
        "{screen}"
    );
    let line =
        "generated   nothing; 8 of 8 files already existed (to make all of them again, remove\n";
    assert!(screen.contains(line), "{screen}");
    assert_eq!((identities(&bed), bed.read(MANIFEST)), (before, manifest));
    let log = bed.read("out/dlio.log");
    let said = "8 of 8 files already existed; remove ./data/feedline.manifest.json to make all of them again";
    assert!(log.contains(said), "{log}");
    bed.runs(&["small.yaml", "--generate", "--out", "trained"]);
    let generation = &bed.json("trained/summary.json")["feedline"]["generation"];
    assert_eq!(generation["kept_files"], 8);
    assert_eq!(generation["kept_bytes"], 8 * FILE_BYTES);
    assert_eq!(generation["files"], 0);
}

#[test]
fn only_what_is_missing_or_cut_is_made_again() {
    let bed = Bed::with_data();
    let (before, sums) = (identities(&bed), entries(&bed));
    fs::remove_file(bed.path("data/train/img_3_of_8.npz")).unwrap();
    fs::write(bed.path("data/train/img_5_of_8.npz"), "cut").unwrap();
    let screen = generate(&bed, "out", &[]);
    let first = "DATA READY: 2 files made, 6 already existed, nothing trained\n";
    assert!(screen.starts_with(first), "{screen}");
    let after = identities(&bed);
    for (path, identity) in before {
        let made = path.contains("img_3_") || path.contains("img_5_");
        assert_eq!(after[&path] != identity, made, "{path}");
    }
    assert_eq!(entries(&bed), sums);
}

#[test]
fn another_recipe_makes_everything_anew() {
    let bed = Bed::with_data();
    for change in ["train.seed=7", "dataset.record_length_bytes=1024", "dataset.format=npz"] {
        let before = identities(&bed);
        let screen = generate(&bed, change, &["--set", change]);
        assert!(screen.starts_with("DATA READY: 8 files made, nothing trained\n"), "{screen}");
        let after = identities(&bed);
        assert!(before.iter().all(|(path, identity)| after[path] != *identity), "{change}");
        assert_eq!(entries(&bed).len(), 8);
    }
}

#[test]
fn without_its_manifest_a_set_is_made_anew() {
    let bed = Bed::with_data();
    let before = identities(&bed);
    fs::remove_file(bed.path(MANIFEST)).unwrap();
    generate(&bed, "out", &[]);
    let after = identities(&bed);
    assert!(before.iter().all(|(path, identity)| after[path] != *identity));
    assert_eq!(entries(&bed).len(), 8);
}

/// 66 MB would be made; the signal comes after some files.
#[test]
fn a_killed_generation_goes_on() {
    let bed = Bed::new();
    let sets =
        ["--set", "dataset.num_files_train=1000", "--set", "dataset.record_length_bytes=65536"];
    let args = [&["small.yaml", "--generate-only", "--out", "killed"], &sets[..]].concat();
    let run = bed.start(&args);
    let files = |bed: &Bed| {
        let Ok(entries) = fs::read_dir(bed.path("data/train")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    let whole = |name: &String| name.starts_with("img_");
    bed.wait_until("some files", |bed| files(bed).iter().filter(|name| whole(name)).count() > 10);
    run.signal("KILL");
    assert_eq!(run.wait().code, None);

    let manifest = bed.json(MANIFEST);
    assert_eq!((&manifest["complete"], &manifest["files"]), (&json!(false), &json!([])));
    let before = identities(&bed);
    let kept = files(&bed).iter().filter(|name| whole(name)).count();
    assert!(kept < 1000, "it was killed too late");
    let screen = generate(&bed, "out", &sets);
    let first = format!("DATA READY: {} files made, {kept} already existed", 1000 - kept);
    assert!(screen.starts_with(&first), "{screen}");
    let after = identities(&bed);
    assert!(
        before
            .iter()
            .filter(|(path, _)| path.contains("/img_"))
            .all(|(path, identity)| after[path] == *identity)
    );
    assert_eq!(entries(&bed).len(), 1000);
    let left = bed.tree().into_iter().filter(|path| path.contains(".partial-")).collect::<Vec<_>>();
    assert_eq!(left, [""; 0], "what the killed run had not finished is gone");
}

#[test]
fn an_interrupted_generation_goes_on() {
    let bed = Bed::new();
    let sets =
        ["--set", "dataset.num_files_train=1000", "--set", "dataset.record_length_bytes=65536"];
    let args = [&["small.yaml", "--generate-only", "--out", "stopped"], &sets[..]].concat();
    let run = bed.start(&args);
    let first = || bed.path("data/train/img_0000_of_1000.npz").exists();
    bed.wait_until("the first file", |_| first());
    run.signal("INT");
    assert_eq!(run.wait().code, Some(130));
    assert_eq!(bed.json(MANIFEST)["complete"], false);
    let before = identities(&bed);
    generate(&bed, "out", &sets);
    let after = identities(&bed);
    assert!(before.iter().all(|(path, identity)| after[path] == *identity));
    assert_eq!(entries(&bed).len(), 1000);
}

#[test]
fn a_manifest_that_cannot_be_read_is_not_overwritten() {
    let bed = Bed::with_data();
    let hint = "hint: remove it and make the data set again with --generate\n";
    let cases = [
        ("{}", ": is not a Feedline manifest: it has no `feedline_manifest`"),
        ("{\"feedline_manifest\": 2}", ": manifest version 2, expected 1"),
        ("{\n\"feedline_manifest\": 1,\n!", ":3:1: key must be a string"),
    ];
    for (text, error) in cases {
        bed.write(MANIFEST, text);
        let expected = format!("error: ./{MANIFEST}{error}\n{hint}");
        bed.refuses(&["small.yaml", "--generate", "--out", "out"], &expected);
        assert_eq!(bed.read(MANIFEST), text);
    }
}
