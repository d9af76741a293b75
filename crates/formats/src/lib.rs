//! Sample formats: how the bytes of a data set file are laid out, how a sample is written and found.
//!
//! Pure: files, seeds and buffers come in as arguments ([`Sink`], [`Source`], [`Content`]). Nothing
//! here opens a file, starts a thread, reads a clock or keeps state between calls.
//! A new format is one module and one line in [`FORMATS`].
#![forbid(unsafe_code)]

mod content;
mod element;
mod error;
mod format;
mod npy;
mod npy_header;
mod npz;
mod synthetic;
mod window;
mod writer;
mod zip;

pub use content::Content;
pub use element::Element;
pub use error::{DecodeError, EncodeError, Method, StreamError};
pub use format::{FileSpec, Format, HEAD_BYTES, PIECE_BYTES, SampleRead, Sink, Source};

/// Every sample format there is.
pub static FORMATS: &[&dyn Format] = &[&npz::Npz, &npy::Npy, &synthetic::Synthetic];

/// The format that workload files call `name`.
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_their_workload_name() {
        for name in ["npz", "npy", "synthetic"] {
            assert_eq!(find(name).map(Format::name), Some(name));
        }
        assert!(find("NPZ").is_none());
    }
}
