//! Timelines drawn by hand, with what must come out of them.

use crate::analysis::{Confidence, Phase};
use crate::layer::StallCause::{self, *};
use crate::resample::Draws;
use crate::steps::sketch::Sketch;
use crate::steps::{Direction, StepRecord};

const FETCH: &str = "dataloader/fetch.iter";
const BATCH: &str = "dataloader/batch";
const ITEM: &str = "data/item";
const COMPUTE: &str = "compute/compute";

fn causes(step: &StepRecord) -> Vec<(StallCause, u64)> {
    named(&step.parts_ns)
}

fn named(parts: &[u64]) -> Vec<(StallCause, u64)> {
    let all = StallCause::ALL.into_iter().map(|cause| (cause, parts[cause as usize]));
    all.filter(|(_, ns)| *ns > 0).collect()
}

#[test]
fn a_stall_is_called_by_the_innermost_thing_that_the_producer_does() {
    let mut sketch = Sketch::new(1);
    sketch.step(0, (1, 1), (100, 200), 250);
    sketch.step(0, (1, 2), (250, 250), 300);
    sketch
        .tagged(1, BATCH, (50, 190), (1, 1))
        .tagged(1, ITEM, (60, 160), (1, 1))
        .add(1, "POSIX/open", (60, 110))
        .add(1, "POSIX/read", (115, 140))
        .add(1, "S3/get", (140, 145))
        .add(1, "POSIX/fsync", (146, 148))
        .add(1, "data/preprocess", (150, 160))
        .add(1, "data/collate", (165, 180))
        .tagged(1, BATCH, (190, 240), (1, 2));
    let unit = sketch.run_one();
    let step = &unit.steps[0];
    assert_eq!((step.start_ns, step.end_ns, step.fetch_end_ns), (100, 250, 200));
    assert_eq!((step.stall_ns, step.compute_ns, step.process_ns), (100, 50, 150));
    // Own time of a program without interpreter is decoding: 110-115, 145-146, 148-150, 160-165, 180-190.
    let expected = [
        (Open, 10),
        (Read, 25),
        (Write, 2),
        (ObjectStore, 5),
        (Decode, 23),
        (Transform, 10),
        (Collate, 15),
        (HandOff, 10),
    ];
    assert_eq!(causes(step), expected);
    assert_eq!(step.confidence, Confidence::High);
    assert_eq!((step.worker, step.samples), (Some(0), 1));
    assert_eq!((step.service_start_ns, step.service_ns), (50, 140));
    // Of the whole batch: 50-60 is decoding too, and the open is 50 long.
    let expected =
        [(Open, 50), (Read, 25), (Write, 2), (ObjectStore, 5), (Decode, 33), (Transform, 10)];
    assert_eq!(named(&step.service_parts_ns)[..6], expected);
    assert_eq!(step.service_parts_ns.iter().sum::<u64>(), 140);
    assert_eq!(unit.stalls_ns, [(100, 200)]);
    // The second batch lay ready for 10.
    assert_eq!(unit.ready_ns, [(240, 250)]);
    assert_eq!((unit.steps[1].ready, unit.steps[1].stall_ns), (1, 0));
}

#[test]
fn own_time_of_an_interpreter_is_pythons() {
    let mut sketch = Sketch::new(1).interpreted();
    sketch.step(0, (1, 1), (0, 100), 150);
    sketch.tagged(1, BATCH, (0, 100), (1, 1)).add(1, "POSIX/read", (10, 30));
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Read, 20), (Python, 80)]);
}

#[test]
fn before_a_batch_is_begun_there_is_start_up_work_on_others_or_idleness() {
    let mut sketch = Sketch::new(1);
    sketch.step(0, (1, 1), (0, 100), 110);
    // The worker is not there until 40.
    sketch.tagged(1, BATCH, (40, 100), (1, 1));
    // It is at work on batch 3 until 130, idle until 150, then at work on batch 2.
    sketch.tagged(1, BATCH, (105, 130), (1, 3));
    sketch.step(0, (1, 2), (110, 180), 200);
    sketch.tagged(1, BATCH, (150, 170), (1, 2));
    sketch.step(0, (1, 3), (200, 207), 300);
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Decode, 60), (StartUp, 40)]);
    let expected = [(Decode, 20), (HandOff, 10), (Workers, 20), (Prefetch, 20)];
    assert_eq!(causes(&unit.steps[1]), expected);
    assert_eq!(causes(&unit.steps[2]), [(HandOff, 7)]);
    assert_eq!(unit.ready_ns, [(130, 200)]);
}

