//! Checkpoints under simulated time: what they cost, whom they hold up, what a kill would lose.
//!
//! A checkpoint is one file of the model and one that describes it, written one after the other; only
//! writing takes time, as long for either.

use std::sync::Arc;

use feedline_bench::{Outcome, SavingTally, Summary, Transfer};
use feedline_clock::Clock;
use feedline_store::{Memory, Op};
use feedline_workload::{SaveMode, Workload};

use crate::scenario::{S, Scenario};

/// Steps of 1 s, a checkpoint after every third, so many seconds for each of its two files.
fn scenario(steps: u64, write_s: f64, change: impl FnOnce(&mut Workload)) -> Scenario {
    let mut scenario = Scenario { save_s: write_s, ..Scenario::new(steps) };
    scenario.workload.workflow.checkpoint = true;
    scenario.workload.checkpoint.steps_between_checkpoints = Some(3);
    change(&mut scenario.workload);
    scenario
}

fn saves(summary: &Summary) -> Vec<Transfer> {
    summary.saves.as_ref().map_or(Vec::new(), |saves| saves.each.clone())
}

/// Pause, background and duration of each save.
fn times(summary: &Summary) -> Vec<(f64, f64, f64)> {
    let time = |one: &Transfer| (one.pause_seconds, one.background_seconds, one.seconds);
    saves(summary).iter().map(time).collect()
}

fn tally(outcome: &Outcome) -> SavingTally {
    SavingTally { pool_bytes: 0, ..outcome.ranks[0].saving }
}

#[test]
fn training_goes_on_while_a_checkpoint_is_saved() {
    // Saved after step 3, at 3 s, until 5.5 s: found complete after step 6, at 6 s. Then the next one,
    // until 8.5 s; training ends at 7 s and waits 1.5 s for it.
    let asynchronous = |workload: &mut Workload| workload.checkpoint.save_mode = SaveMode::Async;
    let (outcome, summary) = scenario(7, 1.25, asynchronous).run();
    assert_eq!(times(&summary), [(0.0, 2.5, 2.5); 2]);
    let expected = SavingTally {
        // 4, 5, 6 and 7; 2 and 3. The first step of an epoch counts as neither.
        steps_while_saving: 4,
        while_saving_ns: 4 * S,
        steps_alone: 2,
        alone_ns: 2 * S,
        drain_ns: 3 * S / 2,
        // Up to 6 s nothing was safe.
        unsaved_steps: 6,
        unsaved_ns: 6 * S,
        pool_bytes: 0,
    };
    assert_eq!(tally(&outcome), expected);
    assert_eq!(summary.strict.split.total_ns(), 7 * S, "no step is longer for it");

    // The same while training waits: 3-5.5 s and 8.5-11 s.
    let (outcome, summary) = scenario(7, 1.25, |_| ()).run();
    assert_eq!(times(&summary), [(2.5, 0.0, 2.5); 2]);
    let expected = SavingTally {
        steps_alone: 6,
        alone_ns: 6 * S,
        // Three steps, and the time of the first save, whose state is that of 3 s, up to the end of the
        // second, at 11 s.
        unsaved_steps: 3,
        unsaved_ns: 8 * S,
        ..SavingTally::default()
    };
    assert_eq!(tally(&outcome), expected);
}

#[test]
fn no_more_saves_are_under_way_than_allowed() {
    // A save takes 2.5 s and is due after every step. Saved at 1 s until 3.5 s; the one due at 2 s
    // waits until then and ends at 6 s; that due at 4.5 s waits until 6 s and ends at 8.5 s.
    let every_step = |in_flight| {
        move |workload: &mut Workload| {
            workload.checkpoint.save_mode = SaveMode::Async;
            workload.checkpoint.saves_in_flight = in_flight;
            workload.checkpoint.steps_between_checkpoints = Some(1);
        }
    };
    let (outcome, summary) = scenario(3, 1.25, every_step(1)).run();
    assert_eq!(times(&summary), [(0.0, 2.5, 2.5), (1.5, 2.5, 2.5), (1.5, 2.5, 2.5)]);
    assert_eq!(tally(&outcome).drain_ns, 5 * S / 2);
    // With two of them the one due at 2 s begins at once, behind the first: until 6 s. That due at 3 s
    // waits for the first, until 3.5 s, and ends at 8.5 s.
    let (outcome, summary) = scenario(3, 1.25, every_step(2)).run();
    assert_eq!(times(&summary), [(0.0, 2.5, 2.5), (0.0, 4.0, 4.0), (0.5, 5.0, 5.0)]);
    assert_eq!(tally(&outcome).drain_ns, 5 * S);
}

