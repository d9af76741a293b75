//! Errors that other analyzers make, each a test that fails on them.

mod draft;

use std::fs;
use std::path::Path;

use draft::brute::is_about;
use draft::{At, Draft, MS, S, US, analysis_of};
use feedline_analyze::analysis::{Analysis, Coverage, Finding, Function, Overlap, Phase};
use feedline_analyze::{StackLayer, StallCause};

/// The consumer of a job of one process.
const MAIN: At = At { process: 0, thread: 100 };
/// Its worker.
const WORKER: At = At { process: 0, thread: 101 };

/// A process with a consumer and a worker.
fn one_rank() -> Draft {
    let mut draft = Draft::default();
    draft.python("node0", 100);
    draft.of(0).rank = Some(0);
    draft
}

/// How steps of [`train`] go.
#[derive(Clone, Copy)]
struct Pace {
    steps: i64,
    /// The worker's reads for a batch; the consumer waits for what they take longer than computation.
    read_ns: i64,
    compute_ns: i64,
}

/// A job whose worker reads a file of a megabyte for each batch while the consumer computes.
fn train(draft: &mut Draft, pace: Pace, file: impl Fn(i64) -> String) {
    let (mut asked_ns, mut free_ns) = (MS, MS);
    let begin_ns = asked_ns;
    for step in 1..=pace.steps {
        let (from, to) = (free_ns, free_ns + pace.read_ns);
        free_ns = to;
        let batch = draft.span(WORKER, ("dataloader", "batch"), (from, to));
        (batch.epoch, batch.step) = (Some(1), Some(step));
        draft.moved(WORKER, ("POSIX", "pread64"), (from, to), &file(step), (0, 1 << 20));
        let got_ns = asked_ns.max(to);
        for (what, time) in [
            (("dataloader", "fetch.iter"), (asked_ns, got_ns)),
            (("compute", "compute"), (got_ns, got_ns + pace.compute_ns)),
        ] {
            let event = draft.span(MAIN, what, time);
            (event.epoch, event.step) = (Some(1), Some(step));
        }
        asked_ns = got_ns + pace.compute_ns;
    }
    let train = draft.span(MAIN, ("pipeline", "train"), (begin_ns, asked_ns));
    train.epoch = Some(1);
}

const STARVED: Pace = Pace { steps: 40, read_ns: 20 * MS, compute_ns: 5 * MS };
const FED: Pace = Pace { steps: 200, read_ns: 2 * MS, compute_ns: 20 * MS };

fn trained(pace: Pace) -> Draft {
    let mut draft = one_rank();
    train(&mut draft, pace, |step| format!("/data/{step}.npz"));
    draft
}

fn overlap<'a>(analysis: &'a Analysis, what: &str) -> &'a Overlap {
    analysis.overlaps.iter().find(|overlap| overlap.what == what).expect("an overlap")
}

fn function<'a>(analysis: &'a Analysis, name: &str) -> &'a Function {
    analysis.functions.iter().find(|function| function.name == name).expect("a function")
}

fn codes(analysis: &Analysis) -> Vec<&str> {
    analysis.findings.iter().map(|finding| finding.code.as_str()).collect()
}

/// All that a finding says to people.
fn words(finding: &Finding) -> String {
    let evidence = finding.evidence.iter().flatten();
    let rest = [&finding.title, &finding.threshold];
    let all: Vec<&str> = evidence.chain(&finding.actions).chain(rest).map(String::as_str).collect();
    all.join("\n")
}

#[test]
fn trap_01_overlap_is_of_intervals_not_of_sums() {
    // In every millisecond half a millisecond of each, one after the other.
    let mut draft = one_rank();
    draft.span(MAIN, ("dataloader", "fetch.iter"), (0, 0));
    for number in 0..1_000 {
        let at_ns = number * MS;
        draft.span(MAIN, ("compute", "compute"), (at_ns, at_ns + 500 * US));
        let time = (at_ns + 500 * US, at_ns + MS);
        draft.moved(WORKER, ("POSIX", "read"), time, "/data/a", (number * 4096, 4096));
    }
    let analysis = draft.analysis();
    let io = overlap(&analysis, "io");
    assert_eq!((io.total_ns, io.overlapped_ns, io.exposed_ns), (500_000_000, 0, 500_000_000));
    assert_eq!((io.compute_ns, io.compute_alone_ns), (500_000_000, 500_000_000));
}

