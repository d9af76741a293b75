//! Reader settings that exclude each other, and settings that have no effect without another.

use feedline_formats::{Compression, Mapping};

use crate::error::{Result, WorkloadError};
use crate::saving;
use crate::sections::dataset::Dataset;
use crate::sections::reader::{
    DataLoader, Interpreter, IoEngine, ReadModel, ReadType, Reader, SampleOrder, Sharding,
    ShuffleMode,
};
use crate::sections::workload::Workload;
use crate::warning::WarningKind;

/// Alignment of direct reads.
const BLOCK_BYTES: u64 = 4096;

/// Sizes that a read call may have.
const TRANSFER_BYTES: std::ops::RangeInclusive<u64> = 512..=256 << 20;

/// Most memory for the reads in flight of one reader.
const MOST_IN_FLIGHT_BYTES: u64 = 4 << 30;
/// Size of a read call when `reader.transfer_size` is not set.
const DEFAULT_TRANSFER_BYTES: u64 = 1 << 20;

/// Two settings that exclude each other; `broken` if the workload has both.
struct Rule {
    broken: bool,
    first: String,
    second: String,
    reason: &'static str,
    hint: &'static str,
}

/// Checks that loader, format and way of reading can be combined.
pub(crate) fn check(workload: &Workload) -> Result<()> {
    let reader = &workload.reader;
    let rules = loader_rules(workload).into_iter().chain(reading_rules(workload));
    let rules = rules.chain(stream_rules(workload)).chain(sharding_rules(workload));
    let rules = rules.chain(remote_rules(workload));
    if let Some(Rule { first, second, reason, hint, .. }) = { rules }.find(|rule| rule.broken) {
        return Err(WorkloadError::Combination { first, second, reason, hint });
    }
    let piece = reader.transfer_size.unwrap_or(DEFAULT_TRANSFER_BYTES);
    let in_flight = piece.saturating_mul(u64::from(reader.queue_depth));
    if workload.read_model() == ReadModel::Deep && in_flight > MOST_IN_FLIGHT_BYTES {
        return Err(WorkloadError::InFlightBytes { depth: reader.queue_depth, piece });
    }
    match reader.transfer_size {
        Some(found) if !TRANSFER_BYTES.contains(&found) => {
            Err(WorkloadError::TransferSize { found })
        }
        Some(found) if reader.odirect && found % BLOCK_BYTES != 0 => {
            Err(WorkloadError::TransferNotAligned { found })
        }
        _ => Ok(()),
    }
}

/// Formats and models that a data loader does not support.
fn loader_rules(workload: &Workload) -> [Rule; 4] {
    let reader = &workload.reader;
    let (format, loader) = (workload.dataset.format, reader.data_loader);
    let dali = matches!(loader, DataLoader::Dali | DataLoader::NativeDali);
    let inline = loader == DataLoader::Pytorch && reader.read_threads == 0;
    let rule = |broken, reason, hint| Rule {
        broken,
        first: format!("reader.data_loader: {loader}"),
        second: format!("dataset.format: {format}"),
        reason,
        hint,
    };
    [
        rule(
            loader == DataLoader::Dali && format.name == "tfrecord",
            "its callbacks read samples by index, but records can only be read in sequence",
            "use `reader.data_loader=native_dali`",
        ),
        rule(
            loader == DataLoader::NativeDali && !format.has_dali_reader,
            "DALI has no native reader for this format",
            "use `reader.data_loader=dali`",
        ),
        Rule {
            broken: dali && reader.read_model == ReadModel::Deep,
            first: "reader.read_model: deep".to_owned(),
            second: format!("reader.data_loader: {loader}"),
            reason: "its readers read one sample at a time",
            hint: "use `reader.read_model=framework`",
        },
        Rule {
            broken: inline && reader.sharding == Sharding::Records,
            first: "reader.read_threads: 0".to_owned(),
            second: "reader.sharding: records".to_owned(),
            reason: "sharding by record needs a reader thread ahead of the trainer",
            hint: "use `reader.read_threads=1`",
        },
    ]
}

/// A rule about two settings, given as `key: value`.
fn rule(
    broken: bool,
    (first, second): (&str, &str),
    reason: &'static str,
    hint: &'static str,
) -> Rule {
    Rule { broken, first: first.to_owned(), second: second.to_owned(), reason, hint }
}