#[test]
fn a_budget_spreads_checkpoints() {
    // A save takes 2 s, a step 1 s; a fifth of the time may go into saves: 8 steps for each. The first
    // is there to learn that.
    let (_, summary) = scenario(20, 1.0, |workload| {
        workload.checkpoint.steps_between_checkpoints = None;
        workload.checkpoint.overhead_budget = Some(0.2);
    })
    .run();
    // After steps 1, 9 and 17.
    assert_eq!(times(&summary), [(2.0, 0.0, 2.0); 3]);
}

#[test]
fn a_checkpoint_takes_as_long_as_its_slowest_rank() {
    // Rank 1 writes its file in 3 s, rank 0 its own in 1 s and the description in 1 s.
    let mut scenario = scenario(6, 0.0, |workload| workload.model.parallelism.zero_stage = 1);
    scenario.ranks = 2;
    let clock = Clock::simulated();
    let slow = |op, key: &str, _, _| match op {
        Op::Write if key.contains("states-1") => 3 * S,
        Op::Write => S,
        _ => 0,
    };
    let checkpoints = Memory::new(clock.clone()).with_latency(slow);
    let data = Arc::new(Memory::new(clock.clone()));
    let outcome = scenario.execute(clock, data, Arc::new(checkpoints));
    let summary = Summary::new(&outcome);
    let [save] = saves(&summary)[..] else { panic!("one save after three steps of each rank") };
    assert_eq!((save.seconds, save.rank0_seconds, save.bytes), (3.0, 2.0, 2 * 10_240));
    let found = summary.saves.unwrap();
    // Files of 11 817 bytes in 1 s and in 3 s.
    assert_eq!(found.file_rates, [3939.0, 11_817.0]);
}

#[test]
fn q44_a_run_that_only_checkpoints_saves_and_then_loads_oldest_first() {
    // 2 s of waiting before each; a save takes 2 x 1 s, a load two reads of 0.5 s: one that finds the
    // tensor, from the end of the file, and one for the tensor.
    let scenario = scenario(1, 0.0, |workload| {
        workload.workflow.generate_data = false;
        workload.workflow.train = false;
        let checkpoint = &mut workload.checkpoint;
        checkpoint.steps_between_checkpoints = None;
        checkpoint.num_checkpoints_write = Some(3);
        checkpoint.num_checkpoints_read = Some(2);
        checkpoint.time_between_checkpoints = Some(2.0);
        checkpoint.verify = true;
    });
    let clock = Clock::simulated();
    let latency = |op, key: &str, _, _| match op {
        Op::Write => S,
        Op::Read if key.ends_with(".pt") => S / 2,
        _ => 0,
    };
    let checkpoints = Memory::new(clock.clone()).with_latency(latency);
    let data = Arc::new(Memory::new(clock.clone()));
    let outcome = scenario.execute(clock.clone(), data, Arc::new(checkpoints));
    let summary = Summary::new(&outcome);
    assert_eq!(times(&summary), [(2.0, 0.0, 2.0); 3]);
    let loads = summary.loads.unwrap();
    assert_eq!(loads.seconds(), (1.0, 0.0));
    assert_eq!((loads.each.len(), loads.each[0].bytes), (2, 10_240));
    // Three waits and saves, two waits and loads.
    assert_eq!(clock.now(), 3 * 4 * S + 2 * 3 * S);
    let numbers: Vec<_> =
        outcome.ranks[0].epochs[0].checkpoints.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, 2, 3, 1, 2]);
}