#[test]
fn computation_inside_of_a_fetch_is_no_stall() {
    let mut sketch = Sketch::new(1);
    let device = sketch.other("stream 7");
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.tagged(1, BATCH, (0, 100), (1, 1)).add(1, "POSIX/read", (20, 60));
    sketch.add(device, "compute/kernel", (30, 50)).add(device, "device/copy", (90, 95));
    let unit = sketch.run_one();
    let step = &unit.steps[0];
    assert_eq!((step.stall_ns, step.compute_ns), (75, 30));
    assert_eq!(causes(step), [(Read, 20), (Decode, 55)]);
    assert_eq!(unit.stalls_ns, [(0, 30), (50, 90), (95, 100)]);
}

#[test]
fn threads_of_a_worker_read_for_it() {
    let mut sketch = Sketch::new(1);
    sketch.lanes[1].name = Some("rank 0 reader 0".to_owned());
    let helper = sketch.other("rank 0 reader 0 lane 1");
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.tagged(1, BATCH, (0, 90), (1, 1)).add(1, "POSIX/open", (0, 10));
    sketch.add(helper, "POSIX/read", (5, 40)).add(helper, "POSIX/read", (60, 70));
    let unit = sketch.run_one();
    // 10-40 and 60-70 are own time in which a thread reads.
    assert_eq!(causes(&unit.steps[0]), [(Open, 10), (Read, 40), (Decode, 40), (HandOff, 10)]);
}

#[test]
fn without_workers_the_consumer_is_the_producer() {
    let mut sketch = Sketch::new(0);
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.tagged(0, BATCH, (5, 95), (1, 1)).add(0, ITEM, (5, 60)).add(0, ITEM, (60, 90));
    sketch.add(0, "POSIX/open", (10, 20)).add(0, "POSIX/read", (20, 50));
    let unit = sketch.run_one();
    let step = &unit.steps[0];
    assert_eq!(causes(step), [(Open, 10), (Read, 30), (Decode, 60)]);
    assert_eq!((step.confidence, step.worker, step.samples), (Confidence::High, None, 2));
    // The same without a span of the batch.
    let mut sketch = Sketch::new(0).interpreted();
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.add(0, ITEM, (5, 60)).add(0, "POSIX/read", (20, 50));
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Read, 30), (Python, 70)]);
    assert_eq!(unit.steps[0].confidence, Confidence::High);
}

#[test]
fn a_trace_without_workers_or_calls_says_nothing_of_causes() {
    let mut sketch = Sketch::new(0);
    sketch.step(0, (1, 1), (0, 100), 110);
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Unknown, 100)]);
    assert_eq!(unit.steps[0].confidence, Confidence::Low);
}

#[test]
fn batches_that_are_moments_are_what_their_lane_did_since_the_last() {
    let mut sketch = Sketch::new(2);
    sketch.step(0, (1, 1), (0, 50), 60);
    sketch.step(0, (1, 2), (60, 130), 140);
    sketch.add(1, ITEM, (0, 40)).add(1, "POSIX/read", (0, 30)).tagged(1, BATCH, (40, 40), (1, 1));
    sketch.add(1, ITEM, (41, 90)).add(1, "POSIX/read", (45, 80));
    sketch.add(2, ITEM, (0, 110)).add(2, "POSIX/open", (100, 110));
    sketch.tagged(2, BATCH, (110, 110), (1, 2));
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Read, 30), (Decode, 10), (HandOff, 10)]);
    assert_eq!(causes(&unit.steps[1]), [(Open, 10), (Decode, 40), (HandOff, 20)]);
    assert_eq!((unit.steps[0].worker, unit.steps[1].worker), (Some(0), Some(1)));
    // At the first moment the second lane's sample has begun; at the second one another one of the first's.
    assert_eq!((unit.steps[0].samples, unit.steps[1].samples), (2, 1));
    assert_eq!((unit.steps[1].service_start_ns, unit.steps[1].service_ns), (0, 110));
}

