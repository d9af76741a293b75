//! Whole runs over every format and every loader.

use std::sync::Arc;

use feedline_bench::{Existing, Outcome, OutputFolder, Plan, Run, Semantics, Split, Summary};
use feedline_clock::Clock;
use feedline_store::{Memory, Op};
use feedline_workload::{
    Compression, DataLoader, FORMATS, Framework, Hdf5, ReadModel, ReadType, SampleFormat,
    ShuffleMode, TimeSpec, Workload,
};

const S: u64 = 1_000_000_000;

/// Four files of three samples of 6 x 8 bytes, batches of two.
fn workload(format: &str) -> Workload {
    let tensorflow = format == "tfrecord";
    let mut workload = Workload::default();
    workload.dataset.format = SampleFormat::find(format).unwrap();
    workload.dataset.num_files_train = 4;
    workload.dataset.num_samples_per_file = 3;
    workload.dataset.record_dims = vec![6, 8];
    workload.workflow.generate_data = true;
    workload.reader.batch_size = 2;
    workload.reader.read_threads = 2;
    workload.train.epochs = 2;
    (workload.framework, workload.reader.data_loader) = match tensorflow {
        true => (Framework::Tensorflow, DataLoader::Tensorflow),
        false => (Framework::Pytorch, DataLoader::Pytorch),
    };
    workload
}

fn run_on(workload: &Workload, ranks: u32, clock: Clock, store: Memory) -> (Outcome, Summary) {
    feedline_workload::check(workload, ranks).expect("a sound workload");
    let out = tempfile::tempdir().unwrap();
    let plan = Plan::new(workload, ranks, Semantics::Feedline).unwrap();
    let checkpoints = Arc::new(Memory::new(clock.clone()));
    let run = Run { clock, ..Run::new(workload.clone(), plan, Arc::new(store), checkpoints) };
    let folder = OutputFolder::claim(&out.path().join("out"), Existing::Refuse).unwrap();
    let finished = run.prepare().unwrap().execute(&folder).unwrap();
    (finished.outcome, finished.summary)
}

fn run(workload: &Workload, ranks: u32) -> (Outcome, Summary) {
    let clock = Clock::real();
    run_on(workload, ranks, clock.clone(), Memory::new(clock))
}

/// Bytes of all samples that all ranks were handed.
fn sample_bytes(outcome: &Outcome) -> u64 {
    let epochs = outcome.ranks.iter().flat_map(|rank| &rank.epochs);
    epochs.map(|epoch| epoch.sample_bytes).sum()
}

#[test]
fn every_format_is_made_and_read_by_two_ranks() {
    // 4 x 3 samples, two ranks, batches of two: three steps an epoch, two epochs, 24 samples.
    for format in FORMATS.iter().map(|format| format.name) {
        let (outcome, summary) = run(&workload(format), 2);
        // Workers of shards make batches of their own: 2 and 1 of each shard.
        let steps = if format == "webdataset" { 8 } else { 6 };
        assert_eq!(summary.strict.steps, steps, "{format}");
        let each = match format {
            "synthetic" => 0,
            "csv" => 6 * 8 * 8, // Numbers are 64 bits wide once they are parsed.
            _ => 6 * 8,
        };
        assert_eq!(sample_bytes(&outcome), 24 * each, "{format}");
    }
}

#[test]
fn every_compression_that_a_format_has_is_written_and_read() {
    for (format, compression) in [
        ("npz", Compression::Zip),
        ("csv", Compression::Gzip),
        ("hdf5", Compression::Gzip),
        ("hdf5", Compression::Lzf),
        ("parquet", Compression::Gzip),
    ] {
        let mut packed = workload(format);
        packed.dataset.compression = compression;
        let (outcome, _) = run(&packed, 1);
        let each = if format == "csv" { 8 * 48 } else { 48 };
        assert_eq!(sample_bytes(&outcome), 24 * each, "{format} {compression}");
    }
}

#[test]
fn hdf5_datasets_chunks_and_shapes_are_those_of_the_workload() {
    let layouts = [
        Hdf5 { num_dset_per_record: 3, ..Hdf5::default() },
        Hdf5 { chunk_dims: vec![2, 3, 5], ..Hdf5::default() },
        Hdf5 { max_shape: vec![12, 16], ..Hdf5::default() },
        Hdf5 { num_dset_per_record: 6, chunk_dims: vec![1, 4], max_shape: vec![9] },
    ];
    for layout in layouts {
        let mut workload = workload("hdf5");
        workload.dataset.hdf5 = layout.clone();
        let (outcome, _) = run(&workload, 1);
        assert_eq!(sample_bytes(&outcome), 24 * 48, "{layout:?}");
    }
}

