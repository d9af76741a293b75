//! Epochs as values: kept, moved, dropped early.

use feedline_clock::Clock;
use feedline_dataset::{DataSet, EpochOrder, SampleSpace, Shuffle};
use feedline_loader::{
    BatchAssignment, Epoch, EpochShare, LoadError, Loader, Preprocess, ReaderSharding,
    StreamConfig, StreamLoader, TorchConfig, TorchLoader,
};
use feedline_store::Op;

use crate::bed::{S, record_files, share};

const TORCH: TorchConfig =
    TorchConfig { workers: 2, prefetch: 2, deal: BatchAssignment::InTurn, shuffle: None };

/// Four files of two records; each read takes a second.
struct Bed {
    clock: Clock,
    data: DataSet,
    share: EpochShare,
}

impl Bed {
    fn new() -> Self {
        let clock = Clock::simulated();
        let order = EpochOrder::new(SampleSpace { files: 4, per_file: 2 }, Shuffle::None, 0);
        Self { data: record_files(&clock, 4, 2, S), share: share(&order, 1, 8), clock }
    }

    fn torch(&self, workers: u32) -> Loader {
        let config = TorchConfig { workers, ..TORCH };
        Loader::Torch(TorchLoader::new(&self.clock, &self.data, config, |_| Box::new(|| 0)))
    }

    /// With a parser if the rows are files.
    fn stream(&self, readers: u32, rows: ReaderSharding) -> Loader {
        let config = StreamConfig { readers, parsers: 1, prefetch: 1, shuffle: None, rows };
        let work = |_| Some(Box::new(|| 0u64) as Preprocess);
        Loader::Stream(StreamLoader::new(&self.clock, &self.data, config, work))
    }

    fn loaders(&self) -> [Loader; 4] {
        let by_sample = self.stream(2, ReaderSharding::BySample);
        [self.torch(2), self.torch(0), by_sample, self.stream(1, ReaderSharding::ByFile)]
    }
}

/// The records of the batches still to come.
fn records(epoch: &mut Epoch) -> Vec<u64> {
    epoch.map(|batch| batch.unwrap().sample_bytes).collect()
}

const ALL: [u64; 8] = [0, 1, 100, 101, 200, 201, 300, 301];

#[test]
fn an_epoch_can_be_kept_and_sent_anywhere() {
    fn is_owned<T: Send + 'static>() {}
    is_owned::<Epoch>();
}

#[test]
fn an_epoch_dropped_half_way_stops_its_readers_and_the_next_one_is_whole() {
    let bed = Bed::new();
    for mut loader in bed.loaders() {
        let mut epoch = loader.epoch(bed.share.clone());
        let first = [epoch.next_batch(), epoch.next_batch()];
        assert_eq!(first.map(|batch| batch.unwrap().unwrap().sample_bytes), [0, 1]);
        drop(epoch);
        let reads = |loader: &mut Loader| loader.meter().unwrap().op(Op::Read).calls;
        let until_drop = reads(&mut loader);
        assert!((2..8).contains(&until_drop), "{until_drop} of 8 records were read");
        bed.clock.sleep(100 * S);
        assert_eq!(reads(&mut loader), until_drop, "nothing is read after the end");
        assert_eq!(records(&mut loader.epoch(bed.share.clone())), ALL);
        assert_eq!(reads(&mut loader), until_drop + 8);
    }
}

#[test]
fn an_epoch_that_is_dropped_before_its_first_batch_gives_the_readers_back() {
    let bed = Bed::new();
    for mut loader in bed.loaders() {
        drop(loader.epoch(bed.share.clone()));
        assert_eq!(records(&mut loader.epoch(bed.share.clone())), ALL);
    }
}

#[test]
fn an_epoch_is_consumed_in_another_thread() {
    let bed = Bed::new();
    for mut loader in bed.loaders() {
        for _ in 0..2 {
            let mut epoch = loader.epoch(bed.share.clone());
            let consumer = bed.clock.spawn("consumer".into(), move || records(&mut epoch)).unwrap();
            assert_eq!(consumer.join().unwrap(), ALL);
        }
    }
}

#[test]
fn an_epoch_outlives_its_loader() {
    let bed = Bed::new();
    for mut loader in bed.loaders() {
        let mut epoch = loader.epoch(bed.share.clone());
        drop(loader);
        assert_eq!(records(&mut epoch), ALL);
    }
}

#[test]
fn a_loader_has_one_epoch_at_a_time() {
    let bed = Bed::new();
    for mut loader in bed.loaders() {
        let mut first = loader.epoch(bed.share.clone());
        let mut second = loader.epoch(bed.share.clone());
        let refused = second.next_batch();
        assert!(matches!(refused, Err(LoadError::EpochRunning)), "{refused:?}");
        assert!(second.next().is_none());
        drop(second);
        assert!(loader.meter().is_none(), "the first still has the readers");
        assert_eq!(records(&mut first), ALL);
        drop(first);
        assert_eq!(loader.meter().unwrap().op(Op::Read).calls, 8);
    }
}

#[test]
fn an_epoch_ends_with_its_first_error_and_the_loader_lives_on() {
    let bed = Bed::new();
    // One worker panics at its second sample, once.
    let mut calls = 0;
    let mut panic_once = Some(move || {
        calls += 1;
        if calls == 2 { panic!("on purpose") } else { 0 }
    });
    let mut loader = TorchLoader::new(&bed.clock, &bed.data, TORCH, |worker| match worker {
        1 => Box::new(panic_once.take().unwrap()),
        _ => Box::new(|| 0),
    });
    let came: Vec<_> = loader.epoch(bed.share.clone()).collect();
    let came: Vec<_> = came.iter().map(|batch| batch.as_ref().map(|b| b.sample_bytes)).collect();
    let [Ok(0), Ok(1), Ok(100), Err(LoadError::Panicked { batch: 3 })] = came[..] else {
        panic!("{came:?}")
    };
    assert_eq!(records(&mut loader.epoch(bed.share.clone())), ALL);
}