#[test]
fn a_stage_behind_the_samples_is_no_hand_off() {
    let mut sketch = Sketch::new(2);
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.add(1, ITEM, (0, 40)).tagged(1, BATCH, (40, 40), (1, 1));
    sketch.tagged(2, "data/preprocess", (45, 90), (1, 1));
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Decode, 40), (Transform, 45), (HandOff, 15)]);
}

#[test]
fn samples_with_a_step_make_a_batch() {
    let mut sketch = Sketch::new(2);
    for (step, lane, at) in [(1, 1, 0), (2, 2, 0)] {
        sketch.tagged(lane, ITEM, (at, at + 30), (1, step));
        sketch.tagged(lane, ITEM, (at + 40, at + 70 * i64::from(step)), (1, step));
    }
    sketch.step(0, (1, 1), (0, 80), 90);
    sketch.step(0, (1, 2), (90, 150), 160);
    let unit = sketch.run_one();
    // 30-40 lies between two samples of the batch: own time.
    assert_eq!(causes(&unit.steps[0]), [(Decode, 70), (HandOff, 10)]);
    assert_eq!(causes(&unit.steps[1]), [(Decode, 50), (HandOff, 10)]);
    assert_eq!((unit.steps[1].confidence, unit.steps[1].samples), (Confidence::High, 2));
}

#[test]
fn samples_are_counted_into_batches_that_come_in_turn() {
    let mut sketch = Sketch::new(2).interpreted();
    // Two samples a batch; every sample is told twice. Worker 1 is at its second batch while worker 2's
    // first one is handed over.
    for (lane, samples) in
        [(1, [(0, 20), (25, 40), (45, 60), (65, 80)]), (2, [(5, 30), (30, 50), (90, 95), (95, 99)])]
    {
        for (start, end) in samples {
            sketch.add(lane, "data_loader/Set.__getitem__", (start, end));
            sketch.add(lane, ITEM, (start + 1, end));
        }
    }
    let fetches = [(0, 45), (50, 76), (78, 84), (90, 110)];
    for (step, (start, end)) in (1..).zip(fetches) {
        sketch.step(0, (1, step), (start, end), end + 2);
    }
    let unit = sketch.run_one();
    let hand_off: Vec<u64> =
        unit.steps.iter().map(|step| step.parts_ns[HandOff as usize]).collect();
    assert_eq!(hand_off, [5, 26, 4, 11]);
    let workers: Vec<_> = unit.steps.iter().map(|step| step.worker.unwrap()).collect();
    assert_eq!(workers, [0, 1, 0, 1]);
    assert_eq!(causes(&unit.steps[0]), [(Python, 40), (HandOff, 5)]);
    assert_eq!(unit.steps[3].confidence, Confidence::Medium);
    assert!(unit.steps.iter().all(|step| step.samples == 2));
}

#[test]
fn workers_without_names_take_turns_in_the_order_of_their_starts() {
    let mut sketch = Sketch::new(2);
    // The second lane of the trace is the process that was started first.
    (sketch.lanes[1].thread, sketch.lanes[2].thread) = (20, 10);
    sketch.add(1, ITEM, (0, 40)).add(2, ITEM, (0, 70));
    sketch.step(0, (1, 1), (0, 75), 80);
    sketch.step(0, (1, 2), (80, 90), 100);
    let unit = sketch.run_one();
    assert_eq!(causes(&unit.steps[0]), [(Decode, 70), (HandOff, 5)]);
    assert_eq!(causes(&unit.steps[1]), [(HandOff, 10)]);
    assert_eq!(unit.ready_ns, [(40, 80)]);
}

#[test]
fn calls_that_nobody_waits_for_are_no_steps() {
    let mut sketch = Sketch::new(1);
    sketch.roster.units[0].consumer = u32::MAX;
    sketch.add(0, "POSIX/read", (0, 40)).add(1, "POSIX/read", (10, 70)).add(1, ITEM, (80, 90));
    let unit = sketch.run_one();
    assert!(unit.steps.is_empty() && unit.phases.is_empty());
}

