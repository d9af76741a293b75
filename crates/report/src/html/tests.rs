//! Pages of analyses that were made up. What they look like is judged in a browser.

use feedline_analyze::analysis::Coverage;
use serde_json::Value;

use super::*;
use crate::metrics::find;

#[path = "../../examples/made_up/analysis.rs"]
mod made_up;

/// The text of the script with that name.
fn script<'a>(page: &'a str, id: &str) -> &'a str {
    let opening = format!("<script type=\"application/json\" id=\"{id}\">");
    let (_, rest) = page.split_once(&opening).expect("the page has it");
    rest.split_once("</script>").expect("it ends").0
}

fn data(page: &str) -> Value {
    serde_json::from_str(script(page, "data")).expect("it is JSON")
}

#[test]
fn the_numbers_are_in_the_page() {
    let analysis = made_up::analysis(made_up::SMALL);
    let data = data(&html_report(&analysis));
    assert_eq!(data["verdict"]["answer"], "Input-bound");
    assert_eq!(data["verdict"]["stall_ns"], analysis.verdict.stall_ns);
    assert_eq!(data["steps"]["rank"].as_array().unwrap().len(), 2_000);
    assert_eq!(data["steps"]["all"], 2_000);
    assert_eq!(data["waterfall"]["step"].as_array().unwrap().len(), 250);
    assert_eq!(data["files"]["rows"].as_array().unwrap().len(), 1_000);
    assert_eq!(data["files"]["all"], 1_200);
    assert_eq!(data["timeline"]["buckets"], 600);
    assert_eq!(data["heat_map"]["rows"].as_array().unwrap().len(), 8);
    assert_eq!(data["findings"]["rows"].as_array().unwrap().len(), 5);
    assert_eq!(data["causes"][1], "read");
}

#[test]
fn names_of_a_trace_cannot_leave_their_script() {
    let mut analysis = made_up::analysis(made_up::SMALL);
    analysis.trace.inputs = vec!["</title><script>alert(1)</script>{{data}}".into()];
    let page = html_report(&analysis);
    assert!(!page.contains("<img"), "no markup of a path");
    assert!(!page.contains("<script>"), "no script without its nonce");
    assert_eq!(page.matches("</script>").count(), 3, "the page's own");
    assert!(page.contains("<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{data}} - "));
    let data = data(&page);
    let paths = data["files"]["rows"].as_array().unwrap();
    assert!(paths.iter().any(|file| file["path"] == made_up::HOSTILE), "it is there as text");
}

#[test]
fn a_page_of_512_ranks_and_200_000_steps_is_below_its_limit_and_says_what_it_left_out() {
    let analysis = made_up::analysis(made_up::LARGE);
    assert_eq!(analysis.steps.len(), 200_192);
    let page = html_report(&analysis);
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    let data = data(&page);
    assert_eq!(data["steps"]["all"], 200_192);
    assert_eq!(data["steps"]["rank"].as_array().unwrap().len(), 20_000);
    assert_eq!(data["steps"]["worst"], 5_000);
    assert_eq!(data["timeline"]["buckets"], 1_000);
    assert_eq!(data["heat_map"]["rows"].as_array().unwrap().len(), 512);
    assert_eq!(data["heat_map"]["buckets"], 250);
}

#[test]
fn fewer_steps_are_embedded_if_a_page_would_get_too_large() {
    let mut analysis = made_up::analysis(made_up::SMALL);
    analysis.steps = vec![analysis.steps; 11].concat();
    analysis.findings[0].sql = "x".repeat(2_800_000);
    let page = html_report(&analysis);
    assert!(page.len() < MOST_BYTES, "{} bytes", page.len());
    assert_eq!(data(&page)["steps"]["rank"].as_array().unwrap().len(), 10_000);
}

#[test]
fn calls_alone_bear_no_claim_about_steps() {
    let analysis = made_up::calls_only();
    assert_eq!(analysis.health.coverage, Coverage::CallsOnly);
    let data = data(&html_report(&analysis));
    for claim in ["verdict", "stall", "what_if", "epochs", "steps", "waterfall", "stragglers"] {
        assert_eq!(data.get(claim), None, "{claim}");
    }
    assert_eq!(data["functions"]["all"], 5);
}

#[test]
fn an_empty_analysis_has_a_page() {
    let data = data(&html_report(&Analysis::default()));
    assert_eq!(data["heat_map"], Value::Null);
    assert_eq!(data["timeline"]["buckets"], 0);
}

/// Names that the scripts give to `term` or to a column.
#[test]
fn every_name_that_the_scripts_explain_is_defined_and_every_definition_is_used() {
    let scripts = SCRIPTS.concat();
    let mut used: Vec<&str> = Vec::new();
    for opening in ["term(\"", "fact(\""] {
        used.extend(scripts.split(opening).skip(1).map(|rest| rest.split('"').next().unwrap()));
    }
    assert!(used.len() > 20, "they were found");
    for key in used {
        assert!(find(of_analysis(), key).is_some(), "{key} is not defined");
    }
    let causes = feedline_analyze::StallCause::ALL.map(feedline_analyze::StallCause::name);
    for found in of_analysis().filter(|found| !causes.contains(&found.name)) {
        // What an overlap is about comes from the analysis.
        let is_known = ["app-io", "loader", "checkpoint"].contains(&found.name);
        assert!(is_known || scripts.contains(&format!("\"{}\"", found.name)), "{}", found.name);
    }
}

#[test]
fn nothing_outside_of_the_page_is_named_in_it() {
    let page = html_report(&made_up::analysis(made_up::SMALL));
    for word in ["http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest", "innerHTML"] {
        assert!(!page.contains(word), "{word}");
    }
}