const DEEP: &str = "reader.read_model: deep";
const MEMORY: &str = "reader.read_type: memory";
const USE_FRAMEWORK: &str = "use `reader.read_model=framework`";
const USE_AUTO_SHARDING: &str = "use `reader.sharding=auto`";
const USE_ON_DEMAND: &str = "use `reader.read_type=on_demand`";

/// Ways of reading that cannot be combined.
fn reading_rules(workload: &Workload) -> [Rule; 5] {
    let (reader, format) = (&workload.reader, workload.dataset.format);
    let deep = reader.read_model == ReadModel::Deep;
    let mapped = reader.maps(format) && workload.data_root().capabilities().mapped;
    let of_map = match reader.io_engine {
        IoEngine::Mmap => "reader.io_engine: mmap".to_owned(),
        _ if format.mapping == Mapping::Always => format!("dataset.format: {format}"),
        _ => format!("reader.data_loader: {}", reader.data_loader),
    };
    let beyond = workload.beyond_framework();
    [
        rule(
            reader.read_model == ReadModel::Framework && beyond.is_some(),
            ("reader.read_model: framework", beyond.as_deref().unwrap_or_default()),
            "the framework's own readers cannot read this way",
            "use `reader.read_model=native`",
        ),
        rule(
            mapped && reader.odirect,
            ("reader.odirect: true", &of_map),
            "a memory map goes through the page cache",
            "use `reader.io_engine=sync` or `reader.io_engine=io_uring`",
        ),
        rule(
            mapped && deep,
            (DEEP, &of_map),
            "pages of a memory map are read one at a time",
            "use `reader.io_engine=io_uring`",
        ),
        rule(
            deep && reader.data_loader == DataLoader::Synthetic,
            (DEEP, "reader.data_loader: synthetic"),
            "the synthetic loader reads nothing",
            USE_FRAMEWORK,
        ),
        rule(
            deep && reader.read_type == ReadType::Memory,
            (DEEP, MEMORY),
            "`memory` keeps decoded samples, but the deep model does not decode",
            USE_ON_DEMAND,
        ),
    ]
}

/// Ways of reading that the store of the data set does not offer.
fn remote_rules(workload: &Workload) -> [Rule; 2] {
    let (reader, root) = (&workload.reader, workload.data_root());
    let of_root = format!("a data set at {root}");
    let (engine, can) = (reader.io_engine, root.capabilities());
    let lacks_engine = match engine {
        IoEngine::Mmap => !can.mapped,
        IoEngine::IoUring => !can.ring,
        IoEngine::Auto | IoEngine::Sync => false,
    };
    let reason = saving::without_files(can);
    [
        rule(
            reader.odirect && !can.direct,
            ("reader.odirect: true", &of_root),
            reason,
            "use `reader.odirect=false`: there is no page cache to bypass",
        ),
        rule(
            lacks_engine,
            (&format!("reader.io_engine: {engine}"), &of_root),
            reason,
            "use `reader.io_engine=auto`; `reader.read_model=deep` keeps many requests in flight",
        ),
    ]
}

/// Ways of reading that need random access, for formats that are read in sequence.
fn stream_rules(workload: &Workload) -> [Rule; 3] {
    let (reader, format) = (&workload.reader, workload.dataset.format);
    let of_format = format!("dataset.format: {format}");
    let streamed = format.is_streamed;
    [
        rule(
            streamed && reader.read_model == ReadModel::Deep,
            (DEEP, &of_format),
            "records can only be found by reading the file from the start",
            USE_FRAMEWORK,
        ),
        rule(
            streamed && reader.read_type == ReadType::Memory,
            (MEMORY, &of_format),
            "records are streamed and not kept",
            USE_ON_DEMAND,
        ),
        rule(
            streamed && reader.sample_order == SampleOrder::Permuted,
            ("reader.sample_order: permuted", &of_format),
            "records are read in file order",
            "use `reader.file_shuffle=seed` and `reader.sample_shuffle=seed` (a shuffle buffer)",
        ),
    ]
}

