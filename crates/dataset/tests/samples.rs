//! Samples of any folder, with their bytes.

use std::sync::Arc;

use feedline_clock::Clock;
use feedline_dataset::{
    DatasetError, EpochOrder, ReadOptions, SampleFolder, SampleId, Samples, Shuffle,
};
use feedline_formats::{Content, Element, FileSpec, Options, SampleFormat};
use feedline_store::{Memory, Op, Store};

/// Samples of the files `a` to `d`, unequal on purpose.
const COUNTS: [u64; 4] = [3, 1, 5, 2];

/// A store of npy files, and others that are not samples.
fn store() -> Memory {
    let store = Memory::new(Clock::real());
    fill(&store);
    store
}

fn fill(store: &Memory) {
    let format = SampleFormat::find("npy").unwrap().build(&Options::default()).unwrap();
    for (index, samples) in (0..).zip(COUNTS) {
        let file = FileSpec { dims: vec![2, 3], samples, element: Element::UInt8, index };
        let mut bytes = Vec::new();
        format.encode(&file, &Content::new(1, index), &mut bytes).unwrap();
        store.put(&key(index), bytes);
    }
    store.put("notes.txt", &b"notes"[..]);
    store.put("sub/.hidden.npy", &b"hidden"[..]);
}

fn key(file: u64) -> String {
    ["a.npy", "b.npy", "sub/c.npy", "sub/d.npy"][file as usize].to_owned()
}

fn open(store: &Memory) -> (Clock, SampleFolder) {
    let (clock, store) = (Clock::real(), Arc::new(store.clone()) as Arc<dyn Store>);
    let folder = SampleFolder::open(&clock, &store, "").unwrap();
    (clock, folder)
}

fn read(store: &Memory, shuffle: Shuffle, options: ReadOptions) -> Samples {
    let (clock, folder) = open(store);
    let order = EpochOrder::new(folder.index.clone(), shuffle, 7);
    folder.samples(&clock, order, options).unwrap()
}

fn all() -> Vec<SampleId> {
    let of_file = |file| (0..COUNTS[file as usize]).map(move |index| SampleId { file, index });
    (0..4).flat_map(of_file).collect()
}

#[test]
fn samples_come_in_order_with_their_arrays_however_many_readers_there_are() {
    for readers in [1, 3, 20] {
        let options = ReadOptions { readers, read_ahead: 4, ..ReadOptions::default() };
        let found: Vec<_> = read(&store(), Shuffle::None, options).map(Result::unwrap).collect();
        assert_eq!(found.iter().map(|sample| sample.id).collect::<Vec<_>>(), all());
        for sample in &found {
            assert_eq!(sample.key, key(sample.id.file));
            let [part] = &sample.parts[..] else { panic!("{sample:?}") };
            assert_eq!((part.element, &part.shape[..]), (Some(Element::UInt8), &[2, 3][..]));
            assert_eq!(part.bytes.len(), 6);
        }
        assert_ne!(found[0].parts, found[1].parts);
    }
}

#[test]
fn ranks_read_every_sample_once_between_them() {
    for shuffle in [Shuffle::None, Shuffle::Files, Shuffle::Samples] {
        let of_rank = |rank| {
            read(
                &store(),
                shuffle,
                ReadOptions { readers: 2, rank, ranks: 3, ..Default::default() },
            )
        };
        let shares: Vec<Vec<SampleId>> =
            (0..3).map(|rank| of_rank(rank).map(|sample| sample.unwrap().id).collect()).collect();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 3]);
        let mut together = shares.concat();
        together.sort_unstable();
        assert_eq!(together, all(), "{shuffle:?}");
    }
}

#[test]
fn an_error_is_that_of_one_sample() {
    let damaged = store();
    damaged.put("b.npy", &b"not an array"[..]);
    let options = ReadOptions { readers: 2, ..ReadOptions::default() };
    let (mut good, mut bad) = (0, Vec::new());
    for sample in read(&damaged, Shuffle::None, options) {
        match sample {
            Ok(_) => good += 1,
            Err(DatasetError::Sample { file, index, .. }) => bad.push((file, index)),
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((good, bad), (10, vec![("memory:b.npy".to_owned(), 0)]));
    let small = ReadOptions { sample_bytes_max: 5, ..ReadOptions::default() };
    assert!(read(&store(), Shuffle::None, small).all(|sample| sample.is_err()));
}

#[test]
fn a_dropped_iterator_stops_its_readers() {
    let options = ReadOptions { readers: 3, read_ahead: 3, ..ReadOptions::default() };
    let mut samples = read(&store(), Shuffle::None, options);
    assert!(samples.next().is_some());
    let elsewhere = std::thread::spawn(move || drop(samples));
    elsewhere.join().unwrap();
}

#[test]
fn a_folder_of_several_formats_is_opened_format_by_format() {
    let mixed = store();
    mixed.put("e.csv", &b"1,2\n3,4\n"[..]);
    let (clock, store) = (Clock::real(), Arc::new(mixed) as Arc<dyn Store>);
    let Err(error) = SampleFolder::open(&clock, &store, "") else { panic!("it is mixed") };
    assert_eq!(error.to_string(), "memory:: expected files of one format, found csv, npy");
    let all = SampleFolder::open_all(&clock, &store, "").unwrap();
    let lens: Vec<_> = all.iter().map(|folder| folder.index.len()).collect();
    assert_eq!(lens, [2, 11]);
    let Err(error) = SampleFolder::open(&clock, &store, "empty") else { panic!("it is empty") };
    assert!(matches!(error, DatasetError::NoSampleFiles { .. } | DatasetError::Store(_)));
}

/// Four files whose opening takes a second each are counted in one second, not in four.
#[test]
fn samples_of_many_files_are_counted_at_the_same_time() {
    let clock = Clock::simulated();
    let slow = Memory::new(clock.clone())
        .with_latency(|op, _, _, _| if op == Op::Open { 1_000_000_000 } else { 0 });
    fill(&slow);
    let store: Arc<dyn Store> = Arc::new(slow);
    let folder = SampleFolder::open(&clock, &store, "").unwrap();
    assert_eq!((0..4).map(|file| folder.index.samples_of(file)).collect::<Vec<_>>(), COUNTS);
    assert_eq!(clock.now(), 1_000_000_000);
}
