//! `feedline verify`.

use std::fs;

use serde_json::json;

use crate::bed::{Bed, FILE_BYTES, Ran, ran};

const FILE_3: &str = "data/train/img_3_of_8.npz";

fn verify(bed: &Bed, args: &[&str]) -> Ran {
    ran(bed.feedline(&["verify"]).args(args))
}

/// The checksum of a file as the manifest writes it.
fn crc32(bed: &Bed, name: &str) -> String {
    format!("{:08x}", crc32fast::hash(&fs::read(bed.path(name)).unwrap()))
}

/// The check must end with exit code 1 and these lines, in whatever order the bad ones come.
#[track_caller]
fn check_bad(bed: &Bed, expected: &str) {
    let ran = verify(bed, &["data"]);
    let mut lines: Vec<_> = ran.stdout.lines().collect();
    let bad = lines.len() - 1;
    lines[..bad].sort();
    assert_eq!(lines.join("\n") + "\n", expected);
    assert_eq!(ran.code, Some(1));
    let hint = "hint: delete the bad files; `feedline run WORKLOAD --data data --generate-only` generates them again";
    assert_eq!(ran.stderr.lines().last(), Some(hint));
}

#[test]
fn a_good_set_is_good() {
    let bed = Bed::with_data();
    let ran = verify(&bed, &["data"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "8 files, 36,752 bytes: all good\n"));
    assert_eq!(ran.stderr, "verify: 0/8 files, 0 B of 36.8 kB, 0 bad\n");
    assert_eq!(verify(&bed, &["data/", "--threads", "1"]).stdout, ran.stdout);
}

#[test]
fn every_bad_file_is_named_with_what_is_wrong() {
    let bed = Bed::with_data();
    let sum = crc32(&bed, FILE_3);
    let mut bytes = fs::read(bed.path(FILE_3)).unwrap();
    bytes[1000] ^= 1;
    bed.write(FILE_3, &bytes);
    let flipped = format!("train/img_3_of_8.npz: crc32 {}, expected {sum}\n", crc32(&bed, FILE_3));
    check_bad(&bed, &format!("{flipped}1 of 8 files is bad\n"));

    bed.write("data/train/img_1_of_8.npz", &bytes[..1000]);
    fs::remove_file(bed.path("data/train/img_0_of_8.npz")).unwrap();
    fs::remove_file(bed.path("data/train/img_7_of_8.npz")).unwrap();
    fs::create_dir(bed.path("data/train/img_7_of_8.npz")).unwrap();
    let folder_bytes = fs::metadata(bed.path("data/train/img_7_of_8.npz")).unwrap().len();
    check_bad(
        &bed,
        &format!(
            "train/img_0_of_8.npz: missing\n\
             train/img_1_of_8.npz: 1000 bytes, expected {FILE_BYTES}\n\
             {flipped}\
             train/img_7_of_8.npz: {folder_bytes} bytes, expected {FILE_BYTES}\n\
             4 of 8 files are bad\n"
        ),
    );
}

