//! The example `trace_command`, run on a real program.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this build's programs.
fn programs() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().to_owned()
}

/// The preload library, which cargo does not build for tests that are not linked to it.
fn library() -> PathBuf {
    let target = programs().parent().unwrap().to_owned();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "-p", "feedline-preload", "--target-dir"])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success());
    target.join("debug/libfeedline_preload.so")
}

#[test]
fn a_command_is_traced_and_its_report_says_what_it_read() {
    let folder = tempfile::tempdir().unwrap();
    let (data, trace) = (folder.path().join("data"), folder.path().join("trace"));
    std::fs::write(&data, vec![7; 40_960]).unwrap();
    let output = Command::new(programs().join("examples/trace_command"))
        .args([&library(), &trace])
        .args(["dd", &format!("if={}", data.display()), "of=/dev/null", "bs=4096", "status=none"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = ["processes", "read_bytes", "written_bytes", "dropped"].map(|key| &report[key]);
    assert_eq!(found, [1, 40_960, 40_960, 0], "{report}");
    assert_eq!(report["troubles"], serde_json::json!([]));
    let written = std::fs::read_to_string(trace.join("report.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap()["feedline_trace"], 1);
}
