//! Every fault of a network or a busy server is survived, counted, and with one attempt an error.

use std::ops::ControlFlow;
use std::time::Duration;

use feedline_clock::Clock;
use feedline_s3_server::{Fault, Keys, Proxy, Server};
use feedline_store::{
    AlignedBuf, CallOutcome, Destination, Durability, EntryKind, Meter, Metered, ObjectRange, Op,
    Remote, RemoteFault, RemoteOptions, Store, StoreError, Writer,
};

/// Long enough for a machine with other things to do, since a stall that is none would fail tests.
const STALL: Duration = Duration::from_millis(400);

/// Faults that end an attempt before the client has any byte of an object.
const BEFORE: [Fault; 6] = [
    Fault::Status(500),
    Fault::Status(503),
    Fault::Status(429),
    Fault::ResetBefore,
    Fault::StallBefore,
    Fault::LoseAnswer,
];
/// Faults that end it later.
const WITHIN: [Fault; 4] =
    [Fault::ResetAfterHead, Fault::ResetInBody, Fault::Truncate, Fault::StallInBody];

struct Bench {
    server: Server,
    proxy: Proxy,
}

impl Bench {
    fn new() -> Bench {
        let server = Server::start(Keys::TEST).unwrap();
        server.memory().add_bucket("bucket");
        let proxy = Proxy::start(server.address()).unwrap();
        Bench { server, proxy }
    }

