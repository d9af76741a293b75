//! Archives that other programs write: long names, extended headers, and sizes of members without data.
//!
//! `archives/make.py` wrote them, with Python's tarfile.

use std::fs;
use std::io::Read as _;

use flate2::read::GzDecoder;
use tempfile::TempDir;

use crate::files::{open, options, rows};

#[test]
fn members_are_found_behind_all_that_tarfile_writes() {
    for (layout, packed) in [
        ("pax", include_bytes!("archives/pax.tar.gz").as_slice()),
        ("gnu", include_bytes!("archives/gnu.tar.gz").as_slice()),
    ] {
        let folder = TempDir::new().unwrap();
        let mut plain = Vec::new();
        GzDecoder::new(packed).read_to_end(&mut plain).unwrap();
        fs::write(folder.path().join("t.tar.gz"), packed).unwrap();
        fs::write(folder.path().join("t.tar"), plain).unwrap();
        for name in ["t.tar.gz", "t.tar"] {
            let trace = open(&folder.path().join(name), &options(1, 1 << 26));
            assert_eq!((trace.events, trace.lanes.len()), (6, 2), "{layout} {name}");
            let bytes: u64 = rows(&trace).0.iter().map(|row| row.bytes).sum();
            assert_eq!(bytes, 6 * 4096, "{layout} {name}");
            assert!(trace.problems.is_empty(), "{layout} {name}: {:?}", trace.problems);
        }
    }
}
