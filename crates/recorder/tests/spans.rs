//! Spans, counters, calls and names of threads, as a reader finds them, in a process and in its child.
//!
//! A process has one recorder, so this program has one test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use feedline_recorder::{
    AppEvent, CallFacts, Config, Ending, ProcessFile, SegmentEntry, SegmentFile, Site, Tags, Text,
    TextKind, UNNAMED, is_recording, name_thread, recorder,
};

static OUTER: Site = Site::new("pipeline", "train");
static INNER: Site = Site::new("data", "item");
static DEPTH: Site = Site::new("loader", "queue");
static READ: Site = Site::new("S3", "read");

/// One process's events in the order of their ends, with the texts that they name.
#[derive(Debug, Default)]
struct Seen {
    texts: BTreeMap<u32, (TextKind, u32, String)>,
    events: Vec<(u64, u64, AppEvent)>,
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> =
        entries.filter(|path| path.to_str().unwrap().ends_with(suffix)).collect();
    found.sort();
    found
}

fn read(folder: &Path, pid: u32) -> Seen {
    let mut seen = Seen::default();
    for path in files(folder, feedline_recorder::SEGMENT_SUFFIX) {
        let segment = SegmentFile::open(&path).unwrap();
        if segment.process().0 != pid {
            continue;
        }
        for entry in segment.entries() {
            match entry {
                SegmentEntry::Text { number, base, kind, text } => {
                    let text = String::from_utf8(text.to_vec()).unwrap();
                    assert!(seen.texts.insert(number, (kind, base, text)).is_none());
                }
                SegmentEntry::Call(op, record) => {
                    let event = AppEvent::unpack(op, &record).expect("nothing else was recorded");
                    seen.events.push((record.start, record.end, event));
                }
                SegmentEntry::Summary(..) => panic!("nothing is summed up"),
            }
        }
    }
    seen.events.sort_by_key(|(_, end, _)| *end);
    seen
}

fn span(site: u32, tags: Tags) -> AppEvent {
    AppEvent::Span { site, tags }
}

/// The number of the site with this text.
fn number(seen: &Seen, text: &str) -> u32 {
    let mut found = seen.texts.iter().filter(|(_, (_, _, known))| known == text);
    let (number, (kind, base, _)) = found.next().unwrap_or_else(|| panic!("{text}: {seen:?}"));
    assert_eq!((*kind, *base, found.count()), (TextKind::Span, UNNAMED, 0));
    *number
}

fn work() {
    name_thread("rank 0");
    let mut outer = OUTER.begin();
    outer.tag(Tags { epoch: Some(1), ..Tags::NONE });
    for sample in 0..2 {
        let mut inner = INNER.begin();
        assert!(inner.is_recorded());
        inner.tags.sample = Some(sample);
        inner.tags.size = Some(4096);
    }
    INNER.begin().cancel();
    DEPTH.count(2.5);
    outer.end();
    OUTER.mark(Tags { step: Some(3), ..Tags::NONE });
    let root = recorder().file_text(TextKind::Path, UNNAMED, b"/data");
    let file = recorder().file_text(TextKind::Path, root, b"train/0");
    let facts = CallFacts { file, offset: Some(8), size: Some(100), result: 100, errno: 0 };
    READ.ended_call(50, || facts);
    READ.end_call(Site::begin_call(), || CallFacts { result: -1, errno: 5, ..facts });
}

#[test]
fn what_a_program_says_is_read_back_also_from_a_forked_child() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        folder: Text::new(folder.path().to_str().unwrap().as_bytes()).unwrap(),
        ..Config::EMPTY
    };
    assert!(!is_recording());
    assert!(recorder().start(&config, std::iter::empty()));
    assert!(is_recording());
    work();

    // SAFETY: the child records and ends; the test's other threads wait for nothing of it.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        INNER.mark(Tags { sample: Some(9), ..Tags::NONE });
        recorder().end(Ending::Exit, 0);
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);

    let own = read(folder.path(), std::process::id());
    let (outer, inner) = (number(&own, "pipeline\0train"), number(&own, "data\0item"));
    let item = |sample| Tags { sample: Some(sample), size: Some(4096), ..Tags::NONE };
    let (root, file) = (5, 6);
    assert_eq!(own.texts[&root], (TextKind::Path, UNNAMED, "/data".to_owned()));
    assert_eq!(own.texts[&file], (TextKind::Path, root, "train/0".to_owned()));
    let facts = CallFacts { file, offset: Some(8), size: Some(100), result: 100, errno: 0 };
    let expected = [
        span(number(&own, "thread\0rank 0"), Tags::NONE),
        span(inner, item(0)),
        span(inner, item(1)),
        AppEvent::Counter { site: number(&own, "loader\0queue"), value: 2.5 },
        span(outer, Tags { epoch: Some(1), ..Tags::NONE }),
        span(outer, Tags { step: Some(3), ..Tags::NONE }),
        AppEvent::Call { site: number(&own, "S3\0read"), facts },
        AppEvent::Call {
            site: number(&own, "S3\0read"),
            facts: CallFacts { result: -1, errno: 5, ..facts },
        },
    ];
    let events: Vec<_> = own.events.iter().map(|(_, _, event)| *event).collect();
    assert_eq!(events, expected);
    let times: Vec<_> = own.events.iter().map(|(start, end, _)| (*start, *end)).collect();
    let [name, first, second, counter, train, mark, call, other] = times[..] else {
        panic!("{times:?}")
    };
    assert!(train.0 <= first.0 && first.1 <= second.0 && second.1 <= train.1);
    assert_eq!((name.0, counter.0, mark.0), (name.1, counter.1, mark.1));
    assert_eq!(call.1 - call.0, 50);
    assert!(call.1 <= other.0 && other.0 <= other.1);

    let processes: Vec<_> = files(folder.path(), feedline_recorder::PROCESS_SUFFIX)
        .iter()
        .map(|path| ProcessFile::open(path).unwrap().facts())
        .collect();
    let facts = processes.iter().find(|facts| facts.pid == child.cast_unsigned()).unwrap();
    let theirs = read(folder.path(), child.cast_unsigned());
    assert!(theirs.texts.is_empty() && inner < facts.first_text);
    let events: Vec<_> = theirs.events.iter().map(|(_, _, event)| *event).collect();
    assert_eq!(events, [span(inner, Tags { sample: Some(9), ..Tags::NONE })]);
}
