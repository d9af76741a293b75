//! `feedline calibrate` with a Python that a test made up, and what runs make of its figures.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::bed::{Bed, Ran, ran};

/// Answers as the real script does: a reader takes 2 ms per file in a loop and 2 ms in a worker, handing a
/// batch over 1 ms there and 0.5 ms here, a worker's start 20 ms and 10 ms.
const PYTHON: &str = r#"#!/bin/sh
while read -r line; do
  case "$line" in
    *versions*) echo '{"version": "3.99.1", "executable": "/fake/python", "packages": {"numpy": "9.1", "torch": "8.2"}, "missing": {"h5py": "No module named h5py"}}' ;;
    *'"reader"'*) echo '{"call": "np.load(path)", "cpu_ns": 2000000}' ;;
    *'"batch"'*) echo '{"bytes": 16384, "worker_cpu_ns": 9000000, "consumer_cpu_ns": 600000}' ;;
    *hand_over*)
      bytes=${line#*'"bytes":'}
      echo "{\"bytes\": ${bytes%%[,\}]*}, \"worker_cpu_ns\": 1000000, \"consumer_cpu_ns\": 500000}" ;;
    *start*) echo '{"worker_cpu_ns": 20000000, "consumer_cpu_ns": 10000000}' ;;
  esac
done
"#;

const FILE: &str = "home/feedline/calibration.json";

fn bed() -> Bed {
    let bed = Bed::with_data();
    program(&bed, PYTHON);
    bed
}

fn program(bed: &Bed, text: &str) {
    bed.write("python", text);
    let path = bed.path("python");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a program");
}

fn calibrate(bed: &Bed, args: &[&str]) -> Ran {
    let usual =
        ["calibrate", "--python", "./python", "--sizes", "4096,16384", "--seconds", "0.001"];
    ran(bed.feedline(&usual).args(args))
}

