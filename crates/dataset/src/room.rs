//! Whether a data set can be laid out, and what is missing of it has room.

use std::sync::atomic::Ordering;

use feedline_formats::{ByteSink, Content, EncodeError, StreamError};
use feedline_store::EntryKind;

use crate::error::{DatasetError, Result};
use crate::existing_files::ExistingFiles;
use crate::generate::Generator;
use crate::sizes::SampleSizes;

impl Generator<'_> {
    /// An error if there is a file where the data folder should be.
    pub fn check_folder(&self) -> Result<()> {
        match self.store.kind("")? {
            Some(EntryKind::File) => {
                Err(DatasetError::NotAFolder { folder: self.store.locate("") })
            }
            _ => Ok(()),
        }
    }

    /// An error if the samples do not go into a file of the format.
    ///
    /// A file is begun and refused its first byte: whatever is wrong with its layout is said before.
    pub fn check_layout(&self) -> Result<()> {
        let file = self.spec.file(0, SampleSizes::new(&self.spec.shape).next_dims());
        match self.spec.format.encode(&file, &Content::new(0, 0), &mut NoByte) {
            Err(wrong @ (EncodeError::Layout { .. } | EncodeError::TooLarge { .. })) => {
                Err(DatasetError::Layout(wrong))
            }
            _ => Ok(()),
        }
    }

    /// An error if what has to be written cannot fit.
    pub fn check_room(&self, earlier: &ExistingFiles) -> Result<()> {
        let free = self.store.free_bytes("")?.unwrap_or(u64::MAX);
        let kept = earlier.kept().bytes;
        let needed = self.bytes_up_to(free.saturating_add(kept)).saturating_sub(kept);
        if needed > free {
            // The others that are there stay too, or make room as they are replaced one by one.
            let needed = needed.saturating_sub(self.bytes_there(earlier, needed - free)?);
            if needed > free {
                let folder = self.store.locate("");
                return Err(DatasetError::NoSpace { folder, needed, free });
            }
        }
        Ok(())
    }

    /// Bytes of the files that are there and not certain to stay, counted only until `enough`.
    fn bytes_there(&self, earlier: &ExistingFiles, enough: u64) -> Result<u64> {
        let mut sum = 0u64;
        for index in (0..self.spec.files()).filter(|&index| !earlier.keeps(index)) {
            if sum >= enough || self.stop.load(Ordering::Relaxed) {
                break;
            }
            sum = sum.saturating_add(self.store.size(&self.key(index))?.unwrap_or(0));
        }
        Ok(sum)
    }

    /// Bytes of all files; with files of different size, only until they exceed `limit`.
    pub(crate) fn bytes_up_to(&self, limit: u64) -> u64 {
        let mut sizes = SampleSizes::new(&self.spec.shape);
        let files = self.spec.files();
        let mut size = |index| {
            let file = self.spec.file(index, sizes.next_dims());
            self.spec
                .format
                .size(&file)
                .bytes()
                .saturating_add(self.spec.format.companion_bytes(&file))
        };
        let first = size(0);
        if SampleSizes::new(&self.spec.shape).is_uniform() {
            // A synthetic file holds its own number, so the last one is the longest.
            return first.max(size(files - 1)).saturating_mul(files);
        }
        let mut sum = first;
        for index in 1..files {
            if sum > limit || self.stop.load(Ordering::Relaxed) {
                break;
            }
            sum = sum.saturating_add(size(index));
        }
        sum
    }
}

/// A sink that takes nothing.
struct NoByte;

impl ByteSink for NoByte {
    fn space(&mut self, _want: usize) -> Result<&mut [u8], StreamError> {
        Err("nothing is written yet".into())
    }

    fn patch(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), StreamError> {
        Ok(())
    }
}
