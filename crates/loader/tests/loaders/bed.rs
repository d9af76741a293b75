//! Data sets in memory whose calls take as long as a test says.

use std::sync::{Arc, Mutex};

use feedline_clock::Clock;
use feedline_dataset::{DataSet, EpochOrder, FileNames, Reading};
use feedline_formats::{
    ByteRange, ByteSink, ByteSource, Content, DecodeError, Element, EncodeError, FileSize,
    FileSpec, Format, Opened, Options, SampleFormat, SamplePart, SampleRead, SampleSink, Scratch,
};
use feedline_loader::{Dealing, Epoch, EpochShare, LastBatch, Remainder, Sharding};
use feedline_store::{Memory, Op};

pub(crate) const S: u64 = 1_000_000_000;

/// Second and file of every open.
pub(crate) type Opens = Arc<Mutex<Vec<(u64, u64)>>>;

struct Numbered;

impl FileNames for Numbered {
    fn write_key(&self, number: u64, key: &mut String) {
        key.push_str(&number.to_string());
    }
}

/// Batches of `batch` of a rank that is alone.
pub(crate) fn share(order: &EpochOrder, batch: u64, batches: u64) -> EpochShare {
    let dealing = Dealing {
        index: order.index().clone(),
        ranks: 1,
        batch,
        sharding: Sharding::Strided,
        remainder: Remainder::Pad,
        last_batch: LastBatch::Keep,
    };
    EpochShare { order: Arc::new(order.clone()), dealing, rank: 0, batches, epoch: 1, seed: 7 }
}

/// An epoch that ends when its consumer returns.
pub(crate) trait Consume {
    fn consume<R>(self, consumer: impl FnOnce(&mut Epoch) -> R) -> R;
}

impl Consume for Epoch {
    fn consume<R>(mut self, consumer: impl FnOnce(&mut Epoch) -> R) -> R {
        consumer(&mut self)
    }
}

/// `files` samples of which opening number i takes `open_s(i)` seconds; opens are noted as
/// `(start in seconds, file)`.
pub(crate) fn npy_files(clock: &Clock, files: u64, open_s: fn(u64) -> u64) -> (DataSet, Opens) {
    let opens = Arc::new(Mutex::new(Vec::new()));
    let (noted, time) = (Arc::clone(&opens), clock.clone());
    let store = Memory::new(clock.clone()).with_latency(move |op, key, _, _| {
        let file = key.parse().unwrap_or(0);
        if op != Op::Open {
            return 0;
        }
        noted.lock().unwrap().push((time.now() / S, file));
        open_s(file) * S
    });
    let format = SampleFormat::find("npy").unwrap().build(&Options::default()).unwrap();
    for index in 0..files {
        let spec = FileSpec { dims: vec![8, 8], samples: 1, element: Element::UInt8, index };
        let mut bytes = Vec::new();
        format.encode(&spec, &Content::new(1, index), &mut bytes).unwrap();
        store.put(&index.to_string(), bytes);
    }
    (data_set(store, format.into()), opens)
}

/// Files of `per_file` records that can be read one by one. A record of file f and place i says that
/// it is 100 f + i bytes large, so that batches of one tell which record they hold; every read takes
/// `read_ns`, opening takes nothing.
pub(crate) fn record_files(clock: &Clock, files: u64, per_file: u64, read_ns: u64) -> DataSet {
    counted_files(clock, &vec![per_file; files as usize], read_ns)
}

/// Files with these numbers of records.
pub(crate) fn counted_files(clock: &Clock, counts: &[u64], read_ns: u64) -> DataSet {
    let latency = move |op: Op| if op == Op::Read { read_ns } else { 0 };
    let store = Memory::new(clock.clone()).with_latency(move |op, _, _, _| latency(op));
    for (file, &count) in (0..).zip(counts) {
        let records = (0..count).flat_map(|index| (100 * file + index).to_le_bytes());
        store.put(&file.to_string(), records.collect::<Vec<u8>>());
    }
    data_set(store, Arc::new(Records))
}

fn data_set(store: Memory, format: Arc<dyn Format>) -> DataSet {
    DataSet {
        store: Arc::new(store),
        names: Arc::new(Numbered),
        format,
        reading: Reading::default(),
        stop: Arc::default(),
        look: None,
    }
}

/// Records of eight bytes behind one another, each of which is its own size.
struct Records;

impl Format for Records {
    fn facts(&self) -> &'static SampleFormat {
        static FACTS: SampleFormat = SampleFormat::new("records", |_| Ok(Box::new(Records)));
        &FACTS
    }

    fn size(&self, file: &FileSpec) -> FileSize {
        FileSize::Exact(8 * file.samples)
    }

    fn encode(
        &self,
        _file: &FileSpec,
        _content: &Content,
        _sink: &mut dyn ByteSink,
    ) -> Result<(), EncodeError> {
        unreachable!("files are made by the test")
    }

    fn open(
        &self,
        _source: &mut dyn ByteSource,
        _scratch: &mut Scratch,
    ) -> Result<Box<dyn Opened>, DecodeError> {
        Ok(Box::new(Records))
    }
}

impl Opened for Records {
    fn read(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        _scratch: &mut Scratch,
    ) -> Result<SampleRead, DecodeError> {
        let (mut size, offset) = ([0; 8], 8 * index);
        let read = source.read_exact_at(offset, &mut size);
        read.map_err(|source| DecodeError::Source { offset, wanted: 8, source })?;
        let bytes = u64::from_le_bytes(size);
        Ok(SampleRead { bytes, file_bytes: 8, samples: 0, element: None })
    }

    fn read_into(
        &mut self,
        source: &mut dyn ByteSource,
        index: u64,
        scratch: &mut Scratch,
        sink: &mut dyn SampleSink,
    ) -> Result<SampleRead, DecodeError> {
        let read = self.read(source, index, scratch)?;
        let part = SamplePart { name: "", element: None, shape: &[8] };
        let taken = sink.begin(&part).and_then(|()| sink.put(&read.bytes.to_le_bytes()));
        taken.map_err(|source| DecodeError::SampleSink { source })?;
        Ok(read)
    }

    fn locate(
        &mut self,
        _source: &mut dyn ByteSource,
        index: u64,
        _scratch: &mut Scratch,
        ranges: &mut Vec<ByteRange>,
    ) -> Result<(), DecodeError> {
        ranges.push(ByteRange { offset: 8 * index, len: Some(8) });
        Ok(())
    }
}

/// Numbers below `end`, the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // Knuth's multiplier; the upper bits are good enough.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}
