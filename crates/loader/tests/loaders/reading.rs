//! What readers keep between samples, and many reads at a time.

use feedline_clock::Clock;
use feedline_dataset::{
    DataSet, DatasetError, EpochOrder, KeptFor, ReadMethod, Reading, SampleSpace, Shuffle,
};
use feedline_loader::{BatchAssignment, LoadError, TorchConfig, TorchLoader};
use feedline_store::Op;

use crate::bed::{Consume, S, npy_files, record_files, share};

const CONFIG: TorchConfig =
    TorchConfig { workers: 1, prefetch: 1, deal: BatchAssignment::InTurn, shuffle: None };

fn with(data: DataSet, model: ReadMethod, kept_files: usize) -> DataSet {
    DataSet { reading: Reading { model, kept_files, kept_for: KeptFor::Run }, ..data }
}

/// Opens and reads of `epochs` epochs over all samples.
fn calls(clock: &Clock, data: &DataSet, space: SampleSpace, epochs: u64) -> (u64, u64) {
    let order = EpochOrder::new(space, Shuffle::None, 0);
    let mut loader = TorchLoader::new(clock, data, CONFIG, |_| Box::new(|| 0));
    for _ in 0..epochs {
        loader
            .epoch(share(&order, 4, space.len() / 4))
            .consume(|batches| while batches.next_batch().unwrap().is_some() {});
    }
    let meter = loader.meter().unwrap();
    (meter.op(Op::Open).calls, meter.op(Op::Read).calls)
}

#[test]
fn q14_on_demand_opens_a_file_for_every_sample_and_kept_files_are_opened_once() {
    let clock = Clock::simulated();
    let space = SampleSpace { files: 2, per_file: 4 };
    let data = |kept| with(record_files(&clock, 2, 4, 0), ReadMethod::Framework, kept);
    assert_eq!(calls(&clock, &data(0), space, 2), (16, 16));
    assert_eq!(calls(&clock, &data(2), space, 2), (2, 16));
    // One file at a time: each is opened once an epoch.
    assert_eq!(calls(&clock, &data(1), space, 2), (4, 16));
}

#[test]
fn q13_files_that_are_read_whole_are_read_once_when_they_are_kept() {
    let clock = Clock::simulated();
    let space = SampleSpace { files: 4, per_file: 1 };
    let data = |kept| with(npy_files(&clock, 4, |_| 0).0, ReadMethod::Framework, kept);
    assert_eq!(calls(&clock, &data(0), space, 3), (12, 12));
    assert_eq!(calls(&clock, &data(4), space, 3), (4, 4));
    // Three of four are kept, and the one not used for longest goes: the next to be read.
    assert_eq!(calls(&clock, &data(3), space, 3), (12, 12));
}

#[test]
fn what_is_kept_for_an_epoch_is_read_again_in_the_next() {
    // One worker and one file that it keeps: without the end of the epoch the second one would
    // read nothing.
    let clock = Clock::simulated();
    let space = SampleSpace { files: 1, per_file: 4 };
    let (data, _) = npy_files(&clock, 1, |_| 0);
    let reading = |kept_for| Reading { model: ReadMethod::Framework, kept_files: 1, kept_for };
    let epoch = DataSet { reading: reading(KeptFor::Epoch), ..data.clone() };
    let order = EpochOrder::new(SampleSpace { per_file: 1, ..space }, Shuffle::None, 0);
    let opens = |data: &DataSet| {
        let mut loader = TorchLoader::new(&clock, data, CONFIG, |_| Box::new(|| 0));
        for _ in 0..3 {
            loader.epoch(share(&order, 1, 1)).consume(|batches| {
                batches.next_batch().unwrap().unwrap();
            });
        }
        loader.meter().unwrap().op(Op::Open).calls
    };
    assert_eq!(opens(&epoch), 3);
    assert_eq!(opens(&DataSet { reading: reading(KeptFor::Run), ..data }), 1);
}

