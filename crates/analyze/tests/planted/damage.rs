//! Traces that are not what they should be: the report says so, and what it still says is right.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use feedline_analyze::StallCause;
use feedline_analyze::analysis::{Analysis, Problem};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::course::Course;
use crate::draft::{S, analysis_of};
use crate::job::{Job, Sample};
use crate::judge::write_dlio;
use crate::truth::{Style, Truth};
use crate::{dlio, own};

fn problem<'a>(analysis: &'a Analysis, code: &str) -> &'a Problem {
    let problems = &analysis.health.problems;
    let codes: Vec<_> = problems.iter().map(|problem| problem.code.as_str()).collect();
    let found = problems.iter().find(|problem| problem.code == code);
    found.unwrap_or_else(|| panic!("no `{code}` in {codes:?}"))
}

#[test]
fn a_clock_that_is_two_minutes_ahead() {
    let sample = Sample { read_us: 8_000, ..Job::default().sample };
    let job = Job { ranks: 2, hosts: 2, jitter_percent: 0, sample, ..Job::default() };
    let course = Course::of(&job);
    let truth = Truth::of(&course, Style::Own);
    assert_eq!(truth.part_ns(StallCause::Peer), 0, "equal ranks do not wait for each other");
    let mut draft = own::draft(&course);
    assert_eq!(draft.analysis().health.problems, [], "nothing is wrong with the job itself");
    for event in draft.events.iter_mut().filter(|event| event.process == 1) {
        event.start_ns += 120 * S;
    }
    draft.of(1).start_ns += 120 * S;
    let analysis = draft.analysis();
    let skew = problem(&analysis, "clock-skew");
    assert!(skew.limits_claims);
    assert!(skew.places.iter().any(|place| place.contains("node1")), "{:?}", skew.places);
    // What a rank does by itself is on one clock, and so it is right.
    assert_eq!(analysis.verdict.stall_ns, truth.stall_ns());
    assert_eq!(analysis.verdict.step_ns, truth.step_ns());
    for cause in StallCause::ALL {
        let part = analysis.stall.iter().find(|part| part.cause == cause);
        assert_eq!(part.map_or(0, |part| part.ns), truth.part_ns(cause), "{}", cause.name());
    }
    // What compares the clocks of two machines is not said.
    let codes: Vec<_> = analysis.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert!(!codes.contains(&"straggler-rank"), "{codes:?}");
    assert_eq!(codes[0], "slow-read");
}

/// A job of DLIO's with slow reads in files of DFTracer; the file of a worker, as lines.
struct Torn {
    course: Course,
    dir: tempfile::TempDir,
    file: PathBuf,
    lines: Vec<String>,
}

impl Torn {
    fn new() -> Self {
        let sample = Sample { read_us: 8_000, ..Job::default().sample };
        let job = Job { meeting_us: None, sample, ..Job::default() };
        let course = Course::of(&job);
        let dir = tempfile::tempdir().unwrap();
        write_dlio(&dlio::draft(&course), dir.path());
        let mut files: Vec<PathBuf> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert_eq!(files.len(), 5, "one a process");
        let is_worker = |path: &&PathBuf| decoded(path).contains("\"pid\":1002,");
        let file = files.iter().find(is_worker).expect("worker 2").clone();
        let lines = decoded(&file).lines().map(str::to_owned).collect();
        Self { course, dir, file, lines }
    }

    /// Writes the worker's file anew, so many lines a gzip member; the ends of the members.
    fn repack(&self, lines: usize) -> Vec<usize> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for lines in self.lines.chunks(lines) {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
            bytes.extend(encoder.finish().unwrap());
            ends.push(bytes.len());
        }
        fs::write(&self.file, bytes).unwrap();
        ends
    }

    fn cut(&self, length: usize) {
        let bytes = fs::read(&self.file).unwrap();
        fs::write(&self.file, &bytes[..length]).unwrap();
    }

    /// Analyzes what is left, checks what the cut has not touched, and gives the reads that were found.
    fn check(&self) -> u64 {
        let analysis = analysis_of(self.dir.path());
        let truth = Truth::of(&self.course, Style::Dlio);
        let torn = problem(&analysis, "truncated-file");
        assert_eq!((torn.count, torn.limits_claims), (1, true));
        let name = self.file.file_name().unwrap().to_string_lossy();
        assert!(torn.places.iter().any(|place| place.contains(&*name)), "{:?}", torn.places);
        // The consumer's file is whole.
        assert_eq!(analysis.verdict.stall_ns, truth.stall_ns());
        assert_eq!(analysis.verdict.step_ns, truth.step_ns());
        for step in &analysis.steps {
            assert_eq!(step.parts_ns.iter().sum::<u64>(), step.stall_ns);
        }
        let reads = analysis.functions.iter().find(|function| function.name == "read").unwrap();
        assert_eq!(reads.bytes, reads.count * 65_536);
        assert_eq!(analysis.data.bytes_read, reads.bytes);
        reads.count
    }

    /// Reads of the other three workers.
    fn other_reads(&self) -> u64 {
        let of_batch = |batch: u64| batch * 4 * 3;
        of_batch(self.course.steps.iter().filter(|step| step.batch.worker != 2).count() as u64)
    }
}

fn decoded(path: &Path) -> String {
    let mut bytes = Vec::new();
    // What comes before a damage is what is wanted.
    _ = MultiGzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn reads_in<'a>(lines: impl Iterator<Item = &'a str>) -> u64 {
    lines.filter(|line| line.contains("\"name\":\"read\"") && line.ends_with("}}")).count() as u64
}

#[test]
fn a_file_that_ends_between_two_members() {
    let torn = Torn::new();
    let ends = torn.repack(100);
    assert!(ends.len() > 4, "{} lines", torn.lines.len());
    let whole = ends.len() / 2;
    // Five bytes of the next member's head.
    torn.cut(ends[whole - 1] + 5);
    let left = reads_in(torn.lines[..whole * 100].iter().map(String::as_str));
    assert!(left > 20);
    assert_eq!(torn.check(), torn.other_reads() + left);
}

#[test]
fn a_file_that_ends_inside_of_a_member() {
    let torn = Torn::new();
    let ends = torn.repack(400);
    assert!(ends.len() > 1, "{} lines", torn.lines.len());
    torn.cut(ends[0] + (ends[1] - ends[0]) / 2);
    let whole = reads_in(torn.lines[..400].iter().map(String::as_str));
    let most = reads_in(decoded(&torn.file).lines());
    assert!(whole < most, "a part of the second member can be read");
    let found = torn.check() - torn.other_reads();
    assert!((whole..=most).contains(&found), "{found} reads, of {whole} to {most}");
}

#[test]
fn a_file_that_ends_inside_of_a_line() {
    let torn = Torn::new();
    let plain = torn.file.with_extension("");
    let text = torn.lines.join("\n");
    fs::remove_file(&torn.file).unwrap();
    let cut = text.len() / 2;
    let torn = Torn { file: plain, ..torn };
    fs::write(&torn.file, &text[..cut]).unwrap();
    assert_eq!(torn.check(), torn.other_reads() + reads_in(text[..cut].lines()));
}