/// The figures of a made-up machine: 3 ms per sample more than our reader, of this CPU.
fn figures(bed: &Bed) -> Value {
    let ran = calibrate(bed, &["--formats", "npz"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut found = bed.json(FILE);
    for point in found["readers"]["npz"]["points"].as_array_mut().expect("points") {
        point["cpu_ns"] = json!(3_100_000);
        point["replay_cpu_ns"] = json!(100_000);
        point["in_loader"] = json!([]);
    }
    found
}

fn summary(bed: &Bed, args: &[&str]) -> Value {
    let usual = ["small.yaml", "--out", "out", "--overwrite"];
    let ran = bed.run(&[&usual, args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    bed.json("out/summary.json")["feedline"].take()
}

#[test]
fn figures_are_kept_with_what_they_were_measured_with() {
    let bed = bed();
    let ran = calibrate(&bed, &["--formats", "npz,hdf5", "--workers", "1,3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("CALIBRATED: "), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("skipped: hdf5, h5py is missing (pip install h5py)\n"),
        "{}",
        ran.stderr
    );
    let found = bed.json(FILE);
    assert_eq!(found["feedline_calibration"], 1);
    assert_eq!(found["python"]["version"], "3.99.1");
    assert_eq!(found["python"]["packages"], json!({"numpy": "9.1", "torch": "8.2"}));
    let points = found["readers"]["npz"]["points"].as_array().expect("points");
    let sizes: Vec<_> = points.iter().map(|point| point["bytes"].as_u64()).collect();
    assert_eq!(sizes, [Some(4096), Some(16384)]);
    assert!(points.iter().all(|point| point["cpu_ns"] == 2_000_000.0));
    assert!(points.iter().all(|point| point["replay_cpu_ns"].as_f64() > Some(0.0)));
    let batch = |workers, bytes, ns: (f64, f64)| json!({"workers": workers, "bytes": bytes, "worker_cpu_ns": ns.0, "consumer_cpu_ns": ns.1});
    let batches = [0, 1, 3].map(|workers| batch(workers, 16384, (9e6, 6e5)));
    assert!(points.iter().all(|point| point["in_loader"] == json!(batches)));
    assert_eq!(found["batch_samples"], 4);
    assert_eq!(found["left_out"]["hdf5"], "h5py is missing (pip install h5py)");
    let loader = &found["data_loader"];
    let hand_over = loader["hand_over"].as_array().expect("points");
    let expected = [16384, 65536].map(|bytes| [0, 1, 3].map(|n| batch(n, bytes, (1e6, 5e5))));
    assert_eq!(*hand_over, expected.concat());
    assert_eq!(loader["start"]["spawn"]["worker_cpu_ns"], 2e7);
    assert_eq!(bed.path("home/feedline").read_dir().expect("a folder").count(), 1, "no rest");
}

#[test]
fn a_run_burns_the_figures_of_its_own_machine() {
    let bed = bed();
    let mut found = figures(&bed);
    bed.write("home/feedline/calibration.json", found.to_string());
    let own = summary(&bed, &[]);
    // 3 ms a sample, and half of 1.5 ms a batch of two.
    assert_eq!(own["framework"]["interpreter"], "calibrated");
    assert_eq!(own["framework"]["per_sample_ms"], 3.75);
    // One worker: two batches ahead and one with the consumer, of two samples of 4096 bytes.
    assert_eq!(own["framework"]["held_bytes"], 3 * 2 * 4096);
    // Four steps, in each of which the consumer itself takes 0.5 ms, and 30 ms to start.
    assert!(own["time_split_seconds"]["framework"].as_f64() >= Some(0.032), "{own}");
    // Of another machine they are only used when that is asked for, and then it is said.
    found["machine"]["cpu"] = json!("Another CPU");
    bed.write("other.json", found.to_string());
    let own = summary(&bed, &["--calibration", "other.json"]);
    assert_eq!(own["framework"]["interpreter"], "left out");
    assert_eq!(own["framework"]["why"], "the calibration is of another CPU (Another CPU)");
    assert_eq!(own["time_split_seconds"]["framework"], 0.0);
    let insisting = ["--calibration", "other.json", "--set", "reader.interpreter=calibrated"];
    let own = summary(&bed, &insisting);
    assert_eq!(own["framework"]["interpreter"], "calibrated");
    let warnings = own["warnings"].to_string();
    assert!(warnings.contains("was measured on another CPU (Another CPU)"), "{warnings}");
    let own = summary(&bed, &["--set", "reader.interpreter=none"]);
    assert_eq!(own["framework"], json!({"interpreter": "none"}));
}

#[test]
fn without_a_calibration_an_estimate_is_given_and_the_headline_is_without_it() {
    let bed = Bed::with_data();
    let own = summary(&bed, &[]);
    assert_eq!(own["framework"]["interpreter"], "left out");
    assert_eq!(own["framework"]["why"], "this machine has no calibration");
    let estimate = own["framework"]["estimated_au_percentage"].as_f64().expect("an estimate");
    assert!((0.0..=100.0).contains(&estimate), "{estimate}");
    let ran = bed.run(&["small.yaml", "--out", "out", "--overwrite"]);
    assert!(ran.stdout.contains("measure it: feedline calibrate"), "{}", ran.stdout);
    let ran = bed.run(&["small.yaml", "--set", "reader.interpreter=calibrated"]);
    assert_eq!(ran.code, Some(2));
    assert_eq!(
        ran.stderr,
        "error: `reader.interpreter: calibrated`: this machine has no calibration\n\
         hint: measure it with `feedline calibrate`, in a few minutes\n"
    );
}

#[test]
fn files_that_are_none_are_named_and_only_stop_who_needs_them() {
    let bed = bed();
    bed.write(FILE, "{\"feedline_calibration\": 7}");
    let ran = bed.run(&["small.yaml"]);
    assert_eq!(ran.code, Some(2));
    let hint = "hint: measure again with `feedline calibrate`, remove the file, or run with --set \
                reader.interpreter=none\n";
    let path = bed.path(FILE).display().to_string();
    assert_eq!(
        ran.stderr,
        format!("error: {path}: a calibration of layout 7, this version reads 1\n{hint}")
    );
    bed.write(FILE, "not JSON");
    let ran = bed.run(&["small.yaml"]);
    let expected =
        format!("error: {path}: not a calibration: expected ident at line 1 column 2\n{hint}");
    assert_eq!(ran.stderr, expected);
    summary(&bed, &["--set", "reader.interpreter=none"]);
    summary(&bed, &["--set", "reader.read_model=deep"]);
    let ran = bed.run(&["small.yaml", "--calibration", "nowhere.json"]);
    assert_eq!(
        ran.stderr,
        "error: nowhere.json: no such calibration\n\
         hint: `feedline calibrate --out nowhere.json` makes it\n"
    );
    // A new measurement replaces what is there.
    assert_eq!(calibrate(&bed, &["--formats", "npz"]).code, Some(0));
    summary(&bed, &[]);
}

#[test]
fn a_python_that_is_no_use_is_named() {
    let bed = bed();
    let hint = "hint: install numpy and torch (pip install numpy torch), or name a Python that has \
                them with --python PATH\n";
    let ran = ran(&mut bed.feedline(&["calibrate", "--python", "./nothing"]));
    assert_eq!(ran.code, Some(2));
    assert_eq!(ran.stderr, format!("error: cannot start Python as ./nothing\n{hint}"));
    program(&bed, "#!/bin/sh\necho 'Traceback' >&2\necho 'it broke' >&2\n");
    let ran = calibrate(&bed, &[]);
    assert_eq!(ran.stderr, format!("error: ./python ended during a measurement: it broke\n{hint}"));
    let missing = "#!/bin/sh\nread -r line\necho '{\"version\": \"3.99\", \"executable\": \"x\", \
                   \"packages\": {}, \"missing\": {\"numpy\": \"No module named numpy\"}}'\n";
    program(&bed, missing);
    let ran = calibrate(&bed, &[]);
    assert_eq!(ran.stderr, format!("error: ./python: no numpy: No module named numpy\n{hint}"));
    assert!(!bed.path(FILE).exists());
}

#[test]
fn batches_that_do_not_fit_in_memory_are_refused() {
    let bed = bed();
    bed.write(FILE, figures(&bed).to_string());
    // Three batches of a petabyte.
    let large = "dataset.record_length_bytes_resize=1e15";
    let ran = bed.run(&["small.yaml", "--set", large, "--set", "reader.batch_size=1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.starts_with(
            "error: batches that are read ahead need 3000000000000000 bytes of memory on 1 ranks, \
             as in PyTorch, and "
        ),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.ends_with(
            "hint: read fewer batches ahead with --set reader.prefetch_size=1, or leave the \
             framework out with --set reader.interpreter=none\n"
        ),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_ceiling_answers_for_python_and_for_our_own_reader() {
    let bed = bed();
    let mut found = figures(&bed);
    // 50 ms of CPU time for a sample of which 200 a second are needed.
    for point in found["readers"]["npz"]["points"].as_array_mut().expect("points") {
        point["cpu_ns"] = json!(5e7);
    }
    bed.write(FILE, found.to_string());
    let ran = ran(&mut bed.feedline(&["ceiling", "small.yaml", "--json"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let json: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let ceiling = &json["ceiling"];
    assert_eq!(ceiling["framework"]["accelerators"], 0);
    assert_eq!(ceiling["framework"]["estimate"], false);
    assert_eq!(ceiling["bound"], "framework");
    assert!(ceiling["accelerators"].as_u64() >= Some(1), "{ceiling}");
}
