//! Saves that do not come to their end: killed, stopped, out of room, failed by the storage. What is
//! found afterwards under a checkpoint's name is always a whole one, the old or the new.

use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::bed::{Bed, Running};
use crate::tiny::{
    self, FIRST, LOAD_ONLY, SECOND, bed, counts, description, entries, runs, verifies_all,
};

/// Names that only an unfinished checkpoint has.
fn hidden(bed: &Bed) -> Vec<String> {
    entries(bed).into_iter().filter(|name| name.starts_with('.')).collect()
}

/// A run of three saves that keeps two, and takes the names of those before it: there are always
/// folders to be exchanged and to be removed. The seed makes everything in it differ.
struct Round {
    mode: &'static str,
    seed: String,
}

impl Round {
    fn new(mode: &'static str, number: u64) -> Self {
        Self { mode, seed: format!("train.seed={number}") }
    }

    fn args(&self) -> Vec<&str> {
        let sets = [
            self.mode,
            &self.seed,
            "checkpoint.saves_in_flight=2",
            "checkpoint.num_checkpoints_write=3",
            "checkpoint.num_checkpoints_read=0",
            "checkpoint.keep_last=2",
            "checkpoint.fsync=false",
            "model.num_layers=1",
            "model.transformer.vocab_size=100",
        ];
        tiny::args("2", &sets)
    }
}