#[test]
fn where_samples_cannot_be_counted_the_last_one_tells_who() {
    let mut sketch = Sketch::new(2);
    // Five samples for two steps.
    for (lane, start, end) in [(1, 0, 20), (1, 20, 60), (2, 0, 50), (2, 50, 90), (1, 60, 130)] {
        sketch.add(lane, ITEM, (start, end)).add(lane, "POSIX/read", (start, start + 5));
    }
    sketch.step(0, (1, 1), (0, 70), 80);
    sketch.step(0, (1, 2), (80, 100), 110);
    let unit = sketch.run_one();
    // Lane 1 ended at 60, lane 2 at 50.
    assert_eq!(causes(&unit.steps[0]), [(Read, 10), (Decode, 50), (HandOff, 10)]);
    assert_eq!(causes(&unit.steps[1]), [(Decode, 10), (HandOff, 10)]);
    assert_eq!(unit.steps[1].confidence, Confidence::Medium);
}

#[test]
fn if_nothing_tells_all_workers_share() {
    let mut sketch = Sketch::new(2);
    sketch.step(0, (1, 1), (0, 100), 110);
    sketch.add(1, "data/preprocess", (0, 80)).add(2, "data/preprocess", (0, 21));
    let unit = sketch.run_one();
    // (80 + 21) / 2 is 50; the rest has no owner.
    assert_eq!(causes(&unit.steps[0]), [(Transform, 50), (Unknown, 50)]);
    assert_eq!(unit.steps[0].confidence, Confidence::Low);
}

#[test]
fn epochs_blocks_checkpoints_and_evaluations_border_steps() {
    let mut sketch = Sketch::new(1);
    sketch.tagged(0, "pipeline/train", (0, 1000), (1, u32::MAX));
    sketch.tagged(0, "pipeline/epoch.block", (10, 300), (1, u32::MAX));
    sketch.step(0, (1, 1), (20, 50), 100);
    sketch.step(0, (1, 2), (110, 120), 200);
    sketch.tagged(0, "comm/all_reduce", (200, 250), (1, 2));
    sketch.tagged(0, "checkpoint/capture", (300, 400), (1, 2)).bytes(77);
    sketch.add(0, "POSIX/write", (310, 350)).bytes(99).add(0, "POSIX/fsync", (350, 380));
    sketch.tagged(0, "pipeline/epoch.block", (400, 900), (1, u32::MAX));
    sketch.step(0, (1, 3), (410, 420), 500);
    // A fetch that brings nothing.
    sketch.tagged(0, FETCH, (800, 850), (1, 4));
    sketch.tagged(0, "pipeline/evaluate", (1000, 1200), (1, u32::MAX));
    sketch.step(0, (1, 1), (1010, 1100), 1150);
    for (step, start) in [(1, 20), (2, 60), (3, 130), (4, 430)] {
        sketch.tagged(1, BATCH, (start, start + 15), (1, step));
    }
    sketch.tagged(1, BATCH, (1020, 1080), (1, 1));
    let unit = sketch.run_one();
    let times: Vec<_> =
        unit.steps.iter().map(|s| (s.phase, s.block, s.step, s.start_ns, s.end_ns)).collect();
    let expected = [
        (Phase::Train, 1, 1, 20, 110),
        (Phase::Train, 1, 2, 110, 300),
        (Phase::Train, 2, 3, 410, 800),
        (Phase::Evaluate, 1, 1, 1010, 1200),
    ];
    assert_eq!(times, expected);
    assert_eq!((unit.steps[1].communication_ns, unit.steps[1].meets_ns), (50, Some((200, 250))));
    // The first batch was another one in training.
    assert_eq!(causes(&unit.steps[3]), [(Decode, 60), (HandOff, 20), (Prefetch, 10)]);
    let phases: Vec<_> = unit
        .phases
        .iter()
        .map(|p| (p.phase, p.epoch, p.start_ns, p.end_ns, p.steps.clone(), p.surplus_ns))
        .collect();
    let expected =
        [(Phase::Train, 1, 0, 1000, 0..3, 50), (Phase::Evaluate, 1, 1000, 1200, 3..4, 0)];
    assert_eq!(phases, expected);
    assert_eq!((unit.phases[0].first_batch_ns, unit.phases[0].workers), (Some(50), 1));
    let blocks: Vec<_> =
        unit.blocks.iter().map(|b| (b.block, b.start_ns, b.end_ns, b.steps.clone())).collect();
    assert_eq!(blocks, [(1, 10, 300, 0..2), (2, 400, 900, 2..3), (1, 1000, 1200, 3..4)]);
    assert_eq!(unit.stalls_ns, [(20, 50), (110, 120), (410, 420), (1010, 1100)]);
    let [save] = &unit.checkpoints[..] else { panic!("{:?}", unit.checkpoints) };
    assert_eq!((save.direction, save.stall_ns, save.sync_ns), (Direction::Save, 100, 30));
    assert_eq!((save.epoch, save.step, save.bytes), (1, 2, 77));
}

