//! Something that workers do is slow: it is named, in traces of both kinds, and so is what it costs.

use feedline_analyze::StallCause;
use feedline_analyze::analysis::Answer;

use crate::job::{Job, Sample, Store};
use crate::judge::Trial;
use crate::truth::Style;

const BOTH: [Style; 2] = [Style::Own, Style::Dlio];

/// A fed job, but for what is slow in it.
fn slow(style: Style, change: impl Fn(&mut Job)) -> Job {
    let mut job = Job::default();
    if style == Style::Dlio {
        job.meeting_us = None;
        job.surplus_us = Some(150);
        job.sample.python_us = 60;
    }
    change(&mut job);
    job
}

#[test]
fn slow_open() {
    for style in BOTH {
        let job = slow(style, |job| job.sample.open_us = 30_000);
        let trial = Trial::of(&job, style);
        trial.check_cause("slow-open", StallCause::Open);
        assert_eq!(trial.analysis.verdict.answer, Answer::InputBound);
        let packed =
            Job { sample: Sample { open_us: 0, close_us: 0, ..job.sample }, ..job.clone() };
        trial.check_prediction("packed", &packed);
        trial.check_prediction("storage 2x", &job.with_storage(2));
    }
}

#[test]
fn slow_read() {
    for style in BOTH {
        let job = slow(style, |job| job.sample.read_us = 8_000);
        let trial = Trial::of(&job, style);
        trial.check_cause("slow-read", StallCause::Read);
        assert_eq!(trial.analysis.verdict.answer, Answer::InputBound);
        trial.check_prediction("storage 2x", &job.with_storage(2));
        trial.check_prediction("storage 4x", &job.with_storage(4));
    }
}

#[test]
fn slow_decode() {
    for style in BOTH {
        let job = slow(style, |job| job.sample.decode_us = 25_000);
        let trial = Trial::of(&job, style);
        trial.check_cause("slow-decode", StallCause::Decode);
        let faster = Job { sample: Sample { decode_us: 12_500, ..job.sample }, ..job.clone() };
        trial.check_prediction("decode 2x", &faster);
        // Faster storage would not help: a prediction must say so too.
        trial.check_prediction("storage 4x", &job.with_storage(4));
    }
}

#[test]
fn slow_transform() {
    for style in BOTH {
        let job = slow(style, |job| job.sample.transform_us = 25_000);
        let trial = Trial::of(&job, style);
        trial.check_cause("slow-transform", StallCause::Transform);
        trial.check_prediction("storage 4x", &job.with_storage(4));
    }
}

#[test]
fn slow_collate() {
    for style in BOTH {
        let trial = Trial::of(&slow(style, |job| job.collate_us = 90_000), style);
        trial.check_cause("slow-collate", StallCause::Collate);
    }
}

/// Only traces of interpreters have it.
#[test]
fn slow_code_between_the_calls() {
    let trial = Trial::of(&slow(Style::Dlio, |job| job.sample.python_us = 25_000), Style::Dlio);
    trial.check_cause("python-bound", StallCause::Python);
}

#[test]
fn slow_object_store() {
    let job = Job {
        store: Store::Objects,
        sample: Sample { read_us: 8_000, open_us: 4_000, ..Job::default().sample },
        ..Job::default()
    };
    let trial = Trial::of(&job, Style::Own);
    trial.check_cause("object-store", StallCause::ObjectStore);
    trial.check_prediction("storage 2x", &job.with_storage(2));
}

/// Twice the computation, twice the storage's time: all seconds double and nothing else changes.
#[test]
fn a_job_twice_as_slow_has_the_same_findings() {
    let job = Job { jitter_percent: 0, ..slow(Style::Own, |job| job.sample.read_us = 8_000) };
    let twice = Job {
        sample: Sample {
            open_us: job.sample.open_us * 2,
            read_us: job.sample.read_us * 2,
            close_us: job.sample.close_us * 2,
            decode_us: job.sample.decode_us * 2,
            transform_us: job.sample.transform_us * 2,
            ..job.sample
        },
        collate_us: job.collate_us * 2,
        hand_off_us: job.hand_off_us * 2,
        compute_us: job.compute_us * 2,
        start_up_us: job.start_up_us * 2,
        ..job.clone()
    };
    let [once, twice] = [&job, &twice].map(|job| Trial::of(job, Style::Own));
    let codes = |trial: &Trial| -> Vec<String> {
        trial.analysis.findings.iter().map(|finding| finding.code.clone()).collect()
    };
    assert_eq!(codes(&once), codes(&twice));
    once.check_cause("slow-read", StallCause::Read);
    twice.check_cause("slow-read", StallCause::Read);
}
