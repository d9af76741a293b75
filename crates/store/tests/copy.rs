//! The example `copy`, run as a user would, with an S3 server on this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use feedline_s3_server::{Keys, Server};

/// The program, which cargo has built beside this test.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    folder.join("examples/copy")
}

/// Runs it with nothing in the environment but the server, its keys and an empty home.
fn run(server: &Server, home: &Path, args: [&str; 3]) -> Output {
    Command::new(program())
        .args(args)
        .env_clear()
        .envs([
            ("AWS_ACCESS_KEY_ID", Keys::TEST.id),
            ("AWS_SECRET_ACCESS_KEY", Keys::TEST.secret),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &server.url()),
        ])
        .env("HOME", home)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn an_object_goes_to_a_bucket_and_comes_back() {
    let server = Server::start(Keys::TEST).unwrap();
    server.memory().add_bucket("bucket");
    let folder = tempfile::tempdir().unwrap();
    // More than a part of an upload, and no multiple of the buffer.
    let bytes: Vec<u8> =
        (0..9_500_001_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::create_dir_all(folder.path().join("here/train")).unwrap();
    std::fs::write(folder.path().join("here/train/1.bin"), &bytes).unwrap();
    let here = format!("file://{}/here", folder.path().display());
    let there = format!("file://{}/there", folder.path().display());

    let output = run(&server, folder.path(), [&here, "s3://bucket/set", "train/1.bin"]);
    let expected = "9500001 bytes copied to s3://bucket/set/train/1.bin\n";
    assert_eq!((text(&output.stdout), text(&output.stderr)), (expected, ""));
    assert!(output.status.success());
    assert_eq!(server.memory().keys("bucket"), ["set/train/1.bin"]);
    assert!(server.memory().get("bucket", "set/train/1.bin").unwrap() == bytes);

    let output = run(&server, folder.path(), ["s3://bucket/set", &there, "train/1.bin"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(std::fs::read(folder.path().join("there/train/1.bin")).unwrap() == bytes);
}

#[test]
fn a_place_that_is_misspelled_gets_a_hint() {
    let server = Server::start(Keys::TEST).unwrap();
    let home = tempfile::tempdir().unwrap();
    let output = run(&server, home.path(), ["s3:/bucket/set", "memory://", "x"]);
    let expected = "error: s3:/bucket/set is a path, expected a URL after `s3:`\n\
                    hint: did you mean s3://bucket/set?\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), expected));
}
