//! Data sets in an object store: a server of S3 that checks signatures, as a process of its own, and a
//! proxy before it that breaks connections.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use feedline_workload::FORMATS;
use serde_json::Value;

use crate::bed::{Bed, FILE_BYTES, Ran, Running, ran};

/// The server. It belongs to another package, whose binaries cargo does not hand over: a build of the
/// whole workspace has put it beside our own, and any other one must bring it first.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program =
            Path::new(env!("CARGO_BIN_EXE_feedline")).with_file_name("feedline-s3-server");
        if !program.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--locked", "--package", "feedline-s3-server"]);
            let built = cargo.status().expect("cargo starts");
            assert!(built.success() && program.exists(), "the S3 server cannot be built");
        }
        program
    })
}

pub(crate) struct Server {
    child: Child,
    /// Without faults.
    pub(crate) direct: String,
    /// With them.
    pub(crate) proxy: String,
}

impl Server {
    /// A server with a bucket called `bucket`.
    pub(crate) fn new(faults: &[&str]) -> Self {
        let mut child = Command::new(program())
            .args(["--bucket", "bucket"])
            .args(faults)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe was asked for");
        BufReader::new(stdout).read_line(&mut line).expect("it says where it is");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let url = |name: &str| said[name].as_str().expect("a URL").to_owned();
        Self { direct: url("server"), proxy: url("proxy"), child }
    }

    /// `feedline` with the keys of the server in its environment.
    pub(crate) fn feedline(&self, bed: &Bed, endpoint: &str, args: &[&str]) -> Ran {
        let mut command = bed.feedline(args);
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_ACCESS_KEY_ID", "feedline");
        ran(command.env("AWS_SECRET_ACCESS_KEY", "only-for-tests"))
    }

