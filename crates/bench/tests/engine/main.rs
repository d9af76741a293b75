//! The whole engine under simulated time: every expected number is worked out by hand beside it.
//!
//! Opening a file is the only storage call that takes time here, so a sample costs exactly its
//! file's latency; preprocessing stands for decoding.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use feedline_bench::{Observer, Outcome, Pass, Semantics, Split, Stepping, Summary};
use feedline_clock::Clock;
use feedline_store::{Memory, Op};
use feedline_workload::{ReadModel, ReadType, Sharding, ShuffleMode, TimeSpec, Workload};

mod checkpoints;
mod framework;
mod scenario;

use scenario::{S, Scenario, file_number};

fn split_s(storage: f64, decode: f64, peers: f64, compute: f64) -> Split {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    Split {
        storage_ns: ns(storage),
        decode_ns: ns(decode),
        framework_ns: 0,
        worker_ns: 0,
        peers_ns: ns(peers),
        compute_ns: ns(compute),
        behind_ns: 0,
    }
}

#[track_caller]
fn check_close(found: Option<f64>, expected: f64) {
    let found = found.expect("a value");
    assert!((found - expected).abs() < 1e-9, "found {found}, expected {expected}");
}

/// DLIO's AU and samples/s of the run, then the strict ones.
#[track_caller]
fn check_rates(summary: &Summary, au: f64, rate: f64, strict_au: f64, strict_rate: f64) {
    let train = summary.train.as_ref().unwrap();
    check_close(train.au().map(|pair| pair.0), au);
    check_close(train.samples_per_s().map(|pair| pair.0), rate);
    check_close(summary.strict.au_percent, strict_au);
    check_close(summary.strict.samples_per_s, strict_rate);
}

#[test]
fn all_fed() {
    // 5 files of 0.1 s, 1 s of compute. Only the first batch is waited for:
    // wall 0.1 + 5; AU = 4 / (5.1 - 1.1) = 100 %; (5 - 2) / 4 samples/s; strict 5 / 5.1 of both.
    let (outcome, summary) = Scenario { open_s: |_| 0.1, ..Scenario::new(5) }.run();
    check_rates(&summary, 100.0, 0.75, 500.0 / 5.1, 5.0 / 5.1);
    // Each file is opened once: 5 calls in 5.1 s.
    check_close(outcome.per_second(outcome.storage_counts().opens), 5.0 / 5.1);
    assert_eq!(summary.strict.split, split_s(0.1, 0.0, 0.0, 5.0));
    assert_eq!(summary.strict.counted_steps, 4);
}

#[test]
fn storage_bound() {
    // Batch k is ready at 2 (k + 1); steps end at 3, 5, 7, 9.
    // AU = 3 / (9 - 3) = 50 %; (4 - 2) / 6; strict 4 / 9 of both. Waits 2 + 1 + 1 + 1.
    let (_, summary) = Scenario { open_s: |_| 2.0, ..Scenario::new(4) }.run();
    check_rates(&summary, 50.0, 2.0 / 6.0, 400.0 / 9.0, 4.0 / 9.0);
    assert_eq!(summary.strict.split, split_s(5.0, 0.0, 0.0, 4.0));
}

#[test]
fn decode_bound() {
    // The same times, but the reader has the bytes at once and works on them for 2 s.
    let mut scenario = Scenario::new(4);
    scenario.workload.reader.preprocess_time = TimeSpec::Constant { mean: 2.0 };
    let (_, summary) = scenario.run();
    check_rates(&summary, 50.0, 2.0 / 6.0, 400.0 / 9.0, 4.0 / 9.0);
    assert_eq!(summary.strict.split, split_s(0.0, 5.0, 0.0, 4.0));
}

#[test]
fn a_wait_is_split_where_the_reader_goes_from_storage_to_decode() {
    // Each batch takes 1 s of storage, then 1 s of decode. Batch 1 is read from 2 to 3, while the
    // first step computes, and decoded from 3 to 4, while the accelerator waits.
    let mut scenario = Scenario { open_s: |_| 1.0, ..Scenario::new(4) };
    scenario.workload.reader.preprocess_time = TimeSpec::Constant { mean: 1.0 };
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split_s(1.0, 1.0 + 3.0, 0.0, 4.0));
}