#[test]
fn every_loader_reads_every_sample_once_an_epoch() {
    let of = |format, loader| {
        let mut workload = workload(format);
        workload.reader.data_loader = loader;
        workload.framework = match loader {
            DataLoader::Tensorflow => Framework::Tensorflow,
            _ => Framework::Pytorch,
        };
        workload
    };
    for (format, loader) in [
        ("npy", DataLoader::Tensorflow),
        ("hdf5", DataLoader::Tensorflow),
        ("npz", DataLoader::Dali),
        ("png", DataLoader::NativeDali),
        ("tfrecord", DataLoader::NativeDali),
        ("webdataset", DataLoader::Pytorch),
        ("webdataset", DataLoader::Tensorflow),
    ] {
        let (outcome, summary) = run(&of(format, loader), 2);
        let by_worker = (format, loader) == ("webdataset", DataLoader::Pytorch);
        assert_eq!(summary.strict.steps, if by_worker { 8 } else { 6 }, "{format} {loader}");
        assert_eq!(sample_bytes(&outcome), 24 * 48, "{format} {loader}");
    }
    // Q6: the synthetic loader needs no sampler, makes every step and reads nothing.
    let (outcome, summary) = run(&of("npz", DataLoader::Synthetic), 2);
    assert_eq!((summary.strict.steps, sample_bytes(&outcome)), (6, 0));
    assert_eq!(outcome.storage_counts().reads, 0);
}

#[test]
fn q14_kept_files_are_read_once_and_files_on_demand_for_every_sample() {
    // One rank, one reader: 24 samples of four files.
    let opens = |read_type, loader| {
        let mut workload = workload("npy");
        workload.reader.read_threads = 1;
        workload.reader.read_type = read_type;
        workload.reader.data_loader = loader;
        if loader == DataLoader::Tensorflow {
            workload.framework = Framework::Tensorflow;
        }
        run(&workload, 1).0.storage_counts().opens
    };
    assert_eq!(opens(ReadType::OnDemand, DataLoader::Pytorch), 24);
    assert_eq!(opens(ReadType::Memory, DataLoader::Pytorch), 4);
    // tf.data's generators go through a file before they close it.
    assert_eq!(opens(ReadType::OnDemand, DataLoader::Tensorflow), 8);
}

#[test]
fn a_stream_that_reads_slower_than_it_is_consumed_starves_by_storage() {
    // One file of four records; reading a piece (the whole file) takes 3 s, computing 1 s. The
    // first batch waits for the piece; all others come out of it: 3 + 4 x 1 s.
    let clock = Clock::simulated();
    let slow = |op| if op == Op::Read { 3 * S } else { 0 };
    let store = Memory::new(clock.clone()).with_latency(move |op, _, _, _| slow(op));
    let mut workload = workload("tfrecord");
    workload.dataset.num_files_train = 1;
    workload.dataset.num_samples_per_file = 4;
    workload.reader.batch_size = 1;
    workload.reader.read_threads = 1;
    workload.train.epochs = 1;
    workload.train.computation_time = TimeSpec::Constant { mean: 1.0 };
    workload.reader.read_model = ReadModel::Native;
    let (_, summary) = run_on(&workload, 1, clock, store);
    let expected = Split { storage_ns: 3 * S, compute_ns: 4 * S, ..Split::default() };
    assert_eq!(summary.strict.split, expected);
    assert_eq!(summary.strict.au_percent, Some(400.0 / 7.0));
}

#[test]
fn the_shuffle_buffer_and_the_order_of_files_are_in_the_results() {
    let order = |change: fn(&mut Workload)| {
        let mut workload = workload("tfrecord");
        change(&mut workload);
        Plan::new(&workload, 1, Semantics::Feedline).unwrap().sample_order()
    };
    assert_eq!(order(|_| ()), "sequential");
    assert_eq!(order(|w| w.reader.file_shuffle = ShuffleMode::Seed), "files permuted");
    assert_eq!(
        order(|w| {
            w.reader.file_shuffle = ShuffleMode::Seed;
            w.reader.sample_shuffle = ShuffleMode::Seed;
            w.reader.shuffle_size = 7;
        }),
        "files permuted, shuffle buffer of 7"
    );
}