#[test]
fn a_kept_file_still_has_no_more_samples_than_it_has() {
    let clock = Clock::simulated();
    let (data, _) = npy_files(&clock, 1, |_| 0);
    let data = with(data, ReadMethod::Framework, 1);
    let order = EpochOrder::new(SampleSpace { files: 1, per_file: 2 }, Shuffle::None, 0);
    let mut loader = TorchLoader::new(&clock, &data, CONFIG, |_| Box::new(|| 0));
    let error = loader.epoch(share(&order, 1, 2)).consume(|batches| {
        batches.next_batch().unwrap().unwrap();
        batches.next_batch().unwrap_err()
    });
    let LoadError::Sample(DatasetError::Sample { index: 1, source, .. }) = error else {
        panic!("{error}")
    };
    assert!(source.to_string().starts_with("sample 1 asked for, file has 1"), "{source}");
}

#[test]
fn a_deep_reader_has_many_reads_under_way() {
    // Four files of one read, a second each: one after the other 4 s a batch, four lanes 1 s, two
    // lanes 2 s. All of it is storage.
    for (model, seconds) in [
        (ReadMethod::Framework, 4),
        (ReadMethod::Deep { depth: 1 }, 4),
        (ReadMethod::Deep { depth: 2 }, 2),
        (ReadMethod::Deep { depth: 4 }, 1),
        (ReadMethod::Deep { depth: 64 }, 1),
    ] {
        let clock = Clock::simulated();
        let data = with(record_files(&clock, 4, 1, S), model, 0);
        let order = EpochOrder::new(SampleSpace { files: 4, per_file: 1 }, Shuffle::None, 0);
        let mut loader = TorchLoader::new(&clock, &data, CONFIG, |_| Box::new(|| 0));
        let batch = loader
            .epoch(share(&order, 4, 1))
            .consume(|batches| batches.next_batch().unwrap().unwrap());
        assert_eq!(batch.wait.storage_ns, seconds * S, "{model:?}");
        assert_eq!(batch.wait.total_ns(), seconds * S, "{model:?}");
        assert_eq!(loader.meter().unwrap().op(Op::Read).calls, 4, "{model:?}");
        let bytes = match model {
            ReadMethod::Framework | ReadMethod::Native => 100 + 200 + 300,
            ReadMethod::Deep { .. } => 4 * 8,
        };
        assert_eq!(batch.sample_bytes, bytes, "a deep reader knows only what it moved");
    }
}

#[test]
fn a_deep_reader_reads_whole_files_of_formats_that_are_read_whole() {
    let clock = Clock::simulated();
    let (data, _) = npy_files(&clock, 4, |_| 0);
    let data = with(data, ReadMethod::Deep { depth: 3 }, 0);
    let order = EpochOrder::new(SampleSpace { files: 4, per_file: 1 }, Shuffle::None, 0);
    let mut loader = TorchLoader::new(&clock, &data, CONFIG, |_| Box::new(|| 0));
    let batch =
        loader.epoch(share(&order, 4, 1)).consume(|batches| batches.next_batch().unwrap().unwrap());
    assert_eq!(batch.sample_bytes, 4 * (128 + 64), "header and samples");
}

#[test]
fn a_deep_reader_names_the_file_that_is_missing() {
    let clock = Clock::simulated();
    let data = with(record_files(&clock, 3, 1, 0), ReadMethod::Deep { depth: 2 }, 0);
    let order = EpochOrder::new(SampleSpace { files: 4, per_file: 1 }, Shuffle::None, 0);
    let mut loader = TorchLoader::new(&clock, &data, CONFIG, |_| Box::new(|| 0));
    let error =
        loader.epoch(share(&order, 4, 1)).consume(|batches| batches.next_batch().unwrap_err());
    let LoadError::Bytes { batch: 0, source } = error else { panic!("{error}") };
    assert!(source.to_string().contains("memory:3"), "{source}");
}
