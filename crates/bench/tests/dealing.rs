//! How workloads deal epochs to ranks: steps, reads, samples read twice, samples left out.

use feedline_bench::{PhasePlan, Plan, Semantics};
use feedline_dataset::Shuffle as Order;
use feedline_loader::EpochTally;
use feedline_workload::{
    DataLoader, Framework, SampleFormat, Sharding, ShuffleMode, Workload, WorkloadError,
};

const FEEDLINE: Semantics = Semantics::Feedline;
const DLIO: Semantics = Semantics::Dlio;

/// PyTorch on 61 files of one sample.
fn torch() -> Workload {
    let mut workload = Workload { framework: Framework::Pytorch, ..Workload::default() };
    workload.dataset.format = SampleFormat::find("npz").unwrap();
    workload.dataset.num_files_train = 61;
    workload.reader.data_loader = DataLoader::Pytorch;
    workload.reader.sample_shuffle = ShuffleMode::Seed;
    workload
}

fn plan(workload: &Workload, ranks: u32, semantics: Semantics) -> PhasePlan {
    Plan::new(workload, ranks, semantics).unwrap().train.unwrap()
}

/// Steps, reads, read twice, left out.
fn counts(phase: &PhasePlan) -> (u64, u64, u64, u64) {
    let EpochTally { read, repeated, left_out } = phase.tally();
    (phase.steps, read, repeated, left_out)
}

#[test]
fn every_row_of_sixty_one_samples() {
    // Ranks x batch: PyTorch's defaults, then with `drop_last` in loader and sampler, which DLIO's
    // main branch equals in numbers.
    let rows = [
        ((1, 4), (16, 61, 0, 0), (15, 60, 0, 1)),
        ((2, 4), (8, 62, 1, 0), (7, 56, 0, 5)),
        ((3, 4), (6, 63, 2, 0), (5, 60, 0, 1)),
        ((4, 4), (4, 64, 3, 0), (3, 48, 0, 13)),
        ((2, 8), (4, 62, 1, 0), (3, 48, 0, 13)),
        ((4, 1), (16, 64, 3, 0), (15, 60, 0, 1)),
    ];
    for ((ranks, batch), kept, dropped) in rows {
        let mut workload = torch();
        workload.reader.batch_size = batch;
        assert_eq!(counts(&plan(&workload, ranks, FEEDLINE)), kept, "{ranks} x {batch}");
        let as_dlio = plan(&workload, ranks, DLIO);
        assert_eq!(counts(&as_dlio), dropped, "{ranks} x {batch} as DLIO");
        assert_eq!((as_dlio.sharding, as_dlio.shuffle), (Sharding::Dlio, Order::None));
        workload.reader.drop_last = Some(true);
        workload.reader.sampler_drop_last = Some(true);
        let drops = plan(&workload, ranks, FEEDLINE);
        assert_eq!(counts(&drops), dropped, "{ranks} x {batch} with drop_last");
        workload.reader.sharding = Sharding::Dlio;
        let blocks = plan(&workload, ranks, FEEDLINE);
        assert_eq!(counts(&blocks), dropped, "{ranks} x {batch} in DLIO's blocks");
        assert_eq!(blocks.shuffle, Order::Samples, "shuffled all the same");
    }
}

#[test]
fn dlio_2_0_0_shuffles_blocks_and_hangs_where_they_are_uneven() {
    let mut workload = torch();
    workload.reader.batch_size = 4;
    workload.reader.sharding = Sharding::Dlio200;
    for semantics in [FEEDLINE, DLIO] {
        let alone = plan(&workload, 1, semantics);
        assert_eq!(counts(&alone), (15, 60, 0, 1));
        assert_eq!(alone.shuffle, Order::Blocks { len: 61 });
    }
    let error = Plan::new(&workload, 2, FEEDLINE).err().unwrap();
    assert_eq!(
        error.to_string(),
        "DLIO 2.0.0 hangs where 61 samples or files cannot be dealt to 2 ranks evenly"
    );
    workload.dataset.num_files_train = 62;
    let two = plan(&workload, 2, FEEDLINE);
    assert_eq!((counts(&two), two.shuffle), ((7, 56, 0, 6), Order::Blocks { len: 31 }));
    workload.reader.sample_shuffle = ShuffleMode::Off;
    assert_eq!(plan(&workload, 2, FEEDLINE).shuffle, Order::None);
}

