//! What is kept of a trace is used again, and only for the same trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

use feedline_analyze::load::{LoadOptions, NoProgress, Trace};
use tempfile::TempDir;

use crate::files::{archive, entries, gzip, many, open, options, rows};

fn cached(folder: &Path) -> LoadOptions {
    LoadOptions { cache: Some(folder.join("cache")), ..options(2, 1 << 26) }
}

/// What is kept; what is being unpacked is hidden.
fn kept_in(folder: &Path) -> Vec<PathBuf> {
    let mut all = entries(&folder.join("cache"));
    all.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'));
    all
}

fn set_date(path: &Path, seconds: u64) {
    let date = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::options().append(true).open(path).unwrap().set_modified(date).unwrap();
}

/// Lays something else in the place of what was kept, so that only a hit can show it.
fn mark(kept: &Path, events: u64) {
    let path = kept.join("analysis.json");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches(&format!("\"events\":{events},")).count(), 1);
    fs::write(&path, text.replace(&format!("\"events\":{events},"), "\"events\":77,")).unwrap();
}

const CHROME: &str = r#"{"traceEvents":[
{"ph":"X","cat":"data","name":"item","pid":1,"tid":2,"ts":5,"dur":10.5,"args":{"size":7}},
{"ph":"X","cat":"data","name":"item","pid":1,"tid":2,"ts":25,"dur":1}
]}"#;

#[test]
fn an_archive_is_read_once() {
    let pfw = many(100, 500, 1);
    for (name, member, text, events) in [
        ("t.tar.gz", "a.pfw", pfw.as_str(), 502),
        ("t.tgz", "deep/a.pfw.gz", pfw.as_str(), 502),
        ("t.tar", "a.pfw", pfw.as_str(), 502),
        ("t.tar.gz", "t.json", CHROME, 2),
        ("t.tar", "t.json", CHROME, 2),
    ] {
        let folder = TempDir::new().unwrap();
        let (path, options) = (folder.path().join(name), cached(folder.path()));
        let bytes =
            if member.ends_with(".gz") { gzip(text.as_bytes()) } else { text.as_bytes().to_vec() };
        let tar = archive(&[(member, &bytes), ("notes", b"hello")]);
        let packed = |tar: &[u8]| if name.ends_with("gz") { gzip(tar) } else { tar.to_vec() };
        fs::write(&path, packed(&tar)).unwrap();
        set_date(&path, 1_000_000_000);
        let first = open(&path, &options);
        let expected = rows(&first);
        assert_eq!(first.events, events, "{name} {member}");
        let kept = kept_in(folder.path());
        assert_eq!(kept.len(), 1, "{name} {member}");
        mark(&kept[0], events);
        let again = open(&path, &options);
        assert_eq!(again.events, 77, "{name} {member}");
        assert_eq!(rows(&again), expected, "{name} {member}");
        assert_eq!(kept_in(folder.path()), kept, "{name} {member}");
        // As long and as old as before, and yet another.
        let other = text.replacen("\"dur\":1", "\"dur\":2", 1);
        assert_eq!(other.len(), text.len());
        let bytes = if member.ends_with(".gz") { gzip(other.as_bytes()) } else { other.into() };
        fs::write(&path, packed(&archive(&[(member, &bytes), ("notes", b"hello")]))).unwrap();
        set_date(&path, 1_000_000_000);
        let changed = open(&path, &options);
        assert_eq!(changed.events, events, "{name} {member}");
        assert!(rows(&changed) != expected, "{name} {member}");
        assert_eq!(kept_in(folder.path()).len(), 2, "{name} {member}");
    }
}

#[test]
fn the_date_of_an_archive_counts_and_the_way_to_it_does_not() {
    let folder = TempDir::new().unwrap();
    let (path, options) = (folder.path().join("t.tgz"), cached(folder.path()));
    fs::write(&path, gzip(&archive(&[("a.pfw", many(100, 50, 1).as_bytes())]))).unwrap();
    let expected = rows(&open(&path, &options));
    let kept = kept_in(folder.path());
    mark(&kept[0], 52);
    assert_eq!(open(&folder.path().join("*.tgz"), &options).events, 77);
    let elsewhere = folder.path().join("elsewhere.tgz");
    fs::rename(&path, &elsewhere).unwrap();
    assert_eq!(open(&elsewhere, &options).events, 77);
    set_date(&elsewhere, 1_000_000_000);
    let dated = open(&elsewhere, &options);
    assert_eq!((dated.events, rows(&dated)), (52, expected));
}

#[test]
fn an_archive_that_is_named_twice_is_read_once() {
    let folder = TempDir::new().unwrap();
    let (path, options) = (folder.path().join("t.tgz"), cached(folder.path()));
    fs::write(&path, gzip(&archive(&[("a.pfw", many(100, 50, 1).as_bytes())]))).unwrap();
    let named = [folder.path().join("*.tgz"), path.clone()];
    let twice = Trace::open(&named, &options, &NoProgress).unwrap();
    assert_eq!((twice.events, rows(&twice)), (52, rows(&open(&path, &options))));
    assert_eq!(kept_in(folder.path()).len(), 1);
}

