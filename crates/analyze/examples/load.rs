//! How fast traces are read: `load THREADS MEMORY_MIB CACHE PATH…` opens traces and streams their rows into
//! nothing; CACHE is a folder, or `-` for none. Compare with `zcat FILE… >/dev/null`.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use feedline_analyze::Row;
use feedline_analyze::load::{LoadOptions, NoProgress, Trace};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("load THREADS MEMORY_MIB CACHE PATH…");
    let (threads, memory, cache) = (next()?, next()?, next()?);
    let options = LoadOptions {
        threads: threads.parse()?,
        memory_bytes: memory.parse::<u64>()? << 20,
        cache: (cache != "-").then(|| PathBuf::from(cache)),
        ..LoadOptions::default()
    };
    let paths: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let begin = Instant::now();
    let trace = Trace::open(&paths, &options, &NoProgress)?;
    let opened = begin.elapsed();
    let (mut rows, mut check, mut last) = (0_u64, 0_u64, i64::MIN);
    trace.stream(&NoProgress, &|_| true, &|| (), &mut |some: &[Row]| {
        rows += some.len() as u64;
        for row in some {
            assert!(last <= row.start_ns, "rows are out of order");
            last = row.start_ns;
        }
        if let Some(row) = some.last() {
            check = check.rotate_left(7) ^ row.bytes ^ u64::from(row.file);
        }
    })?;
    let mut out = io::stdout();
    writeln!(out, "{} events, {rows} rows, {} lanes", trace.events, trace.lanes.len())?;
    writeln!(out, "open {opened:?}, all {:?}", begin.elapsed())?;
    writeln!(out, "rows took at most {} MiB", trace.peak_bytes() >> 20)?;
    for problem in &trace.problems {
        writeln!(out, "{}: {} {} {:?}", problem.code, problem.count, problem.text, problem.places)?;
    }
    Ok(())
}
