//! Disks that are full, read-only or locked. Each is a small file system in a namespace of its own,
//! so the tests need no root and leave nothing mounted.

use crate::bed::{Bed, FILE_BYTES};

/// Runs the small workload with `--generate` into `data`, a tmpfs of `options`; the shell then
/// prints the name and size of every file there.
fn generated_on(bed: &Bed, options: &str) -> (String, Vec<(String, u64)>) {
    let line = format!(
        "mkdir data && mount -t tmpfs -o {options} none data \
         && {{ \"$FEEDLINE\" run small.yaml --generate --out out; echo code $? >&2; \
         find data -type f -name '*.npz' -printf '%P %s\\n'; }}"
    );
    let ran = bed.unshared(&line);
    let files = ran.stdout.lines().filter_map(|line| line.split_once(' '));
    (ran.stderr, files.map(|(name, size)| (name.to_owned(), size.parse().unwrap())).collect())
}

#[test]
fn too_little_room_is_seen_before_anything_is_written() {
    let bed = Bed::new();
    let (stderr, files) = generated_on(&bed, "size=16k");
    assert_eq!(
        stderr,
        "error: ./data: the data set needs at least 36752 bytes, 16384 are free\n\
         hint: choose another place with --data DIR, or fewer files with \
         --set dataset.num_files_train=N\n\
         code 2\n"
    );
    assert_eq!(files, []);
    assert_eq!(bed.tree(), ["data/"]);
}

/// The set of 36752 bytes takes 64 KiB of pages. In 104 KiB there is room for it, its manifest and
/// the four files that are in the making, not for a second set beside the first.
#[test]
fn a_set_can_be_made_anew_where_two_would_not_fit() {
    let bed = Bed::new();
    let ran = bed.unshared(
        "mkdir data && mount -t tmpfs -o size=104k none data \
         && \"$FEEDLINE\" run small.yaml --generate-only --out a \
         && \"$FEEDLINE\" run small.yaml --generate-only --out b --set train.seed=7; echo code $? >&2; \
         find data/train -type f | wc -l",
    );
    assert!(ran.stderr.ends_with("code 0\n"), "{}", ran.stderr);
    assert!(ran.stdout.ends_with("\n8\n"), "{}", ran.stdout);
}

/// The set needs 36752 bytes, of which 40 KiB of tmpfs have room; but a file of 4594 bytes takes two
/// pages, so the sixth finds none: a disk that is full in the middle of a file.
#[test]
fn a_disk_that_fills_up_keeps_complete_files_only() {
    let bed = Bed::new();
    let (stderr, files) = generated_on(&bed, "size=40k");
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{stderr}");
    let path = lines[1].strip_prefix("error: cannot write ./data/train/img_").unwrap_or("");
    assert_eq!(&path[1..], "_of_8.npz: No space left on device (os error 28)", "{stderr}");
    assert_eq!(lines[2], "code 2");
    assert!((1..=5).contains(&files.len()), "{files:?}");
    for (name, size) in files {
        assert!(name.starts_with("train/img_") && name.ends_with("_of_8.npz"), "{name}");
        assert_eq!(size, FILE_BYTES, "{name}");
    }
    assert!(!bed.path("out/summary.json").exists());
}

/// 76 KiB have room for the 64 KiB of the files and for two manifests, the short one and the one that
/// takes its place, but not while a file of someone else takes 32 KiB.
#[test]
fn a_disk_that_was_full_is_filled_up_later() {
    let bed = Bed::new();
    let ran = bed.unshared(
        "mkdir data && mount -t tmpfs -o size=76k none data && head -c 32768 /dev/zero >data/other \
         && { \"$FEEDLINE\" run small.yaml --generate-only --out a; echo code $? >&2; rm data/other; \
         cp data/feedline.manifest.json .; \
         find data/train -type f -printf '%i %T@ %p\\n' | sort >before; \
         \"$FEEDLINE\" run small.yaml --generate-only --out b; echo code $? >&2; \
         find data/train -type f -printf '%i %T@ %p\\n' | sort >after; \
         \"$FEEDLINE\" verify data; find data -name '.*'; }",
    );
    let codes: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("code ")).collect();
    assert_eq!(codes, ["code 2", "code 0"], "{}", ran.stderr);
    assert_eq!(bed.json("feedline.manifest.json")["complete"], false);
    let (before, after) = (bed.read("before"), bed.read("after"));
    let kept = before.lines().count();
    assert!((1..8).contains(&kept), "{before}");
    assert!(before.lines().all(|line| after.lines().any(|other| other == line)), "{before}{after}");
    let said =
        format!("DATA READY: {} files made, {kept} a", 8 - kept).replace("1 files", "1 file");
    assert!(ran.stdout.starts_with(&said), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("\n8 files, 36,752 bytes: all good\n"), "{}", ran.stdout);
}

/// A limit on the size of a file ends a write in its middle as a full disk or a quota does, for every
/// file at the same byte.
#[test]
fn a_write_that_ends_in_the_middle_leaves_no_file() {
    let bed = Bed::new();
    let ran = bed.shell(
        "trap '' XFSZ; ulimit -f 8; exec \"$FEEDLINE\" run small.yaml --generate --out out \
         --set dataset.record_length_bytes=65536",
    );
    let error = ran.stderr.lines().last().unwrap_or_default();
    let path = error.strip_prefix("error: cannot write ./data/train/img_").unwrap_or("");
    assert_eq!(&path[1..], "_of_8.npz: File too large (os error 27)", "{}", ran.stderr);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    let data: Vec<_> = bed.tree().into_iter().filter(|path| path.starts_with("data/")).collect();
    assert_eq!(data, ["data/", "data/feedline.manifest.json", "data/train/", "data/valid/"]);
    assert_eq!(bed.json("data/feedline.manifest.json")["complete"], false);
}

#[test]
fn a_read_only_output_folder_is_refused_before_data_is_made() {
    let bed = Bed::new();
    let ran = bed.unshared(
        "mkdir ro && mount -t tmpfs -o ro none ro && \
         exec \"$FEEDLINE\" run small.yaml --generate --out ro/out",
    );
    assert_eq!(
        ran.stderr,
        "error: ro/out: cannot be written: Read-only file system (os error 30)\n"
    );
    assert_eq!((ran.code, bed.tree()), (Some(2), vec!["ro/".to_owned()]));
}

/// Without two capabilities even root is held to the permissions of a folder.
#[test]
fn a_locked_folder_cannot_be_listed() {
    let bed = Bed::with_data();
    let ran = bed.shell(
        "chmod 000 data/train; unshare -r setpriv \
         --bounding-set=-dac_override,-dac_read_search \"$FEEDLINE\" run small.yaml; \
         code=$?; chmod 755 data/train; exit $code",
    );
    assert_eq!(ran.stderr, "error: cannot list ./data/train: Permission denied (os error 13)\n");
    assert_eq!((ran.code, &*ran.stdout), (Some(2), ""));
    assert!(!bed.path("feedline_results").exists());
}