#[test]
fn one_slow_rank() {
    // Even files (rank 0) open at once, odd files (rank 1) take 2 s. Rank 1's steps end at 3, 5, 7,
    // 9; rank 0 computes 1 s and waits 2 + 1 + 1 + 1 s for it.
    // DLIO: rank 0 3 / (9 - 1), rank 1 3 / (9 - 3): mean 43.75 %; 2 / 8 + 2 / 6 samples/s.
    // Strict: 4 s of compute in 9 s on both ranks, 8 samples in 9 s.
    let (_, summary) =
        Scenario { ranks: 2, open_s: |file| (file % 2 * 2) as f64, ..Scenario::new(8) }.run();
    check_rates(&summary, 43.75, 2.0 / 8.0 + 2.0 / 6.0, 400.0 / 9.0, 8.0 / 9.0);
    assert_eq!(summary.strict.split, split_s(5.0, 0.0, 5.0, 8.0));
    check_close(summary.strict.au_worst_rank_percent, 400.0 / 9.0);
    // Rank 0 finishes its last computation at 7 + 1, rank 1 at 9.
    assert_eq!(summary.rank_done_s, Some((8.0, 9.0)));
}

#[test]
fn a_short_last_batch_counts_the_samples_that_it_has() {
    // Five files of 64 bytes, two ranks, batches of two: both ranks read three, the first file twice;
    // two steps of 1 s each, of 2 and of 1 samples. Strict: 6 samples, 384 bytes in 2 s. DLIO's
    // formula counts full batches, and takes two steps off: 3 steps on one rank are (3 - 2) * 2 / 2.
    let mut scenario = Scenario { ranks: 2, ..Scenario::new(5) };
    scenario.workload.reader.batch_size = 2;
    let (outcome, summary) = scenario.run();
    assert_eq!(summary.strict.steps, 2);
    assert_eq!(summary.strict.samples_per_s, Some(3.0));
    assert_eq!(summary.strict.sample_bytes_per_s, Some(192.0));
    let samples: Vec<u64> = outcome.ranks.iter().map(|rank| rank.epochs[0].samples).collect();
    assert_eq!(samples, [3, 3]);
    let mut scenario = Scenario::new(5);
    scenario.workload.reader.batch_size = 2;
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.samples_per_s, Some(5.0 / 3.0));
    assert_eq!(summary.train.unwrap().throughput, [Some(1.0)]);
}

#[test]
fn one_slow_worker() {
    // Two workers; the second one's (odd) files take 3 s. In-order delivery: batch 1 is waited for
    // from 1 to 3, batch 3 from 5 to 6, batch 5 from 8 to 9; wall 10.
    // Batches 2 and 4 lay ready behind the first two of these: 2 + 1 s.
    // AU = 5 / (10 - 1); (6 - 2) / 9; strict: 6 s of compute in 10 s.
    let mut scenario =
        Scenario { open_s: |file| if file % 2 == 0 { 0.0 } else { 3.0 }, ..Scenario::new(6) };
    scenario.workload.reader.read_threads = 2;
    let (_, summary) = scenario.run();
    check_rates(&summary, 500.0 / 9.0, 4.0 / 9.0, 60.0, 0.6);
    let expected = Split { behind_ns: 3 * S, ..split_s(4.0, 0.0, 0.0, 6.0) };
    assert_eq!(summary.strict.split, expected);
}

#[test]
fn steps_excluded_at_start_and_end() {
    // Storage bound, 6 steps: the first lasts 3 s, the others 2 s: wall 13. Two are left out at the
    // start, one at the end: AU = 3 / (13 - 5 - 2); (6 - 2) / 6; strict leaves nothing out: 6 / 13.
    let mut scenario = Scenario { open_s: |_| 2.0, ..Scenario::new(6) };
    scenario.workload.output.metric.exclude_start_steps = 2;
    scenario.workload.output.metric.exclude_end_steps = 1;
    let (_, summary) = scenario.run();
    check_rates(&summary, 50.0, 4.0 / 6.0, 600.0 / 13.0, 6.0 / 13.0);
    assert_eq!(summary.strict.counted_steps, 3);
}

