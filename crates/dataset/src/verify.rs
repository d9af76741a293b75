//! Checks a data set against its manifest: every file's presence, size and content.
//!
//! The manifest is read twice: once to see that it is whole, before anything is said, and once
//! while its files are read. Memory holds a buffer a thread and the entries that lie ready.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use feedline_clock::Clock;
use feedline_formats::CompanionPlace;
use feedline_store::{AlignedBuf, EntryKind, Store, StoreError};

use crate::checksum::crc32_of;
use crate::error::{DatasetError, Result};
use crate::manifest::{Entry, FileSum, Head, Totals};
use crate::manifest_reader::ManifestReader;
use crate::manifest_scan::ManifestScan;
use crate::progress::VerificationProgress;

/// Bytes of a read.
const READ_BYTES: usize = 1 << 20;
/// Files beside the set that are named; of further ones only the number is known.
const STRANGERS_NAMED: usize = 10;

/// How a data set is to be checked.
pub struct Verification<'a> {
    /// What threads and waits go by.
    pub clock: &'a Clock,
    /// The data set; its root is the data folder.
    pub data: &'a dyn Store,
    /// Files that are read at a time.
    pub threads: usize,
    /// Set to end it early.
    pub stop: &'a AtomicBool,
    /// Told how far it is, from the checking threads.
    pub progress: &'a (dyn Fn(VerificationProgress) + Sync),
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Files of the manifest.
    pub files: u64,
    /// Bytes of them, as the manifest has it.
    pub bytes: u64,
    /// Files that were checked: all, unless it was stopped.
    pub checked_files: u64,
    /// Files that are not what they should be.
    pub bad_files: u64,
    /// Files in the folder that the manifest does not list.
    pub strangers: Strangers,
}

/// Files in the folders of the data that the manifest does not know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strangers {
    /// How many there are.
    pub files: u64,
    /// The first of them, in no order.
    pub named: Vec<String>,
}

/// A file that is not what it should be.
#[derive(Debug)]
pub struct BadFile {
    /// Its key in the data folder.
    pub name: String,
    /// How it differs from the manifest.
    pub fault: Fault,
}

/// What can be wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The manifest lists the file, but it does not exist.
    #[error("missing")]
    Missing,
    /// The file is longer or shorter than the manifest says.
    #[error("{found} bytes, expected {expected}")]
    Size {
        /// Its size in bytes now.
        found: u64,
        /// Its size in bytes in the manifest.
        expected: u64,
    },
    /// The size matches, but the content does not.
    #[error("crc32 {found:08x}, expected {expected:08x}")]
    Checksum {
        /// Checksum of what is there.
        found: u32,
        /// Checksum in the manifest.
        expected: u32,
    },
    /// The file exists, but reading it fails.
    #[error("cannot be read: {reason}")]
    Unreadable {
        /// The error of the operating system or the object store.
        reason: String,
    },
}

