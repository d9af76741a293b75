//! Section `dataset`: the files and their samples.

use feedline_formats::{Compression, Element, FORMATS, SampleFormat};

use crate::schema::Kind::{Bool, Whole};
use crate::schema::{DLIO_IGNORES, alias, idle};
use crate::section::section;

const FEEDLINE_LISTS: &str = "Feedline lists the folder and counts the files";

section! {
    /// The files and their samples.
    pub struct Dataset in "dataset" {
        /// Format of the files, and their extension.
        format: &'static SampleFormat = FORMATS[0], keyword() "tfrecord";
        /// Folder of the data set.
        data_folder: String = "./data".to_owned(), folder() "./data/";
        /// Number of training files.
        num_files_train: u64 = 8, training_files() "8";
        /// Number of evaluation files.
        num_files_eval: u64 = 0, count() "0";
        /// Samples per file.
        num_samples_per_file: u64 = 1, positive() "1";
        /// Mean size of a sample in bytes.
        record_length_bytes: f64 = 65_536.0,
            bounded(f64::MIN_POSITIVE..=f64::MAX, "a number > 0") "65536";
        /// Standard deviation of the size of a sample in bytes.
        record_length_bytes_stdev: f64 = 0.0, number() "0";
        /// Size in bytes of the tensor passed to the trainer, which determines the cost of passing
        /// it (`reader.interpreter`); 0 means the size of the sample.
        record_length_bytes_resize: f64 = 0.0, number() "0";
        /// Explicit shape of a sample; takes precedence over `record_length_bytes`.
        record_dims: Vec<u64> = Vec::new(), whole_list(1) "[]";
        /// Element type of a sample, as a NumPy name.
        record_element_type: Element = Element::UInt8, element_type() "uint8";
        /// Number of subfolders for training files; 0 and 1 mean none.
        num_subfolders_train: u64 = 0, count() "0";
        /// Number of subfolders for evaluation files; 0 and 1 mean none.
        num_subfolders_eval: u64 = 0, count() "0";
        /// Prefix of every file name.
        file_prefix: String = "img".to_owned(), text() "img";
        /// Compression inside the files.
        compression: Compression = Compression::None, keyword() "none";
        /// Compression level of gzip and zip, 0 to 9.
        compression_level: u32 = 4, whole(0..=9) "4";
        /// Keep the data set after the run.
        keep_files: bool = true, bool() "true";
        /// Bytes that the writer of indexed_binary holds in memory.
        generation_buffer_size: u64 = 2 << 30,
            positive() "2147483648", idle "files of any size are written in small pieces";
        /// Layout of HDF5 files.
        hdf5: Hdf5 = Hdf5::default(), section, then [
            alias(
                "dataset.record_length", "dataset.record_length_bytes",
                "Spelling of DLIO's documentation, which DLIO itself ignores.",
            ),
            alias(
                "dataset.record_length_stdev", "dataset.record_length_bytes_stdev",
                "Spelling of DLIO's documentation, which DLIO itself ignores.",
            ),
            alias(
                "dataset.record_length_resize", "dataset.record_length_bytes_resize",
                "Spelling of DLIO's documentation, which DLIO itself ignores.",
            ),
            alias(
                "dataset.num_dset_per_record", "dataset.hdf5.num_dset_per_record",
                "Flat spelling of DLIO's documentation.",
            ),
            alias(
                "dataset.chunk_dims", "dataset.hdf5.chunk_dims",
                "Flat spelling of DLIO's documentation.",
            ),
            alias(
                "dataset.max_shape", "dataset.hdf5.max_shape",
                "Flat spelling of DLIO's documentation.",
            ),
            idle(
                "dataset.enable_chunking", Bool, "false", "HDF5 chunking; use `hdf5.chunk_dims`.",
                DLIO_IGNORES,
            ),
            idle(
                "dataset.chunk_size", Whole, "0",
                "Size of an HDF5 chunk in bytes; use `hdf5.chunk_dims`.", DLIO_IGNORES,
            ),
            idle(
                "dataset.record_element_bytes", Whole, "4", "Size of an element in bytes.",
                "it follows from `dataset.record_element_type`",
            ),
        ];
        /// Trust the names and the number of files instead of listing them. A key of MLPerf
        /// Storage.
        skip_listing: bool = false, bool() "false", then [
            idle(
                "dataset.listing_validation_interval", Whole, "1",
                "Check one in this many files. A key of MLPerf Storage.", FEEDLINE_LISTS,
            ),
            idle(
                "dataset.num_files_generated", Whole, "0",
                "Number of files in the folder. A key of MLPerf Storage.", FEEDLINE_LISTS,
            ),
        ];
    }
}

section! {
    /// Layout of HDF5 files.
    #[derive(Eq)]
    pub struct Hdf5 in "dataset.hdf5" {
        /// Number of HDF5 datasets that a record is split into.
        num_dset_per_record: u64 = 1, positive() "1";
        /// Shape of an HDF5 chunk, including the sample axis.
        chunk_dims: Vec<u64> = Vec::new(), whole_list(1) "[]";
        /// Maximum HDF5 shape, without the sample axis.
        max_shape: Vec<u64> = Vec::new(), whole_list(1) "[]";
    }
}