#[test]
fn files_of_many_ranks_are_kept_together() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run");
    fs::create_dir(&run).unwrap();
    let paths = ["a.json", "b.json"].map(|name| run.join(name));
    paths.iter().for_each(|path| fs::write(path, CHROME).unwrap());
    let options = cached(folder.path());
    let first = open(&run, &options);
    let kept = kept_in(folder.path());
    assert_eq!((kept.len(), first.events), (1, 4));
    mark(&kept[0], 4);
    let again = open(&run, &options);
    assert_eq!((again.events, rows(&again)), (77, rows(&first)));
    assert_eq!(again.tables.processes, first.tables.processes);
    assert_eq!(again.problems, first.problems);
    // One alone is another trace, and so are both with one changed.
    assert_eq!(open(&paths[1], &options).events, 2);
    fs::write(&paths[1], CHROME.replace("\"ts\":25", "\"ts\":26")).unwrap();
    let changed = open(&run, &options);
    assert_eq!((changed.events, changed.end_ns), (4, 27_000));
    assert_eq!(kept_in(folder.path()).len(), 3);
}

fn size_of(folder: &Path) -> u64 {
    let sizes = entries(folder).into_iter().map(|path| {
        if path.is_dir() { size_of(&path) } else { fs::metadata(&path).unwrap().len() }
    });
    sizes.sum()
}

/// Says that an entry was used so many hours ago.
fn used(kept: &Path, hours: u64) {
    let file = File::options().append(true).open(kept.join("analysis.json")).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
}

#[test]
fn what_was_not_used_for_longest_makes_room() {
    let folder = TempDir::new().unwrap();
    let options = cached(folder.path());
    let traces = ["a", "b", "c", "d", "e"].map(|name| folder.path().join(format!("{name}.pfw")));
    // As many events and as many digits: all entries have about one size.
    for (path, seed) in traces.iter().zip(1..) {
        fs::write(path, many(100, 3_000, seed)).unwrap();
    }
    let mut kept: Vec<PathBuf> = Vec::new();
    let mut open_next = |number: usize, options: &LoadOptions| {
        assert_eq!(open(&traces[number], options).events, 3_002);
        let found = kept_in(folder.path()).into_iter().find(|path| !kept.contains(path)).unwrap();
        kept.push(found.clone());
        found
    };
    let [a, b, c] = [0, 1, 2].map(|number| open_next(number, &options));
    let size = size_of(&a);
    let room_for =
        |entries: u64| LoadOptions { cache_bytes: entries * size + size / 2, ..options.clone() };
    used(&a, 4);
    used(&b, 5);
    used(&c, 3);
    // A look at one makes it the last to go.
    assert_eq!(open(&traces[1], &options).events, 3_002);
    let d = open_next(3, &room_for(3));
    let mut left = vec![b.clone(), c.clone(), d.clone()];
    left.sort();
    assert_eq!(kept_in(folder.path()), left);
    // What was used in the last hour may be in use, and what was written now is.
    used(&b, 0);
    used(&d, 2);
    let e = open_next(4, &LoadOptions { cache_bytes: 1, ..options.clone() });
    let mut left = vec![b, e];
    left.sort();
    assert_eq!(kept_in(folder.path()), left);
    // What went is read and kept anew.
    let again = open(&traces[0], &options);
    assert_eq!(again.events, 3_002);
    assert!(a.is_dir());
}

#[test]
fn writers_of_one_entry_leave_one() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw");
    fs::write(&path, many(100, 5_000, 1)).unwrap();
    let expected = rows(&open(&path, &options(1, 1 << 26)));
    let options = cached(folder.path());
    for round in 0..5 {
        let barrier = Barrier::new(4);
        let one = || {
            barrier.wait();
            let trace = open(&path, &options);
            (trace.events, rows(&trace))
        };
        std::thread::scope(|scope| {
            let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
            for found in all {
                let (events, rows) = found.join().unwrap();
                assert!(events == 5_002 && rows == expected, "{round}");
            }
        });
        let kept = entries(&folder.path().join("cache"));
        assert_eq!(kept.len(), 1, "nothing hidden is left: {kept:?}");
        mark(&kept[0], 5_002);
        let again = open(&path, &options);
        assert!(again.events == 77 && rows(&again) == expected, "{round}");
        fs::remove_dir_all(&kept[0]).unwrap();
    }
}

#[test]
fn what_a_killed_writer_left_is_no_entry_and_goes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.pfw");
    fs::write(&path, many(100, 50, 1)).unwrap();
    let options = cached(folder.path());
    let expected = rows(&open(&path, &options));
    let cache = folder.path().join("cache");
    let kept = kept_in(folder.path()).remove(0);
    let key = kept.file_name().unwrap().to_string_lossy().into_owned();
    // Half of an entry, of two days ago and of now, and an archive that was being unpacked.
    let old = SystemTime::now() - Duration::from_secs(48 * 3600);
    for (name, is_old) in [
        (format!(".{key}-1-0"), true),
        (format!(".{key}-2-0"), false),
        (".feedline-unpacked-1-0".into(), true),
    ] {
        fs::create_dir_all(cache.join(&name).join("events")).unwrap();
        fs::write(cache.join(&name).join("events/x"), "half").unwrap();
        for part in ["events/x", "events", ""] {
            if is_old {
                File::open(cache.join(&name).join(part)).unwrap().set_modified(old).unwrap();
            }
        }
    }
    // Not ours, whatever its name is.
    fs::create_dir(cache.join(".other")).unwrap();
    File::open(cache.join(".other")).unwrap().set_modified(old).unwrap();
    fs::rename(&kept, folder.path().join("elsewhere")).unwrap();
    assert_eq!(rows(&open(&path, &options)), expected);
    let names = [format!(".{key}-2-0"), ".other".to_owned(), key];
    let mut left: Vec<PathBuf> = names.iter().map(|name| cache.join(name)).collect();
    left.sort();
    assert_eq!(entries(&cache), left);
}
