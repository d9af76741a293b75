//! What a workload says about how its format is to be laid out.

/// Options of all formats; each takes those that it knows and refuses the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Compression inside the files.
    pub compression: Compression,
    /// Level of compression, 0 to 9, where the compression has levels.
    pub level: u32,
    /// HDF5: datasets that one record is split into.
    pub datasets: u64,
    /// HDF5: shape of a chunk, sample axis first; empty means contiguous (or one sample per chunk where
    /// something else needs chunks).
    pub chunk_dims: Vec<u64>,
    /// HDF5: largest shape of a sample; empty means fixed.
    pub max_shape: Vec<u64>,
    /// HDF5: the sample shape was given as `record_dims`, whose first axis is split over the
    /// datasets.
    pub explicit_dims: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            compression: Compression::None,
            level: 4,
            datasets: 1,
            chunk_dims: Vec::new(),
            max_shape: Vec::new(),
            explicit_dims: false,
        }
    }
}

/// Compression inside the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// None.
    None,
    /// Deflate in a gzip frame; HDF5's deflate filter.
    Gzip,
    /// LZF, a filter of h5py.
    Lzf,
    /// bzip2.
    Bz2,
    /// Deflate in a ZIP archive.
    Zip,
    /// LZMA.
    Xz,
}

impl Compression {
    /// Every compression there is.
    pub const ALL: [Compression; 6] = [
        Compression::None,
        Compression::Gzip,
        Compression::Lzf,
        Compression::Bz2,
        Compression::Zip,
        Compression::Xz,
    ];

    /// The word for it in workload files.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Lzf => "lzf",
            Compression::Bz2 => "bz2",
            Compression::Zip => "zip",
            Compression::Xz => "xz",
        }
    }

    /// The compression that workload files call `name`.
    pub fn parse(name: &str) -> Option<Compression> {
        Compression::ALL.into_iter().find(|compression| compression.name() == name)
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a format cannot be laid out as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// The format has no such compression.
    #[error("format {format} has no compression {compression}, only: {}", names(known))]
    Compression {
        /// The format.
        format: &'static str,
        /// What was asked for.
        compression: Compression,
        /// What it has.
        known: &'static [Compression],
    },
    /// A list of axes does not go with the samples.
    #[error("format {format}: `{key}` has {found} axes, expected {expected}")]
    Axes {
        /// The format.
        format: &'static str,
        /// The key that gives the axes.
        key: &'static str,
        /// How many it gives.
        found: usize,
        /// How many there must be.
        expected: usize,
    },
    /// Two options exclude each other, or one needs another.
    #[error("format {format}: `{key}` {conflict}")]
    Conflict {
        /// The format.
        format: &'static str,
        /// The key that cannot be as it is.
        key: &'static str,
        /// Why, as the end of the sentence.
        conflict: &'static str,
    },
}

fn names(known: &[Compression]) -> String {
    let mut names = vec![Compression::None.name()];
    names.extend(known.iter().map(|compression| compression.name()));
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_the_compression() {
        for compression in Compression::ALL {
            assert_eq!(Compression::parse(compression.name()), Some(compression));
        }
        assert_eq!(Compression::parse("GZIP"), None);
    }
}
