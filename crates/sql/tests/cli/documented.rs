//! The queries of `docs/sql.md`: none of them is broken, and a cluster answers them in the same way.

use std::path::Path;

use crate::bed::Bed;
use crate::cluster::{Cluster, Functions};

/// The blocks of SQL on the page.
fn queries() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql.md");
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = text.split("```sql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(str::to_owned).collect()
}

#[test]
fn every_query_of_the_page_gives_the_same_here_and_on_a_cluster() {
    let bed = Bed::new();
    let analysis = bed.analysis();
    let analysis = analysis.to_str().unwrap();
    let cluster = Cluster::start(&bed, Functions::Ours);
    let queries = queries();
    assert!(queries.len() >= 10, "the page was read: {}", queries.len());
    for query in queries {
        let here = bed.ask(&query, &["--analysis", analysis]);
        assert!(here.lines().count() > 1, "no rows: {query}");
        let there = bed.ask(&query, &["--analysis", analysis, "--engine", &cluster.engine()]);
        assert_eq!(here, there, "{query}");
    }
}

/// The queries that findings of an analysis name, as they stand in its source.
fn findings() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analyze/src/findings");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let begun = text.split("\"SELECT ").skip(1);
        let whole = begun.map(|rest| format!("SELECT {}", rest.split('"').next().unwrap()));
        // What is put in when a finding is made: a cause, a rank.
        found.extend(whole.map(|query| query.replace("{name}", "read").replace("{rank}", "1")));
    }
    found
}

#[test]
fn every_query_of_a_finding_runs() {
    let bed = Bed::new();
    let analysis = bed.analysis();
    let queries = findings();
    assert!(queries.len() >= 14, "the source was read: {}", queries.len());
    for query in queries {
        let answer = bed.ask(&query, &["--analysis", analysis.to_str().unwrap()]);
        assert!(answer.lines().count() >= 1, "{query}");
    }
}