/// Streamed formats are sharded by file or record, all others by sample.
fn sharding_rules(workload: &Workload) -> [Rule; 2] {
    let (sharding, format) = (workload.reader.sharding, workload.dataset.format);
    let names = (&*format!("reader.sharding: {sharding}"), &*format!("dataset.format: {format}"));
    let by_file = matches!(sharding, Sharding::Files | Sharding::Records);
    let by_sample = matches!(sharding, Sharding::Strided | Sharding::Blocked);
    [
        rule(
            !format.is_streamed && by_file,
            names,
            "this format is sharded by sample",
            USE_AUTO_SHARDING,
        ),
        rule(
            format.is_streamed && by_sample,
            names,
            "records are read in file order",
            USE_AUTO_SHARDING,
        ),
    ]
}

/// Warns about settings that have no effect in combination with the others.
pub(crate) fn warnings(workload: &Workload) -> Vec<WarningKind> {
    let (reader, dataset) = (&workload.reader, &workload.dataset);
    let usual = Reader::default();
    let mut kinds = dataset_warnings(dataset);
    if !workload.workflow.train {
        return kinds;
    }
    let deep = reader.read_model == ReadModel::Deep;
    let buffered = workload.has_shuffle_buffer();
    let parsed = dataset.format.is_streamed && reader.data_loader == DataLoader::Tensorflow;
    let frameworks = matches!(reader.data_loader, DataLoader::Pytorch | DataLoader::Tensorflow)
        && workload.read_model() == ReadModel::Framework;
    let idle = [
        (
            !frameworks && reader.interpreter == Interpreter::Calibrated,
            "reader.interpreter",
            "`reader.read_model: framework` and the loader pytorch or tensorflow",
        ),
        (
            !deep && reader.queue_depth != usual.queue_depth,
            "reader.queue_depth",
            "`reader.read_model: deep`",
        ),
        (
            workload.read_model() == ReadModel::Framework
                && reader.transfer_size.is_some()
                && dataset.format.name != "tfrecord"
                && workload.data_root().capabilities().network.is_none(),
            "reader.transfer_size",
            "`reader.read_model: native` or `deep`, or the format tfrecord",
        ),
        (
            workload.read_model() != ReadModel::Framework && reader.python != usual.python,
            "reader.python",
            "`reader.read_model: framework`",
        ),
        (
            reader.read_type != ReadType::Memory && reader.kept_files != usual.kept_files,
            "reader.kept_files",
            "`reader.read_type: memory`",
        ),
        (
            !buffered && reader.shuffle_size != usual.shuffle_size,
            "reader.shuffle_size",
            "a streamed format such as tfrecord or the loader native_dali",
        ),
        (
            buffered
                && reader.sample_shuffle == ShuffleMode::Off
                && reader.shuffle_size != usual.shuffle_size,
            "reader.shuffle_size",
            "`reader.sample_shuffle`",
        ),
        (
            !parsed && reader.computation_threads != usual.computation_threads,
            "reader.computation_threads",
            "a streamed format such as tfrecord and the loader tensorflow",
        ),
    ];
    let idle = idle.into_iter().filter(|(idle, ..)| *idle);
    kinds.extend(idle.map(|(_, key, needs)| WarningKind::Needs { key, needs }));
    kinds
}

fn dataset_warnings(dataset: &Dataset) -> Vec<WarningKind> {
    let usual = Dataset::default();
    let not_hdf5 = dataset.format.name != "hdf5";
    let hdf5 = &dataset.hdf5;
    let idle = [
        (not_hdf5 && hdf5.num_dset_per_record != 1, "dataset.hdf5.num_dset_per_record"),
        (not_hdf5 && !hdf5.chunk_dims.is_empty(), "dataset.hdf5.chunk_dims"),
        (not_hdf5 && !hdf5.max_shape.is_empty(), "dataset.hdf5.max_shape"),
    ];
    let needs = "`dataset.format: hdf5`";
    let mut kinds: Vec<_> = idle
        .into_iter()
        .filter(|(idle, _)| *idle)
        .map(|(_, key)| WarningKind::Needs { key, needs })
        .collect();
    let has_level = matches!(dataset.compression, Compression::Gzip | Compression::Zip);
    if dataset.compression_level != usual.compression_level && !has_level {
        let needs = "`dataset.compression: gzip` or `zip`";
        kinds.push(WarningKind::Needs { key: "dataset.compression_level", needs });
    }
    if dataset.format.is_image && dataset.num_samples_per_file > 1 {
        let (format, samples) = (dataset.format, dataset.num_samples_per_file);
        kinds.push(WarningKind::OneImage { format, samples });
    }
    kinds
}
