//! What is known of a sample format before it is given its options.

use std::fmt;

use crate::framework::FrameworkReader;
use crate::{Compression, FORMATS, Format, OptionError, Options};

/// A sample format by name: its facts, and how to make a [`Format`] of it.
///
/// Two of them are equal if they have the same name.
#[derive(Clone)]
pub struct SampleFormat {
    /// The name in workload files.
    pub name: &'static str,
    /// Extensions that other programs give to its files, beside the one Feedline gives them.
    pub other_extensions: &'static [&'static str],
    /// Compressions that its files can have, apart from none.
    pub compressions: &'static [Compression],
    /// How much of a file a reader goes through for one sample.
    pub read_unit: ReadUnit,
    /// Whether readers go through a file from front to back and cannot jump to a sample.
    pub is_streamed: bool,
    /// Whether a file holds one image, whatever its number of samples is.
    pub is_image: bool,
    /// Whether DALI reads it without Python.
    pub has_dali_reader: bool,
    /// Whether its files are read through a memory map unless something else is asked for.
    pub mapping: Mapping,
    /// The framework's reader whose calls are played; `None` for a format that is read by Feedline's
    /// reader only, or not at all.
    pub framework: Option<FrameworkReader>,
    /// Makes the format; see [`SampleFormat::build`], which checks the compression before.
    pub make: MakeFormat,
}

/// Makes a format with options, unless it cannot be laid out so.
pub type MakeFormat = fn(&Options) -> Result<Box<dyn Format>, OptionError>;

impl SampleFormat {
    /// A format that is read sample by sample, with nothing special about it. `make` gets options
    /// whose compression the format has.
    pub const fn new(name: &'static str, make: MakeFormat) -> SampleFormat {
        SampleFormat {
            name,
            other_extensions: &[],
            compressions: &[],
            read_unit: ReadUnit::Sample,
            is_streamed: false,
            is_image: false,
            has_dali_reader: false,
            mapping: Mapping::Never,
            framework: None,
            make,
        }
    }

    /// The format that workload files call `name`.
    pub fn find(name: &str) -> Option<&'static SampleFormat> {
        FORMATS.iter().copied().find(|format| format.name == name)
    }

    /// Makes the format, unless it cannot be laid out as the options say.
    pub fn build(&self, options: &Options) -> Result<Box<dyn Format>, OptionError> {
        let (format, compression, known) = (self.name, options.compression, self.compressions);
        if compression != Compression::None && !known.contains(&compression) {
            return Err(OptionError::Compression { format, compression, known });
        }
        (self.make)(options)
    }
}

impl PartialEq for SampleFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SampleFormat {}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How much of a file its reader goes through for one sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadUnit {
    /// All of it, whichever sample is asked for.
    File,
    /// The sample, after a look at what leads to it.
    Sample,
    /// The sample, by an index that the reader gets once and keeps.
    IndexedSample,
    /// The same, and the file stays open.
    IndexedSampleOfOpenFile,
    /// Nothing: samples cost no storage.
    Nothing,
}

/// Whether files are read through a memory map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapping {
    /// They are not.
    Never,
    /// By the framework's library only.
    ByLibrary,
    /// By every reader: it is what the format is about.
    Always,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_their_workload_name() {
        for format in FORMATS {
            assert_eq!(format.build(&Options::default()).unwrap().facts(), *format);
            assert_eq!(SampleFormat::find(format.name), Some(*format));
        }
        assert_eq!(SampleFormat::find("NPZ"), None);
    }

    #[test]
    fn a_refusal_names_the_compressions_there_are() {
        let build = |name, compression| {
            let options = Options { compression, ..Options::default() };
            SampleFormat::find(name).unwrap().build(&options).map(|_| ())
        };
        assert_eq!(
            build("hdf5", Compression::Bz2).unwrap_err().to_string(),
            "format hdf5 has no compression bz2, only: none, gzip, lzf"
        );
        assert_eq!(build("npz", Compression::Zip), Ok(()));
    }
}
