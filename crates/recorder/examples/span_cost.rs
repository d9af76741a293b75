//! What a span costs: `span_cost FOLDER [counter]` times spans that nobody records, then spans that go
//! into segments in FOLDER; nanoseconds each, the best of several rounds.

use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;

use feedline_recorder::{Config, Site, Tags, Text, is_counter_trusted, recorder};

static SITE: Site = Site::new("data", "item");
const SPANS: u64 = 200_000;
const ROUNDS: usize = 20;

/// Nanoseconds of a span, the best of several rounds.
fn cost() -> f64 {
    let round = || {
        let begin = Instant::now();
        for number in 0..SPANS {
            let mut span = SITE.begin();
            span.tag(Tags { epoch: Some(1), sample: Some(black_box(number)), ..Tags::NONE });
        }
        begin.elapsed().as_nanos() as f64 / SPANS as f64
    };
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| "/dev/shm".to_owned());
    let off = cost();
    let config = Config {
        folder: Text::new(folder.as_bytes()).ok_or(std::io::ErrorKind::InvalidFilename)?,
        counter: arguments.next().is_some() && is_counter_trusted(),
        ..Config::EMPTY
    };
    if !recorder().start(&config, std::iter::empty()) {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    let on = cost();
    writeln!(std::io::stdout(), "off {off:.2} ns, on {on:.2} ns, counter {}", config.counter)
}
