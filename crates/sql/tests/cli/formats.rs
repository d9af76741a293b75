//! Every format says the same.

use std::io::Read as _;
use std::process::Stdio;

use datafusion::arrow::array::AsArray as _;
use datafusion::arrow::datatypes::{Int64Type, TimestampNanosecondType};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::bed::{BEGIN_NS, Bed};

const QUERY: &str = "select name, start, value, step, [1, 2] as list from events \
                     where kind in ('counter', 'span') order by start";

fn formatted(bed: &Bed, format: &str) -> String {
    let ran = bed.run(&["trace", QUERY, "--format", format]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    ran.stdout
}

#[test]
fn text_formats() {
    let bed = Bed::new();
    assert_eq!(
        formatted(&bed, "table"),
        "\
name   start                           value  step  list
-----  ------------------------------  -----  ----  ------
fetch  2027-01-15T08:00:00Z             NULL     1  [1, 2]
depth  2027-01-15T08:00:00.000002500Z    2.5  NULL  [1, 2]
"
    );
    assert_eq!(
        formatted(&bed, "csv"),
        "name,start,value,step,list\nfetch,2027-01-15T08:00:00Z,,1,\"[1, 2]\"\n\
         depth,2027-01-15T08:00:00.000002500Z,2.5,,\"[1, 2]\"\n"
    );
    let rows = [
        r#"{"name":"fetch","start":"2027-01-15T08:00:00Z","value":null,"step":1,"list":[1,2]}"#,
        r#"{"name":"depth","start":"2027-01-15T08:00:00.000002500Z","value":2.5,"step":null,"list":[1,2]}"#,
    ];
    assert_eq!(formatted(&bed, "json"), format!("[{}]\n", rows.join(",")));
    assert_eq!(formatted(&bed, "ndjson"), format!("{}\n", rows.join("\n")));
}

#[test]
fn results_without_rows_keep_their_columns() {
    let bed = Bed::new();
    let shown = |format| {
        bed.run(&["trace", "select name, size from events where false", "--format", format]).stdout
    };
    assert_eq!(shown("table"), "name  size\n----  ----\n");
    assert_eq!(shown("csv"), "name,size\n");
    assert_eq!(shown("json"), "[]\n");
    assert_eq!(shown("ndjson"), "");
}

#[test]
fn no_number_of_json_is_nan() {
    let bed = Bed::new();
    let ran = bed.run(&["trace", "select 0e0 / 0 as x, 1e0 / 0 as y", "--format", "ndjson"]);
    assert_eq!(ran.stdout, "{\"x\":null,\"y\":null}\n");
}

#[test]
fn parquet_can_be_read_again() {
    let bed = Bed::new();
    let ran = bed.run(&["trace", QUERY, "--format", "parquet", "--out", "result.parquet"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("", "", Some(0)));
    let file = std::fs::File::open(bed.path("result.parquet")).unwrap();
    let mut reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert_eq!(batch.num_rows(), 2);
    assert_eq!(
        batch.column(1).as_primitive::<TimestampNanosecondType>().values(),
        &[BEGIN_NS, BEGIN_NS + 2500]
    );
    let list = batch.column(4).as_list::<i32>().value(1);
    assert_eq!(list.as_primitive::<Int64Type>().values(), &[1, 2]);
    // To a pipe it goes as well.
    let output = bed.command(&["trace", QUERY, "--format", "parquet"]).output().unwrap();
    assert_eq!(output.stdout, std::fs::read(bed.path("result.parquet")).unwrap());
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn files_are_replaced_on_request_only_and_appear_when_complete() {
    let bed = Bed::new();
    bed.write("out.csv", "mine");
    let ran = bed.run(&["trace", "select 1 as one", "--format", "csv", "--out", "out.csv"]);
    assert_eq!(ran.stderr, "error: out.csv exists\nhint: use --overwrite to replace it\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    // A query that breaks in the middle leaves what was there, and nothing beside it.
    let broken = "select 1 / (size - 512) from events";
    let ran = bed.run(&["trace", broken, "--format", "csv", "--out", "out.csv", "--overwrite"]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("error: Divide by zero error\n", Some(2)));
    assert_eq!(std::fs::read_to_string(bed.path("out.csv")).unwrap(), "mine");
    let args = ["trace", "select 1 as one", "--format", "csv", "--out", "out.csv", "--overwrite"];
    assert_eq!(bed.run(&args).code, Some(0));
    assert_eq!(std::fs::read_to_string(bed.path("out.csv")).unwrap(), "one\n1\n");
    let mut names: Vec<_> = std::fs::read_dir(bed.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["out.csv", "trace"]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let bed = Bed::new();
    for format in ["table", "csv", "json", "ndjson", "parquet"] {
        // Far more than a pipe holds.
        let query = "select a.value as n, repeat('x', 100) as t from \
                     generate_series(1, 100000) a";
        let mut child = bed
            .command(&["trace", query, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 4];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((stderr.as_str(), output.status.code()), ("", Some(0)), "{format}");
    }
}

#[test]
fn one_parquet_file_is_one_result() {
    let bed = Bed::new();
    let args = ["trace", "select 1; select 2", "--format", "parquet", "--out", "two.parquet"];
    let ran = bed.run(&args);
    assert_eq!(
        ran.stderr,
        "error: a Parquet file holds one result, but there are several\n\
         hint: pass one statement, or choose another --format\n"
    );
    assert_eq!(ran.code, Some(2));
    assert!(!bed.path("two.parquet").exists());
}