#[test]
fn each_loader_deals_in_its_own_way() {
    let of = |format, loader, files: u64, ranks| {
        let mut workload = torch();
        workload.dataset.format = SampleFormat::find(format).unwrap();
        workload.dataset.num_files_train = files;
        workload.dataset.num_samples_per_file = 10;
        workload.reader.data_loader = loader;
        workload.reader.batch_size = 4;
        let phase = plan(&workload, ranks, FEEDLINE);
        (phase.sharding, counts(&phase))
    };
    let (npy, tfrecord, webdataset) = ("npy", "tfrecord", "webdataset");
    let (torch, tf, dali) = (DataLoader::Pytorch, DataLoader::Tensorflow, DataLoader::Dali);
    assert_eq!(of(npy, torch, 6, 4), (Sharding::Strided, (4, 60, 0, 0)));
    assert_eq!(of(npy, tf, 6, 4), (Sharding::Blocked, (4, 60, 0, 0)));
    assert_eq!(of(npy, dali, 6, 4), (Sharding::Blocked, (3, 48, 0, 12)));
    assert_eq!(of(tfrecord, tf, 6, 4), (Sharding::Files, (3, 44, 0, 16)));
    assert_eq!(of(tfrecord, tf, 3, 4), (Sharding::Records, (2, 30, 0, 0)));
    // One worker of each rank: as tf.data. Two: 10 + 10 samples on rank 0, none for the second of rank 2.
    assert_eq!(of(webdataset, torch, 6, 4), (Sharding::Files, (3, 44, 0, 16)));
}

#[test]
fn what_is_left_out_has_a_reason() {
    let why = |change: fn(&mut Workload), ranks| {
        let mut workload = torch();
        workload.reader.batch_size = 4;
        change(&mut workload);
        plan(&workload, ranks, FEEDLINE).why_left_out()
    };
    assert_eq!(why(|_| (), 4), None);
    let drop_last = why(|w| w.reader.drop_last = Some(true), 3);
    assert_eq!(drop_last.as_deref(), Some("`reader.drop_last`"));
    let sampler = why(|w| w.reader.sampler_drop_last = Some(true), 4);
    assert_eq!(sampler.as_deref(), Some("`reader.sampler_drop_last`"));
    let dlio = why(|w| w.reader.sharding = Sharding::Dlio, 4);
    assert_eq!(dlio.as_deref(), Some("`reader.sharding: dlio`"));
    let steps = why(|w| w.train.total_training_steps = Some(2), 4);
    assert_eq!(steps.as_deref(), Some("`train.total_training_steps`"));
    let files = why(
        |w| {
            w.dataset.format = SampleFormat::find("tfrecord").unwrap();
            w.reader.data_loader = DataLoader::Tensorflow;
        },
        3,
    );
    assert_eq!(files.as_deref(), Some("the rank with the fewest samples"));
}