#[test]
fn two_checkpoint_blocks() {
    // A save after steps 3 and 6 of 7, 1 s for the file and 1 s for the checkpoint's description:
    // blocks 0-3, 5-8 and 10-11.
    // Blocks 1 and 2: AU 2 / (3 - 1), (3 - 2) / 2 samples/s. Block 3's only step is left out: AU 0,
    // no throughput. Epoch: (3 * 100 + 3 * 100 + 1 * 0) / 7. Strict: saves are not step time.
    let mut scenario = Scenario { save_s: 1.0, ..Scenario::new(7) };
    scenario.workload.workflow.checkpoint = true;
    scenario.workload.checkpoint.steps_between_checkpoints = Some(3);
    let (outcome, summary) = scenario.run();
    check_rates(&summary, 600.0 / 7.0, 0.5, 100.0, 1.0);
    let epoch = &outcome.ranks[0].epochs[0];
    let blocks: Vec<_> = epoch.blocks.iter().map(|b| (b.tally.steps, b.wall_ns())).collect();
    assert_eq!(blocks, [(3, 3 * S), (3, 3 * S), (1, S)]);
    let saves = summary.saves.unwrap();
    assert_eq!(saves.seconds(), (2.0, 0.0));
    let each = saves.each[0];
    assert_eq!((each.rank0_seconds, each.commit_seconds, each.pause_seconds), (2.0, 0.0, 2.0));
    assert_eq!(saves.size_gib(), 10_240.0 / f64::from(1 << 30));
}

#[test]
fn a_save_is_nobodys_step_time() {
    // Rank 0 saves for 2 s after step 3 of 6; rank 1, which writes nothing, waits for it outside of
    // the steps.
    let mut scenario = Scenario { ranks: 2, save_s: 1.0, ..Scenario::new(12) };
    scenario.workload.workflow.checkpoint = true;
    scenario.workload.checkpoint.steps_between_checkpoints = Some(3);
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split_s(0.0, 0.0, 0.0, 12.0));
    check_close(summary.strict.au_percent, 100.0);
}

#[test]
fn a_checkpoint_on_the_last_step_leaves_an_empty_block_without_weight() {
    let mut scenario = Scenario { save_s: 1.0, ..Scenario::new(6) };
    scenario.workload.workflow.checkpoint = true;
    scenario.workload.checkpoint.steps_between_checkpoints = Some(3);
    let (outcome, summary) = scenario.run();
    let steps: Vec<_> = outcome.ranks[0].epochs[0].blocks.iter().map(|b| b.tally.steps).collect();
    assert_eq!(steps, [3, 3, 0]);
    check_rates(&summary, 100.0, 0.5, 100.0, 1.0);
}

#[test]
fn every_epoch_starts_cold() {
    // As `all_fed`, twice: the first batch of the second epoch is waited for again.
    let mut scenario = Scenario { open_s: |_| 0.1, ..Scenario::new(5) };
    scenario.workload.train.epochs = 2;
    let (outcome, summary) = scenario.run();
    assert_eq!(summary.strict.split, split_s(0.2, 0.0, 0.0, 10.0));
    assert_eq!(outcome.ranks[0].epochs.len(), 2);
    assert_eq!(summary.train.unwrap().au_percent, [Some(100.0), Some(100.0)]);
}

#[test]
fn without_workers_every_read_is_waited_for() {
    let mut scenario = Scenario { open_s: |_| 1.0, ..Scenario::new(3) };
    scenario.workload.reader.read_threads = 0;
    scenario.workload.reader.preprocess_time = TimeSpec::Constant { mean: 0.5 };
    let (_, summary) = scenario.run();
    assert_eq!(summary.strict.split, split_s(3.0, 1.5, 0.0, 3.0));
}

