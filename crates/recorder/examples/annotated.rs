//! A program that says what it does, as docs/annotations.md shows it, and whether anybody listens.

use std::io::Write as _;

use feedline_recorder::{Site, Tags, is_recording};

static WHOLE: Site = Site::new("ai_root", "ai_root");
static STEP: Site = Site::new("pipeline", "step");
static QUEUE: Site = Site::new("loader", "queue");

fn step(epoch: i64, number: i64) {
    let mut span = STEP.begin();
    span.tag(Tags { epoch: Some(epoch), step: Some(number), ..Tags::NONE });
    span.tags.sample = Some(10 * number.unsigned_abs());
    span.tags.size = Some(4096);
    if number == 2 {
        return;
    }
    QUEUE.count(1.5 * number as f64);
}

fn main() -> std::io::Result<()> {
    let span = WHOLE.begin();
    for number in 1..=3 {
        step(1, number);
    }
    span.end();
    WHOLE.begin().cancel();
    writeln!(std::io::stdout(), "{}", u8::from(is_recording()))
}
