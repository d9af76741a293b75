//! How fast DFTracer's files are read: `read_dftracer parse FILE…` parses every piece once, as an
//! analyzer does that resolves hashes at the end; `read_dftracer source FILE…` reads them as `feedline
//! convert` does. Compare with `zcat FILE… >/dev/null`.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;

use feedline_trace::dftracer::{Chunk, DftracerSource, ParseScope};
use feedline_trace::{Batch, EventSource as _, Tables};
use flate2::read::MultiGzDecoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mode = std::env::args().nth(1).unwrap_or_default();
    let paths: Vec<PathBuf> = std::env::args_os().skip(2).map(PathBuf::from).collect();
    let mut events = 0;
    if mode == "parse" {
        for path in &paths {
            events += parse(path)?;
        }
    } else {
        let mut source = DftracerSource::open(paths)?;
        let (mut tables, mut batch) = (Tables::default(), Batch::default());
        while source.next_batch(&mut tables, &mut batch)? {
            events += batch.events.len();
        }
    }
    writeln!(io::stdout(), "{events} events")?;
    Ok(())
}

fn parse(path: &PathBuf) -> io::Result<usize> {
    let mut decoder = MultiGzDecoder::new(io::BufReader::new(std::fs::File::open(path)?));
    let (mut buffer, mut filled, mut items) = (vec![0; 1 << 20], 0, 0);
    loop {
        let bytes = decoder.read(&mut buffer[filled..])?;
        filled += bytes;
        if bytes > 0 && filled < buffer.len() {
            continue;
        }
        let end =
            buffer[..filled].iter().rposition(|byte| *byte == b'\n').map_or(filled, |at| at + 1);
        items += Chunk::parse(&buffer[..end], ParseScope::Everything).items.len();
        buffer.copy_within(end..filled, 0);
        filled -= end;
        if bytes == 0 {
            return Ok(items);
        }
    }
}