#[test]
fn q0_files_with_several_samples_make_all_their_steps() {
    // 3 files of 4 samples in batches of 2 on 2 ranks: 3 steps each, where DLIO makes none.
    let mut scenario = Scenario { ranks: 2, ..Scenario::new(3) };
    scenario.workload.dataset.num_samples_per_file = 4;
    scenario.workload.reader.batch_size = 2;
    let (outcome, summary) = scenario.run();
    assert_eq!(summary.strict.steps, 3);
    // 6 samples a rank, each opens its file (on demand).
    let opens: Vec<_> = outcome.ranks.iter().map(|rank| rank.meter.op(Op::Open).calls).collect();
    assert_eq!(opens, [6, 6]);
    let counts = outcome.storage_counts();
    assert_eq!((counts.opens, counts.reads), (12, 12), "small files cost one read");
    assert_eq!((counts.p50_s, counts.p99_s), (Some(0.0), Some(0.0)), "time stands still in reads");
}

#[test]
fn q25_total_training_steps_caps_each_epoch_and_max_steps_the_run() {
    let mut scenario = Scenario::new(10);
    scenario.workload.train.epochs = 3;
    scenario.workload.train.total_training_steps = Some(4);
    let (outcome, _) = scenario.run();
    let steps = |outcome: &Outcome| {
        outcome.ranks[0].epochs.iter().map(|epoch| epoch.strict.steps).collect::<Vec<_>>()
    };
    assert_eq!(steps(&outcome), [4, 4, 4]);
    assert_eq!(outcome.ranks[0].meter.op(Op::Open).calls, 12, "nothing is read past the cap");

    let mut scenario = Scenario::new(10);
    scenario.workload.train.epochs = 3;
    scenario.workload.train.total_training_steps = Some(4);
    scenario.workload.train.max_steps = Some(6);
    assert_eq!(steps(&scenario.run().0), [4, 2]);
}

#[test]
fn q32_as_dlio_one_batch_too_many_is_fetched() {
    // 2 of 4 steps: with one worker and two batches ahead DLIO waits for a third batch. Files take
    // 2 s: the block lasts until 6 instead of 5.
    let scenario = |semantics| {
        let mut scenario = Scenario { open_s: |_| 2.0, semantics, ..Scenario::new(4) };
        scenario.workload.train.total_training_steps = Some(2);
        let (outcome, _) = scenario.run();
        outcome.ranks[0].epochs[0].blocks[0].wall_ns()
    };
    assert_eq!(scenario(Semantics::Feedline), 5 * S);
    assert_eq!(scenario(Semantics::Dlio), 6 * S);
}

#[test]
fn q27_evaluation_is_the_mean_and_the_sum_over_ranks() {
    // 2 ranks, 3 evaluation steps each of 2 samples. Rank 1's files (6-11) take 0.5 s.
    // Rank 0: 3 s, AU 2 / 2. Rank 1: batches of 1 s at 1, 2, 3: wait 1, then fed: 4 s, AU 2 / 2.
    // Throughput 6 / 3 + 6 / 4.
    let evaluate = |semantics| {
        let mut scenario = Scenario {
            ranks: 2,
            semantics,
            open_s: |file| if file < 6 { 0.0 } else { 0.5 },
            ..Scenario::new(12)
        };
        scenario.workload.workflow.evaluation = true;
        scenario.workload.reader.sharding = Sharding::Dlio;
        scenario.workload.dataset.num_files_eval = 12;
        scenario.workload.reader.batch_size_eval = 2;
        scenario.workload.evaluation.eval_time = TimeSpec::Constant { mean: 1.0 };
        scenario.run().1.eval.unwrap()
    };
    let eval = evaluate(Semantics::Feedline);
    assert_eq!(eval.au_percent, [Some(100.0)]);
    assert_eq!(eval.throughput, [Some(3.5)]);
    let eval = evaluate(Semantics::Dlio);
    assert_eq!(eval.au_percent, [Some(50.0), Some(50.0)]);
    assert_eq!(eval.throughput, [Some(2.0), Some(1.5)]);
}

