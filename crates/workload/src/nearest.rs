//! The known name that comes nearest to an unknown one.

use crate::node::Node;

/// Least likeness, of 1, that makes a suggestion worth showing.
const LIKENESS: f64 = 0.7;

/// The most alike of several names, if any is alike at all. Ties go to the first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(f64, &str)> = None;
    for candidate in known {
        let score = likeness(name, candidate);
        if score >= LIKENESS && best.is_none_or(|(top, _)| score > top) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// How alike two names are, case aside: 1 for equal ones.
pub(crate) fn likeness(left: &str, right: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(&left.to_lowercase(), &right.to_lowercase())
}

/// The dotted path in the tree, or in the schema, that is nearest to one that is in neither.
///
/// The same last name in another section comes first: a misplaced key is the commonest mistake.
pub(crate) fn nearest_key(root: &Node, key: &str) -> Option<String> {
    let mut paths = Vec::new();
    collect(root, "", &mut paths);
    let last = key.rsplit('.').next().unwrap_or(key);
    if let Some(path) = paths.iter().find(|path| path.rsplit('.').next() == Some(last)) {
        return Some(path.clone());
    }
    nearest(key, paths.iter().map(String::as_str)).map(str::to_owned)
}

/// Every path of the tree.
fn collect(node: &Node, path: &str, out: &mut Vec<String>) {
    let Some(map) = node.as_map() else { return };
    for (key, child) in map.iter() {
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        collect(child, &path, out);
        out.push(path);
    }
}
