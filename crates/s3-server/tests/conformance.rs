//! The remote store against a server that checks signatures.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use feedline_clock::Clock;
use feedline_s3_server::{Keys, Proxy, Server};
use feedline_store::{
    AlignedBuf, Destination, Durability, EntryKind, FaultInjecting, Meter, Metered, Object,
    ObjectRange, Op, Remote, RemoteFault, RemoteOptions, Store, StoreError, Writer, conformance,
};

fn start() -> Server {
    let server = Server::start(Keys::TEST).unwrap();
    server.memory().add_bucket("bucket");
    server
}

fn options(url: &str) -> RemoteOptions {
    RemoteOptions {
        access_key_id: Some(Keys::TEST.id.to_owned()),
        secret_access_key: Some(Keys::TEST.secret.to_owned()),
        endpoint_url: Some(url.to_owned()),
        region: Some("eu-test-1".to_owned()),
        ..RemoteOptions::default()
    }
}

fn connect(server: &Server, root: &str) -> Remote {
    Remote::connect(root, &options(&server.url())).unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn write(store: &dyn Store, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let mut buf = AlignedBuf::new(1 << 20);
    let mut writer = Writer::create(store, key, &mut buf)?;
    writer.write_all(bytes)?;
    writer.patch(0, b"PATCHED!")?;
    writer.publish(Durability::Fsync).map(drop)
}

fn requests(meter: &Meter, op: Op) -> (u64, u64, u64) {
    let op = meter.op(op);
    (op.calls, op.requests, op.retries)
}

#[test]
fn a_bucket_and_what_is_below_a_prefix_conform() {
    let server = start();
    let memory = server.memory();
    for root in ["s3://bucket", "s3://bucket/some/pre fix/"] {
        let store = connect(&server, root);
        conformance::check(&store);
        let small = RemoteOptions { read_bytes: 1000, ..options(&server.url()) };
        conformance::check(&Remote::connect(root, &small).unwrap());
        assert_eq!(memory.keys("bucket"), [""; 0]);
    }
    let store = connect(&server, "s3://bucket/x");
    conformance::check(&Metered::new(Arc::new(store.clone()), Clock::real()));
    conformance::check(&FaultInjecting::new(store, Op::Read, u64::MAX, libc::EIO));
}

#[test]
fn an_object_costs_one_request() {
    let server = start();
    let bytes = pattern(3 << 20);
    server.memory().put("bucket", "a/it", bytes.clone());
    server.memory().put("bucket", "a/none", "");
    let store = Metered::new(connect(&server, "s3://bucket/a"), Clock::real());
    let mut buf = vec![0; 3 << 20];

    let mut object = store.open("it").unwrap();
    assert_eq!(object.len().unwrap(), 3 << 20);
    object.read_exact_at(1000, &mut buf[..500_000]).unwrap();
    assert!(buf[..500_000] == bytes[1000..501_000]);
    assert_eq!(store.open("none").unwrap().len().unwrap(), 0);
    let meter = store.take();
    assert_eq!(requests(&meter, Op::Open), (2, 2, 0));
    assert_eq!(requests(&meter, Op::Read), (1, 0, 0), "what came with the opening is there");
    assert_eq!(requests(&meter, Op::Stat), (2, 0, 0));
    object.read_exact_at(1_000_000, &mut buf[..1_000_000]).unwrap();
    assert!(buf[..1_000_000] == bytes[1_000_000..2_000_000]);
    assert_eq!(requests(&store.take(), Op::Read), (1, 1, 0), "only what is missing is asked for");

    let mut object = store.open_whole("it").unwrap();
    for at in (0..3 << 20).step_by(1 << 20) {
        object.read_exact_at(at as u64, &mut buf[at..at + (1 << 20)]).unwrap();
    }
    assert!(buf == bytes);
    assert_eq!(store.open_whole("none").unwrap().len().unwrap(), 0);
    let meter = store.take();
    assert_eq!(requests(&meter, Op::Open), (2, 2, 0));
    assert_eq!(requests(&meter, Op::Read), (3, 0, 0));
}

#[test]
fn a_stream_can_be_read_ahead_and_elsewhere() {
    let server = start();
    let bytes = pattern(20 << 20);
    server.memory().put("bucket", "large", bytes.clone());
    server.memory().put("bucket", "small", bytes[..5 << 20].to_vec());
    let store = Metered::new(connect(&server, "s3://bucket"), Clock::real());
    let check = |object: &mut dyn Object, at: usize, len: usize| {
        let mut buf = vec![0; len];
        object.read_exact_at(at as u64, &mut buf).unwrap();
        assert!(buf == bytes[at..at + len], "{len} bytes at {at}");
    };
    // As a zip archive is read: its end, and then all of it.
    let mut object = store.open_whole("small").unwrap();
    check(&mut *object, (5 << 20) - 100, 100);
    for at in (0..5 << 20).step_by(1 << 20) {
        check(&mut *object, at, 1 << 20);
    }
    let meter = store.take();
    assert_eq!(requests(&meter, Op::Open), (1, 1, 0));
    assert_eq!(requests(&meter, Op::Read), (6, 0, 0), "looking ahead costs no request");

    let mut object = store.open_whole("large").unwrap();
    check(&mut *object, (20 << 20) - 100, 100);
    check(&mut *object, 0, 1 << 20);
    check(&mut *object, 100, 100);
    check(&mut *object, 1 << 20, 19 << 20);
    check(&mut *object, 7, 7);
    assert_eq!(requests(&store.take(), Op::Read), (5, 3, 0), "too far ahead, and twice back");
    let error = object.read_exact_at(20 << 20, &mut [0]).unwrap_err();
    assert!(matches!(error, StoreError::Short { found: 0, needed: 1, .. }), "{error:?}");
}

#[test]
fn connections_are_used_again() {
    let server = start();
    let proxy = Proxy::start(server.address()).unwrap();
    server.memory().put("bucket", "it", pattern(10_000));
    let store = Remote::connect("s3://bucket", &options(&proxy.url())).unwrap();
    for _ in 0..20 {
        store.open("it").unwrap();
        store.open_whole("it").unwrap().read_exact_at(0, &mut [0; 10_000]).unwrap();
        assert_eq!(store.kind("it").unwrap(), Some(EntryKind::File));
    }
    assert_eq!(proxy.take_seen().len(), 60);
    assert_eq!(proxy.connections(), 1);
    // One that is left in the middle cannot be used again.
    server.memory().put("bucket", "large", pattern(8 << 20));
    drop(store.open_whole("large").unwrap());
    store.open("it").unwrap();
    assert_eq!(proxy.connections(), 2);
}

#[test]
fn an_object_that_changes_is_an_error() {
    let server = start();
    server.memory().put("bucket", "it", pattern(4 << 20));
    let store = connect(&server, "s3://bucket");
    let mut object = store.open("it").unwrap();
    object.read_exact_at(2 << 20, &mut [0; 10]).unwrap();
    server.memory().put("bucket", "it", vec![7; 4 << 20]);
    let error = object.read_exact_at(2 << 20, &mut [0; 10]).unwrap_err();
    let StoreError::Remote { fault, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*fault, RemoteFault::Changed);
    let start = "cannot read s3://bucket/it: the object changed while it was being read (412";
    assert!(error.to_string().starts_with(start), "{error}");
}

#[test]
fn large_objects_are_sent_in_parts() {
    let server = start();
    let store = Metered::new(connect(&server, "s3://bucket"), Clock::real());
    // One request, exactly one part, one byte more, and parts that must wait for each other.
    for (len, writes, publishes, begun) in
        [(8 << 20, 0, 1, 0), ((8 << 20) + 1, 0, 4, 1), (60 << 20, 0, 0, 2)]
    {
        let mut bytes = pattern(len);
        write(&store, "it", &bytes).unwrap();
        bytes[..8].copy_from_slice(b"PATCHED!");
        assert!(server.memory().get("bucket", "it").unwrap() == bytes, "{len} bytes");
        assert_eq!(server.memory().uploads_begun(), begun);
        assert_eq!(server.memory().uploads_open(), 0);
        let meter = store.take();
        let total = [Op::Create, Op::Write, Op::Publish].map(|op| meter.op(op).requests);
        if len == 60 << 20 {
            // To begin, 8 parts, to complete; which call waits for which part is a matter of time.
            assert_eq!(total.iter().sum::<u64>(), 10, "{total:?}");
        } else {
            assert_eq!(total, [0, writes, publishes], "{len} bytes");
        }
    }
}

#[test]
fn a_dropped_upload_leaves_nothing() {
    let server = start();
    let store = connect(&server, "s3://bucket");
    let upload = store.create("it").unwrap();
    upload.write_at(0, &pattern(20 << 20)).unwrap();
    assert_eq!(server.memory().uploads_open(), 1);
    let error = upload.write_at(9 << 20, b"too late").unwrap_err();
    assert!(matches!(error, StoreError::Patch { bound: 0x80_0000, .. }), "{error:?}");
    drop(upload);
    assert_eq!(server.memory().uploads_open(), 0);
    assert_eq!(server.memory().keys("bucket"), [""; 0]);
}

#[test]
fn long_folders_are_listed_page_by_page() {
    let server = start();
    let memory = server.memory();
    let mut expected = BTreeMap::new();
    for i in 0..2500 {
        memory.put("bucket", &format!("set/{i:04}.npz"), "x");
        expected.insert(format!("{i:04}.npz"), EntryKind::File);
    }
    for folder in ["0000", "1200.npz-x", "zz"] {
        (0..1500).for_each(|i| memory.put("bucket", &format!("set/{folder}/{i}"), "x"));
        expected.insert(folder.to_owned(), EntryKind::Folder);
    }
    memory.put("bucket", "set/", "");
    memory.put("bucket", "set-other", "");
    let store = Metered::new(connect(&server, "s3://bucket"), Clock::real());
    store.make_folder("set/zz").unwrap();
    store.make_folder("set/empty").unwrap();
    expected.insert("empty".to_owned(), EntryKind::Folder);
    let mut found = BTreeMap::new();
    let listed = store.list("set", &mut |entry| {
        assert_eq!(found.insert(entry.name.to_owned(), entry.kind), None, "{}", entry.name);
        ControlFlow::Continue(())
    });
    listed.unwrap();
    assert!(found == expected, "{} entries", found.len());
    assert_eq!(requests(&store.take(), Op::List), (1, 3, 0));

    let mut seen = 0;
    let listed = store.list("set", &mut |_| {
        seen += 1;
        if seen == 500 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    listed.unwrap();
    assert_eq!(requests(&store.take(), Op::List), (1, 1, 0), "no page is asked for in advance");
}

#[test]
fn a_folder_that_others_made_can_be_written_to() {
    let server = start();
    server.memory().put("bucket", "theirs/x", "");
    let store = Metered::new(connect(&server, "s3://bucket"), Clock::real());
    drop(store.create("theirs/y").unwrap());
    drop(store.create("theirs/z").unwrap());
    assert_eq!(requests(&store.take(), Op::Create), (2, 1, 0), "asked for once");
    assert!(store.create("nobodys/y").map(drop).unwrap_err().is_missing());
}

#[test]
fn keys_that_are_uris_are_read() {
    let server = start();
    let memory = server.memory();
    memory.put("bucket", "s3://bucket/set/train/a b.npz", pattern(3 << 20));
    (0..1200).for_each(|i| memory.put("bucket", &format!("s3://bucket/set/train/{i}"), "12345"));
    memory.put("bucket", "s3://bucket/set/valid/x", "");
    memory.put("bucket", "set/train/plain", "");
    let options = RemoteOptions { uri_keys: true, ..options(&server.url()) };
    let store = Remote::connect("s3://bucket/set", &options).unwrap();
    let mut found = Vec::new();
    for folder in ["", "train"] {
        let listed = store.list(folder, &mut |entry| {
            found.push(entry.name.to_owned());
            ControlFlow::Continue(())
        });
        listed.unwrap();
    }
    assert_eq!((found.len(), &found[..2]), (1203, &["train".to_owned(), "valid".to_owned()][..]));
    assert!(found.contains(&"a b.npz".to_owned()) && !found.contains(&"plain".to_owned()));
    let mut buf = vec![0; 3 << 20];
    store.open_whole("train/a b.npz").unwrap().read_exact_at(0, &mut buf).unwrap();
    assert!(buf == pattern(3 << 20));
    store.open("train/a b.npz").unwrap().read_exact_at(2 << 20, &mut buf[..1000]).unwrap();
    assert!(buf[..1000] == pattern(3 << 20)[2 << 20..][..1000]);
    assert_eq!(store.kind("valid").unwrap(), Some(EntryKind::Folder));
    assert_eq!(store.kind("train/7").unwrap(), Some(EntryKind::File));
    assert!(store.open("train/plain").map(drop).unwrap_err().is_missing());
    let mut queue = store.queue(8).unwrap().unwrap();
    let ranges: Vec<_> =
        (0..50).map(|i| ObjectRange { key: format!("train/{i}"), offset: 0, len: None }).collect();
    assert_eq!(queue.read(&ranges, Destination::Discard, &mut |_| ()).unwrap(), 250);
    let error = store.create("train/new").map(drop).unwrap_err();
    let expected = "cannot create s3://bucket/set/train/new: not possible there (keys that are \
                    URIs are only read)";
    assert_eq!(error.to_string(), expected);
}

fn fault(result: Result<(), StoreError>) -> (RemoteFault, String) {
    let error = result.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(Keys::TEST.secret) && !shown.contains("Signature="), "{shown}");
    match error {
        StoreError::Remote { fault, .. } => (fault, error.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_have_names() {
    let server = start();
    server.memory().put("bucket", "it", "x");
    let open = |options: &RemoteOptions, root: &str| {
        let store = Remote::connect(root, options).unwrap();
        assert!(!format!("{store:?}").contains(Keys::TEST.secret));
        fault(store.open("it").map(drop))
    };
    let good = options(&server.url());

    let (found, text) = open(&good, "s3://nowhere");
    assert_eq!(found, RemoteFault::NoBucket);
    assert!(text.starts_with("cannot open s3://nowhere/it: the bucket does not exist"), "{text}");
    let store = Remote::connect("s3://nowhere", &good).unwrap();
    let listed = store.list("", &mut |_| ControlFlow::Continue(()));
    assert_eq!(fault(listed).0, RemoteFault::NoBucket);
    let (found, text) = fault(write(&store, "it", &pattern(100)));
    assert_eq!(found, RemoteFault::NoBucket);
    assert!(text.starts_with("cannot publish s3://nowhere/it: "), "{text}");

    let wrong = RemoteOptions { secret_access_key: Some("another".to_owned()), ..good.clone() };
    let (found, text) = open(&wrong, "s3://bucket");
    assert_eq!(found, RemoteFault::Signature);
    let start = "cannot open s3://bucket/it: the server refuses the signature, the secret may be \
                 wrong (403 SignatureDoesNotMatch";
    assert!(text.starts_with(start), "{text}");
    let uris = RemoteOptions { uri_keys: true, ..wrong };
    assert_eq!(open(&uris, "s3://bucket").0, RemoteFault::Signature, "checked there too");

    let unsigned = RemoteOptions {
        access_key_id: None,
        secret_access_key: None,
        unsigned: true,
        ..good.clone()
    };
    let (found, text) = open(&unsigned, "s3://bucket");
    assert_eq!(found, RemoteFault::Denied);
    assert!(text.starts_with("cannot open s3://bucket/it: access denied (403 "), "{text}");

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nowhere =
        RemoteOptions { endpoint_url: Some(format!("http://{nobody}")), max_attempts: 2, ..good };
    let (found, text) = open(&nowhere, "s3://bucket");
    assert_eq!(found, RemoteFault::Unreachable);
    let start = "cannot open s3://bucket/it: no connection to the server (Connection refused";
    assert!(text.starts_with(start), "{text}");
    let store = Metered::new(Remote::connect("s3://bucket", &nowhere).unwrap(), Clock::real());
    store.open("it").map(drop).unwrap_err();
    assert_eq!(requests(&store.take(), Op::Open), (1, 2, 1));
}

#[test]
fn public_objects_are_read_without_keys_and_as_plain_http() {
    let server = start();
    let bytes = pattern(3_000_000);
    server.memory().put("bucket", "set/it", bytes.clone());
    server.memory().put("bucket", "set/none", "");
    server.memory().allow_everyone();
    let unsigned = RemoteOptions {
        endpoint_url: Some(server.url()),
        unsigned: true,
        ..RemoteOptions::default()
    };
    let stores = [
        Remote::connect("s3://bucket/set", &unsigned).unwrap(),
        Remote::connect(&format!("{}/bucket/set/", server.url()), &RemoteOptions::default())
            .unwrap(),
    ];
    assert_eq!(stores[1].locate("it"), format!("{}/bucket/set/it", server.url()));
    for store in stores {
        let mut buf = vec![0; bytes.len()];
        store.open_whole("it").unwrap().read_exact_at(0, &mut buf).unwrap();
        assert!(buf == bytes);
        buf.fill(0);
        store.open("it").unwrap().read_exact_at(0, &mut buf).unwrap();
        assert!(buf == bytes);
        assert_eq!(store.open("none").unwrap().len().unwrap(), 0);
        assert!(store.open("missing").map(drop).unwrap_err().is_missing());
        assert_eq!(store.kind("it").unwrap(), Some(EntryKind::File));
        let (found, text) = fault(write(&store, "new", &pattern(10)));
        assert!(matches!(found, RemoteFault::Denied), "{text}");
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let good = options("http://127.0.0.1:1");
    let refused = |root: &str, options: RemoteOptions| {
        Remote::connect(root, &options).map(drop).unwrap_err().to_string()
    };
    let text = refused("s3://bucket", RemoteOptions { part_bytes: 1 << 20, ..good.clone() });
    assert_eq!(text, "part size of s3://bucket: expected at least 5 MiB");
    let text = refused("s3://bucket", RemoteOptions { max_attempts: 0, ..good.clone() });
    assert_eq!(text, "attempts of s3://bucket: expected at least 1, found 0");
    let text = refused("s3://bucket", RemoteOptions { secret_access_key: None, ..good.clone() });
    assert_eq!(text, "access key of s3://bucket: expected it together with its secret");
    let endpoint_url = Some("http://u:hush@h".to_owned());
    let text = refused("s3://bucket", RemoteOptions { endpoint_url, ..good.clone() });
    assert_eq!(text, "endpoint of s3://bucket: expected no user, no password and no query in it");
    let text = refused("gs://bucket", RemoteOptions { region: None, ..good });
    assert_eq!(text, "access key of gs://bucket: not known for this kind of store");
}
