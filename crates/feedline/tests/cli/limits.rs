//! Storage that is slower than it is, or breaks, because the user wants to see what happens then.

use serde_json::{Value, json};

use crate::bed::{Bed, FILE_BYTES};

/// Feedline's own object of a run into `out`.
fn own(bed: &Bed) -> Value {
    bed.json("out/summary.json")["feedline"].take()
}

/// Files below the data folder.
fn data_files(bed: &Bed) -> Vec<String> {
    let is_file = |path: &String| path.starts_with("data/") && !path.ends_with('/');
    bed.tree().into_iter().filter(is_file).collect()
}

#[test]
fn a_limited_run_says_so_and_is_not_faster() {
    let bed = Bed::with_data();
    let limit = ["--store-limit", "0.1ms, 1MB/s", "--set", "train.computation_time=0"];
    let limit = [&limit[..], &["--set", "reader.read_model=native"]].concat();
    let ran = bed.runs(&[&["small.yaml", "--out", "out"], &limit[..]].concat());
    let caution = "the storage is limited to 1MB/s,100us: the numbers are not those of the storage \
                   as it is";
    assert_eq!(ran.stderr.lines().next(), Some(&*format!("warning: {caution}")));
    let line = "what if     storage limited to 1MB/s,100us: not comparable with other results";
    assert!(ran.stdout.lines().any(|found| found == line), "{}", ran.stdout);

    let own = own(&bed);
    assert_eq!(own["store_limit"], "1MB/s,100us");
    assert_eq!(own["store_faults"], json!([]));
    assert_eq!(own["comparable"], false);
    assert!(own["warnings"].as_array().unwrap().contains(&json!(caution)), "{own}");
    let number = |pointer| own.pointer(pointer).and_then(Value::as_f64).unwrap();
    let bytes = number("/storage/read/bytes");
    assert_eq!(bytes, 8.0 * FILE_BYTES as f64);
    assert!(bytes / number("/last_rank_done_seconds") <= 1e6, "{own}");
    // The fastest of them has had its latency too.
    assert!(number("/storage/open/latency_us/p50") >= 99.0, "{own}");
}

#[test]
fn a_run_without_flags_has_its_storage_as_it_is() {
    let bed = Bed::with_data();
    let ran = bed.runs(&["small.yaml", "--out", "out"]);
    let own = own(&bed);
    assert_eq!((&own["store_limit"], &own["store_faults"]), (&Value::Null, &json!([])));
    assert_eq!(own["comparable"], true);
    assert!(!ran.stdout.contains("what if"), "{}", ran.stdout);
}

#[test]
fn generation_is_limited_too() {
    let bed = Bed::new();
    bed.runs(&["small.yaml", "--generate", "--out", "out", "--store-limit", "200kB/s"]);
    let made = &own(&bed)["generation"];
    assert_eq!(made["bytes"], 8 * FILE_BYTES);
    assert!(made["MB_per_second"].as_f64().unwrap() <= 0.2, "{made}");
}

#[test]
fn every_way_of_reading_is_limited() {
    let bed = Bed::with_data();
    let deep = ["--set", "reader.read_model=deep"];
    for engine in ["sync", "io_uring"] {
        let engine = format!("reader.io_engine={engine}");
        let args = ["small.yaml", "--out", "out", "--overwrite", "--store-limit", "500kB/s"];
        let more = ["--set", "train.computation_time=0", "--set", &engine];
        bed.runs(&[&args[..], &deep, &more].concat());
        let own = own(&bed);
        let number = |pointer| own.pointer(pointer).and_then(Value::as_f64).unwrap();
        let rate = number("/storage/read/bytes") / number("/last_rank_done_seconds");
        assert!(rate > 0.0 && rate <= 5e5, "{engine}: {rate}");
    }
}

#[test]
fn ctrl_c_does_not_wait_for_a_slow_storage() {
    let bed = Bed::with_data();
    // The first file would take more than an hour.
    let args = ["small.yaml", "--out", "out", "--set", "dataset.skip_listing=true"];
    let run = bed.start(&[&args[..], &["--store-limit", "1B/s"]].concat());
    bed.wait_for_log("out/dlio.log", "Starting block 1");
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(own(&bed)["interrupted"], true);
}

