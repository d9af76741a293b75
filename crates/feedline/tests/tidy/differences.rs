//! `docs/dlio-differences.md` explains every fault of DLIO that the code refers to, and names tests that exist.

use std::collections::{BTreeMap, BTreeSet};

use crate::scan::tokens;
use crate::{root, rust_files};

/// Number -> tests that its entry names.
fn entries(page: &str) -> BTreeMap<u32, BTreeSet<String>> {
    let entry = |text: &str| {
        let (number, body) = text.split_once('\n').expect("an entry has a body");
        let tests = body.lines().find_map(|line| line.strip_prefix("- Tests: "));
        let tests = tests.unwrap_or_else(|| panic!("Q{number} names no tests"));
        let names = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (number.parse().unwrap(), names)
    };
    page.split("\n## Q").skip(1).map(entry).collect()
}

/// Numbers that comments refer to, such as `(Q26)`.
fn cited(text: &str) -> BTreeSet<u32> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter_map(|word| word.strip_prefix('Q')?.parse().ok()).collect()
}

/// All functions of a file, as `fn name` declares them.
fn functions(text: &str) -> BTreeSet<String> {
    let tokens = tokens(text);
    let names = tokens.windows(2).filter(|pair| pair[0].text == "fn");
    names.map(|pair| pair[1].text.clone()).collect()
}

/// The number in the name of a test, `q26_…`.
fn number(test: &str) -> Option<u32> {
    test.strip_prefix('q')?.split_once('_')?.0.parse().ok()
}

#[test]
fn citations_and_names_are_found() {
    assert_eq!(cited("// Q26: two steps (Q7), QUIC, Q, iQ3, Q1_x"), [7, 26].into());
    assert_eq!(number("q26_two_steps"), Some(26));
    assert_eq!(number("queue_26"), None);
    let page = "# Page\n\n## Q3\n\n- Tests: `q3_a`, `b`\n\n## Q4\n\n- Tests: no test\n";
    let expected = [(3, ["b".to_owned(), "q3_a".to_owned()].into()), (4, [].into())];
    assert_eq!(entries(page), expected.into());
}

#[test]
fn the_page_of_differences_knows_what_the_code_refers_to() {
    let page = std::fs::read_to_string(root().join("docs/dlio-differences.md")).unwrap();
    let entries = entries(&page);
    assert_eq!(entries.keys().copied().collect::<Vec<_>>(), (0..=46).collect::<Vec<_>>());
    let (mut declared, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for path in rust_files(&root().join("crates")) {
        let text = std::fs::read_to_string(&path).unwrap();
        if !path.ends_with("tidy/differences.rs") {
            seen.extend(cited(&text));
        }
        declared.extend(functions(&text));
    }
    let unknown: Vec<_> = seen.iter().filter(|number| !entries.contains_key(number)).collect();
    assert_eq!(unknown, [&0; 0], "cited without an entry");
    for test in declared.iter().filter(|name| number(name).is_some()) {
        let entry = entries.get(&number(test).unwrap());
        assert!(entry.is_some_and(|tests| tests.contains(test)), "the page does not name `{test}`");
    }
    let named: BTreeSet<_> = entries.into_values().flatten().collect();
    let missing: Vec<_> = named.difference(&declared).collect();
    assert_eq!(missing, [""; 0], "the page names tests that do not exist");
}