/// Kills a hundred runs at places that are spread over the time that one takes.
fn survives_kills(mode: &'static str) {
    const KILLS: u64 = 100;
    let bed = bed();
    let small = ["model.num_layers=1", "model.transformer.vocab_size=100"];
    let begin = Instant::now();
    bed.runs(&Round::new(mode, 1).args());
    let whole = begin.elapsed();
    let (mut cut_short, mut replaced) = (0, 0);
    for number in 2..2 + KILLS {
        // Steps of the golden ratio reach every part of the run, whatever their number.
        let share = (number as f64 * 0.618_033_988_75).fract();
        let round = Round::new(mode, number);
        let mut command = bed.feedline(&["run"]);
        command.args(round.args()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the command starts");
        std::thread::sleep(whole.mul_f64(share));
        child.kill().expect("it is ours");
        child.wait().expect("it was started");
        cut_short += u32::from(!hidden(&bed).is_empty());
        let named: Vec<_> =
            entries(&bed).into_iter().filter(|name| name.starts_with("global_")).collect();
        assert!((2..=3).contains(&named.len()), "round {number}: {named:?}");
        let seeds: Vec<_> =
            named.iter().map(|name| description(&bed, name)["seed"].clone()).collect();
        replaced += u32::from(seeds.contains(&json!(number)));
        let reads = format!("checkpoint.num_checkpoints_read={}", named.len());
        runs(&bed, "2", &[&small[..], &[LOAD_ONLY, &reads]].concat());
        assert_eq!(counts(&bed), (0, named.len() as u64), "round {number}");
        assert_eq!(hidden(&bed), [""; 0], "round {number}");
        assert_eq!(entries(&bed), named, "round {number}");
    }
    // The kills fell before, into and behind saves.
    assert!(
        cut_short > 5 && replaced > 5,
        "{cut_short} cut short, {replaced} replaced in {whole:?}"
    );
    bed.runs(&Round::new(mode, 1000).args());
    assert_eq!(entries(&bed), [SECOND, "global_epoch1_step3"]);
}

#[test]
fn a_hundred_kills_of_synchronous_saves_leave_whole_checkpoints() {
    survives_kills("checkpoint.save_mode=sync");
}

#[test]
fn a_hundred_kills_of_asynchronous_saves_leave_whole_checkpoints() {
    survives_kills("checkpoint.save_mode=async");
}

/// Lets the n-th call of a kind fail, for every n that a save of one checkpoint reaches; how many
/// there are.
fn survives_faults(bed: &Bed, way: &[&str], op: &str, errno: &str, text: &str) -> u64 {
    let one = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
    for number in 1.. {
        let fault = format!("{op}:{number}:{errno}");
        let args = tiny::args(
            "2",
            &[way, &one, &["train.seed=2", "checkpoint.chunk_size=8388608"]].concat(),
        );
        let ran = bed.run(&[&args[..], &["--store-fault", &fault]].concat());
        assert_eq!(entries(bed), [FIRST], "{fault}");
        if ran.code == Some(0) {
            assert_eq!(description(bed, FIRST)["seed"], 2, "{fault}");
            runs(bed, "2", &[way, &one, &["train.seed=1"]].concat());
            return number - 1;
        }
        let error = ran.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let begin = format!("error: cannot {op} saved/{FIRST}");
        assert!(error.starts_with(&begin) && error.ends_with(text), "{fault}: {ran:?}");
        assert_eq!(ran.code, Some(2), "{fault}: {ran:?}");
        assert_eq!(description(bed, FIRST)["seed"], 1, "{fault}");
        assert_eq!(verifies_all(bed, "2"), 1, "{fault}");
    }
    unreachable!("a save has an end")
}

#[test]
fn a_call_that_fails_leaves_the_checkpoint_that_was_there() {
    let io = "Input/output error (os error 5)";
    let denied = "Permission denied (os error 13)";
    // Three files and the description; for dcp two, PyTorch's index and the description. All are
    // published, and then the whole.
    for (container, calls) in [("checkpoint.container=torch", 4), ("checkpoint.container=dcp", 4)] {
        for mode in ["checkpoint.save_mode=sync", "checkpoint.save_mode=async"] {
            let bed = bed();
            let way = [container, mode];
            let one = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=0"];
            runs(&bed, "2", &[&way[..], &one, &["train.seed=1"]].concat());
            let found =
                [("create", "EACCES", denied), ("write", "EIO", io), ("publish", "EIO", io)]
                    .map(|(op, errno, text)| survives_faults(&bed, &way, op, errno, text));
            assert_eq!(found, [calls, calls, calls + 1], "{way:?}");
        }
    }
}

/// Room for the tensors of a second checkpoint, but not for what stands around them.
#[test]
fn a_disk_that_fills_up_keeps_the_checkpoint_that_was_there() {
    for mode in ["checkpoint.save_mode=sync", "checkpoint.save_mode=async"] {
        let bed = bed();
        let one = ["checkpoint.num_checkpoints_write=1", "checkpoint.num_checkpoints_read=1", mode];
        let args = tiny::args("2", &one).join(" ");
        let ran = bed.unshared(&format!(
            "mkdir saved && mount -t tmpfs -o size=16m none saved && \
             \"$FEEDLINE\" run {args} --set train.seed=1 >/dev/null || exit 9; \
             free=$(df --block-size=1 --output=avail saved | tail -n 1); \
             head -c $((free - 3874816)) /dev/zero >saved/other; \
             \"$FEEDLINE\" run {args} --set train.seed=2; echo code $? >&2; ls -A saved; \
             \"$FEEDLINE\" run {args} --set {LOAD_ONLY} >/dev/null; echo code $? >&2; \
             cp saved/{FIRST}/.feedline-checkpoint.json ."
        ));
        let lines: Vec<_> =
            ran.stderr.lines().filter(|line| !line.starts_with("warning: ")).collect();
        assert_eq!(lines.len(), 3, "{mode}: {ran:?}");
        assert!(
            lines[0].starts_with(&format!("error: cannot write saved/{FIRST}/")),
            "{mode}: {ran:?}"
        );
        assert!(lines[0].ends_with(": No space left on device (os error 28)"), "{mode}: {ran:?}");
        assert_eq!(lines[1..], ["code 2", "code 0"], "{mode}: {ran:?}");
        assert_eq!(ran.stdout, format!("{FIRST}\nother\n"), "{mode}");
        assert_eq!(bed.json(".feedline-checkpoint.json")["seed"], 1, "{mode}");
    }
}

/// Half a kilobyte a second: neither a save nor a load would end within the hour.
const SLOW: [&str; 2] = ["--store-limit", "500B/s"];

/// Ends a run with Ctrl-C once its log says `when`.
fn interrupted(bed: &Bed, sets: &[&str], when: &str) -> Value {
    // The log of the run before would say so too.
    let _ = std::fs::remove_dir_all(bed.path("out"));
    let run: Running = bed.start(&[&tiny::args("2", sets)[..], &SLOW].concat());
    bed.wait_for_log("out/dlio.log", when);
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{sets:?}: {ran:?}");
    let (first, last) = (ran.stdout.lines().next(), ran.stderr.lines().last());
    assert_eq!(first, Some("INTERRUPTED before the first checkpoint was done"), "{ran:?}");
    assert_eq!(last, Some("stopped: the results so far are in out"), "{ran:?}");
    bed.json("out/summary.json")["feedline"].take()
}

#[test]
fn ctrl_c_while_saving_keeps_what_was_there() {
    for mode in ["checkpoint.save_mode=sync", "checkpoint.save_mode=async"] {
        for container in ["checkpoint.container=torch", "checkpoint.container=dcp"] {
            let bed = bed();
            runs(&bed, "2", &["train.seed=1"]);
            let own =
                interrupted(&bed, &[mode, container, "train.seed=2"], "Saving checkpoint 1 of 2");
            assert_eq!((&own["interrupted"], &own["checkpoints"]), (&json!(true), &Value::Null));
            assert_eq!(entries(&bed), [FIRST, SECOND]);
            assert_eq!(description(&bed, FIRST)["seed"], 1);
            assert_eq!(verifies_all(&bed, "2"), 2);
        }
    }
}

#[test]
fn ctrl_c_while_loading_keeps_what_was_there() {
    let bed = bed();
    runs(&bed, "2", &[]);
    let own = interrupted(&bed, &[LOAD_ONLY], "Loading checkpoint 1 of 2");
    assert_eq!((&own["interrupted"], &own["checkpoints"]), (&json!(true), &Value::Null));
    assert_eq!(verifies_all(&bed, "2"), 2);
}

/// A pause before each save ends at once, and what was saved before it is reported.
#[test]
fn ctrl_c_between_saves_reports_what_was_saved() {
    let bed = bed();
    let run = bed.start(&tiny::args("2", &["checkpoint.time_between_checkpoints=2"]));
    bed.wait_for_log("out/dlio.log", "Finished saving checkpoint 1");
    run.signal("INT");
    let ran = run.wait();
    assert_eq!(ran.code, Some(130), "{ran:?}");
    assert_eq!(counts(&bed), (1, 0));
    assert_eq!(entries(&bed), [FIRST]);
    let begin = ran.stdout.lines().next().unwrap_or_default();
    assert!(begin.starts_with("INTERRUPTED"), "{ran:?}");
}