#[test]
fn a_checkpoint_behind_the_back_of_training_stops_nothing() {
    let mut sketch = Sketch::new(1);
    let saver = sketch.other("rank 0 saver 0");
    sketch.step(0, (1, 1), (0, 10), 100);
    sketch.tagged(0, "checkpoint/capture", (100, 120), (1, 1)).bytes(5);
    sketch.add(saver, "checkpoint/write", (120, 300)).add(saver, "POSIX/fsync", (200, 290));
    sketch.step(0, (1, 2), (120, 130), 250);
    sketch.tagged(0, "checkpoint/commit", (250, 260), (1, 1));
    sketch.step(0, (1, 3), (260, 270), 280);
    let unit = sketch.run_one();
    let times: Vec<_> = unit.steps.iter().map(|s| (s.start_ns, s.end_ns)).collect();
    assert_eq!(times, [(0, 100), (120, 250), (260, 280)]);
    assert_eq!(unit.steps[1].checkpoint_ns, 130);
    let mut found: Vec<_> =
        unit.checkpoints.iter().map(|c| (c.start_ns, c.stall_ns, c.sync_ns)).collect();
    found.sort_unstable();
    assert_eq!(found, [(100, 20, 0), (120, 0, 0), (250, 10, 10)]);
}

#[test]
fn without_fetches_what_lies_between_computations_is_one() {
    let mut sketch = Sketch::new(1);
    for (step, start) in [(1, 100), (2, 300), (3, 400)] {
        sketch.tagged(0, COMPUTE, (start, start + 50), (1, step));
    }
    sketch.tagged(0, "comm/all_reduce", (150, 170), (1, 1));
    sketch.tagged(1, BATCH, (160, 290), (1, 2)).add(1, "POSIX/read", (160, 200));
    let unit = sketch.run_one();
    let times: Vec<_> =
        unit.steps.iter().map(|s| (s.step, s.start_ns, s.end_ns, s.stall_ns)).collect();
    assert_eq!(times, [(1, 100, 170, 0), (2, 170, 350, 130), (3, 350, 450, 50)]);
    assert_eq!(causes(&unit.steps[1]), [(Read, 30), (Decode, 90), (HandOff, 10)]);
    assert_eq!(unit.steps[0].meets_ns, Some((150, 170)));
}

#[test]
fn epochs_that_no_span_tells_of_begin_with_their_numbers() {
    let mut sketch = Sketch::new(1);
    for (epoch, base) in [(1, 0), (2, 1000)] {
        for step in 1..=2 {
            let start = base + i64::from(step) * 100;
            sketch.step(0, (epoch, step), (start, start + 10), start + 50);
            sketch.tagged(1, BATCH, (start - 20, start + 5), (epoch, step));
        }
    }
    let unit = sketch.run_one();
    let times: Vec<_> =
        unit.steps.iter().map(|s| (s.epoch, s.step, s.start_ns, s.end_ns)).collect();
    let expected = [(1, 1, 100, 200), (1, 2, 200, 250), (2, 1, 1100, 1200), (2, 2, 1200, 1250)];
    assert_eq!(times, expected);
    assert_eq!(
        unit.phases.iter().map(|p| (p.epoch, p.end_ns)).collect::<Vec<_>>(),
        [(1, 250), (2, 1250)]
    );
}

