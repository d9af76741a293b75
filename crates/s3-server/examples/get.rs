//! How fast objects come over HTTP: the remote store against a bare client that does nothing else.
//!
//! ```text
//! cargo run --release -p feedline-s3-server --example get -- [MIB_AN_OBJECT] [SECONDS]
//! ```
//!
//! Both ask one server in a process of its own for the same objects, with the same number of threads,
//! and drop the bytes; the bare one is a blocking socket. A signature costs the server time too, so the
//! bare client is run without one and with one, which it makes before the clock starts. One line of JSON
//! a case, rates in GiB/s and requests/s, CPU time of the client alone in s/GiB.

#![allow(clippy::print_stdout, reason = "the result of the example")]

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use feedline_s3_server::{Keys, Server};
use feedline_store::{AlignedBuf, Durability, Remote, RemoteOptions, Store, Writer};
use object_store::aws::{AwsAuthorizer, AwsCredential};
use object_store::client::{HttpRequest, HttpRequestBody};
use serde_json::json;

const OBJECTS: usize = 8;

/// A server in another process, so that its CPU time is not ours.
struct Process {
    child: Child,
    url: String,
}

impl Process {
    fn start() -> Result<Process, Box<dyn Error>> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().ok_or("no output")?).read_line(&mut url)?;
        Ok(Process { child, url: url.trim().to_owned() })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It ends by itself with its input; nobody waits for a server that does not.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve() -> Result<(), Box<dyn Error>> {
    let server = Server::start(Keys::TEST)?;
    server.memory().add_bucket("bucket");
    server.memory().allow_everyone();
    println!("{}", server.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// What a case came to.
struct Run {
    bytes: u64,
    requests: u64,
    wall: Duration,
    cpu: Duration,
}

impl Run {
    fn json(&self, client: &str, threads: usize, object_bytes: usize) -> serde_json::Value {
        let gib = self.bytes as f64 / (1u64 << 30) as f64;
        json!({
            "client": client,
            "threads": threads,
            "object_bytes": object_bytes,
            "gib_per_s": gib / self.wall.as_secs_f64(),
            "requests_per_s": self.requests as f64 / self.wall.as_secs_f64(),
            "cpu_s_per_gib": self.cpu.as_secs_f64() / gib,
        })
    }
}

/// CPU time of all threads so far, in steps of 10 ms.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("every process has one");
    // The name in brackets may contain anything; the times are the 12th and 13th field behind it.
    let fields = stat.rsplit_once(')').expect("a name in brackets").1;
    let ticks = fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>());
    Duration::from_millis(10 * ticks.map(|ticks| ticks.expect("a number")).sum::<u64>())
}

/// Runs `work` on each thread again and again for a while.
fn run<W>(threads: usize, seconds: f64, make: impl Fn() -> W + Sync) -> Run
where
    W: FnMut(usize) -> u64,
{
    let (bytes, requests) = (AtomicU64::new(0), AtomicU64::new(0));
    let (cpu_before, start) = (cpu(), Instant::now());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (bytes, requests, make) = (&bytes, &requests, &make);
            scope.spawn(move || {
                let mut work = make();
                let mut number = thread;
                while start.elapsed().as_secs_f64() < seconds {
                    bytes.fetch_add(work(number % OBJECTS), Ordering::Relaxed);
                    requests.fetch_add(1, Ordering::Relaxed);
                    number += 1;
                }
            });
        }
    });
    let (wall, cpu) = (start.elapsed(), cpu() - cpu_before);
    Run { bytes: bytes.into_inner(), requests: requests.into_inner(), wall, cpu }
}

/// The headers that sign a GET of each object.
fn signatures(url: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let Keys { id, secret } = Keys::TEST;
    let (key_id, secret_key) = (id.to_owned(), secret.to_owned());
    let credential = AwsCredential { key_id, secret_key, token: None };
    let sign = |number| {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.uri_mut() = format!("{url}/bucket/{number}").parse()?;
        AwsAuthorizer::new(&credential, "s3", "us-east-1").try_authorize(&mut request, None)?;
        let mut lines = String::new();
        for (name, value) in request.headers() {
            lines += &format!("{name}: {}\r\n", value.to_str()?);
        }
        Ok(lines)
    };
    (0..OBJECTS).map(sign).collect()
}

