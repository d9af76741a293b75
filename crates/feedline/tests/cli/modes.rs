//! Every format in every way of reading, on real files.

use feedline_workload::{FORMATS, SampleFormat};

use crate::bed::{Bed, SMALL};

/// The formats that have files to read.
fn formats() -> impl Iterator<Item = &'static SampleFormat> {
    FORMATS.iter().copied().filter(|format| format.framework.is_some())
}

/// The small workload with that format, three samples per file, and a loader that reads it.
fn workload(format: &str) -> String {
    let framework = if format == "tfrecord" { "tensorflow" } else { "pytorch" };
    SMALL
        .replace("framework: pytorch", &format!("framework: {framework}"))
        .replace("data_loader: pytorch", &format!("data_loader: {framework}"))
        .replace("format: npz", &format!("format: {format}"))
        .replace("data_folder: data", &format!("data_folder: data-{format}"))
        .replace("num_samples_per_file: 1", "num_samples_per_file: 3")
        .replace("computation_time: 0.01", "computation_time: 0")
}

#[test]
fn every_format_is_read_in_every_way_that_it_can_be() {
    let bed = Bed::new();
    for format in formats() {
        bed.write("w.yaml", workload(format.name));
        bed.runs(&["w.yaml", "--generate-only", "--out", "made", "--overwrite"]);
        for ways in [
            &["io_engine=sync"][..],
            &["io_engine=sync", "odirect=true"],
            &["io_engine=sync", "transfer_size=8192", "read_model=native"],
            &["io_engine=mmap"],
            &["io_engine=io_uring"],
            &["io_engine=io_uring", "odirect=true"],
            &["io_engine=sync", "read_model=deep", "queue_depth=3"],
            &["io_engine=io_uring", "read_model=deep", "queue_depth=8"],
            &["io_engine=io_uring", "read_model=deep", "queue_depth=8", "odirect=true"],
        ] {
            let deep = ways.contains(&"read_model=deep");
            if format.is_streamed && deep {
                continue; // Refused, which another test looks at.
            }
            let sets: Vec<_> = ways.iter().map(|way| format!("reader.{way}")).collect();
            let mut args = vec!["w.yaml", "--out", "out", "--overwrite"];
            for set in &sets {
                args.extend(["--set", set]);
            }
            bed.runs(&args);
            let own = &bed.json("out/summary.json")["feedline"];
            // 8 files of 3 samples in batches of 2.
            assert_eq!(own["steps"], 12, "{format} {ways:?}");
            let engine = ways[0].trim_start_matches("io_engine=");
            assert_eq!(own["io_engine"], engine, "{format}");
            let python = ways == ["io_engine=sync"];
            let model = if deep { "deep" } else { ["native", "framework"][usize::from(python)] };
            assert_eq!(own["read_model"], model, "{format}");
            assert_eq!(own["odirect"], ways.contains(&"odirect=true"), "{format}");
            assert!(own["storage"]["read"]["bytes"].as_u64() > Some(12 * 2), "{format} {ways:?}");
        }
    }
}

#[test]
fn q21_a_mapped_file_is_really_read() {
    let bed = Bed::new();
    bed.write("w.yaml", workload("mmap_indexed_binary"));
    bed.runs(&["w.yaml", "--generate", "--out", "out"]);
    let own = &bed.json("out/summary.json")["feedline"];
    assert_eq!(own["io_engine"], "mmap");
    // 24 samples of 4096 bytes, and once the two index files of each of the 8 files: 2 x 3 x 8 bytes.
    assert_eq!(own["storage"]["read"]["bytes"], 24 * 4096 + 8 * 48);
}

