//! Recordings of real processes, drained while they run and after they were killed.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::process::{End, Process};
use crate::{Event, EventKind, EventSource as _, Folder, recover};

mod given_back;

/// The program that records known events.
fn known() -> Command {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("examples/known");
    assert!(path.exists(), "no {}; build it with: cargo build --examples", path.display());
    Command::new(path)
}

/// Runs it until it has recorded its 1006 events and waits to be killed.
fn recording(folder: &Path) -> Child {
    let mut child = known()
        .args(["killed".as_ref(), folder.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}

/// Records, and is killed.
fn kill_one(folder: &Path) -> u32 {
    let mut child = recording(folder);
    child.kill().unwrap();
    child.wait().unwrap();
    child.id()
}

struct Read {
    tables: Tables,
    events: Vec<Event>,
    texts: Vec<Option<String>>,
}

fn read(dir: &Path) -> Read {
    let mut folder = Folder::open(dir).unwrap();
    let (mut tables, mut batch) = (Tables::default(), Batch::default());
    let (mut events, mut texts) = (Vec::new(), Vec::new());
    while folder.next_batch(&mut tables, &mut batch).unwrap() {
        let text = |event: &Event| event.extra.map(|row| batch.texts[row as usize].clone());
        texts.extend(batch.events.iter().map(text));
        events.extend(batch.events.iter().copied());
    }
    Read { tables, events, texts }
}

impl Read {
    fn name(&self, index: usize) -> (&str, &str) {
        let event = &self.events[index];
        (self.tables.name(event.category), self.tables.name(event.name))
    }

    fn file(&self, row: Option<u32>) -> Option<&str> {
        row.map(|row| self.tables.file(row))
    }

    /// Compares with what the program is known to record.
    fn check_known(&self, first: usize) {
        let event = |at: usize| &self.events[first + at];
        assert_eq!(self.name(first), ("POSIX", "open"));
        assert_eq!(self.file(event(0).file), Some("/data/other/a.bin"));
        assert_eq!((event(0).arg, event(0).size, event(0).result), (Some(0o1101), None, Some(5)));
        assert_eq!(self.texts[first].as_deref(), Some(r#"{"mode":420}"#));
        for index in 0..1000 {
            let read = event(1 + index);
            assert_eq!(self.name(first + 1 + index), ("POSIX", "pread64"));
            let numbers = (read.size, read.result, read.offset, read.errno, read.count);
            assert_eq!(numbers, (Some(4096), Some(4096), Some(index as i64 * 4096), 0, 1));
            assert_eq!(self.file(read.file), Some("/data/other/a.bin"));
            assert!(read.start_ns >= event(index).start_ns, "in the order of time");
            assert!(read.duration_ns < 1_000_000_000);
        }
        assert_eq!(self.name(first + 1001), ("POSIX", "write"));
        assert_eq!((event(1001).result, event(1001).errno), (Some(-1), 32));
        assert_eq!(self.file(event(1001).file), Some("pipe:[7]"));
        assert_eq!(self.name(first + 1002), ("POSIX", "rename"));
        assert_eq!(self.file(event(1002).other_file), Some("/data/set"));
        assert_eq!(event(1002).arg, None);
        assert_eq!(
            (self.name(first + 1003), event(1003).kind),
            (("data", "item"), EventKind::Span)
        );
        let span = event(1003);
        let tags = (span.epoch, span.step, span.sample, span.size, span.result);
        assert_eq!(tags, (Some(2), Some(7), Some(41), None, None));
        assert_eq!(
            (self.name(first + 1004), event(1004).kind),
            (("queue", "depth"), EventKind::Counter)
        );
        assert_eq!(event(1004).value, Some(2.5));
        assert_eq!(self.name(first + 1005), ("POSIX", "close"));
        assert_eq!(event(1005).offset, None);
    }
}

fn report(processes: u64, events: u64) -> DrainReport {
    DrainReport { processes, events, ..DrainReport::default() }
}

/// The report without its bytes, which depend on the clock.
fn less_bytes(found: DrainReport) -> DrainReport {
    assert!(found.bytes > 0);
    // What moved is checked where programs move it: with the command.
    DrainReport { bytes: 0, read_bytes: 0, written_bytes: 0, ..found }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

struct Place {
    _keep: tempfile::TempDir,
    dir: PathBuf,
    memory: PathBuf,
}

fn place() -> Place {
    let keep = tempfile::tempdir().unwrap();
    let (dir, memory) = (keep.path().join("trace"), keep.path().join("memory"));
    Place { _keep: keep, dir, memory }
}

#[test]
fn a_killed_process_loses_nothing() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let pid = kill_one(&place.memory);
    drainer.round().unwrap();
    assert_eq!(drainer.events(), 0, "nothing is written before there is enough for a file");
    assert_eq!(less_bytes(drainer.finish().unwrap()), report(1, 1006));
    let found = read(&place.dir);
    assert_eq!(found.events.len(), 1006);
    found.check_known(0);
    let process = &found.tables.processes[0];
    assert_eq!((process.pid, process.rank, &process.end), (pid, Some(3), &End::Killed));
    assert_eq!(process.arguments, ["known", "events"]);
    assert_eq!(process.parent_pid, Some(std::process::id()));
    assert!(process.program.ends_with("/examples/known") && process.is_traced);
    let last = &found.events[1005];
    assert_eq!(process.end_ns, Some(last.start_ns + last.duration_ns as i64));
    assert!(process.start_ns <= found.events[0].start_ns);
    assert!(!place.memory.exists(), "nothing is left behind");
    assert!(names(&place.dir.join(SEGMENTS)).is_empty());
}

#[test]
fn a_slot_whose_writer_was_killed_half_way_is_no_event() {
    let place = place();
    let drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    kill_one(&place.memory);
    // The twelfth slot of the first segment: after the texts and the open it is a read.
    let name = names(&place.memory).into_iter().find(|name| name.ends_with("-0.segment")).unwrap();
    let mut bytes = fs::read(place.memory.join(&name)).unwrap();
    let slot = 256 + 20 * 64;
    assert_ne!(bytes[slot + 60..slot + 62], [0, 0]);
    bytes[slot + 60..slot + 62].fill(0);
    fs::write(place.memory.join(&name), bytes).unwrap();
    assert_eq!(less_bytes(drainer.finish().unwrap()), report(1, 1005));
    let found = read(&place.dir);
    let offsets: Vec<i64> = found.events.iter().filter_map(|event| event.offset).collect();
    // Ten slots are texts, one the open: the hole was the read at 9 * 4096.
    let expected: Vec<i64> = (0..1000).filter(|index| *index != 9).map(|i| i * 4096).collect();
    assert_eq!(offsets, expected);
}

#[test]
fn segments_go_round_while_a_program_runs() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    drainer.file_bytes = 1024 * 1024;
    let data = place.dir.join("data");
    fs::write(&data, vec![0; 1 << 20]).unwrap();
    let mut child = known()
        .args(["reads".as_ref(), place.memory.as_os_str(), data.as_os_str(), "200000".as_ref()])
        .spawn()
        .unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        drainer.round().unwrap();
        most = most.max(drainer.segments.len());
    }
    let pid = child.id();
    assert_eq!(less_bytes(drainer.finish().unwrap()), report(1, 200_000));
    let found = read(&place.dir);
    // In the order of their starts every read is there, once.
    let mut events = found.events.clone();
    events.sort_by_key(|event| event.start_ns);
    let offsets = events.iter().map(|event| event.offset.unwrap());
    assert!(offsets.eq((0..200_000).map(|index| index % 256 * 4096)), "all reads in their order");
    assert!(events.iter().all(|event| event.thread == pid && event.size == Some(4096)));
    let path = data.to_string_lossy();
    assert!(events.iter().all(|event| found.file(event.file) == Some(&*path)));
    let process = &found.tables.processes[0];
    assert_eq!((&process.end, process.dropped), (&End::Exited(0), 0));
    let end = events.last().map(|event| event.start_ns + event.duration_ns as i64);
    assert!(process.end_ns >= end);
    assert!(most >= 1);
}

#[test]
fn a_killed_drainer_is_replaced_without_loss_or_repetition() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    kill_one(&place.memory);
    let kept = place.dir.join("kept");
    copy(&place.memory, &kept);
    drainer.drain_all().unwrap();
    assert_eq!(drainer.events(), 1006);
    // Killed after the file got its name, and before the segments were given back.
    drop(drainer);
    copy(&kept, &place.memory);
    // Another process recorded meanwhile.
    kill_one(&place.memory);
    let recovered = recover(&place.dir).unwrap();
    assert_eq!((recovered.events, recovered.running, recovered.elsewhere), (1006, 0, 0));
    assert_eq!(recovered.problems, Vec::<String>::new());
    let found = read(&place.dir);
    assert_eq!(found.events.len(), 2012);
    assert_eq!(found.tables.processes.len(), 2, "the first process has one row only");
    assert!(found.tables.processes.iter().all(|process| process.end == End::Killed));
    found.check_known(0);
    found.check_known(1006);
    assert_eq!(found.events[0].process + 1, found.events[1006].process);
    assert!(!place.memory.exists());
    assert_eq!(names(&place.dir.join("writers")).len(), 1);
    assert_eq!(recover(&place.dir).unwrap().events, 0, "once is enough");
}

#[test]
fn texts_outlive_the_drainer_that_read_them() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let mut child = recording(&place.memory);
    // The first segment, with all texts, is full and goes into a file; then the drainer is killed.
    drainer.look_at_folders().unwrap();
    drainer.take(false);
    drainer.commit(Extent::Everything).unwrap();
    let early = drainer.events();
    assert!((1..1006).contains(&early), "{early} events in the first segment");
    drop(drainer);
    assert_eq!(recover(&place.dir).unwrap().running, 1, "nothing is taken from who is there");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(recover(&place.dir).unwrap().events, 1006 - early);
    let found = read(&place.dir);
    assert_eq!((found.events.len(), found.tables.processes.len()), (1006, 1));
    found.check_known(0);
}

