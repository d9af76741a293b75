//! The floor under any loader: threads that `pread` whole files into buffers they keep.
//!
//! `bare_pread [--whole] [--crc] [--direct] THREADS BLOCK_BYTES PASSES FILE…` prints one JSON object.
//! Each thread takes the next file of the next pass, reads it block by block and forgets it. Its buffer is touched
//! before the clock starts and is one block long, so it stays in the processor's cache; with
//! `--whole` it is as long as the longest file, as for a loader that hands over whole samples. With
//! `--crc` each block is checksummed too, which reading an npz cannot do without.
//! With `--direct` files are opened with `O_DIRECT`. CPU time is that of the reading threads, from the scheduler's own account of each.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use feedline_store::{AlignedBuf, BLOCK_BYTES};

const USAGE: &str =
    "usage: bare_pread [--whole] [--crc] [--direct] THREADS BLOCK_BYTES PASSES FILE...";

/// What to read and how.
struct Job {
    threads: usize,
    block_bytes: usize,
    passes: usize,
    buffer: Buffer,
    after: After,
    open_flags: i32,
    files: Vec<PathBuf>,
}

/// What happens to a block once it is read.
#[derive(Clone, Copy, PartialEq)]
enum After {
    Forgotten,
    Checksummed,
}

#[derive(Clone, Copy, PartialEq)]
enum Buffer {
    Block,
    WholeFile,
}

/// What one thread did.
struct Share {
    bytes: u64,
    cpu_ns: u64,
}

fn main() -> ExitCode {
    match job(std::env::args().skip(1)).and_then(|job| run(&job)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

fn job(args: impl Iterator<Item = String>) -> io::Result<Job> {
    let usage = || io::Error::new(io::ErrorKind::InvalidInput, USAGE);
    let mut args = args.peekable();
    let buffer = match args.next_if(|arg| arg == "--whole") {
        Some(_) => Buffer::WholeFile,
        None => Buffer::Block,
    };
    let after = match args.next_if(|arg| arg == "--crc") {
        Some(_) => After::Checksummed,
        None => After::Forgotten,
    };
    let open_flags = match args.next_if(|arg| arg == "--direct") {
        Some(_) => libc::O_DIRECT,
        None => 0,
    };
    let mut number = || args.next().and_then(|arg| arg.parse().ok()).filter(|&n: &usize| n > 0);
    let threads = number().ok_or_else(usage)?;
    let block_bytes = number().ok_or_else(usage)?;
    let passes = number().ok_or_else(usage)?;
    let files: Vec<PathBuf> = args.map(PathBuf::from).collect();
    if files.is_empty() {
        return Err(usage());
    }
    Ok(Job { threads, block_bytes, passes, buffer, after, open_flags, files })
}

fn run(job: &Job) -> io::Result<()> {
    let mut buffer_bytes = job.block_bytes;
    if job.buffer == Buffer::WholeFile {
        for file in &job.files {
            buffer_bytes = buffer_bytes.max(std::fs::metadata(file)?.len() as usize);
        }
    }
    let next = AtomicUsize::new(0);
    let ready = Barrier::new(job.threads + 1);
    let (shares, wall) = thread::scope(|scope| {
        let readers: Vec<_> = (0..job.threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut buffer = AlignedBuf::new(buffer_bytes.next_multiple_of(BLOCK_BYTES));
                    buffer.fill(1);
                    ready.wait();
                    read_share(job, &next, &mut buffer)
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        let shares: Vec<io::Result<Share>> = readers
            .into_iter()
            .map(|reader| reader.join().expect("readers return errors"))
            .collect();
        (shares, start.elapsed())
    });
    let mut total = Share { bytes: 0, cpu_ns: 0 };
    for share in shares {
        let share = share?;
        total.bytes += share.bytes;
        total.cpu_ns += share.cpu_ns;
    }
    let report = serde_json::json!({
        "threads": job.threads,
        "block_bytes": job.block_bytes,
        "buffer_bytes": buffer_bytes,
        "bytes": total.bytes,
        "wall_s": wall.as_secs_f64(),
        "cpu_s": total.cpu_ns as f64 / 1e9,
    });
    writeln!(io::stdout(), "{report}")
}

fn read_share(job: &Job, next: &AtomicUsize, buffer: &mut [u8]) -> io::Result<Share> {
    let cpu_before_ns = thread_cpu_ns()?;
    let mut bytes = 0;
    loop {
        let turn = next.fetch_add(1, Ordering::Relaxed);
        if turn >= job.passes * job.files.len() {
            return Ok(Share { bytes, cpu_ns: thread_cpu_ns()? - cpu_before_ns });
        }
        bytes += read_file(job, &job.files[turn % job.files.len()], buffer)?;
    }
}

fn read_file(job: &Job, path: &PathBuf, buffer: &mut [u8]) -> io::Result<u64> {
    let file = File::options().read(true).custom_flags(job.open_flags).open(path)?;
    let mut offset = 0_u64;
    let mut checksum = crc32fast::Hasher::new();
    loop {
        let begin = if job.buffer == Buffer::WholeFile { offset as usize } else { 0 };
        let end = (begin + job.block_bytes).min(buffer.len());
        let got = file.read_at(&mut buffer[begin..end], offset)?;
        if got == 0 {
            std::hint::black_box(checksum.finalize());
            return Ok(offset);
        }
        if job.after == After::Checksummed {
            checksum.update(&buffer[begin..begin + got]);
        }
        offset += got as u64;
    }
}

/// Nanoseconds this thread has run, the first number of its `schedstat`.
fn thread_cpu_ns() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no number in schedstat"))
}