#[test]
fn ways_that_exclude_each_other_are_refused_before_anything_is_written() {
    let bed = Bed::new();
    bed.write("w.yaml", workload("tfrecord"));
    let before = bed.tree();
    let ran = bed.run(&["w.yaml", "--generate", "--set", "reader.read_model=deep"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.stderr,
        "error: `reader.read_model: deep` cannot be combined with `dataset.format: tfrecord`: records can only be found by reading the file from the start\nhint: use `reader.read_model=framework`\n"
    );
    let ran = bed.run(&["w.yaml", "--generate", "--set", "dataset.compression=bz2"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, "error: format tfrecord has no compression bz2, only: none\n");
    assert_eq!(bed.tree(), before);
}

/// What each format says of a file that ends too early; the file's name comes first.
#[test]
fn a_truncated_file_of_any_format_is_named_with_the_place() {
    for format in formats() {
        let bed = Bed::new();
        bed.write("w.yaml", workload(format.name));
        bed.runs(&["w.yaml", "--generate-only", "--out", "made"]);
        let extension = if format.name == "webdataset" { "tar" } else { format.name };
        let name = format!("data-{format}/train/img_0_of_8.{extension}");
        let bytes = std::fs::read(bed.path(&name)).unwrap();
        bed.write(&name, &bytes[..bytes.len() / 2]);
        let ran = bed.run(&["w.yaml", "--out", "out"]);
        assert_eq!(ran.code, Some(2), "{format}: {ran:?}");
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).unwrap();
        assert!(error.contains(&name), "{format}: {error}");
        let placed = error.contains("byte") || error.contains("row");
        assert!(placed, "{format}: {error}");
    }
}

#[test]
fn trusted_files_are_not_looked_for() {
    let bed = Bed::with_data();
    std::fs::remove_file(bed.path("data/train/img_7_of_8.npz")).unwrap();
    let ran = bed.run(&["small.yaml", "--out", "out"]);
    assert!(ran.stderr.contains("7 npz files found, expected 8"), "{ran:?}");
    let trusting = ["small.yaml", "--out", "out", "--set", "dataset.skip_listing=true"];
    let ran = bed.run(&trusting);
    assert!(ran.stderr.contains("img_7_of_8.npz"), "{ran:?}");
}

/// Every shipped training workload, cut down to a few small samples.
#[test]
fn q0_every_shipped_training_workload_makes_steps() {
    let bed = Bed::new();
    let names = bed.feedline(&["workloads"]).output().expect("the list");
    let names = String::from_utf8(names.stdout).expect("text");
    let mut trained = 0;
    for name in names.lines().filter_map(|line| line.split_whitespace().next()) {
        let yaml = bed.feedline(&["workloads", name]).output().expect("a workload");
        let yaml = String::from_utf8(yaml.stdout).expect("text");
        if !yaml.contains("train: True") || name.starts_with("llama") {
            continue;
        }
        let out = format!("out-{name}");
        let mut args = vec!["run", name, "--generate", "--data", "d", "--out", &out];
        for set in [
            "storage.storage_type=local_fs",
            "storage.storage_root=.",
            "dataset.num_files_train=8",
            "dataset.num_samples_per_file=2",
            "dataset.record_length_bytes=2048",
            "dataset.record_length_bytes_stdev=0",
            "reader.batch_size=2",
            "train.computation_time=0.001",
            "train.epochs=1",
            "train.total_training_steps=3",
            "workflow.checkpoint=false",
        ] {
            args.extend(["--set", set]);
        }
        let ran = bed.feedline(&args).output().expect("a run");
        let errors = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{name}: {errors}");
        let own = &bed.json(&format!("{out}/summary.json"))["feedline"];
        assert_eq!(own["steps"], 3, "{name}");
        std::fs::remove_dir_all(bed.path("d")).expect("the data");
        trained += 1;
    }
    assert_eq!(trained, 20, "the 17 training workloads of DLIO and three more");
}

#[test]
fn a_ceiling_is_measured_without_any_data() {
    let bed = Bed::new();
    let paced = SMALL.replace("computation_time: 0.01", "computation_time: 0.5");
    bed.write("w.yaml", paced);
    let ran = bed.feedline(&["ceiling", "w.yaml", "--json"]).output().expect("a measurement");
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let found: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(found["ceiling"]["demand_samples_per_second"], 4.0);
    assert!(found["ceiling"]["accelerators"].as_u64() >= Some(1), "{found}");
    assert_eq!(bed.tree(), ["w.yaml"], "nothing is left in the folder");

    bed.write("w.yaml", SMALL.replace("computation_time: 0.01", "computation_time: 0"));
    let ran = bed.feedline(&["ceiling", "w.yaml"]).output().expect("a refusal");
    assert_eq!(ran.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&ran.stderr),
        "error: workload w does not train, or computes nothing\nhint: the demand of an accelerator \
         follows from `train.computation_time` and `reader.batch_size`; set both\n"
    );
}