#[test]
fn whatever_is_left_out_has_a_reason() {
    let formats = [
        ("npy", DataLoader::Pytorch),
        ("npy", DataLoader::Tensorflow),
        ("npy", DataLoader::Dali),
        ("tfrecord", DataLoader::Tensorflow),
        ("webdataset", DataLoader::Pytorch),
    ];
    let mut left_out = 0;
    for (case, (format, loader)) in (0..3000_u64).zip(formats.into_iter().cycle()) {
        let mut workload = torch();
        let digit =
            |place: u32, base: u64| ((case.wrapping_mul(2_654_435_761) >> (4 * place)) & 15) % base;
        workload.dataset.format = SampleFormat::find(format).unwrap();
        workload.dataset.num_files_train = 1 + digit(1, 16) + digit(2, 8);
        workload.dataset.num_samples_per_file = 1 + digit(3, 5);
        workload.reader.data_loader = loader;
        workload.reader.batch_size = 1 + digit(4, 8);
        workload.reader.read_threads = digit(5, 4) as u32;
        workload.reader.drop_last = [None, Some(false), Some(true)][digit(6, 4) as usize % 3];
        workload.reader.sampler_drop_last = [None, Some(true)][digit(7, 2) as usize % 2];
        let phase = plan(&workload, 1 + digit(6, 6) as u32, FEEDLINE);
        let why = phase.why_left_out();
        let count = phase.tally().left_out;
        // Without a step the run is refused.
        if phase.steps > 0 {
            assert_eq!(why.as_ref().is_some_and(|why| !why.is_empty()), count > 0, "{phase:?}");
            left_out += u64::from(count > 0);
        }
    }
    assert!(left_out > 300, "{left_out} cases leave something out");
}

#[test]
fn an_epoch_must_have_a_step() {
    let check = |files: u64, batch: u64, ranks: u32, drop_last: Option<bool>| {
        let mut workload = torch();
        workload.dataset.num_files_train = files;
        workload.reader.batch_size = batch;
        workload.reader.drop_last = drop_last;
        let plan = Plan::new(&workload, ranks, FEEDLINE).unwrap();
        let result = plan.check_steps(&workload);
        result.map_err(|error| (error.to_string(), error.hint().unwrap()))
    };
    assert_eq!(check(8, 9, 1, None), Ok(()), "one short batch");
    assert_eq!(check(8, 2, 5, None), Ok(()));
    let refused = |error: &str, hint: &str| Err((error.to_owned(), hint.to_owned()));
    assert_eq!(
        check(8, 9, 1, Some(true)),
        refused(
            "training has 8 samples, but `reader.batch_size` is 9",
            "raise `dataset.num_files_train` or lower `reader.batch_size` from 9"
        )
    );
    assert_eq!(
        check(8, 3, 4, Some(true)),
        refused(
            "training has 8 samples, but one step of 4 ranks with a `reader.batch_size` of 3 needs 12",
            "use at most 2 ranks, or raise `dataset.num_files_train`"
        )
    );
}

#[test]
fn shards_must_go_round() {
    let mut workload = torch();
    workload.dataset.format = SampleFormat::find("webdataset").unwrap();
    workload.dataset.num_files_train = 3;
    let check =
        |workload: &Workload| Plan::new(workload, 4, FEEDLINE).unwrap().check_steps(workload);
    assert!(matches!(
        check(&workload),
        Err(WorkloadError::RanksBeyondFiles { files: 3, ranks: 4, .. })
    ));
    workload.reader.sharding = Sharding::Records;
    workload.dataset.num_samples_per_file = 4;
    assert!(check(&workload).is_ok());
}

#[test]
fn no_more_steps_than_an_epoch_has() {
    let mut workload = torch();
    workload.dataset.num_files_train = 8;
    let check =
        |workload: &Workload| Plan::new(workload, 2, FEEDLINE).unwrap().check_steps(workload);
    workload.train.total_training_steps = Some(5);
    let error = check(&workload).unwrap_err();
    assert_eq!(error.to_string(), "`train.total_training_steps` is 5, but an epoch has 4 steps");
    assert_eq!(error.hint().as_deref(), Some("use at most `train.total_training_steps=4`"));
    workload.train.total_training_steps = Some(4);
    assert!(check(&workload).is_ok());
}

#[test]
fn q0_steps_count_samples_and_not_files() {
    let mut resnet = torch();
    resnet.dataset.num_files_train = 1024;
    resnet.dataset.num_samples_per_file = 1251;
    resnet.reader.batch_size = 400;
    resnet.reader.sharding = Sharding::Dlio;
    assert_eq!(plan(&resnet, 8, FEEDLINE).steps, 400);
    assert!(Plan::new(&resnet, 8, DLIO).is_err(), "DLIO itself has no file left");
}
