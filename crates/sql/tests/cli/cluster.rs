//! A cluster of one scheduler and two executors on this machine, and what it answers.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::bed::Bed;

/// What a cluster knows beside Ballista's functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Functions {
    Ours,
    Stock,
}

pub(crate) struct Cluster {
    address: String,
    processes: Vec<Child>,
}

impl Cluster {
    /// Starts it; its executors are ready then.
    pub(crate) fn start(bed: &Bed, functions: Functions) -> Self {
        let (scheduler, ready) = program(bed, functions, &["scheduler", "127.0.0.1:0"]);
        let ready = ready.expect("a scheduler that starts");
        let address = ready.strip_prefix("scheduler ready at ").expect("its address").to_owned();
        let mut cluster = Self { address, processes: vec![scheduler] };
        for number in 0..2 {
            cluster.add_executor(bed, functions, number);
        }
        cluster
    }

    /// A port that is free now may be taken a moment later; then there is another one.
    fn add_executor(&mut self, bed: &Bed, functions: Functions, number: usize) {
        let work = bed.path(&format!("work-{number}"));
        std::fs::create_dir_all(&work).expect("a temporary folder");
        for _ in 0..10 {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("a bound port").to_string();
            drop(listener);
            let work = work.to_str().expect("a plain path");
            let args = ["executor", &self.address, &address, work];
            let (mut executor, ready) = program(bed, functions, &args);
            if ready.is_some() {
                self.processes.push(executor);
                return;
            }
            executor.wait().expect("an executor that ended");
        }
        panic!("no executor starts");
    }

    pub(crate) fn engine(&self) -> String {
        format!("ballista://{}", self.address)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Starts the example, and waits for the line that says that it is ready.
fn program(bed: &Bed, functions: Functions, args: &[&str]) -> (Child, Option<String>) {
    // Tests stand in `deps`, examples beside it.
    let own = std::env::current_exe().expect("a test");
    let folder: PathBuf = own.ancestors().nth(2).expect("a target folder").into();
    let mut child = Command::new(folder.join("examples/cluster"))
        .args(args)
        .args((functions == Functions::Stock).then_some("--stock"))
        .env("TMPDIR", bed.path("."))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the example `cluster` is built with the tests");
    let stdout = child.stdout.take().expect("a pipe");
    let line = BufReader::new(stdout).lines().next();
    (child, line.map(|line| line.expect("text")))
}

/// Queries whose answers do not depend on an order that they do not ask for.
const QUERIES: [&str; 12] = [
    "select * from events order by start, thread, name",
    "select * from files order by id",
    "select * from processes order by id",
    "select * from calls order by start_ns, thread, name",
    "select rank, busy_ns(start_ns, end_ns) as busy, count(*) as n from calls group by rank order by rank",
    "select busy_ns(start_ns, end_ns) as busy from calls where kind = 'call'",
    "select time_bucket(1000, start) as bucket, count(*) as n from events group by 1 order by 1",
    "select f.path, sum(e.result) as bytes from events e join files f on e.file = f.id \
     where e.class = 'read' group by f.path order by f.path",
    "select name, approx_distinct(process) as n, avg(duration) as mean from events group by name order by name",
    "select name, duration, rank() over (order by duration desc, start) as place from events order by place",
    "select count(*) as n from events where duration > (select avg(duration) from events)",
    "select name from events where false",
];

#[test]
fn a_cluster_gives_the_same_tables() {
    let bed = Bed::new();
    let cluster = Cluster::start(&bed, Functions::Ours);
    for query in QUERIES {
        let here = bed.csv(query);
        assert_eq!(bed.ask(query, &["--engine", &cluster.engine()]), here, "{query}");
    }
    let query = "select busy_ns(start_ns, end_ns) as busy from calls where kind = 'call'";
    // [0,160) and [200,205) of rank 0; [1000,1320), [1400,1450) and [2000,2040) of rank 1.
    assert_eq!(bed.csv(query), "busy\n575\n");
    // The list of tables, and a table without a file.
    for entry in std::fs::read_dir(bed.path("trace/files")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let there = bed.run(&["trace", "--engine", &cluster.engine()]);
    assert_eq!(there.stdout, bed.run(&["trace"]).stdout);
    assert_eq!(there.code, Some(0));
}

#[test]
fn a_stock_cluster_buckets_times_and_names_what_it_lacks() {
    let bed = Bed::new();
    let cluster = Cluster::start(&bed, Functions::Stock);
    let engine = cluster.engine();
    let query = "select time_bucket(1000, start) as bucket, count(*) as n, max(time_bucket('1 second', start)) \
                 as second from events group by 1 order by 1";
    assert_eq!(bed.ask(query, &["--engine", &engine]), bed.csv(query));
    let query = "select busy_ns(start_ns, end_ns) from calls";
    let ran = bed.run(&["trace", query, "--engine", &engine]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(
        lines[0].starts_with(&format!("error: the cluster at {} reports: ", cluster.address)),
        "{lines:?}"
    );
    assert_eq!(
        lines[1],
        "hint: Ballista ships functions by name: register busy_ns in the scheduler and the executors, \
         as crates/sql/examples/cluster.rs does"
    );
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
}

#[test]
fn files_that_a_cluster_does_not_see_are_an_error_and_not_empty() {
    let bed = Bed::new();
    let cluster = Cluster::start(&bed, Functions::Ours);
    let engine = cluster.engine();
    // A path that is another one in every process.
    let ran = bed.run(&["/proc/self/cwd/trace", "select name from events", "--engine", &engine]);
    assert_eq!(
        ran.stderr,
        "error: table `events` has 11 rows here and 0 on the cluster\n\
         hint: scheduler and executors must see /proc/self/cwd/trace under the same path, on a shared \
         file system\n"
    );
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    let statements = "create table t as select 1 as one; select * from t";
    let ran = bed.run(&["trace", statements, "--engine", &engine]);
    assert_eq!(
        ran.stderr,
        "error: the cluster does not know tables made by `create table`\n\
         hint: use `create view`\n"
    );
    // Names that patterns and addresses would take apart.
    let odd = "a b [x] 100% é?*";
    std::fs::rename(bed.path("trace"), bed.path(odd)).unwrap();
    let query = ["select count(*) as n from calls", "--format", "csv"];
    assert_eq!(bed.run(&[&[odd], &query[..]].concat()).stdout, "n\n9\n");
    let ran = bed.run(&[&[odd], &query[..], &["--engine", &engine]].concat());
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("n\n9\n", ""));
}