#[test]
fn training_and_evaluation_both_tell_how_far_they_are() {
    struct Heard(Mutex<Vec<(Pass, u32, u64, u64)>>);
    impl Observer for Heard {
        fn stepping(&self, progress: Stepping) {
            let Stepping { pass, epoch, step, steps, .. } = progress;
            self.0.lock().unwrap().push((pass, epoch, step, steps));
        }
    }
    let heard = Arc::new(Heard(Mutex::default()));
    let mut scenario = Scenario { ranks: 2, observer: Arc::clone(&heard) as _, ..Scenario::new(4) };
    scenario.workload.workflow.evaluation = true;
    scenario.workload.dataset.num_files_eval = 2;
    scenario.run();
    let (train, eval) = (Pass::Training, Pass::Evaluation);
    let expected =
        [(train, 1, 0, 2), (train, 1, 1, 2), (train, 1, 2, 2), (eval, 1, 0, 1), (eval, 1, 1, 1)];
    assert_eq!(*heard.0.lock().unwrap(), expected, "rank 0 speaks, from step 0 on");
}

#[test]
fn q26_as_dlio_the_throughput_of_two_steps_is_zero() {
    let (_, summary) = Scenario { semantics: Semantics::Dlio, ..Scenario::new(2) }.run();
    assert_eq!(summary.train.unwrap().throughput, [Some(0.0)]);
    let (_, summary) = Scenario::new(2).run();
    assert_eq!(summary.train.unwrap().throughput, [None], "no value rather than a wrong one");
    check_close(summary.strict.samples_per_s, 1.0);
}

#[test]
fn q41_an_epoch_checkpoint_is_labeled_with_the_step_it_follows() {
    let saved = |semantics| {
        let mut scenario = Scenario { semantics, ..Scenario::new(3) };
        scenario.workload.workflow.checkpoint = true;
        let clock = Clock::simulated();
        let checkpoints = Memory::new(clock.clone());
        let data = Arc::new(Memory::new(clock.clone()));
        scenario.execute(clock, data, Arc::new(checkpoints.clone()));
        [3, 4].map(|step| {
            checkpoints
                .get(&format!("global_epoch1_step{step}/model_states-0.pt"))
                .map(|bytes| bytes.len())
        })
    };
    // 10 240 bytes in a file as torch.save writes it.
    assert_eq!(saved(Semantics::Feedline), [Some(11_817), None]);
    assert_eq!(saved(Semantics::Dlio), [None, Some(11_817)]);
}