#[test]
fn trap_02_nested_events_are_not_summed() {
    let mut draft = one_rank();
    for depth in 0..5 {
        draft.span(MAIN, ("mine", "level"), (depth * S, 20 * S - depth * S));
    }
    draft.call(MAIN, ("POSIX", "stat"), (9 * S, 10 * S), "/data/a");
    let analysis = draft.analysis();
    assert_eq!(analysis.trace.run_ns, 20_000_000_000);
    let other = analysis.layers.iter().find(|layer| layer.layer == StackLayer::Other).unwrap();
    assert_eq!(other.summed_ns, (20 + 18 + 16 + 14 + 12) * 1_000_000_000);
    assert_eq!(other.self_ns, 19_000_000_000, "all but the call");
    assert_eq!(function(&analysis, "level").self_ns, 19_000_000_000);
}

#[test]
fn trap_03_an_event_is_cut_at_the_edges_of_buckets() {
    let mut draft = one_rank();
    draft.moved(WORKER, ("POSIX", "read"), (0, 100 * S), "/data/a", (0, 1_000_000_000));
    let timeline = draft.analysis().timeline;
    assert!(timeline.io_ns.len() > 10);
    let last = timeline.io_ns.len() - 1;
    for (number, (io_ns, bytes)) in timeline.io_ns.iter().zip(&timeline.bytes_read).enumerate() {
        if number < last {
            assert_eq!(*io_ns, timeline.bucket_ns, "bucket {number}");
            assert!(bytes.abs_diff(timeline.bucket_ns / 100) <= 1, "bucket {number}: {bytes}");
        }
    }
    assert_eq!(timeline.io_ns.iter().sum::<u64>(), 100_000_000_000);
    assert_eq!(timeline.bytes_read.iter().sum::<u64>(), 1_000_000_000);
    assert_eq!((timeline.calls[0], timeline.calls.iter().sum::<u64>()), (1, 1));
}

#[test]
fn trap_04_equal_numbers_on_two_machines_are_two_processes() {
    let mut draft = Draft::default();
    for host in 0..2 {
        let process = draft.python(&format!("node{host}"), 100);
        draft.of(process).rank = Some(process);
        let at = At { process, thread: 100 };
        for step in 0..30 {
            let (from, to) = (step * 10 * MS, step * 10 * MS + 4 * MS);
            draft.span(at, ("dataloader", "fetch.iter"), (from, to));
            draft.span(at, ("compute", "compute"), (to, from + 10 * MS));
        }
    }
    let dir = tempfile::tempdir().unwrap();
    draft.write_folder(&dir.path().join("own"));
    fs::create_dir(dir.path().join("other")).unwrap();
    let unit = feedline_trace::dftracer::TimeUnit::Microseconds;
    draft.write_dftracer(&dir.path().join("other/run.pfw"), unit);
    for name in ["own", "other"] {
        let analysis = analysis_of(&dir.path().join(name));
        assert_eq!(analysis.allocation.ranks, 2, "{name}");
        assert_eq!(analysis.allocation.hosts, ["node0", "node1"], "{name}");
        assert_eq!((analysis.verdict.steps, analysis.verdict.stall_ns), (60, 240_000_000));
        let compute =
            analysis.layers.iter().find(|layer| layer.layer == StackLayer::Compute).unwrap();
        assert_eq!((compute.least_ns, compute.most_ns), (180_000_000, 180_000_000), "{name}");
    }
}

