//! Files of traces that tests write, and their rows.

#![allow(dead_code, reason = "every test program uses some of it")]

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use feedline_analyze::Row;
use feedline_analyze::load::{LoadOptions, NoProgress, RowTally, Trace};
use flate2::Compression;
use flate2::write::GzEncoder;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// A tally of what is the same in any order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums(pub(crate) u64, pub(crate) u64);

impl RowTally for Sums {
    fn add(&mut self, rows: &[Row]) {
        for row in rows {
            self.0 += 1;
            self.1 = self.1.wrapping_add(row.bytes ^ row.start_ns.cast_unsigned());
        }
    }

    fn merge(&mut self, other: Self) {
        self.0 += other.0;
        self.1 = self.1.wrapping_add(other.1);
    }
}

pub(crate) fn options(threads: usize, memory_bytes: u64) -> LoadOptions {
    let threads = NonZeroUsize::new(threads).unwrap();
    LoadOptions { threads, memory_bytes, ..LoadOptions::default() }
}

pub(crate) fn open(path: &Path, options: &LoadOptions) -> Trace {
    Trace::open(&[path.to_owned()], options, &NoProgress).unwrap()
}

pub(crate) fn rows(trace: &Trace) -> (Vec<Row>, Sums) {
    let mut rows = Vec::new();
    let sums = trace.stream(&NoProgress, &|_| true, &Sums::default, &mut |some| {
        rows.extend_from_slice(some);
    });
    let sums = sums.unwrap();
    let mut again = Sums::default();
    again.add(&rows);
    assert_eq!(sums, again);
    assert!(rows.is_sorted_by(|a, b| a.order(b).is_le()));
    (rows, sums)
}

pub(crate) fn count(trace: &Trace, code: &str) -> u64 {
    trace.problems.iter().filter(|problem| problem.code == code).map(|problem| problem.count).sum()
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(crate) const HOST: &str = r#""hhash":"6882804a826580cd""#;

/// Metadata at the beginning of a file of the current dialect.
pub(crate) fn names(pid: u32, unit: &str) -> String {
    format!(
        r#"{{"name":"HH","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"vm","value":"6882804a826580cd"}}}}
{{"name":"CM","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"time_metric","value":"{unit}"}}}}
"#
    )
}

pub(crate) fn border(pid: u32, name: &str, ts: u64) -> String {
    format!(
        r#"{{"id":1,"name":"{name}","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ts":{ts},"dur":0,"ph":1,"args":{{{HOST},"ppid":5}}}}
"#
    )
}

pub(crate) fn read_line(pid: u32, tid: u32, ts: u64, dur: u64, file: u64, offset: u64) -> String {
    format!(
        r#"{{"id":8,"name":"pread64","cat":"POSIX","type":3,"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"ph":1,"args":{{{HOST},"fhash":"{file:016x}","count":4096,"offset":{offset},"ret":4096}}}}
"#
    )
}

/// A file of many events, whose paths stand behind the events that use them.
pub(crate) fn many(pid: u32, events: u32, seed: u64) -> String {
    let mut random = StdRng::seed_from_u64(seed);
    let mut text = names(pid, "US") + &border(pid, "start", 1_800_000_000_000_000);
    for id in 0..events {
        let tid = pid + random.random_range(0..3);
        // Few moments, so that many events begin and end at once.
        let ts = 1_800_000_000_000_000 + u64::from(id / 8) + random.random_range(0..50);
        let (dur, file) = (random.random_range(0..4), random.random_range(0..40));
        if id % 9 == 0 {
            let step = id % 5;
            text += &format!(
                r#"{{"id":8,"name":"Reader.item","cat":"data_loader","type":6,"pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"ph":1,"args":{{{HOST},"epoch":1,"step":{step},"image_size":77.0}}}}
"#
            );
        } else {
            text += &read_line(pid, tid, ts, dur, file, u64::from(id % 7) * 4096);
        }
    }
    for file in 0..40 {
        text += &format!(
            r#"{{"name":"FH","cat":"dftracer","type":1,"pid":{pid},"tid":{pid},"ph":4,"args":{{{HOST},"name":"/data/{file:02}.npz","value":"{file:016x}"}}}}
"#
        );
    }
    text + &border(pid, "end", 1_800_000_009_000_000)
}

/// A file of gzip members, each of so many bytes of text, wherever lines end.
pub(crate) fn members(text: &[u8], size: usize) -> Vec<u8> {
    text.chunks(size).flat_map(gzip).collect()
}

/// An archive as tar writes them.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        if name.len() > 100 {
            header(&mut out, "././@LongLink", name.len() + 1, b'L');
            out.extend(name.as_bytes());
            out.push(0);
            out.resize(out.len().next_multiple_of(512), 0);
        }
        header(&mut out, &name[..name.len().min(100)], bytes.len(), b'0');
        out.extend(*bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

pub(crate) fn header(out: &mut Vec<u8>, name: &str, size: usize, kind: u8) {
    let mut block = [0_u8; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    out.extend(block);
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}
