//! Segments that processes have again before their events are in a file.

use std::os::unix::fs::FileExt as _;

use super::*;
use crate::folder::{WRITERS, numbers};

/// A program that records 10,000 calls whenever it is asked to, for which it needs two segments of
/// 4092 slots that it may fill again, besides its first one of 508 and one that is not full.
struct Turns {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Turns {
    fn start(folder: &Path) -> Self {
        let mut child = known()
            .args(["turns".as_ref(), folder.as_os_str()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut turns = Self { child, said };
        turns.wait();
        turns
    }

    fn wait(&mut self) {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }

    fn again(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.wait();
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Segments and copies in a folder.
fn files(folder: &Path) -> (Vec<String>, Vec<String>) {
    let segments = names(folder).into_iter().filter(|name| name.ends_with(SEGMENT_SUFFIX));
    segments.partition(|name| copies::original(name).is_none())
}

/// Every call is there, once.
fn check(dir: &Path, calls: i64) {
    let found = read(dir);
    let mut offsets: Vec<i64> = found.events.iter().filter_map(|event| event.offset).collect();
    offsets.sort_unstable();
    assert!(offsets.into_iter().eq(0..calls), "all calls, once");
    let path = Some("/data/a.bin");
    assert!(found.events.iter().all(|event| found.file(event.file) == path));
    assert_eq!(found.tables.processes.len(), 1);
}

#[test]
fn a_process_goes_on_in_the_segments_that_it_has() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let mut turns = Turns::start(&place.memory);
    let count = || {
        let (segments, copies) = files(&place.memory);
        (segments.len(), copies.len())
    };
    assert_eq!(count(), (4, 0));
    let mut counts = Vec::new();
    for _ in 0..3 {
        drainer.round().unwrap();
        turns.again();
        counts.push(count());
    }
    // The first segment, which is not filled again, and 4092 slots in each of the others: the second
    // and the third turn need what is left of one and two whole ones, or a little of a third.
    assert_eq!(counts, [(4, 2), (5, 4), (5, 7)]);
    assert_eq!(drainer.events(), 0, "nothing is in a file yet");
    turns.kill();
    assert_eq!(less_bytes(drainer.finish().unwrap()), report(1, 40_000));
    check(&place.dir, 40_000);
    assert!(!place.memory.exists(), "nothing is left behind");
}

#[test]
fn copies_outlive_the_drainer_that_made_them() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let mut turns = Turns::start(&place.memory);
    drainer.round().unwrap();
    drop(drainer);
    turns.again();
    assert_eq!(recover(&place.dir).unwrap().running, 1, "nothing is taken from who is there");
    turns.kill();
    let recovered = recover(&place.dir).unwrap();
    assert_eq!((recovered.events, recovered.problems), (20_000, Vec::new()));
    check(&place.dir, 20_000);
    assert!(!place.memory.exists(), "nothing is left behind");
}

#[test]
fn a_segment_that_was_copied_and_not_given_back_is_taken_once() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let turns = Turns::start(&place.memory);
    let kept = place.dir.join("kept");
    copy(&place.memory, &kept);
    drainer.round().unwrap();
    let (_, copies) = files(&place.memory);
    assert_eq!(copies.len(), 2);
    for name in &copies {
        fs::copy(place.memory.join(name), kept.join(name)).unwrap();
    }
    // Killed after the copies were complete: the originals are as full as before.
    drop(drainer);
    turns.kill();
    copy(&kept, &place.memory);
    let (number, path) = numbers(&place.dir.join(WRITERS)).unwrap().remove(0);
    let claim = Claim::resume(number, path).unwrap().unwrap();
    let mut next = Drainer::resume(&place.dir, claim).unwrap();
    next.drain_all().unwrap();
    assert_eq!(next.events(), 10_000);
    // Killed once more, when the file had its name and one of the copies was deleted.
    drop(next);
    copy(&kept, &place.memory);
    fs::remove_file(place.memory.join(&copies[0])).unwrap();
    assert_eq!(recover(&place.dir).unwrap().events, 0);
    check(&place.dir, 10_000);
    assert!(!place.memory.exists(), "nothing is left behind");
}

#[test]
fn a_copy_that_was_not_completed_is_none() {
    let place = place();
    let drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let turns = Turns::start(&place.memory);
    let (made, _) = files(&place.memory);
    let mut bytes = fs::read(place.memory.join(&made[1])).unwrap();
    bytes[..256].fill(0);
    let stem = made[1].strip_suffix(SEGMENT_SUFFIX).unwrap();
    fs::write(place.memory.join(format!("{stem}+1{SEGMENT_SUFFIX}")), bytes).unwrap();
    drop(drainer);
    turns.kill();
    assert_eq!(recover(&place.dir).unwrap().events, 10_000);
    check(&place.dir, 10_000);
    assert!(!place.memory.exists(), "nothing is left behind");
}

#[test]
fn segments_wait_themselves_where_there_is_no_room_for_copies() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    // Two files of that size do not hold one copy.
    drainer.file_bytes = 100 * 1024;
    let mut turns = Turns::start(&place.memory);
    drainer.round().unwrap();
    assert!(drainer.events() >= 2 * 4092, "full segments are in files");
    assert_eq!(files(&place.memory).1, Vec::<String>::new());
    turns.again();
    assert_eq!(files(&place.memory).0.len(), 3, "the first one is deleted, no new one");
    turns.kill();
    assert_eq!(drainer.finish().unwrap().dropped, 0);
    check(&place.dir, 20_000);
}

#[test]
fn a_segment_into_which_somebody_writes_a_text_is_left_alone() {
    let place = place();
    let mut drainer = Drainer::start(&place.dir, &place.memory).unwrap();
    let turns = Turns::start(&place.memory);
    let (made, _) = files(&place.memory);
    // A text that says of itself that its bytes are not there yet, in a full segment.
    let path = place.memory.join(&made[1]);
    let file = fs::File::options().write(true).open(&path).unwrap();
    let slot = 256 + 100 * 64;
    file.write_all_at(&u16::MAX.to_ne_bytes(), slot + 56).unwrap();
    file.write_all_at(&0_u64.to_ne_bytes(), slot + 16).unwrap();
    drainer.round().unwrap();
    let copies = files(&place.memory).1;
    assert_eq!(copies.len(), 1, "the other full one: {copies:?}");
    turns.kill();
    assert_eq!(less_bytes(drainer.finish().unwrap()), report(1, 9_999));
}
