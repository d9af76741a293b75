//! What a check of a data set found.

use feedline_dataset::{BadFile, Verified};
use feedline_numbers::units;

/// One bad file: what it is called and what is wrong with it.
pub fn bad_file(bad: &BadFile) -> String {
    format!("{}: {}\n", bad.name, bad.fault)
}

/// Files that are not in the manifest, and the last line: whether the data set is good.
pub fn summary(verified: &Verified) -> String {
    let strangers = &verified.strangers;
    let mut text = String::new();
    for name in &strangers.named {
        text += &format!("note: {name} is not in the manifest\n");
    }
    let unnamed = strangers.files - strangers.named.len() as u64;
    if unnamed > 0 {
        text += &format!("note: nor are {}\n", units::counted(unnamed, "further file"));
    }
    let files = units::counted(verified.files, "file");
    text + &match verified.bad_files {
        0 => format!("{files}, {} bytes: all good\n", units::count(verified.bytes)),
        1 => format!("1 of {files} is bad\n"),
        bad => format!("{} of {files} are bad\n", units::count(bad)),
    }
}

#[cfg(test)]
mod tests {
    use feedline_dataset::{Fault, Strangers};

    use super::*;

    #[track_caller]
    fn check(bad_files: u64, strangers: Strangers, expected: &str) {
        let verified =
            Verified { files: 1_168, bytes: 36_752, checked_files: 1_168, bad_files, strangers };
        assert_eq!(summary(&verified), expected);
    }

    #[test]
    fn the_last_line_is_the_answer() {
        let none = Strangers::default;
        check(0, none(), "1,168 files, 36,752 bytes: all good\n");
        check(1, none(), "1 of 1,168 files is bad\n");
        check(1_001, none(), "1,001 of 1,168 files are bad\n");
    }

    #[test]
    fn strangers_are_named_and_then_counted() {
        let named = vec!["train/a".to_owned(), "valid/b".to_owned()];
        let noted = "note: train/a is not in the manifest\nnote: valid/b is not in the manifest\n";
        let good = "1,168 files, 36,752 bytes: all good\n";
        check(0, Strangers { files: 2, named: named.clone() }, &format!("{noted}{good}"));
        let more = format!("{noted}note: nor are 1,000 further files\n{good}");
        check(0, Strangers { files: 1_002, named }, &more);
    }

    #[test]
    fn every_fault_says_what_was_found_and_expected() {
        let line = |fault| bad_file(&BadFile { name: "train/a".into(), fault });
        assert_eq!(line(Fault::Missing), "train/a: missing\n");
        let size = Fault::Size { found: 5, expected: 4594 };
        assert_eq!(line(size), "train/a: 5 bytes, expected 4594\n");
        let sum = Fault::Checksum { found: 0xab, expected: 0x1234_5678 };
        assert_eq!(line(sum), "train/a: crc32 000000ab, expected 12345678\n");
        let unreadable = Fault::Unreadable { reason: "Permission denied".into() };
        assert_eq!(line(unreadable), "train/a: cannot be read: Permission denied\n");
    }
}