/// Without two capabilities even root is held to the permissions of a file.
#[test]
fn a_file_that_cannot_be_read_is_bad() {
    let bed = Bed::with_data();
    let ran = bed.shell(
        "chmod 000 data/train/img_3_of_8.npz; exec unshare -r setpriv \
         --bounding-set=-dac_override,-dac_read_search \"$FEEDLINE\" verify data",
    );
    assert_eq!(
        ran.stdout,
        "train/img_3_of_8.npz: cannot be read: Permission denied (os error 13)\n1 of 8 files is bad\n"
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn what_stands_beside_the_set_is_noted() {
    let bed = Bed::with_data();
    bed.write("data/train/img_0_of_9.npz", "other");
    bed.write("data/readme.txt", "mine");
    let ran = verify(&bed, &["data"]);
    assert_eq!(
        ran.stdout,
        "note: train/img_0_of_9.npz is not in the manifest\n8 files, 36,752 bytes: all good\n"
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn json_is_one_versioned_object() {
    let bed = Bed::with_data();
    let object = |code| {
        let ran = verify(&bed, &["data", "--json", "--threads", "1"]);
        assert_eq!(ran.code, Some(code));
        ran.json()
    };
    let good = json!({
        "feedline_verify": 1,
        "bad": [],
        "folder": "data",
        "files": 8,
        "bytes": 8 * FILE_BYTES,
        "checked_files": 8,
        "bad_files": 0,
        "unknown_files": 0,
        "unknown": [],
        "interrupted": false,
        "good": true,
    });
    assert_eq!(object(0), good);

    let sum = crc32(&bed, FILE_3);
    let mut bytes = fs::read(bed.path(FILE_3)).unwrap();
    bytes[0] ^= 1;
    bed.write(FILE_3, &bytes);
    bed.write("data/train/img_4_of_8.npz", "x");
    fs::remove_file(bed.path("data/train/img_5_of_8.npz")).unwrap();
    bed.write("data/valid/\"odd\"", "x");
    let mut found = object(1);
    let bad = found["bad"].as_array_mut().unwrap();
    bad.sort_by_key(|entry| entry["name"].to_string());
    let name = |number| format!("train/img_{number}_of_8.npz");
    let expected = json!([
        {"name": name(3), "fault": "crc32", "found": crc32(&bed, FILE_3), "expected": sum},
        {"name": name(4), "fault": "size", "found": 1, "expected": FILE_BYTES},
        {"name": name(5), "fault": "missing"},
    ]);
    assert_eq!(found["bad"], expected);
    assert_eq!((&found["bad_files"], &found["good"]), (&json!(3), &json!(false)));
    assert_eq!(
        (&found["unknown_files"], &found["unknown"]),
        (&json!(1), &json!(["valid/\"odd\""]))
    );
}

#[track_caller]
fn check_refused(bed: &Bed, folder: &str, stderr: &str) {
    let ran = verify(bed, &[folder]);
    assert_eq!((&*ran.stderr, &*ran.stdout, ran.code), (stderr, "", Some(2)));
}

#[test]
fn without_a_whole_manifest_nothing_is_checked() {
    let bed = Bed::with_data();
    check_refused(&bed, "dat", "error: dat: no such folder\nhint: name the folder of a data set\n");
    check_refused(
        &bed,
        "small.yaml",
        "error: small.yaml: no such folder\nhint: name the folder of a data set\n",
    );
    check_refused(
        &bed,
        "data/train",
        "error: data/train: has no feedline.manifest.json\n\
         hint: `feedline run … --data data/train --generate-only` writes one\n",
    );
    let manifest = "data/feedline.manifest.json";
    let whole = bed.read(manifest);
    bed.write(manifest, whole.replace("\"complete\": true", "\"complete\": false"));
    check_refused(
        &bed,
        "data",
        "error: data: the data set of workload small is incomplete\n\
         hint: `feedline run … --data data --generate-only` makes what is missing\n",
    );
    let lines: Vec<_> = whole.lines().collect();
    bed.write(manifest, lines[..9].join("\n"));
    let column = lines[8].len();
    check_refused(
        &bed,
        "data",
        &format!(
            "error: {manifest}:9:{column}: EOF while parsing a value\n\
             hint: remove it and make the data set again with --generate\n"
        ),
    );
}

#[test]
fn a_number_of_threads_is_one_at_least() {
    let bed = Bed::with_data();
    for number in ["0", "-1", "many"] {
        let ran = verify(&bed, &["data", "--threads", number]);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{number}");
    }
}

/// The first file is a pipe, which holds the check up until the signal has been handled: it is no longer
/// pending, and every thread sleeps again.
#[test]
fn ctrl_c_ends_a_check() {
    let bed = Bed::with_data();
    let first = bed.json("data/feedline.manifest.json")["files"][0]["name"].clone();
    let ran = bed.shell(&format!(
        "rm data/{first} && mkfifo data/{first} && {{ \"$FEEDLINE\" verify data -t 1 --json 2>err & }}
         until grep -q verify: err; do :; done; kill -INT $!
         until grep -q '^ShdPnd:[[:space:]]*0*$' /proc/$!/status &&
             ! grep -h ^State: /proc/$!/task/*/status | grep -qv sleeping; do :; done
         : >data/{first} & writer=$!; wait %1; echo $? >code; kill $writer 2>/dev/null; true",
        first = first.as_str().unwrap()
    ));
    assert_eq!(bed.read("code"), "130\n", "{ran:?}");
    let object = ran.json();
    assert_eq!((&object["interrupted"], &object["good"]), (&json!(true), &json!(false)));
    let checked = object["checked_files"].as_u64().unwrap();
    assert!(checked <= 1, "{object}");
    let last = format!("stopped: {checked} of 8 files checked");
    assert_eq!(bed.read("err").lines().last(), Some(&*last));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bed = Bed::with_data();
    fs::remove_file(bed.path(FILE_3)).unwrap();
    let ran = bed.shell("{ \"$FEEDLINE\" verify data; echo code $? >&2; } | true");
    assert!(ran.stderr.ends_with("code 1\n"), "{}", ran.stderr);
}
