//! Section `dataset`: the files and their samples.

use feedline_formats::{Compression, Element, FORMATS, SampleFormat};

/// The files and their samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// Format of the files, and their extension.
    pub format: &'static SampleFormat,
    /// Folder of the data set, without trailing slashes.
    pub data_folder: String,
    /// Number of training files.
    pub num_files_train: u64,
    /// Number of evaluation files.
    pub num_files_eval: u64,
    /// Samples per file.
    pub num_samples_per_file: u64,
    /// Mean size of a sample in bytes.
    pub record_length_bytes: f64,
    /// Standard deviation of the size of a sample in bytes.
    pub record_length_bytes_stdev: f64,
    /// Size in bytes of the tensor passed to the trainer; 0 means that of the sample.
    pub record_length_bytes_resize: f64,
    /// Explicit shape of a sample; empty means a square of `record_length_bytes`.
    pub record_dims: Vec<u64>,
    /// Element type of a sample.
    pub record_element_type: Element,
    /// Number of subfolders for training files; 0 and 1 mean none.
    pub num_subfolders_train: u64,
    /// Number of subfolders for evaluation files; 0 and 1 mean none.
    pub num_subfolders_eval: u64,
    /// Prefix of every file name.
    pub file_prefix: String,
    /// Compression inside the files.
    pub compression: Compression,
    /// Compression level of gzip and zip, 0 to 9.
    pub compression_level: u32,
    /// Whether to keep the data set after the run.
    pub keep_files: bool,
    /// Whether to trust the names and the number of files instead of listing them.
    pub skip_listing: bool,
    /// Bytes that DLIO's writer of indexed_binary holds in memory; not emulated.
    pub generation_buffer_size: u64,
    /// Layout of HDF5 files.
    pub hdf5: Hdf5,
}

impl Default for Dataset {
    fn default() -> Self {
        Self {
            format: FORMATS[0],
            data_folder: "./data".to_owned(),
            num_files_train: 8,
            num_files_eval: 0,
            num_samples_per_file: 1,
            record_length_bytes: 65_536.0,
            record_length_bytes_stdev: 0.0,
            record_length_bytes_resize: 0.0,
            record_dims: Vec::new(),
            record_element_type: Element::UInt8,
            num_subfolders_train: 0,
            num_subfolders_eval: 0,
            file_prefix: "img".to_owned(),
            compression: Compression::None,
            compression_level: 4,
            keep_files: true,
            skip_listing: false,
            generation_buffer_size: 2 << 30,
            hdf5: Hdf5::default(),
        }
    }
}

/// Layout of HDF5 files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hdf5 {
    /// Number of datasets that a record is split into.
    pub num_dset_per_record: u64,
    /// Shape of a chunk, including the sample axis; empty means contiguous.
    pub chunk_dims: Vec<u64>,
    /// Maximum shape, without the sample axis; empty means fixed.
    pub max_shape: Vec<u64>,
}

impl Default for Hdf5 {
    fn default() -> Self {
        Self { num_dset_per_record: 1, chunk_dims: Vec::new(), max_shape: Vec::new() }
    }
}