/// One reader, files in order, one open and one read each.
#[test]
fn a_fault_ends_the_run_and_names_its_file() {
    for (fault, error) in [
        ("open:5:ENOENT", "cannot open ./data/train/img_4_of_8.npz: No such file or directory"),
        ("read:6:EIO", "cannot read ./data/train/img_5_of_8.npz: Input/output error"),
        ("read:every7:ESTALE", "cannot read ./data/train/img_6_of_8.npz: Stale file handle"),
    ] {
        let bed = Bed::with_data();
        let native = ["--set", "reader.read_model=native"];
        let args = [&["small.yaml", "--out", "out", "--store-fault", fault], &native[..]].concat();
        let ran = bed.run(&args);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        let caution = format!(
            "warning: the storage is failing {fault}: the numbers are not those of the storage as \
             it is"
        );
        assert_eq!(ran.stderr.lines().next(), Some(&*caution));
        let named = ran.stderr.lines().find(|line| line.starts_with("error: "));
        assert!(named.is_some_and(|line| line.contains(error)), "{ran:?}");
        assert!(!bed.path("out/summary.json").exists());
    }
}

#[test]
fn a_fault_that_is_not_reached_is_recorded() {
    let bed = Bed::with_data();
    let faults = ["--store-fault", "read:9999:EIO", "--store-fault", "write:3:ENOSPC"];
    let limit = ["--store-limit", "1kiops"];
    bed.runs(&[&["small.yaml", "--out", "out"], &faults[..], &limit].concat());
    let own = own(&bed);
    assert_eq!(own["store_faults"], json!(["read:9999:EIO", "write:3:ENOSPC"]));
    assert_eq!((&own["store_limit"], &own["comparable"]), (&json!("1kiops"), &json!(false)));
}

#[test]
fn a_write_that_fails_leaves_no_file_half_written() {
    for nth in 1..=9 {
        let bed = Bed::new();
        let fault = format!("write:{nth}:ENOSPC");
        let ran =
            bed.run(&["small.yaml", "--generate-only", "--out", "out", "--store-fault", &fault]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: cannot write ./data/"));
        let error = error.unwrap_or_else(|| panic!("{ran:?}"));
        assert!(error.ends_with("No space left on device (os error 28)"), "{error}");
        for file in data_files(&bed) {
            if file == "data/feedline.manifest.json" {
                assert_eq!(bed.json(&file)["complete"], false, "{fault}");
                continue;
            }
            assert!(file.starts_with("data/train/img_") && file.ends_with("_of_8.npz"), "{file}");
            assert_eq!(bed.path(&file).metadata().unwrap().len(), FILE_BYTES, "{file}, {fault}");
        }
    }
}

#[test]
fn a_checkpoint_that_fails_is_named_and_leaves_nothing() {
    let bed = Bed::with_data();
    let checkpoint = ["--set", "workflow.checkpoint=true", "--store-fault", "write:1:EIO"];
    let ran = bed.run(&[&["small.yaml", "--out", "out"], &checkpoint[..]].concat());
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("error: cannot write ") && ran.stderr.contains("model_states-0.pt")
    );
    assert!(bed.tree().iter().all(|path| !path.contains("model_states")), "{:?}", bed.tree());
}

#[test]
fn a_dry_run_says_what_the_storage_would_be() {
    let bed = Bed::with_data();
    let ran = bed.runs(&["small.yaml", "--dry-run", "--store-limit", "2GiB/s"]);
    assert!(ran.stderr.starts_with("warning: the storage is limited to 2GiB/s: "), "{ran:?}");
}

#[test]
fn what_is_no_limit_or_fault_is_refused() {
    let limit = "--store-limit 2GB/s,10kiops,0.2ms, or some of these";
    let fault = "--store-fault read:100:EIO, or --store-fault read:every1000:EIO";
    for (flag, text, expected, hint) in [
        ("--store-limit", "2GB", "expected a rate such as 2GB/s, found `2GB`", limit),
        ("--store-limit", "2GB/s,3GB/s", "the rate is limited twice, found `3GB/s` as well", limit),
        ("--store-limit", "1ms-", "expected a latency such as 0.2ms, found ``", limit),
        (
            "--store-fault",
            "read:100",
            "expected OP:N:ERRNO such as read:100:EIO, found `read:100`",
            fault,
        ),
        (
            "--store-fault",
            "raed:100:EIO",
            "no operation is called `raed`",
            "use open, stat, read, create, write, publish, list, make-folder, remove, inspect",
        ),
    ] {
        let stderr = format!("error: {flag} {text}: {expected}\nhint: {hint}\n");
        Bed::new().refuses(&["small.yaml", "--generate", flag, text], &stderr);
    }
}