#[test]
fn what_programs_left_without_a_drainer_is_picked_up() {
    let place = place();
    let segments = place.dir.join(SEGMENTS);
    fs::create_dir_all(&segments).unwrap();
    let status =
        known().args(["events".as_ref(), segments.as_os_str(), "".as_ref()]).status().unwrap();
    assert!(status.success());
    let mut running = recording(&segments);
    // Another machine's: not ours to judge.
    fs::write(segments.join("elsewhere-7-7-0.process"), "").unwrap();
    let first = recover(&place.dir).unwrap();
    assert_eq!((first.events, first.running, first.elsewhere), (1006, 1, 1));
    running.kill().unwrap();
    running.wait().unwrap();
    let second = recover(&place.dir).unwrap();
    assert_eq!((second.events, second.running, second.elsewhere), (1006, 0, 1));
    let found = read(&place.dir);
    assert_eq!((found.events.len(), found.tables.processes.len()), (2012, 2));
    let ends: Vec<&End> = found.tables.processes.iter().map(|process| &process.end).collect();
    assert_eq!(ends, [&End::Exited(0), &End::Killed]);
    assert_eq!(names(&segments), ["elsewhere-7-7-0.process"]);
}

#[test]
fn recordings_of_another_build_are_refused_by_name() {
    let place = place();
    let segments = place.dir.join(SEGMENTS);
    fs::create_dir_all(&segments).unwrap();
    kill_one(&segments);
    let name = names(&segments).into_iter().find(|name| name.ends_with(PROCESS_SUFFIX)).unwrap();
    let path = segments.join(name);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] ^= 1;
    fs::write(&path, bytes).unwrap();
    match recover(&place.dir).unwrap_err() {
        TraceError::Recording { path: named, source: ReadError::OtherBuild } => {
            assert_eq!(named, path);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_drainers_write_one_folder() {
    let place = place();
    let other = place.memory.with_file_name("other");
    let one = Drainer::start(&place.dir, &place.memory).unwrap();
    let two = Drainer::start(&place.dir, &other).unwrap();
    kill_one(&place.memory);
    kill_one(&other);
    // Both are alive: no other drainer takes over their work.
    assert_eq!(recover(&place.dir).unwrap().events, 0);
    assert_eq!(less_bytes(two.finish().unwrap()), report(1, 1006));
    assert_eq!(less_bytes(one.finish().unwrap()), report(1, 1006));
    let found = read(&place.dir);
    assert_eq!((found.events.len(), found.tables.processes.len()), (2012, 2));
    found.check_known(0);
    found.check_known(1006);
    let parts = names(&place.dir.join("events"));
    assert_eq!(parts.len(), 2);
}

#[test]
fn files_that_are_no_recordings_are_reported_and_stay_out() {
    let place = place();
    let drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    fs::write(place.memory.join("x-1-2-0.segment"), [7; 4096]).unwrap();
    fs::write(place.memory.join("x-1-2-0.process"), "short").unwrap();
    let found = drainer.finish().unwrap();
    let named = place.memory.join("x-1-2-0.segment").display().to_string();
    assert_eq!(found.problems, [format!("{named}: not a recording")]);
    assert_eq!((found.processes, found.events), (0, 0));
}

fn thinned(place: &Place, how: &str) -> (DrainReport, Read) {
    let drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let status = known()
        .args(["thinned".as_ref(), place.memory.as_os_str(), how.as_ref()])
        .status()
        .unwrap();
    assert!(status.success());
    let report = less_bytes(drainer.finish().unwrap());
    (report, read(&place.dir))
}

#[test]
fn summaries_keep_their_numbers() {
    let place = place();
    let (found, read) = thinned(&place, "summaries");
    assert_eq!(found, report(1, 1));
    let event = &read.events[0];
    assert_eq!(
        (read.name(0), event.kind, event.count),
        (("POSIX", "read"), EventKind::Summary, 1000)
    );
    // A hundred times 10 to 19.
    assert_eq!(event.duration_ns, 14_500);
    assert_eq!((event.shortest_ns, event.longest_ns), (Some(10), Some(19)));
    let done: i64 = (0..1000).filter(|index| index % 10 != 3).map(|index| 1000 + index).sum();
    assert_eq!((event.size, event.result, event.errno), (Some(4_096_000), Some(done), 0));
    // From the start of the first to the end of the last.
    let extra = r#"{"window_ns":99919,"errors":100,"least":0,"most":1999}"#;
    assert_eq!(read.texts[0].as_deref(), Some(extra));
    assert_eq!(read.file(event.file), Some("/data/a.bin"));
}

#[test]
fn what_sampling_leaves_out_is_counted() {
    let place = place();
    let (found, read) = thinned(&place, "samples");
    assert_eq!(found, DrainReport { skipped: 900, ..report(1, 100) });
    let results: Vec<Option<i64>> = read.events.iter().map(|event| event.result).collect();
    let expected: Vec<Option<i64>> = (0..100).map(|index| Some(1009 + index * 10)).collect();
    assert_eq!(results, expected);
    let process = &read.tables.processes[0];
    assert_eq!((process.skipped, &process.end), (900, &End::Exited(7)));
}

mod families {
    //! Who started whom, from handmade facts.

    use feedline_recorder::{DropReason, Ending, ProcessFacts};

    use super::super::convert::Launch;
    use super::*;

    fn facts(pid: u32, started: u64) -> ProcessFacts {
        ProcessFacts {
            pid,
            parent: 1,
            started,
            parent_started: None,
            first_text: 1,
            start: ClockPair { ticks: started, monotonic_ns: started },
            wall_ns: 1_000_000 + started,
            counter: false,
            rank: None,
            host: "nowhere".to_owned(),
            boot: "b".to_owned(),
            namespace: String::new(),
            program: format!("/bin/{pid}-{started}"),
            folder: "/".to_owned(),
            arguments: Vec::new(),
            ending: Ending::None,
            status: 0,
            ended: 0,
            dropped: 0,
            trouble: DropReason::None,
            filtered: 0,
        }
    }

    #[test]
    fn a_number_that_went_to_another_process_is_seen() {
        let now = ClockPair::by_counter(false);
        let mut processes = Processes::default();
        let mut tables = Tables::default();
        let mut add = |start: ClockPair, boot: &str, host: &str| {
            let facts = ProcessFacts {
                start,
                host: host.to_owned(),
                boot: boot.to_owned(),
                ..facts(std::process::id(), start.monotonic_ns)
            };
            let index = processes.add(facts, None, None, &mut tables);
            processes.get(index).is_gone
        };
        let (here, boot) = (alive::host(), alive::boot());
        // Long before this process began, in another life of the machine, elsewhere, and just now.
        let early = ClockPair { ticks: 1, monotonic_ns: 1 };
        assert!(add(early, boot, here));
        assert!(add(ClockPair { ticks: 2, monotonic_ns: 2 }, "another boot", here));
        assert!(!add(ClockPair { ticks: 3, monotonic_ns: 3 }, "another boot", "another host"));
        assert!(!add(now, boot, here));
    }

    #[test]
    fn an_earlier_image_of_a_process_is_gone_when_a_later_one_comes() {
        let mut processes = Processes::default();
        let mut tables = Tables::default();
        let first = processes.add(facts(5, 10), None, None, &mut tables);
        assert!(!processes.get(first).is_gone, "processes of another machine are unknown");
        let second = processes.add(facts(5, 20), None, None, &mut tables);
        assert!(processes.get(first).is_gone && !processes.get(second).is_gone);
        assert_eq!(processes.index((5, 20)), Some(second));
    }

    #[test]
    fn forked_processes_know_the_texts_of_their_ancestors() {
        use feedline_recorder::TextKind;
        let mut processes = Processes::default();
        let mut tables = Tables::default();
        // The grandchild is found first; its parent had gone, so the kernel says 1 is its parent.
        let grandchild = ProcessFacts { parent_started: Some(20), first_text: 9, ..facts(7, 30) };
        let child =
            ProcessFacts { parent: 5, parent_started: Some(10), first_text: 4, ..facts(6, 20) };
        let grandchild = processes.add(grandchild, None, None, &mut tables);
        let child = processes.add(child, None, None, &mut tables);
        let parent = processes.add(facts(5, 10), None, None, &mut tables);
        processes.get_mut(parent).texts.add(2, 0, TextKind::Path, b"/d");
        processes.get_mut(child).texts.add(5, 2, TextKind::Path, b"e");
        processes.get_mut(grandchild).texts.add(9, 5, TextKind::Path, b"f");
        processes.resolve(&mut tables);
        let path = |number| processes.file(grandchild, number).map(|row| tables.file(row));
        assert_eq!(path(2), Some("/d"));
        assert_eq!(path(5), Some("/d/e"));
        assert_eq!(path(9), Some("/d/e/f"));
        assert_eq!(path(3), None);
    }

    #[test]
    fn programs_that_never_showed_themselves_get_a_row_and_a_reason() {
        let mut processes = Processes::default();
        let mut tables = Tables::default();
        let file = Some(tables.file_row("/no/such/program"));
        let spawner = processes.add(facts(5, 10), None, None, &mut tables);
        processes.add(ProcessFacts { parent: 5, ..facts(6, 50) }, None, None, &mut tables);
        tables.processes[1].start_ns = 50;
        let launch = |pid, start_ns| Launch { pid, file, start_ns };
        let launches = vec![launch(Some(6), 40), launch(Some(6), 60), launch(Some(8), 70)];
        processes.learn(spawner, launches, None, 0);
        let ended = ProcessFacts { ending: Ending::Exec, ..facts(9, 80) };
        let became = processes.add(ended, None, None, &mut tables);
        processes.get_mut(became).is_gone = true;
        processes.learn(became, vec![launch(None, 90)], None, 0);
        processes.add_untraced(&mut tables);
        let rows: Vec<_> = tables.processes[3..]
            .iter()
            .map(|process| {
                assert_eq!(process.program, "/no/such/program");
                assert_eq!(process.trouble.as_deref(), Some("its environment had no LD_PRELOAD"));
                assert!(!process.is_traced);
                (process.pid, process.parent, process.parent_pid, process.start_ns)
            })
            .collect();
        // Number 6 was seen at 50, so the call at 40 started it, and the one at 60 another one.
        let expected =
            [(6, Some(0), Some(5), 60), (8, Some(0), Some(5), 70), (9, Some(2), Some(1), 90)];
        assert_eq!(rows, expected);
    }

    #[test]
    fn parents_are_those_who_forked_became_or_spawned() {
        let place = place();
        let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
        let pid = kill_one(&place.memory);
        drainer.look_at_folders().unwrap();
        let tables = &mut drainer.tables;
        let index = 0;
        assert_eq!(drainer.processes.get(index).facts.pid, pid);
        let started = drainer.processes.get(index).facts.started;
        // An image before it, of the same number and parent, that said it became another program.
        let earlier = ProcessFacts {
            ending: Ending::Exec,
            parent: std::process::id(),
            host: alive::host().to_owned(),
            boot: alive::boot().to_owned(),
            ..facts(pid, started - 1)
        };
        let earlier = drainer.processes.add(earlier, None, None, tables);
        let row = drainer.processes.get(earlier).row;
        drainer.processes.describe(&drainer.clocks, &mut drainer.tables);
        let process: &Process = &drainer.tables.processes[0];
        assert_eq!((process.parent, &process.end), (Some(row), &End::Killed));
    }
}