#[test]
fn trap_05_long_runs_do_not_overflow_buckets() {
    // Further apart than 65,536 milliseconds, and than 2^32 microseconds.
    let mut draft = one_rank();
    for at_ns in [0, 70 * S, 5_000 * S, 10_000 * S - MS] {
        draft.moved(WORKER, ("POSIX", "read"), (at_ns, at_ns + MS), "/data/a", (0, 1_000));
    }
    let analysis = draft.analysis();
    assert_eq!(analysis.trace.run_ns, 10_000_000_000_000);
    let timeline = &analysis.timeline;
    let filled: Vec<u64> = (0..)
        .zip(&timeline.calls)
        .filter(|(_, calls)| **calls > 0)
        .map(|(number, _)| number * timeline.bucket_ns / 1_000_000_000)
        .collect();
    let width_s = timeline.bucket_ns.div_ceil(1_000_000_000);
    let places = [0, 70, 5_000, 9_999];
    let mut seen = places.map(|place| {
        filled.iter().filter(|second| **second <= place && place <= **second + width_s).count()
    });
    seen.sort_unstable();
    assert!(seen[0] > 0, "calls at {places:?} s stand at {filled:?} s");
    assert_eq!(timeline.calls.iter().sum::<u64>(), 4);
}

#[test]
fn trap_06_percentiles_are_of_all_calls_not_of_percentiles() {
    // 990 quick calls of one process and 10 slow ones of another: the mean of both medians is far away.
    let mut draft = Draft::default();
    for (process, calls, each_ns) in [(0, 990, 100 * US), (1, 10, 100 * MS)] {
        draft.python("node0", 100 + process);
        let at = At { process, thread: 100 + process };
        for number in 0..calls {
            let from = number * 200 * MS;
            draft.moved(at, ("POSIX", "read"), (from, from + each_ns), "/data/a", (0, 4096));
        }
    }
    let latency = draft.analysis().functions[0].latency;
    assert!(is_about(latency.p50, 100_000) && is_about(latency.p95, 100_000), "{latency:?}");
    assert!(is_about(latency.p99, 100_000), "the 990th of 1000: {latency:?}");
    assert_eq!((latency.min, latency.max), (100_000, 100_000_000));
    assert!((latency.mean - 1_099_000.0).abs() < 0.01, "{latency:?}");
}

/// A line of DFTracer's.
fn line(name: &str, category: &str, thread: u32, time: (u64, u64)) -> String {
    let (start, duration) = time;
    format!(
        "{{\"id\":1,\"name\":\"{name}\",\"cat\":\"{category}\",\"type\":3,\"pid\":100,\
         \"tid\":{thread},\"ts\":{start},\"dur\":{duration},\"ph\":1,\
         \"args\":{{\"hhash\":\"000000000000001f\",\"fhash\":\"00000000000000aa\",\"ret\":4096}}}}\n"
    )
}

fn metadata(name: &str, args: &str) -> String {
    format!(
        "{{\"name\":\"{name}\",\"cat\":\"dftracer\",\"type\":1,\"pid\":100,\"tid\":100,\
         \"ph\":4,\"args\":{{\"hhash\":\"000000000000001f\",{args}}}}}\n"
    )
}