impl Verification<'_> {
    /// Checks every file; each bad one is told to `report` at once, in no order.
    pub fn run(&self, report: &(dyn Fn(&BadFile) + Sync)) -> Result<Verified> {
        let (head, totals) = self.look()?;
        let done = Mutex::new(VerificationProgress {
            files_total: totals.files,
            bytes_total: totals.bytes,
            ..VerificationProgress::default()
        });
        (self.progress)(*lock(&done));
        let scan = ManifestScan { clock: self.clock, threads: self.threads, stop: self.stop };
        let scanned = scan.run(
            self.manifest()?,
            |_| true,
            || AlignedBuf::new(READ_BYTES),
            |buffer, Entry { name, sum }| {
                let Some(fault) = self.check(&name, sum, buffer) else { return Ok(()) };
                let mut done = lock(&done);
                done.files += 1;
                done.bytes += sum.bytes;
                if let Err(fault) = fault {
                    done.bad_files += 1;
                    report(&BadFile { name, fault });
                }
                (self.progress)(*done);
                Ok(())
            },
        );
        scanned?;
        let strangers = self.strangers(&head)?;
        let VerificationProgress { files, bad_files, .. } = *lock(&done);
        let (checked_files, Totals { files, bytes }) = (files, totals);
        Ok(Verified { files, bytes, checked_files, bad_files, strangers })
    }

    /// The head and the totals of a manifest that is whole and of a set that is.
    fn look(&self) -> Result<(Head, Totals)> {
        let folder = || self.data.locate("");
        if self.data.kind("")? != Some(EntryKind::Folder) {
            return Err(DatasetError::NoFolder { folder: folder() });
        }
        let (head, totals) = self.manifest()?.read(&mut |_, _| Ok(ControlFlow::Continue(())))?;
        if !head.complete {
            let (folder, workload) = (folder(), head.workload);
            return Err(DatasetError::ManifestIncomplete { folder, workload });
        }
        Ok((head, totals.expect("it was read to its end")))
    }

    fn manifest(&self) -> Result<ManifestReader> {
        let found = ManifestReader::open(self.data)?;
        found.ok_or_else(|| DatasetError::NoManifest { folder: self.data.locate("") })
    }

    /// Whether a file is as it should be; `None` if that was stopped.
    fn check(
        &self,
        name: &str,
        expected: FileSum,
        buffer: &mut AlignedBuf,
    ) -> Option<Result<(), Fault>> {
        let mut read = || {
            let mut object = self.data.open(name)?;
            let found = object.len()?;
            if found != expected.bytes {
                return Ok(Some(Err(Fault::Size { found, expected: expected.bytes })));
            }
            let found = crc32_of(&mut *object, found, buffer, self.stop)?;
            let verdict = |found| match found == expected.crc32 {
                true => Ok(()),
                false => Err(Fault::Checksum { found, expected: expected.crc32 }),
            };
            Ok(found.map(verdict))
        };
        let refused = |error: StoreError| match error.is_missing() {
            true => Fault::Missing,
            false => Fault::Unreadable { reason: innermost(&error) },
        };
        read().unwrap_or_else(|error| Some(Err(refused(error))))
    }

    /// Files in `train` and `valid`, sub-folders included, that the manifest's recipe does not make.
    /// The names follow its rule, so no list of them is kept.
    fn strangers(&self, head: &Head) -> Result<Strangers> {
        let mut strangers = Strangers::default();
        let Some((rules, companions)) = head.recipe.as_ref().and_then(|recipe| recipe.names())
        else {
            return Ok(strangers);
        };
        let is_known = |key: &str| {
            let beside =
                companions.iter().filter(|companion| companion.place == CompanionPlace::Beside);
            let mut names = beside
                .filter_map(|companion| key.strip_suffix(companion.suffix))
                .chain(std::iter::once(key));
            names.any(|key| rules.iter().any(|rule| rule.number_of_key(key).is_some()))
        };
        for rule in &rules {
            self.each_file(rule.folder, &mut |key| {
                if !is_known(&key) {
                    strangers.files += 1;
                    if strangers.named.len() < STRANGERS_NAMED {
                        strangers.named.push(key);
                    }
                }
            })?;
        }
        Ok(strangers)
    }

    /// The files of a folder and of the folders in it; hidden ones are not data.
    fn each_file(&self, folder: &str, visit: &mut dyn FnMut(String)) -> Result<()> {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            if self.data.kind(&folder)? != Some(EntryKind::Folder) {
                continue;
            }
            self.data.list(&folder, &mut |entry| {
                let key = format!("{folder}/{}", entry.name);
                match entry.kind {
                    _ if entry.name.starts_with('.') => {}
                    EntryKind::File => visit(key),
                    EntryKind::Folder => folders.push(key),
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    }
}

/// The first cause of an error, without the path, which is said already.
fn innermost(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use feedline_store::{FaultInjecting, Memory, Op};

    use super::*;
    use crate::manifest::{MANIFEST_NAME, ManifestWriter};
    use crate::recipe::tests::recipe;

    const FILES: u64 = 300;

    fn name(number: u64) -> String {
        format!("train/img_{number:03}_of_{FILES}.npz")
    }

    /// A set of 300 files of up to 299 bytes, more than one batch, and its manifest.
    fn set(complete: bool) -> Memory {
        let store = Memory::new(Clock::real());
        let recipe = Some(recipe(|spec| spec.train.total = FILES));
        let head = Head { complete, replaces: false, workload: "test".into(), recipe };
        let mut writer = ManifestWriter::begin(&store, &head).unwrap();
        for number in 0..FILES {
            let content = vec![number as u8; number as usize];
            let sum = FileSum { bytes: number, crc32: crc32fast::hash(&content) };
            writer.add(&name(number), sum).unwrap();
            store.put(&name(number), content);
        }
        writer.publish().unwrap();
        store
    }

    fn verify(data: &dyn Store, stop: &AtomicBool) -> Result<(Verified, Vec<String>)> {
        let (clock, bad) = (Clock::real(), Mutex::new(Vec::new()));
        let check = Verification { clock: &clock, data, threads: 3, stop, progress: &|_| () };
        let verified = check.run(&|file| {
            lock(&bad).push(format!("{}: {}", file.name, file.fault));
        })?;
        let mut bad = bad.into_inner().unwrap();
        bad.sort();
        Ok((verified, bad))
    }

    fn verified(data: &dyn Store) -> (Verified, Vec<String>) {
        verify(data, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn a_good_set_is_good() {
        let (found, bad) = verified(&set(true));
        assert_eq!(bad, [""; 0]);
        let bytes = (0..FILES).sum();
        let strangers = Strangers::default();
        let expected =
            Verified { files: FILES, bytes, checked_files: FILES, bad_files: 0, strangers };
        assert_eq!(found, expected);
    }

    #[test]
    fn every_bad_file_is_named() {
        let store = set(true);
        store.remove(&name(7)).unwrap();
        store.put(&name(8), vec![8; 9]);
        store.put(&name(9), vec![10; 9]);
        let (found, bad) = verified(&store);
        let (is, expected) = (crc32fast::hash(&[10; 9]), crc32fast::hash(&[9; 9]));
        assert_eq!(
            bad,
            [
                "train/img_007_of_300.npz: missing".to_owned(),
                "train/img_008_of_300.npz: 9 bytes, expected 8".to_owned(),
                format!("train/img_009_of_300.npz: crc32 {is:08x}, expected {expected:08x}"),
            ]
        );
        assert_eq!((found.bad_files, found.checked_files), (3, FILES));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_bad_and_the_others_are_checked() {
        // The manifest takes a read in each pass.
        let store = FaultInjecting::new(set(true), Op::Read, 3, 5);
        let (found, bad) = verified(&store);
        assert_eq!((found.bad_files, found.checked_files), (1, FILES));
        assert!(bad[0].ends_with(": cannot be read: Input/output error (os error 5)"), "{bad:?}");
    }

    #[test]
    fn strangers_are_counted_and_some_are_named() {
        let store = set(true);
        store.put("train/img_000_of_301.npz", &b""[..]);
        store.put("train/0/img_000_of_300.npz", &b""[..]);
        store.put("train/.hidden", &b""[..]);
        store.put("notes.txt", &b""[..]);
        let (found, bad) = verified(&store);
        let mut named = found.strangers.named;
        named.sort();
        assert_eq!(named, ["train/0/img_000_of_300.npz", "train/img_000_of_301.npz"]);
        assert_eq!((found.strangers.files, bad.len()), (2, 0));
        (0..20).for_each(|number| store.put(&format!("valid/{number}"), &b""[..]));
        let (found, _) = verified(&store);
        assert_eq!((found.strangers.files, found.strangers.named.len()), (22, STRANGERS_NAMED));
    }

    #[test]
    fn a_stop_ends_it() {
        let (found, _) = verify(&set(true), &AtomicBool::new(true)).unwrap();
        assert_eq!((found.checked_files, found.bad_files, found.files), (0, 0, FILES));
    }

    #[test]
    fn without_a_complete_manifest_nothing_is_checked() {
        let store = Memory::new(Clock::real());
        let refused = |store: &Memory| verify(store, &AtomicBool::new(false)).unwrap_err();
        assert!(matches!(refused(&store), DatasetError::NoManifest { .. }));
        assert!(matches!(refused(&set(false)), DatasetError::ManifestIncomplete { .. }));
        let whole = set(true);
        let text = whole.get(MANIFEST_NAME).unwrap();
        whole.put(MANIFEST_NAME, &text[..text.len() / 2]);
        assert!(matches!(refused(&whole), DatasetError::ManifestBroken { .. }));
    }
}