/// `headers` are those of each object, beside its host.
fn bare(url: &str, headers: &[String], threads: usize, seconds: f64) -> Run {
    let host = url.trim_start_matches("http://");
    run(threads, seconds, || {
        let mut stream = TcpStream::connect(host).expect("connect");
        stream.set_nodelay(true).expect("no delay");
        let mut buf = AlignedBuf::new(1 << 20);
        move |number| {
            let headers = &headers[number];
            let request = format!("GET /bucket/{number} HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
            stream.write_all(request.as_bytes()).expect("send");
            let (mut filled, head) = (0, loop_head(&mut stream, &mut buf));
            let (head_bytes, mut held, len) = head;
            held -= head_bytes;
            filled += held;
            while filled < len {
                let most = buf.len().min(len - filled);
                filled += stream.read(&mut buf[..most]).expect("read");
            }
            len as u64
        }
    })
}

/// Reads the head of an answer: its length, what came in all, and the length of the body.
fn loop_head(stream: &mut TcpStream, buf: &mut [u8]) -> (usize, usize, usize) {
    let mut held = 0;
    loop {
        held += stream.read(&mut buf[held..]).expect("read");
        let Some(at) = buf[..held].windows(4).position(|four| four == b"\r\n\r\n") else {
            continue;
        };
        let head = std::str::from_utf8(&buf[..at]).expect("a head in ASCII");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let len = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok()
        });
        return (at + 4, held, len.expect("a length"));
    }
}

fn remote(store: &Remote, threads: usize, seconds: f64) -> Run {
    run(threads, seconds, || {
        let mut buf = AlignedBuf::new(1 << 20);
        move |number| {
            let mut object = store.open_whole(&number.to_string()).expect("open");
            let len = object.len().expect("size");
            let mut at = 0;
            while at < len {
                let part = (buf.len() as u64).min(len - at);
                object.read_exact_at(at, &mut buf[..part as usize]).expect("read");
                at += part;
            }
            len
        }
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "serve") {
        return serve();
    }
    let mib: f64 = arguments.first().map_or(Ok(8.), |text| text.parse())?;
    let seconds: f64 = arguments.get(1).map_or(Ok(3.), |text| text.parse())?;
    let object_bytes = (mib * f64::from(1 << 20)) as usize;
    let process = Process::start()?;
    let options = RemoteOptions {
        access_key_id: Some(Keys::TEST.id.to_owned()),
        secret_access_key: Some(Keys::TEST.secret.to_owned()),
        endpoint_url: Some(process.url.clone()),
        ..RemoteOptions::default()
    };
    let store = Remote::connect("s3://bucket", &options)?;
    for number in 0..OBJECTS {
        let mut buf = AlignedBuf::new(1 << 20);
        let mut writer = Writer::create(&store, &number.to_string(), &mut buf)?;
        writer.write_all(&vec![number as u8; object_bytes])?;
        writer.publish(Durability::None)?;
    }
    let (unsigned, signed) = (vec![String::new(); OBJECTS], signatures(&process.url)?);
    // As the bare client asks, so that the server has the same to do for both.
    let plain = RemoteOptions { unsigned: true, ..options };
    let plain = Remote::connect("s3://bucket", &plain)?;
    for threads in [1, 2, 4] {
        let runs = [
            ("bare", bare(&process.url, &unsigned, threads, seconds)),
            ("remote", remote(&plain, threads, seconds)),
            ("bare, signed", bare(&process.url, &signed, threads, seconds)),
            ("remote, signed", remote(&store, threads, seconds)),
        ];
        for (client, run) in runs {
            println!("{}", run.json(client, threads, object_bytes));
        }
    }
    Ok(())
}