#[test]
fn workers_that_start_anew_are_numbered_anew() {
    let mut sketch = Sketch::new(4);
    for (epoch, lanes) in [(1, [1, 2]), (2, [3, 4])] {
        let base = i64::from(epoch) * 1000;
        sketch.tagged(0, "pipeline/train", (base, base + 500), (epoch, u32::MAX));
        for (step, lane) in (1..).zip(lanes) {
            let at = base + i64::from(step) * 100;
            sketch.step(0, (epoch, step), (at, at + 50), at + 60);
            sketch.tagged(lane, BATCH, (base + 10, at + 40), (epoch, step));
        }
    }
    let unit = sketch.run_one();
    let workers: Vec<_> = unit.steps.iter().map(|step| step.worker).collect();
    assert_eq!(workers, [Some(0), Some(1), Some(0), Some(1)]);
    assert_eq!(
        unit.phases.iter().map(|p| (p.workers, p.outstanding)).collect::<Vec<_>>(),
        [(2, 2); 2]
    );
    // Both begin at 10 of their epoch, where those of the epoch before are long done.
    let concurrency: Vec<_> = unit.steps.iter().map(|step| step.concurrency).collect();
    assert_eq!(concurrency, [2, 1, 2, 1]);
    assert_eq!(unit.workers.len(), 4);
    assert_eq!((unit.workers[1].busy_ns, unit.workers[1].batches), (230, 1));
}

/// Traces of anything at any time, with overlaps on threads and steps that do not fit.
#[test]
fn whatever_a_trace_says_parts_add_up() {
    const NAMES: [&str; 16] = [
        FETCH,
        FETCH,
        BATCH,
        BATCH,
        ITEM,
        COMPUTE,
        COMPUTE,
        "comm/all_reduce",
        "POSIX/open",
        "POSIX/read",
        "POSIX/fsync",
        "data/preprocess",
        "data/collate",
        "pipeline/train",
        "pipeline/epoch.block",
        "checkpoint/capture",
    ];
    let (mut steps, mut stalls) = (0, 0);
    for seed in 0..300 {
        let mut draws = Draws::new(seed);
        let mut sketch = Sketch::new((seed % 4) as u32);
        let first = if seed % 5 == 0 { 4 } else { 0 };
        for _ in 0..200 {
            let lane = draws.below(sketch.lanes.len()) as u32;
            let name = NAMES[first + draws.below(NAMES.len() - first)];
            let start = draws.below(3000) as i64;
            let most = [1, 20, 300][draws.below(3)];
            let length = draws.below(most) as i64;
            let tag = |most: usize, draws: &mut Draws| match draws.below(most) {
                0 => u32::MAX,
                number => number as u32,
            };
            let at = (tag(3, &mut draws), tag(10, &mut draws));
            sketch.tagged(lane, name, (start, start + length), at);
        }
        let unit = sketch.run_one();
        let mut last = i64::MIN;
        for step in &unit.steps {
            assert_eq!(step.parts_ns.iter().sum::<u64>(), step.stall_ns, "seed {seed}");
            assert!(step.stall_ns <= step.fetch_ns(), "seed {seed}");
            assert!(step.fetch_end_ns <= step.end_ns, "seed {seed}");
            assert!(last <= step.start_ns, "seed {seed}");
            assert!(step.compute_ns <= step.duration_ns(), "seed {seed}");
            last = step.start_ns;
            steps += 1;
            stalls += step.stall_ns;
        }
        let listed: u64 = unit.stalls_ns.iter().map(|(start, end)| end.abs_diff(*start)).sum();
        let of_steps: u64 = unit.steps.iter().map(|step| step.stall_ns).sum();
        assert_eq!(listed, of_steps, "seed {seed}");
        let counted: usize = unit.phases.iter().map(|phase| phase.steps.len()).sum();
        assert_eq!(counted, unit.steps.len(), "seed {seed}");
    }
    assert!(steps > 1000 && stalls > 10_000, "{steps} steps, {stalls} ns");
}
