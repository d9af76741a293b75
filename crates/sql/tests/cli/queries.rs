//! What tables, views and functions hold, against values worked out by hand.

use crate::bed::Bed;

#[test]
fn tables_have_every_row_of_every_file() {
    let bed = Bed::new();
    assert_eq!(
        bed.csv(
            "select (select count(*) from events) as e, (select count(*) from files) as f, \
             (select count(*) from processes) as p, (select count(*) from calls) as c, \
             (select count(*) from spans) as s"
        ),
        "e,f,p,c,s\n11,3,2,9,1\n"
    );
}

#[test]
fn files_that_begin_with_a_dot_are_not_there_yet() {
    let bed = Bed::new();
    let events = std::fs::read_dir(bed.path("trace/events")).unwrap();
    let whole = events.map(|entry| entry.unwrap().path()).next().unwrap();
    let name = whole.file_name().unwrap().to_str().unwrap();
    std::fs::copy(&whole, whole.with_file_name(format!(".{name}"))).unwrap();
    std::fs::write(bed.path("trace/events/.half.parquet"), "PAR1 and no more").unwrap();
    std::fs::write(bed.path("trace/events/notes.txt"), "no table").unwrap();
    assert_eq!(bed.csv("select count(*) as n from events"), "n\n11\n");
}

#[test]
fn calls_come_with_path_and_rank() {
    let bed = Bed::new();
    assert_eq!(
        bed.csv(
            "select host, pid, rank, thread, start, duration_ns, end_ns - start_ns as ns, kind, class, \
             path, \"offset\", bytes, errno from calls where name = 'read' order by start"
        ),
        "\
host,pid,rank,thread,start,duration_ns,ns,kind,class,path,offset,bytes,errno
box,100,0,1,2027-01-15T08:00:00.000000010Z,100,100,call,read,/data/a.npz,0,4096,0
box,100,0,2,2027-01-15T08:00:00.000000060Z,100,100,call,read,/data/a.npz,4096,4096,0
box,200,1,7,2027-01-15T08:00:00.000001020Z,300,300,call,read,/data/b.npz,0,1000,0
box,200,1,7,2027-01-15T08:00:00.000001400Z,50,50,call,read,/data/b.npz,0,,5
box,200,1,7,2027-01-15T08:00:00.000003Z,500,500,summary,read,/data/b.npz,0,10000,0
"
    );
    assert_eq!(
        bed.csv("select rank, category, name, duration_ns, epoch, step from spans"),
        "rank,category,name,duration_ns,epoch,step\n0,dataloader,fetch,220,1,1\n"
    );
}

#[test]
fn busy_time_counts_overlaps_once() {
    let bed = Bed::new();
    let reads = "from calls where class = 'read' and kind = 'call'";
    assert_eq!(
        bed.csv(&format!(
            "select rank, busy_ns(start_ns, end_ns) as busy, sum(duration_ns) as sum {reads} \
             group by rank order by rank"
        )),
        "rank,busy,sum\n0,150,200\n1,350,350\n"
    );
    // Timestamps instead of numbers, nothing at all, and a filter that leaves half of it.
    assert_eq!(
        bed.csv(&format!(
            "select busy_ns(start, start + arrow_cast(duration_ns, 'Duration(ns)')) as all, \
             busy_ns(start_ns, end_ns) filter (where rank = 1) as one, \
             busy_ns(start_ns, end_ns) filter (where rank = 9) as none {reads}"
        )),
        "all,one,none\n500,350,0\n"
    );
}

#[test]
fn buckets_take_nanoseconds_and_intervals() {
    let bed = Bed::new();
    assert_eq!(
        bed.csv(
            "select time_bucket(1000, start) as bucket, count(*) as n from events group by 1 order by 1"
        ),
        "\
bucket,n
2027-01-15T08:00:00Z,5
2027-01-15T08:00:00.000001Z,3
2027-01-15T08:00:00.000002Z,2
2027-01-15T08:00:00.000003Z,1
"
    );
    assert_eq!(
        bed.csv(
            "select time_bucket(interval '1 hour', start) as hour, time_bucket('2 microseconds', \
             start) as two, time_bucket(1000, duration) as ns from events where kind = 'summary'"
        ),
        "hour,two,ns\n2027-01-15T08:00:00Z,2027-01-15T08:00:00.000002Z,0\n"
    );
    assert_eq!(
        bed.csv("select time_bucket(1000, 2999) as a, time_bucket(1000, -1) as b"),
        "a,b\n2000,-1000\n"
    );
}

#[test]
fn statements_build_on_one_another_and_limits_are_the_users() {
    let bed = Bed::new();
    bed.write(
        "two.sql",
        "create view slow as select * from calls where duration_ns >= 100; -- a view\n\
         select count(*) as n from slow;\nselect name from calls order by start_ns;",
    );
    let ran = bed.run(&["trace", "-f", "two.sql", "--format", "csv", "--limit", "2"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("n\n4\n\nname\nopen\nread\n", Some(0)));
}

#[test]
fn without_a_query_the_tables_are_listed() {
    let bed = Bed::new();
    let analysis = bed.analysis();
    let ran = bed.run(&["trace", "--analysis", analysis.to_str().unwrap()]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "table      rows  column              type");
    assert_eq!(lines[2], "events       11  process             int64");
    assert_eq!(lines[4], "events       11  start               timestamp[ns, UTC]");
    assert!(lines.contains(&"files         3  path                string"), "{}", ran.stdout);
    assert!(lines.contains(&"calls         9  bytes               int64"), "{}", ran.stdout);
    assert!(lines.contains(&"stalls        4  ns                  int64"), "{}", ran.stdout);
    // 23 of events, 2 of files, 19 of processes; 22 of calls, 16 of spans; 12, 11, 6, 5, 8, 9, 5; 10 of file_use.
    assert_eq!(lines.len(), 2 + 23 + 2 + 19 + 23 + 16 + 12 + 11 + 6 + 5 + 8 + 9 + 5 + 10);
    let ran = bed.run(&["trace"]);
    assert_eq!(
        ran.stderr,
        "steps, epochs, stalls, findings, functions, ranks, layers, overlaps, file_use, folder_use, \
         stragglers, checkpoints, what_if, timeline, health: written by `feedline analyze` when a query \
         names one of them\n"
    );
    assert_eq!(ran.stdout.lines().count(), 2 + 23 + 2 + 19 + 23 + 16);
}

#[test]
fn a_trace_without_files_has_an_empty_table_of_them() {
    let bed = Bed::new();
    for entry in std::fs::read_dir(bed.path("trace/files")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!(bed.csv("select * from files"), "id,path\n");
    assert_eq!(bed.csv("select count(*) as n, count(path) as paths from calls"), "n,paths\n9,0\n");
}