#[test]
fn a_stop_ends_the_run_after_the_step_and_keeps_what_was_measured() {
    struct StopAfter(u64, Arc<AtomicBool>);
    impl Observer for StopAfter {
        fn stepping(&self, progress: Stepping) {
            if progress.step == self.0 {
                self.1.store(true, Ordering::Relaxed);
            }
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut scenario = Scenario {
        ranks: 2,
        observer: Arc::new(StopAfter(3, Arc::clone(&stop))),
        stop,
        ..Scenario::new(20)
    };
    scenario.workload.train.epochs = 5;
    let (outcome, summary) = scenario.run();
    assert!(outcome.interrupted);
    let epochs: Vec<_> = outcome.ranks.iter().map(|rank| rank.epochs.len()).collect();
    assert_eq!(epochs, [1, 1]);
    assert!((3..=4).contains(&summary.strict.steps), "{} steps", summary.strict.steps);
}

#[test]
fn a_step_whose_computation_was_cut_short_is_nobodys() {
    // Real time: a stop arrives 0.1 s into the first step's 30 s of computation.
    struct StopSoon(Arc<AtomicBool>);
    impl Observer for StopSoon {
        fn stepping(&self, progress: Stepping) {
            if progress.step == 0 {
                let stop = Arc::clone(&self.0);
                std::thread::spawn(move || {
                    std::thread::sleep(std::time::Duration::from_millis(100));
                    stop.store(true, Ordering::Relaxed);
                });
            }
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut scenario =
        Scenario { observer: Arc::new(StopSoon(Arc::clone(&stop))), stop, ..Scenario::new(4) };
    scenario.workload.train.computation_time = TimeSpec::Constant { mean: 30.0 };
    let (outcome, summary) = scenario.run_on(Clock::real());
    assert!(outcome.interrupted);
    assert_eq!(summary.strict.steps, 0);
    assert_eq!(summary.strict.au_percent, None);
}

/// Files in the order in which they were opened, all ranks together, for 2 epochs of 12 files on 3
/// ranks.
fn files_opened(change: fn(&mut Workload)) -> Vec<u64> {
    let mut scenario = Scenario { ranks: 3, ..Scenario::new(12) };
    scenario.workload.train.epochs = 2;
    scenario.workload.reader.read_threads = 0;
    change(&mut scenario.workload);
    let clock = Clock::simulated();
    let opened = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&opened);
    let data = Memory::new(clock.clone()).with_latency(move |op, key, _, _| {
        if op == Op::Open {
            noted.lock().unwrap().push(file_number(key));
        }
        0
    });
    let checkpoints = Arc::new(Memory::new(clock.clone()));
    scenario.execute(clock, Arc::new(data), checkpoints);
    opened.lock().unwrap().clone()
}

fn sorted(files: &[u64]) -> Vec<u64> {
    let mut files = files.to_vec();
    files.sort_unstable();
    files
}

#[test]
fn q8_every_sample_is_read_once_an_epoch_in_an_order_that_changes() {
    let opened = files_opened(|workload| workload.reader.sample_shuffle = ShuffleMode::Seed);
    let (first, second) = opened.split_at(12);
    assert_eq!(sorted(first), (0..12).collect::<Vec<_>>());
    assert_eq!(sorted(second), (0..12).collect::<Vec<_>>());
    // Three ranks run side by side, so compare what each step's three ranks read, not their race.
    let steps = |files: &[u64]| files.chunks(3).map(sorted).collect::<Vec<_>>();
    assert_ne!(steps(first), steps(second), "a new order every epoch");

    let again = files_opened(|workload| workload.reader.sample_shuffle = ShuffleMode::Seed);
    assert_eq!(steps(&opened), steps(&again), "the same seed gives the same order");
    let fixed = files_opened(|workload| {
        workload.reader.sample_shuffle = ShuffleMode::Seed;
        workload.train.seed_change_epoch = false;
    });
    assert_eq!(steps(&fixed[..12]), steps(&fixed[12..]), "unless the seed stays");
    let random = files_opened(|workload| workload.reader.sample_shuffle = ShuffleMode::Random);
    assert_ne!(steps(&random), steps(&opened), "`random` has a seed of its own");
    let plain = files_opened(|_| ());
    assert_eq!(steps(&plain)[..2], [vec![0, 1, 2], vec![3, 4, 5]], "unshuffled: in turn");
    let blocks = files_opened(|workload| workload.reader.sharding = Sharding::Blocked);
    assert_eq!(steps(&blocks)[..2], [vec![0, 4, 8], vec![1, 5, 9]]);
}

#[test]
fn q13_an_explicit_on_demand_reads_in_every_epoch() {
    let opened = files_opened(|workload| workload.reader.read_type = ReadType::OnDemand);
    assert_eq!(opened.len(), 24);
}

#[test]
fn q28_training_with_checkpoints_to_read_ends_well() {
    let mut scenario = Scenario::new(3);
    scenario.workload.workflow.checkpoint = true;
    scenario.workload.checkpoint.num_checkpoints_read = Some(2);
    scenario.workload.checkpoint.num_checkpoints_write = Some(2);
    let (_, summary) = scenario.run();
    assert!(summary.saves.is_some());
}

/// Four files of 192 bytes (64 of data behind a header of 128), each opened, asked for its size and
/// read in one call; 1 s of compute, 0.5 s of decode a batch.
fn limited(limit: &str) -> (Outcome, Summary) {
    let mut scenario = Scenario::new(4);
    scenario.workload.reader.preprocess_time = TimeSpec::Constant { mean: 0.5 };
    scenario.run_limited(limit)
}

#[test]
fn a_limited_rate_is_charged_to_the_storage_and_to_nothing_else() {
    // 96 B/s: a file takes 2 s and its decoding 0.5 s, so batch k is ready at 2.5 (k + 1) and steps
    // end at 3.5, 6, 8.5, 11. Batch 0 is waited for from 0: 2 s of storage, 0.5 s of decode. Batch k
    // is begun at 2.5 k, its step before ends at 2.5 k + 1: 1 s of storage is left, 0.5 s of decode.
    let (outcome, summary) = limited("96B/s");
    assert_eq!(summary.strict.split, split_s(2.0 + 3.0, 0.5 + 1.5, 0.0, 4.0));
    let read = outcome.ranks[0].meter.op(Op::Read).clone();
    assert_eq!((read.calls, read.bytes, read.busy_ns), (4, 4 * 192, 8 * S));
}

#[test]
fn a_limit_changes_the_storage_part_alone() {
    // Without workers every read is waited for: 4 files of 0 or 2 s, 0.5 s of decode, 1 s of compute.
    let split = |limit| {
        let mut scenario = Scenario::new(4);
        scenario.workload.reader.read_threads = 0;
        scenario.workload.reader.preprocess_time = TimeSpec::Constant { mean: 0.5 };
        match limit {
            Some(limit) => scenario.run_limited(limit).1.strict.split,
            None => scenario.run().1.strict.split,
        }
    };
    assert_eq!(split(None), split_s(0.0, 2.0, 0.0, 4.0));
    assert_eq!(split(Some("96B/s")), split_s(8.0, 2.0, 0.0, 4.0));
}

#[test]
fn a_latency_is_charged_to_the_storage_once_for_every_call() {
    // 3 calls a file of 0.5 s each: 1.5 s of storage, then 0.5 s of decode: batch k is ready at
    // 2 (k + 1), steps end at 3, 5, 7, 9. Waits: 1.5 + 0.5 for batch 0; batch k is begun at 2 k and
    // waited for from 2 k + 1 on: 0.5 s of storage and 0.5 s of decode.
    let (outcome, summary) = limited("500ms");
    let calls = [Op::Open, Op::Stat, Op::Read].map(|op| outcome.ranks[0].meter.op(op).calls);
    assert_eq!(calls, [4, 4, 4]);
    assert_eq!(summary.strict.split, split_s(1.5 + 1.5, 0.5 + 1.5, 0.0, 4.0));
}

#[test]
fn the_framework_model_pays_for_every_call_of_the_frameworks_reader() {
    // NumPy opens a file of 192 bytes, asks twice for its size and reads three times: the buffer, the
    // header up to the data, the buffer of the C file. 6 calls of 0.5 s are 3 s of storage per file,
    // where one worker is ahead by the computation of 1 s: 3 + 3 x 2 s of waiting.
    let mut scenario = Scenario::new(4);
    scenario.workload.reader.read_model = ReadModel::Framework;
    let (outcome, summary) = scenario.run_limited("500ms");
    let meter = &outcome.ranks[0].meter;
    let calls = [Op::Open, Op::Stat, Op::Read].map(|op| meter.op(op).calls);
    assert_eq!(calls, [4, 8, 12]);
    let asked: Vec<_> = meter.op(Op::Read).asked.iter().collect();
    assert_eq!(asked, [(128, 4), (4096, 8)]);
    assert_eq!(meter.op(Op::Read).bytes, 4 * (192 + 128 + 192));
    assert_eq!(summary.strict.split, split_s(3.0 + 3.0 * 2.0, 0.0, 0.0, 4.0));
}

#[test]
fn readers_of_two_ranks_share_a_limited_rate() {
    // Two files a rank, 96 B/s for both: files end at 2, 4, 6, 8. The ranks' first steps begin at 2
    // and 4; the one that is first waits for the other until 5, when both end. Second files were
    // asked for when the first were there, at 2 and 4, and end at 6 and 8.
    // Rank A: storage 2, compute to 3, peers to 5; storage to 6, compute to 7, peers to 9.
    // Rank B: storage 4, compute to 5; storage to 8, compute to 9.
    let (_, summary) = Scenario { ranks: 2, ..Scenario::new(4) }.run_limited("96B/s");
    assert_eq!(summary.strict.split, split_s(2.0 + 1.0 + 4.0 + 3.0, 0.0, 2.0 + 2.0, 4.0));
}

#[test]
fn checkpoints_are_held_to_the_same_limit() {
    // A file of 11 817 bytes and a description of 169 at 1024 B/s; times are rounded up to
    // nanoseconds.
    let mut scenario = Scenario::new(4);
    scenario.workload.workflow.checkpoint = true;
    let (_, summary) = scenario.run_limited("1KiB/s");
    assert_eq!(summary.saves.unwrap().seconds(), (11_986.0 / 1024.0 + 1e-9, 0.0));
}
