//! What stands in the trace of a run, as plain rows.

use std::collections::BTreeMap;
use std::path::Path;

use feedline_recorder::{THREAD_CATEGORY, Tags};
use feedline_trace::{Batch, End, EventKind, EventSource as _, Folder, Tables};

/// An event. Times are nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// What its thread is called.
    pub(crate) thread: String,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// Category and name.
    pub(crate) name: String,
    pub(crate) tags: Tags,
    /// Of calls: the file, and what came of it.
    pub(crate) file: Option<String>,
    pub(crate) offset: Option<i64>,
    pub(crate) result: Option<i64>,
    pub(crate) errno: u16,
}

impl Row {
    pub(crate) fn ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub(crate) fn contains(&self, other: &Row) -> bool {
        self.start_ns <= other.start_ns && other.end_ns <= self.end_ns
    }
}

/// The events of a run that ended with this status, in the order of their begins, longer ones first.
pub(crate) fn read(trace: &Path, status: i32) -> Vec<Row> {
    let mut folder = Folder::open(trace).expect("a trace");
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    let mut events = Vec::new();
    while folder.next_batch(&mut tables, &mut batch).expect("events") {
        events.extend(batch.events.iter().copied());
    }
    for process in &tables.processes {
        assert_eq!((process.dropped, &process.end), (0, &End::Exited(status)), "{process:?}");
    }
    // A thread's name comes before all that happens in its first moment.
    let is_name = |category: u32| tables.name(category) == THREAD_CATEGORY;
    events.sort_by_key(|event| {
        (event.start_ns, !is_name(event.category), u64::MAX - event.duration_ns)
    });
    let mut threads = BTreeMap::new();
    let unsigned = |value: Option<i64>| value.map(i64::cast_unsigned);
    let row = |event: feedline_trace::Event| {
        let (category, name) = (tables.name(event.category), tables.name(event.name));
        let place = threads.entry((event.process, event.thread)).or_insert_with(String::new);
        if is_name(event.category) {
            name.clone_into(place);
        }
        assert_ne!(event.kind, EventKind::Counter, "a run counts nothing");
        let start_ns = event.start_ns.cast_unsigned();
        Row {
            thread: place.clone(),
            start_ns,
            end_ns: start_ns + event.duration_ns,
            name: format!("{category}/{name}"),
            tags: Tags {
                epoch: event.epoch,
                step: event.step,
                sample: unsigned(event.sample),
                size: unsigned(event.size),
            },
            file: event.file.map(|file| tables.file(file).to_owned()),
            offset: event.offset,
            result: event.result,
            errno: event.errno,
        }
    };
    events.into_iter().map(row).collect()
}

/// The rows of one name.
pub(crate) fn of<'a>(rows: &'a [Row], name: &str) -> Vec<&'a Row> {
    rows.iter().filter(|row| row.name == name).collect()
}