#[test]
fn trap_07_metadata_is_no_event_and_time_zero_no_beginning() {
    const START_US: u64 = 1_700_000_000_000_000;
    let mut text = metadata("FH", "\"name\":\"/data/a\",\"value\":\"00000000000000aa\"");
    text += &metadata("HH", "\"name\":\"node0\",\"value\":\"000000000000001f\"");
    text += &metadata("SH", "\"name\":\"python3\",\"value\":\"00000000000000bb\"");
    text += &metadata("thread_name", "\"name\":\"100\",\"value\":\"thread_name\"");
    text += &metadata("CM", "\"name\":\"time_metric\",\"value\":\"US\"");
    text += &metadata("PR", "\"name\":\"core_affinity\",\"value\":\"0\"");
    for number in 0..25 {
        text += &line("read", "POSIX", 100, (START_US + number * 1_000, 400));
    }
    text += &line("read", "POSIX", 100, (0, 0));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.pfw");
    fs::write(&path, &text).unwrap();
    let analysis = analysis_of(&path);
    assert_eq!(analysis.trace.run_ns, 24_400_000, "fifty years less than since 1970");
    let codes: Vec<_> =
        analysis.health.problems.iter().map(|problem| problem.code.as_str()).collect();
    assert!(codes.contains(&"zero-times"), "{codes:?}");
    let counts: u64 = analysis.functions.iter().map(|function| function.count).sum();
    assert!((25..=26).contains(&counts), "{counts} events, none of them metadata");
    assert_eq!(analysis.timeline.io_ns.iter().sum::<u64>(), 25 * 400_000);
    // Without that record there is nothing to complain about but what the file leaves out.
    fs::write(&path, text.lines().take(31).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let analysis = analysis_of(&path);
    assert_eq!((analysis.trace.events, analysis.trace.run_ns), (25, 24_400_000));
    assert!(analysis.health.problems.iter().all(|problem| problem.code != "zero-times"));
}

#[test]
fn trap_08_the_listed_form_of_an_analysis_can_be_read_back() {
    let analysis = trained(STARVED).analysis();
    assert_eq!((analysis.format.as_str(), analysis.version), ("feedline-analysis", 1));
    let text = serde_json::to_string(&analysis).unwrap();
    assert!(text.len() > 5_000);
    assert!(!text.contains("NaN") && !text.contains("inf"), "strict JSON");
    assert_eq!(serde_json::from_str::<Analysis>(&text).unwrap(), analysis);
}

#[test]
fn trap_09_no_finding_knows_a_site() {
    // The same job, everything sixteen times as slow: other rates, the same shares.
    let slower = Pace {
        steps: STARVED.steps,
        read_ns: 16 * STARVED.read_ns,
        compute_ns: 16 * STARVED.compute_ns,
    };
    for (one, other) in [(STARVED, slower), (FED, Pace { read_ns: FED.read_ns / 4, ..FED })] {
        let [one, other] = [one, other].map(|pace| trained(pace).analysis());
        assert_eq!(codes(&one), codes(&other));
        assert!(!one.findings.is_empty());
        for finding in &one.findings {
            let threshold = finding.threshold.to_ascii_lowercase();
            for rate in ["b/s", "bytes/s", "iops"] {
                assert!(!threshold.contains(rate), "{}: {threshold}", finding.code);
            }
        }
    }
}

#[test]
fn trap_10_reading_alone_is_no_finding() {
    let analysis = trained(FED).analysis();
    assert_eq!(analysis.data.bytes_written, 0);
    assert_eq!(codes(&analysis)[0], "not-input-bound");
    for finding in &analysis.findings {
        assert!(finding.code != "imbalance", "one rank reads: {finding:?}");
        assert!(finding.severity < 0.05, "{finding:?}");
    }
}

/// Reads of a file of 64 MiB: `passes` over `blocks` of its 1024 blocks, each by 64 KiB.
fn passes(passes: i64, blocks: impl Fn() -> Vec<i64>) -> Analysis {
    let mut draft = trained(STARVED);
    draft.events.retain(|event| event.file.is_none());
    let mut at_ns = MS;
    for _ in 0..passes {
        for block in blocks() {
            let (time, place) = ((at_ns, at_ns + 100 * US), (block << 16, 1 << 16));
            draft.moved(WORKER, ("POSIX", "pread64"), time, "/data/big", place);
            at_ns += 100 * US;
        }
    }
    draft.analysis()
}

#[test]
fn trap_11_data_that_was_read_again_is_more_than_its_extent() {
    let again = passes(4, || (0..1024).collect());
    assert_eq!(again.data.extent_read, 64 << 20);
    assert_eq!(again.data.reread_factor, Some(4.0));
    assert_eq!(again.files[0].reread_factor, Some(4.0));
    assert!(codes(&again).contains(&"rereads"), "{:?}", codes(&again));
    // Every fourth block, once: the extent is more than what was read, and nothing was read again.
    let holes = passes(1, || (0..1024).step_by(4).chain([1023]).collect());
    assert_eq!((holes.data.extent_read, holes.data.bytes_read), (64 << 20, 257 << 16));
    assert!(holes.data.reread_factor.unwrap() < 0.26);
    assert!(!codes(&holes).contains(&"rereads"), "{:?}", codes(&holes));
}

#[test]
fn trap_12_calls_of_hdf5_are_known_by_their_name() {
    let mut draft = trained(STARVED);
    let plain = draft.analysis();
    for finding in &plain.findings {
        assert!(!words(finding).to_ascii_lowercase().contains("hdf5"), "{finding:?}");
    }
    for number in 0..10 {
        let time = (number * MS, number * MS + 100 * US);
        let at = At { process: 0, thread: 102 };
        draft.moved(at, ("HDF5", "H5Dread"), time, "/data/a.h5", (number * 4096, 4096));
    }
    let analysis = draft.analysis();
    assert_eq!(function(&analysis, "H5Dread").layer, StackLayer::Storage);
    assert_eq!(analysis.data.bytes_read, plain.data.bytes_read + 40_960);
}

#[test]
fn trap_13_the_length_of_a_name_decides_nothing() {
    let long = "x".repeat(200);
    let [short, long] = ["/d", &format!("/{long}/{long}")].map(|folder| {
        let mut draft = one_rank();
        train(&mut draft, STARVED, |step| format!("{folder}/{step}"));
        draft.analysis()
    });
    assert_eq!(codes(&short), codes(&long));
    for (short, long) in short.findings.iter().zip(&long.findings) {
        assert_eq!(short.explains_ns, long.explains_ns);
        assert_eq!(short.objects.len(), long.objects.len(), "{}", short.code);
        assert!((0.0..=1.0).contains(&short.severity), "{}: {}", short.code, short.severity);
    }
}

#[test]
fn trap_14_a_loader_in_python_gets_no_advice_about_mpi() {
    for pace in [STARVED, FED] {
        for finding in &trained(pace).analysis().findings {
            let words = words(finding).to_ascii_lowercase();
            for word in ["mpi", "collective buffer", "two-phase", "stripe"] {
                assert!(!words.contains(word), "{}: {words}", finding.code);
            }
        }
    }
}

#[test]
fn trap_15_a_bad_storage_target_is_named() {
    // Every fifth file lies on a target that takes forty times as long.
    let mut draft = one_rank();
    let (mut asked_ns, mut free_ns) = (0, 0);
    for step in 1..=100 {
        let is_bad = step % 5 == 0;
        let (from, to) = (free_ns, free_ns + if is_bad { 80 * MS } else { 2 * MS });
        free_ns = to;
        let folder = if is_bad { "target7" } else { "target2" };
        let file = format!("/lustre/{folder}/{step}.npz");
        let batch = draft.span(WORKER, ("dataloader", "batch"), (from, to));
        (batch.epoch, batch.step) = (Some(1), Some(step));
        draft.moved(WORKER, ("POSIX", "pread64"), (from, to), &file, (0, 1 << 20));
        let got_ns = asked_ns.max(to);
        let fetch = draft.span(MAIN, ("dataloader", "fetch.iter"), (asked_ns, got_ns));
        (fetch.epoch, fetch.step) = (Some(1), Some(step));
        draft.span(MAIN, ("compute", "compute"), (got_ns, got_ns + 5 * MS));
        asked_ns = got_ns + 5 * MS;
    }
    let analysis = draft.analysis();
    let top = &analysis.findings[0];
    assert_eq!(top.code, "slow-read", "{:?}", codes(&analysis));
    let worst = top.objects.first().expect("files or folders");
    assert!(worst.contains("target7"), "{:?}", top.objects);
    assert!(analysis.folders[0].path.ends_with("target7"), "{:?}", analysis.folders[0]);
    assert!(analysis.files[0].path.contains("target7"), "{:?}", analysis.files[0]);
}

#[test]
fn trap_16_mapped_files_count() {
    let mut draft = trained(STARVED);
    for number in 0..7 {
        let at = At { process: 0, thread: 102 };
        let time = (number * MS, number * MS + 50 * US);
        let event = draft.call(at, ("POSIX", "mmap"), time, "/data/weights.bin");
        (event.offset, event.size) = (Some(0), Some(1 << 20));
        event.result = Some(0x7f00_0000_0000);
    }
    let analysis = draft.analysis();
    assert_eq!((analysis.access.maps, analysis.access.bytes_mapped), (7, 7 << 20));
    let mapped = function(&analysis, "mmap");
    assert_eq!((mapped.count, mapped.layer, mapped.total_ns), (7, StackLayer::Storage, 350_000));
    let file = analysis.files.iter().find(|file| file.path == "/data/weights.bin").unwrap();
    assert_eq!((file.others, file.ns), (7, 350_000));
    assert_eq!(analysis.data.calls, 47);
    // An address is no number of bytes.
    assert_eq!(analysis.data.bytes_read, 40 << 20);
}

#[test]
fn trap_17_the_same_number_is_the_same_wherever_it_stands() {
    let analysis = trained(STARVED).analysis();
    let bytes = 40 << 20;
    assert_eq!(analysis.data.bytes_read, bytes);
    assert_eq!(function(&analysis, "pread64").bytes, bytes);
    assert_eq!(analysis.timeline.bytes_read.iter().sum::<u64>(), bytes);
    assert_eq!(analysis.files.iter().map(|file| file.bytes_read).sum::<u64>(), bytes);
    assert_eq!(analysis.folders.iter().map(|folder| folder.bytes_read).sum::<u64>(), bytes);
    assert_eq!(analysis.ranks.iter().map(|rank| rank.bytes_read).sum::<u64>(), bytes);
    let storage = analysis.layers.iter().find(|layer| layer.layer == StackLayer::Storage).unwrap();
    assert_eq!((storage.bytes, storage.events), (bytes, analysis.data.calls));
    // The first fetch waits 20 ms for reading, the others what it takes longer than computation.
    let stall_ns = 20_000_000 + 39 * 15_000_000;
    let verdict = &analysis.verdict;
    assert_eq!((verdict.stall_ns, verdict.steps), (stall_ns, 40));
    assert_eq!(verdict.step_ns, stall_ns + 40 * 5_000_000);
    assert_eq!(analysis.stall.iter().map(|part| part.ns).sum::<u64>(), stall_ns);
    assert_eq!(analysis.ranks.iter().map(|rank| rank.stall_ns).sum::<u64>(), stall_ns);
    assert_eq!(analysis.epochs.iter().map(|epoch| epoch.stall_ns).sum::<u64>(), stall_ns);
    assert_eq!(analysis.steps.iter().map(|step| step.stall_ns).sum::<u64>(), stall_ns);
    assert_eq!(analysis.timeline.stall_ns.iter().sum::<u64>(), stall_ns);
    assert_eq!(analysis.steps.len(), 40);
    assert!(analysis.steps.iter().all(|step| step.phase == Phase::Train));
    let read = analysis.stall.iter().find(|part| part.cause == StallCause::Read).unwrap();
    assert_eq!((read.ns, analysis.health.coverage), (stall_ns, Coverage::Full));
    assert!((read.share - 1.0).abs() < 1e-12);
}

/// What is said of one trace is said of it wherever it lies.
#[test]
fn a_trace_under_another_name_has_the_same_analysis() {
    let draft = trained(STARVED);
    let dir = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| {
        let path = dir.path().join(name);
        draft.write_folder(&path);
        without_inputs(&path)
    });
    assert_eq!(one, other);
}

fn without_inputs(path: &Path) -> Analysis {
    let mut analysis = analysis_of(path);
    assert_eq!(analysis.trace.inputs, [path.display().to_string()]);
    analysis.trace.inputs.clear();
    analysis
}