    /// A run that must end well, past the proxy.
    fn runs(&self, bed: &Bed, args: &[&str]) -> Ran {
        let ran = self.feedline(bed, &self.direct, &[&["run", "small.yaml"], args].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const DATA: [&str; 2] = ["--data", "s3://bucket/sets/small"];

#[test]
fn a_run_makes_and_reads_its_data_in_a_bucket() {
    let (bed, server) = (Bed::new(), Server::new(&[]));
    let ran = server.runs(&bed, &[&DATA[..], &["--generate", "--out", "out"]].concat());
    let shown = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("; 8 requests, 0 of them repeated"), "{shown}");
    assert!(!ran.stdout.contains("page cache"), "{}", ran.stdout);
    assert!(!bed.path("data").exists());
    let own = &bed.json("out/summary.json")["feedline"];
    assert_eq!((&own["data"], &own["io_engine"]), (&DATA[1].into(), &"http".into()));
    let (open, read) = (&own["storage"]["open"], &own["storage"]["read"]);
    assert_eq!(
        (&open["calls"], &open["requests"], &open["retries"]),
        (&8.into(), &8.into(), &0.into())
    );
    assert_eq!((&read["bytes"], &read["requests"]), (&(8 * FILE_BYTES).into(), &0.into()));
    assert_eq!(own["generation"]["bytes"], 8 * FILE_BYTES);
    // One PUT a file.
    assert_eq!(
        (&own["generation"]["requests"], &own["generation"]["retries"]),
        (&8.into(), &0.into())
    );

    let again = server.runs(&bed, &[&DATA[..], &["--generate", "--out", "again"]].concat());
    assert!(bed.read("again/dlio.log").contains("8 of 8 files already existed"), "{again:?}");
    let verified = server.feedline(&bed, &server.direct, &["verify", DATA[1]]);
    assert_eq!((verified.code, &*verified.stdout), (Some(0), "8 files, 36,752 bytes: all good\n"));
}

#[test]
fn every_format_is_read_from_a_bucket_in_both_models() {
    let (bed, server) = (Bed::new(), Server::new(&[]));
    let formats = FORMATS.iter().filter(|it| it.framework.is_some() && !it.is_streamed);
    for format in formats.map(|format| format.name) {
        let (place, set) = (format!("s3://bucket/{format}"), format!("dataset.format={format}"));
        let args = ["--data", &place, "--set", &set];
        server.runs(&bed, &[&args[..], &["--generate", "--out", format]].concat());
        let own = &bed.json(&format!("{format}/summary.json"))["feedline"];
        assert_eq!(own["steps"], 4, "{format}");
        let deep = format!("{format}-deep");
        let more = ["--set", "reader.read_model=deep", "--out", &deep];
        server.runs(&bed, &[&args[..], &more].concat());
        let own = &bed.json(&format!("{deep}/summary.json"))["feedline"];
        assert!(
            own["storage"]["read"]["requests"].as_u64() >= Some(8),
            "{format}: {}",
            own["storage"]
        );
    }
    for (format, loader) in [("tfrecord", "native_dali"), ("webdataset", "pytorch")] {
        let (place, set) = (format!("s3://bucket/{format}"), format!("dataset.format={format}"));
        let loader = format!("reader.data_loader={loader}");
        server.runs(
            &bed,
            &["--data", &place, "--set", &set, "--set", &loader, "--generate", "--out", format],
        );
        assert_eq!(bed.json(&format!("{format}/summary.json"))["feedline"]["steps"], 4, "{format}");
    }
}

/// Every seventh request goes wrong, each time in another way; the bytes are right and the retries are
/// counted.
#[test]
fn a_run_survives_faults_and_reports_them() {
    for fault in ["500", "503", "reset", "reset-in-body", "truncate"] {
        let every = format!("7={fault}");
        let (bed, server) = (Bed::new(), Server::new(&["--every", &every]));
        server.runs(&bed, &[&DATA[..], &["--generate-only", "--out", "made"]].concat());
        let args = [&["run", "small.yaml", "--out", "out", "--epochs", "4"], &DATA[..]].concat();
        let ran = server.feedline(&bed, &server.proxy, &args);
        assert_eq!(ran.code, Some(0), "{fault}: {ran:?}");
        let own = &bed.json("out/summary.json")["feedline"];
        let storage = &own["storage"];
        assert_eq!(storage["open"]["calls"], 32, "{fault}");
        assert_eq!(storage["read"]["bytes"], 32 * FILE_BYTES, "{fault}");
        let sum = |name: &str| {
            ["open", "read"].map(|op| storage[op][name].as_u64().unwrap()).iter().sum::<u64>()
        };
        let (requests, retries) = (sum("requests"), sum("retries"));
        assert_eq!(requests, 32 + retries, "{fault}: {storage}");
        assert!((4..=6).contains(&retries), "{fault}: {retries} retries of {requests}");
        assert_eq!(own["storage"]["open"]["errors"], 0, "{fault}");
    }
}

#[test]
fn a_fault_that_does_not_pass_ends_the_run_in_words() {
    let (bed, server) = (Bed::new(), Server::new(&["--every", "1=503"]));
    let attempts = ["--set", "storage.storage_options.s3_max_attempts=2"];
    let args = [&["run", "small.yaml", "--out", "out"], &DATA[..], &attempts].concat();
    let ran = server.feedline(&bed, &server.proxy, &args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(lines[0].starts_with("error: cannot stat s3://bucket/sets/small"), "{}", lines[0]);
    assert_eq!(
        lines[1],
        "hint: try more often with --set storage.storage_options.s3_max_attempts=N"
    );
    assert!(!bed.path("out").exists());
}

/// Uploads of three parts, one of which is refused for good: no file is there, and no part of one.
#[test]
fn an_upload_that_fails_leaves_no_object() {
    let (bed, server) =
        (Bed::new(), Server::new(&["--every", "3=403", "--only", "PUT /bucket/sets/small/train/"]));
    let large =
        ["--set", "dataset.record_length_bytes=20000000", "--set", "dataset.num_files_train=1"];
    let large = [&large[..], &["--set", "reader.batch_size=1"]].concat();
    let args =
        [&["run", "small.yaml", "--generate-only", "--out", "out"], &DATA[..], &large[..]].concat();
    let ran = server.feedline(&bed, &server.proxy, &args);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("s3://bucket/sets/small/train/img_"), "{ran:?}");
    let listed = server.feedline(&bed, &server.direct, &["verify", DATA[1]]);
    assert_eq!(listed.code, Some(2), "{listed:?}");
    let small = [&["run", "small.yaml", "--out", "again"], &DATA[..], &large[..]].concat();
    let found = server.feedline(&bed, &server.direct, &small);
    assert!(
        found.stderr.contains("s3://bucket/sets/small/train: no such data folder"),
        "{found:?}"
    );
}

#[test]
fn what_is_wrong_with_a_place_is_said_in_words() {
    let (bed, server) = (Bed::new(), Server::new(&[]));
    let check = |endpoint: &str, secret: &str, args: &[&str], error: &str| {
        let mut command = bed.feedline(&[&["run", "small.yaml", "--out", "out"], args].concat());
        command.env("AWS_ENDPOINT_URL", endpoint).env("AWS_ACCESS_KEY_ID", "feedline");
        let ran = ran(command.env("AWS_SECRET_ACCESS_KEY", secret));
        let first = ran.stderr.lines().next().unwrap_or_default();
        assert_eq!((ran.code, first), (Some(2), error), "{ran:?}");
        assert!(!ran.stderr.contains(secret) && !bed.path("out").exists());
    };
    let (right, here) = ("only-for-tests", &*server.direct);
    check(
        here,
        "a-wrong-one",
        &DATA,
        "error: cannot stat s3://bucket/sets/small/train: access denied (403)",
    );
    let nowhere = ["--data", "s3://elsewhere/x"];
    check(
        here,
        right,
        &nowhere,
        "error: cannot stat s3://elsewhere/x/train: the bucket does not exist (404 NoSuchBucket)",
    );
    check(here, right, &DATA, "error: s3://bucket/sets/small/train: no such data folder");
    check(
        "http://127.0.0.1:1",
        right,
        &DATA,
        "error: cannot stat s3://bucket/sets/small/train: no connection to the server (Connection refused (os error 111))",
    );
    check(
        here,
        right,
        &["--data", "s4://b/x"],
        "error: cannot connect to s4://b/x: unknown scheme `s4`",
    );
    check(
        here,
        right,
        &["--data", "s3:/bucket/x"],
        "error: ./s3:/bucket/x is a path, expected a URL after `s3:`",
    );
    check(
        here,
        right,
        &["--data", "s3://bucket/x", "--cache", "drop"],
        "error: --cache drop and --cache warm need files: an object store has no page cache here",
    );
    check(
        here,
        right,
        &["--data", "s3://"],
        "error: \"s3://\" is not the URL of a remote store: expected a bucket after ://",
    );
    check(
        here,
        right,
        &["--data", "s3://bucket/x", "--set", "reader.odirect=true"],
        "error: `reader.odirect: true` cannot be combined with `a data set at s3://bucket/x`: an object store is accessed over the network, not through the file system",
    );
}

/// DLIO's own spelling, truth values as texts included (Q35).
#[test]
fn q35_a_workload_for_dlio_runs_unchanged() {
    let (bed, server) = (Bed::new(), Server::new(&[]));
    let yaml = format!(
        "{}\nstorage:\n  storage_type: s3\n  storage_root: bucket\n  storage_options:\n    \
         access_key_id: feedline\n    secret_access_key: only-for-tests\n    endpoint_url: {}\n    \
         region: us-east-1\n    s3_force_path_style: \"false\"\n    s3_max_attempts: 5\n",
        crate::bed::SMALL.replace("data_folder: data", "data_folder: s3://bucket/dlio"),
        server.direct
    );
    bed.write("s3.yaml", yaml);
    let secret = "storage.storage_options.secret_access_key=only-for-tests";
    bed.runs(&["s3.yaml", "--generate", "--out", "out", "--set", secret]);
    assert_eq!(bed.json("out/summary.json")["feedline"]["data"], "s3://bucket/dlio");
    // DLIO leaves the secret in its results.
    for file in bed.tree().iter().filter(|path| path.starts_with("out/") && !path.ends_with('/')) {
        assert!(!bed.read(file).contains("only-for-tests"), "{file}");
    }
    assert!(bed.read("out/.hydra/config.yaml").contains("secret_access_key: REDACTED"));
}

/// The server does not answer the requests of training; nobody waits for the hour after which that
/// would be a fault.
#[test]
fn ctrl_c_ends_a_run_whose_store_hangs() {
    let faults = ["--every", "1=stall", "--only", "GET /bucket/sets/small/train/"];
    let (bed, server) = (Bed::new(), Server::new(&faults));
    server.runs(&bed, &[&DATA[..], &["--generate-only", "--out", "made"]].concat());
    let patient = ["--set", "storage.storage_options.stall_timeout=3600"];
    let args = [&["run", "small.yaml", "--out", "out"], &DATA[..], &patient].concat();
    let mut command = bed.feedline(&args);
    command.env("AWS_ENDPOINT_URL", &server.proxy).env("AWS_ACCESS_KEY_ID", "feedline");
    command.env("AWS_SECRET_ACCESS_KEY", "only-for-tests");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = Running::new(command.spawn().expect("the command starts"));
    bed.wait_for_log("out/dlio.log", "Starting block 1");
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
}
