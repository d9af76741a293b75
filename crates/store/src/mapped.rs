//! Files read by mapping them into memory.
//!
//! The requested bytes are copied out, so that every page is really touched. Touching a page past the
//! end of a file that was truncated meanwhile kills the process, so the kernel is asked to bring the
//! pages in before the copy and reports such a page as an error. What remains is a truncation in the
//! microseconds between that and the copy.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::ptr::NonNull;

use crate::open_file::{failed, file_len, file_resident, short};
use crate::{Object, Op, Resident, Result, os};

/// Pages are brought in and copied in steps of this size, so that they are still resident when they
/// are copied, however long the read is.
const STEP_BYTES: usize = 2 << 20;

/// A file open for reading through a mapping.
pub(crate) struct MappedFile {
    file: File,
    path: PathBuf,
    /// The whole file, as long as it was when a read first needed it.
    mapping: Option<Mapping>,
}

impl MappedFile {
    pub(crate) fn new(file: File, path: PathBuf) -> MappedFile {
        MappedFile { file, path, mapping: None }
    }

    /// Maps the file again if it has grown into the requested range.
    fn reach(&mut self, end: u64) -> Result<()> {
        let mapped = self.mapping.as_ref().map_or(0, |mapping| mapping.len as u64);
        if end <= mapped {
            return Ok(());
        }
        let len = self.end()?;
        if len > mapped {
            self.mapping = None;
            let mapping = Mapping::new(&self.file, len);
            self.mapping = Some(mapping.map_err(|source| failed(Op::Read, &self.path, source))?);
        }
        Ok(())
    }

    /// Where the file ends now. Not by `stat`: programs that map a file ask for its size once.
    fn end(&self) -> Result<u64> {
        let mut file = &self.file;
        file.seek(SeekFrom::End(0)).map_err(|source| failed(Op::Read, &self.path, source))
    }

    /// How many of the requested bytes the file has now; an error if not all.
    fn check_full(&self, offset: u64, needed: usize) -> Result<()> {
        let len = self.end()?;
        let found = len.saturating_sub(offset).min(needed as u64);
        if found < needed as u64 {
            return Err(short(&self.path, offset, needed as u64, found));
        }
        Ok(())
    }
}

impl Object for MappedFile {
    fn len(&mut self) -> Result<u64> {
        file_len(&self.file, &self.path)
    }

    fn read_exact_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let end = offset.saturating_add(buf.len() as u64);
        self.reach(end)?;
        let Some(mapping) = self.mapping.as_ref().filter(|mapping| mapping.len as u64 >= end)
        else {
            return self.check_full(offset, buf.len());
        };
        let mut start = offset as usize;
        for step in buf.chunks_mut(STEP_BYTES) {
            match mapping.populate(start, step.len()) {
                Ok(()) => {}
                // Linux before 5.14 does not know the request.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                    self.check_full(start as u64, step.len())?;
                }
                Err(error) => {
                    self.check_full(offset, buf.len())?;
                    return Err(failed(Op::Read, &self.path, error));
                }
            }
            mapping.copy(start, step);
            start += step.len();
        }
        // Past the end but in the file's last page there are zeros, which look like bytes of the file.
        self.check_full(offset, buf.len())
    }

    fn resident(&mut self) -> Result<Option<Resident>> {
        file_resident(&self.file, &self.path)
    }
}

/// A file's bytes in the address space.
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and is only read.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes, which are not 0.
    fn new(file: &File, len: u64) -> io::Result<Mapping> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        // SAFETY: asks for a fresh mapping at an address of the system's choice.
        let start = unsafe {
            let null = std::ptr::null_mut();
            libc::mmap(null, len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the system never maps address 0 unasked");
        Ok(Mapping { start, len })
    }

    /// Brings the pages of a range in; the error of one that cannot be is the system's.
    fn populate(&self, offset: usize, len: usize) -> io::Result<()> {
        assert!(offset <= self.len && len <= self.len - offset, "within the mapping");
        let page_start = offset - offset % os::page_bytes();
        // SAFETY: `page_start` is within the mapping.
        let start = unsafe { self.start.add(page_start) };
        let len = offset + len - page_start;
        // SAFETY: the range is within the mapping, and the call changes no byte of it.
        let status = unsafe { libc::madvise(start.as_ptr().cast(), len, libc::MADV_POPULATE_READ) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn copy(&self, offset: usize, to: &mut [u8]) {
        assert!(offset <= self.len && to.len() <= self.len - offset, "within the mapping");
        // SAFETY: `offset` is within the mapping.
        let from = unsafe { self.start.add(offset) };
        // SAFETY: the range is within the mapping, which no Rust reference points into, and `to` is
        // the caller's own memory. Other processes may write the file meanwhile: then the bytes are
        // old or new ones, as with any read.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), to.len()) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn mapped(bytes: &[u8]) -> (File, MappedFile) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let same = file.try_clone().unwrap();
        (file, MappedFile::new(same, PathBuf::from("it")))
    }

    fn check_short(object: &mut MappedFile, offset: u64, needed: u64, expected: u64) {
        let error = object.read_exact_at(offset, &mut vec![0; needed as usize]).unwrap_err();
        let words =
            format!("it is too short: expected {needed} bytes at byte {offset}, found {expected}");
        assert_eq!(error.to_string(), words);
    }

    #[test]
    fn a_file_cut_while_it_is_mapped_is_short() {
        let (file, mut object) = mapped(&[7; 5_000_000]);
        let mut buf = vec![0; 5_000_000];
        object.read_exact_at(0, &mut buf).unwrap();
        assert!(buf.iter().all(|&byte| byte == 7));
        // Inside a page: what is past the end there reads as zeros.
        file.set_len(3_000_001).unwrap();
        check_short(&mut object, 0, 5_000_000, 3_000_001);
        check_short(&mut object, 2_999_999, 3, 2);
        check_short(&mut object, 4_000_000, 1, 0);
        object.read_exact_at(2_999_998, &mut buf[..3]).unwrap();
        assert_eq!(buf[..3], [7; 3]);
        file.set_len(0).unwrap();
        check_short(&mut object, 0, 1, 0);
    }

    #[test]
    fn a_file_that_grew_is_mapped_again() {
        let (mut file, mut object) = mapped(b"");
        check_short(&mut object, 0, 1, 0);
        file.write_all(b"abc").unwrap();
        let mut buf = [0; 3];
        object.read_exact_at(0, &mut buf).unwrap();
        assert_eq!(&buf, b"abc");
        file.write_all(&[b'd'; 10_000]).unwrap();
        object.read_exact_at(10_000, &mut buf).unwrap();
        assert_eq!(&buf, b"ddd");
        assert_eq!(object.len().unwrap(), 10_003);
    }

    #[test]
    fn pages_that_are_gone_are_an_error_and_no_signal() {
        let (file, _) = mapped(&[7; 10_000]);
        let mapping = Mapping::new(&file, 10_000).unwrap();
        mapping.populate(0, 10_000).unwrap();
        file.set_len(5000).unwrap();
        mapping.populate(0, 5000).unwrap();
        let error = mapping.populate(4999, 5001).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }
}
