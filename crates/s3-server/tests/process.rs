//! The server as a process, as other tests start it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use feedline_s3_server::Keys;
use feedline_store::{
    AlignedBuf, Durability, Remote, RemoteFault, RemoteOptions, StoreError, Writer,
};
use serde_json::Value;

#[test]
fn a_process_serves_and_fails_as_it_was_told() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_feedline-s3-server"))
        .args(["--bucket", "bucket", "--fault", "2=503", "--only", "PUT"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let options = RemoteOptions {
        access_key_id: Some(Keys::TEST.id.to_owned()),
        secret_access_key: Some(Keys::TEST.secret.to_owned()),
        endpoint_url: Some(said["proxy"].as_str().unwrap().to_owned()),
        max_attempts: 1,
        ..RemoteOptions::default()
    };
    let store = Remote::connect("s3://bucket", &options).unwrap();
    let faults: Vec<_> = (0..3)
        .map(|number| {
            let mut buf = AlignedBuf::new(4096);
            let mut writer = Writer::create(&store, &number.to_string(), &mut buf).unwrap();
            writer.write_all(b"bytes").unwrap();
            writer.publish(Durability::None).err().map(|error| match error {
                StoreError::Remote { fault, .. } => fault,
                other => panic!("{other:?}"),
            })
        })
        .collect();
    assert_eq!(faults, [None, Some(RemoteFault::Throttled), None]);
    // It ends with its input.
    child.stdin.take().unwrap().flush().unwrap();
    assert!(child.wait().unwrap().success());

    let refused = Command::new(env!("CARGO_BIN_EXE_feedline-s3-server"))
        .args(["--every", "3=nothing"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("3=nothing: expected NUMBER=FAULT"), "{text}");
}
