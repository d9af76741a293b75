//! An analysis as one HTML file that opens from disk and asks no network for anything.
//!
//! The numbers are in the page as JSON, the scripts beside it draw them. What is embedded is bounded,
//! so that the page of any trace stays below [`MOST_BYTES`]; what was left out is said on the page.
//! Texts of a trace are hostile: they are in the page as JSON without any `<`, and the scripts show
//! them as text, never as markup.

use feedline_analyze::Analysis;

use crate::metrics::{Metric, of_analysis};

mod data;
mod packed;
mod steps;
mod timeline;

#[cfg(test)]
mod tests;

/// No page is larger, unless the few things that have no limit are.
pub const MOST_BYTES: usize = 5_000_000;

/// Steps that are embedded; the smaller numbers are for pages that would get too large otherwise.
const MOST_STEPS: [usize; 4] = [20_000, 10_000, 5_000, 1_000];

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/page.css");
/// In the order in which they use one another. They share one scope.
const SCRIPTS: [&str; 11] = [
    include_str!("html/format.js"),
    include_str!("html/dom.js"),
    include_str!("html/tooltip.js"),
    include_str!("html/palette.js"),
    include_str!("html/chart.js"),
    include_str!("html/waterfall.js"),
    include_str!("html/heatmap.js"),
    include_str!("html/timeline.js"),
    include_str!("html/table.js"),
    include_str!("html/sections.js"),
    include_str!("html/page.js"),
];

/// The page.
pub fn html_report(analysis: &Analysis) -> String {
    let mut page = String::new();
    for most_steps in MOST_STEPS {
        page = rendered(analysis, most_steps);
        if page.len() < MOST_BYTES {
            break;
        }
    }
    page
}

fn rendered(analysis: &Analysis, most_steps: usize) -> String {
    let data = data::embedded(analysis, most_steps);
    filled(&[
        ("{{title}}", &escaped(&data::title(analysis))),
        ("{{style}}", STYLE),
        ("{{headline}}", &escaped(data::headline(analysis))),
        ("{{definitions}}", &in_script(&definitions().to_string())),
        ("{{data}}", &in_script(&data.to_string())),
        ("{{scripts}}", &SCRIPTS.concat()),
    ])
}

/// The template with its places filled in. What is filled in is not searched for places again.
fn filled(places: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = TEMPLATE;
    for (place, text) in places {
        let (before, after) =
            rest.split_once(place).expect("the template has all places, in order");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}

fn definitions() -> serde_json::Value {
    let entry = |metric: &Metric| {
        let parts = [metric.meaning, metric.formula, metric.caveats];
        let sentences = parts.into_iter().filter(|part| !part.is_empty()).map(sentence);
        let text = sentences.collect::<Vec<_>>().join(" ");
        (metric.name.to_owned(), serde_json::json!([metric.label, text]))
    };
    of_analysis().map(entry).collect::<serde_json::Map<_, _>>().into()
}

fn sentence(fragment: &str) -> String {
    let (first, rest) = fragment.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}

/// JSON that no HTML parser takes for the end of a script: `<` is only ever in its strings.
fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Escapes text between tags.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