    fn store(&self, max_attempts: u32) -> Metered<Remote> {
        let options = RemoteOptions {
            access_key_id: Some(Keys::TEST.id.to_owned()),
            secret_access_key: Some(Keys::TEST.secret.to_owned()),
            endpoint_url: Some(self.proxy.url()),
            max_attempts,
            stall_timeout: STALL,
            part_bytes: 5 << 20,
            ..RemoteOptions::default()
        };
        Metered::new(Remote::connect("s3://bucket", &options).unwrap(), Clock::real())
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

fn write(store: &dyn Store, key: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let mut buf = AlignedBuf::new(1 << 20);
    let mut writer = Writer::create(store, key, &mut buf)?;
    writer.write_all(bytes)?;
    writer.publish(Durability::None).map(drop)
}

/// Requests and retries of all kinds of calls together.
fn total(meter: &Meter) -> (u64, u64) {
    let sum =
        |of: fn(&feedline_store::OpMeter) -> u64| Op::ALL.map(|op| of(meter.op(op))).iter().sum();
    (sum(|op| op.requests), sum(|op| op.retries))
}

fn of_kind(meter: &Meter, op: Op) -> (u64, u64) {
    (meter.op(op).requests, meter.op(op).retries)
}

/// What a client calls a fault that nothing repaired.
fn name(fault: Fault) -> RemoteFault {
    match fault {
        Fault::Status(429 | 503) => RemoteFault::Throttled,
        Fault::Status(status) => RemoteFault::Server(status),
        Fault::StallBefore | Fault::StallInBody => RemoteFault::Stalled,
        _ => RemoteFault::Broken,
    }
}

fn fault_of(result: Result<(), StoreError>) -> RemoteFault {
    let error = result.unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(Keys::TEST.secret) && !shown.contains("Signature="), "{shown}");
    let StoreError::Remote { fault, .. } = error else { panic!("{error:?}") };
    fault
}

fn read(store: &dyn Store, key: &str) -> Result<Vec<u8>, StoreError> {
    let mut object = store.open(key)?;
    let mut bytes = vec![0; object.len()? as usize];
    object.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

fn read_whole(store: &dyn Store, key: &str) -> Result<Vec<u8>, StoreError> {
    let mut object = store.open_whole(key)?;
    let mut bytes = vec![0; object.len()? as usize];
    for (place, part) in bytes.chunks_mut(1 << 20).enumerate() {
        object.read_exact_at((place << 20) as u64, part)?;
    }
    Ok(bytes)
}

#[test]
fn an_opening_survives_every_fault() {
    let bench = Bench::new();
    let bytes = pattern(700_000);
    bench.server.memory().put("bucket", "it", bytes.clone());
    let (store, once) = (bench.store(3), bench.store(1));
    for fault in BEFORE.into_iter().chain(WITHIN) {
        bench.proxy.arm([Some(fault), Some(fault)]);
        assert!(read(&store, "it").unwrap() == bytes, "{fault:?}");
        let meter = store.take();
        assert_eq!(of_kind(&meter, Op::Open), (3, 2), "{fault:?}");
        assert_eq!(total(&meter), (3, 2), "{fault:?}");

        bench.proxy.arm([Some(fault)]);
        assert_eq!(fault_of(once.open("it").map(drop)), name(fault));
        let meter = once.take();
        assert_eq!((meter.op(Op::Open).errors, total(&meter)), (1, (1, 0)), "{fault:?}");
        assert!(read(&once, "it").unwrap() == bytes, "it works again after {fault:?}");
        once.take();

        bench.proxy.arm([Some(fault); 3]);
        assert_eq!(fault_of(store.open("it").map(drop)), name(fault));
        assert_eq!(total(&store.take()), (3, 2), "the last failure is followed by none");
    }
}

#[test]
fn a_stream_is_resumed_where_it_broke_off() {
    let bench = Bench::new();
    let bytes = pattern(5_000_000);
    bench.server.memory().put("bucket", "it", bytes.clone());
    let (store, once) = (bench.store(3), bench.store(1));
    for fault in WITHIN {
        bench.proxy.arm([Some(fault), Some(fault)]);
        bench.proxy.take_seen();
        assert!(read_whole(&store, "it").unwrap() == bytes, "{fault:?}");
        let meter = store.take();
        assert_eq!(of_kind(&meter, Op::Open), (1, 0), "{fault:?}");
        assert_eq!(of_kind(&meter, Op::Read), (2, 2), "{fault:?}");
        let seen: Vec<_> = bench.proxy.take_seen().into_iter().map(|seen| seen.range).collect();
        // A half has come each time, except where nothing but the head has.
        let expected = match fault {
            Fault::ResetAfterHead => ["bytes=0-4999999", "bytes=0-4999999"],
            _ => ["bytes=2500000-4999999", "bytes=3750000-4999999"],
        };
        let expected = expected.map(|range| Some(range.to_owned()));
        assert_eq!(seen, [None, expected[0].clone(), expected[1].clone()], "{fault:?}");

        bench.proxy.arm([Some(fault)]);
        assert_eq!(fault_of(read_whole(&once, "it").map(drop)), name(fault));
        assert_eq!(total(&once.take()), (1, 0), "{fault:?}");
        assert!(read_whole(&once, "it").unwrap() == bytes, "it works again after {fault:?}");
        once.take();
    }
    for fault in BEFORE {
        bench.proxy.arm([Some(fault)]);
        assert!(read_whole(&store, "it").unwrap() == bytes, "{fault:?}");
        let meter = store.take();
        assert_eq!((of_kind(&meter, Op::Open), of_kind(&meter, Op::Read)), ((2, 1), (0, 0)));
    }
}

#[test]
fn an_object_replaced_while_a_stream_is_resumed_is_not_mixed() {
    let bench = Bench::new();
    bench.server.memory().put("bucket", "it", pattern(4_000_000));
    let store = bench.store(3);
    bench.proxy.arm([Some(Fault::Truncate)]);
    let mut object = store.open_whole("it").unwrap();
    bench.server.memory().put("bucket", "it", vec![7; 4_000_000]);
    object.read_exact_at(0, &mut vec![0; 4_000_000]).unwrap_err();
}

#[test]
fn ranges_survive_every_fault() {
    let bench = Bench::new();
    let bytes = pattern(4_000_000);
    bench.server.memory().put("bucket", "it", bytes.clone());
    let (store, once) = (bench.store(3), bench.store(1));
    for fault in BEFORE.into_iter().chain(WITHIN) {
        for (store, attempts) in [(&store, 3), (&once, 1)] {
            let mut object = store.open("it").unwrap();
            store.take();
            bench.proxy.arm([Some(fault)]);
            let mut buf = vec![0; 1_500_000];
            let result = object.read_exact_at(2_000_000, &mut buf);
            let meter = store.take();
            if attempts == 3 {
                result.unwrap();
                assert!(buf == bytes[2_000_000..3_500_000], "{fault:?}");
                assert_eq!(of_kind(&meter, Op::Read), (2, 1), "{fault:?}");
            } else {
                assert_eq!(fault_of(result), name(fault));
                assert_eq!(of_kind(&meter, Op::Read), (1, 0), "{fault:?}");
            }
        }
    }
}

#[test]
fn listings_and_questions_survive_every_fault() {
    let bench = Bench::new();
    (0..1500).for_each(|i| bench.server.memory().put("bucket", &format!("set/{i}"), "x"));
    let (store, once) = (bench.store(3), bench.store(1));
    for fault in BEFORE.into_iter().chain(WITHIN) {
        // The second page.
        bench.proxy.arm([None, Some(fault)]);
        let mut names = 0;
        let mut count = |store: &dyn Store| {
            store.list("set", &mut |_| {
                names += 1;
                ControlFlow::Continue(())
            })
        };
        count(&store).unwrap();
        assert_eq!(of_kind(&store.take(), Op::List), (3, 1), "{fault:?}");
        bench.proxy.arm([None, Some(fault)]);
        assert_eq!(fault_of(count(&once)), name(fault));
        assert_eq!(of_kind(&once.take(), Op::List), (2, 0), "{fault:?}");
        assert_eq!(names, 1500 + 1000);
    }
    for fault in BEFORE {
        bench.proxy.arm([Some(fault)]);
        assert_eq!(store.kind("set/7").unwrap(), Some(EntryKind::File));
        assert_eq!(of_kind(&store.take(), Op::Stat), (2, 1), "{fault:?}");
        // There is no object of that name, which is an answer, and something is below.
        bench.proxy.arm([Some(fault), None, Some(fault)]);
        assert_eq!(store.kind("set").unwrap(), Some(EntryKind::Folder));
        assert_eq!(of_kind(&store.take(), Op::Stat), (4, 2), "{fault:?}");
        bench.proxy.arm([Some(fault)]);
        assert_eq!(fault_of(once.kind("set/7").map(drop)), name(fault));
        bench.proxy.arm([Some(fault)]);
        store.remove("set/1499").unwrap();
        assert_eq!(of_kind(&store.take(), Op::Remove), (2, 1), "{fault:?}");
    }
}

#[test]
fn a_queue_survives_every_fault() {
    let bench = Bench::new();
    bench.server.memory().put("bucket", "long", pattern(20_000_000));
    bench.server.memory().put("bucket", "short", pattern(1000));
    let (store, once) = (bench.store(3), bench.store(1));
    let ranges: Vec<_> = (0..10)
        .flat_map(|_| {
            let key = |name: &str| name.to_owned();
            [
                ObjectRange { key: key("long"), offset: 1_000_000, len: Some(100_000) },
                ObjectRange { key: key("short"), offset: 0, len: None },
            ]
        })
        .chain([ObjectRange { key: "long".to_owned(), offset: 0, len: None }])
        .collect();
    let bytes = 10 * 101_000 + 20_000_000;
    for fault in BEFORE.into_iter().chain(WITHIN) {
        for depth in [1, 4] {
            bench.proxy.arm((0..12).map(|place| (place % 3 == 1).then_some(fault)));
            let mut queue = store.queue(depth).unwrap().unwrap();
            let mut failed = 0;
            let read = queue.read(&ranges, Destination::Discard, &mut |call| {
                failed += usize::from(call.outcome == CallOutcome::Failed);
            });
            assert_eq!(read.unwrap(), bytes, "{fault:?} at depth {depth}");
            // 20 and 3 pieces, and every third of the first 12 requests goes wrong.
            let meter = store.take();
            assert_eq!((total(&meter), failed), ((27, 4), 0), "{fault:?} at depth {depth}");
            assert_eq!(of_kind(&meter, Op::Read), (27, 4));
            assert_eq!(meter.op(Op::Read).bytes, bytes);
        }
        bench.proxy.arm([None, None, Some(fault)]);
        let mut queue = once.queue(1).unwrap().unwrap();
        assert_eq!(
            fault_of(queue.read(&ranges, Destination::Discard, &mut |_| ()).map(drop)),
            name(fault)
        );
        let meter = once.take();
        assert_eq!((total(&meter), meter.op(Op::Read).errors), ((3, 0), 1), "{fault:?}");
        bench.proxy.arm([]);
        assert_eq!(queue.read(&ranges[..2], Destination::Discard, &mut |_| ()).unwrap(), 101_000);
        once.take();
    }
}

#[test]
fn uploads_survive_every_fault_and_leave_no_half_object() {
    let bench = Bench::new();
    let memory = bench.server.memory();
    let (store, once) = (bench.store(3), bench.store(1));
    let (small, large) = (pattern(100_000), pattern(11 << 20));
    for fault in BEFORE {
        bench.proxy.arm([Some(fault), Some(fault)]);
        write(&store, "small", &small).unwrap();
        assert!(memory.get("bucket", "small").unwrap() == small, "{fault:?}");
        assert_eq!(of_kind(&store.take(), Op::Publish), (3, 2), "{fault:?}");
        store.remove("small").unwrap();
        store.take();

        // The beginning, three parts and the end: each of them once.
        for place in 0..5 {
            bench.proxy.arm((0..5).map(|at| (at == place).then_some(fault)));
            write(&store, "large", &large).unwrap();
            assert!(memory.get("bucket", "large").unwrap() == large, "{fault:?} at {place}");
            // Whoever asks for the end twice is told that there is no such upload, and looks.
            let looks = u64::from(fault == Fault::LoseAnswer && place == 4);
            assert_eq!(total(&store.take()), (6 + looks, 1), "{fault:?} at {place}");
            store.remove("large").unwrap();
            store.take();
        }
        if fault == Fault::LoseAnswer {
            // An upload whose first beginning was lost was begun twice, which nobody here can know:
            // that is what the rules of a bucket's life cycle are for.
            assert_eq!(memory.uploads_open(), 1);
            continue;
        }
        assert_eq!(memory.uploads_open(), 0, "{fault:?}");
        bench.proxy.arm([Some(fault)]);
        assert_eq!(fault_of(write(&once, "small", &small)), name(fault));
        for place in 0..5 {
            bench.proxy.arm((0..5).map(|at| (at == place).then_some(fault)));
            assert_eq!(fault_of(write(&once, "large", &large)), name(fault));
            assert_eq!(memory.uploads_open(), 0, "aborted after {fault:?} at {place}");
            assert_eq!(memory.keys("bucket"), [""; 0], "{fault:?} at {place}");
        }
        once.take();
    }
}

#[test]
fn an_upload_whose_completion_breaks_off_is_complete() {
    let bench = Bench::new();
    let store = bench.store(3);
    let bytes = pattern(6 << 20);
    bench.proxy.only("POST /bucket/it?uploadId=");
    for fault in WITHIN {
        bench.proxy.arm([Some(fault)]);
        write(&store, "it", &bytes).unwrap();
        assert!(bench.server.memory().get("bucket", "it").unwrap() == bytes, "{fault:?}");
        assert_eq!(total(&store.take()), (6, 1), "{fault:?}");
        assert_eq!(bench.server.memory().uploads_open(), 0, "{fault:?}");
    }
}

#[test]
fn a_server_that_fails_regularly_is_no_obstacle() {
    let bench = Bench::new();
    let bytes = pattern(3_000_000);
    (0..20).for_each(|i| bench.server.memory().put("bucket", &format!("{i}"), bytes.clone()));
    let store = bench.store(5);
    bench.proxy.arm_every(4, Fault::Status(503));
    for i in 0..20 {
        assert!(read_whole(&store, &format!("{i}")).unwrap() == bytes);
    }
    // Every fourth request fails, so 20 that succeed need 6 more.
    assert_eq!(of_kind(&store.take(), Op::Open), (26, 6));
}

#[test]
fn a_connection_that_the_server_closed_is_not_used_again() {
    let bench = Bench::new();
    bench.server.memory().put("bucket", "it", pattern(1000));
    let store = bench.store(3);
    read(&store, "it").unwrap();
    bench.proxy.close_idle();
    read(&store, "it").unwrap();
    assert_eq!(total(&store.take()), (2, 0), "nothing had to be repeated");
    assert_eq!(bench.proxy.connections(), 2);
}
