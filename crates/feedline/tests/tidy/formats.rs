//! A sample format is one module and one line in `FORMATS`: nothing else lists formats.

use std::fs;

use feedline_workload::{FORMATS, keys_markdown};

use crate::{root, rust_files};

/// So many different names of formats make a list. What is true of single formats may be said.
const LIST_LEN: usize = 4;

#[test]
fn no_source_but_that_of_the_formats_lists_them() {
    for path in rust_files(&root().join("crates")) {
        let relative = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
        let is_source = relative.contains("/src/") && !relative.contains("/tests");
        if !is_source || relative.starts_with("crates/formats/") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let named = FORMATS.iter().filter(|format| code.contains(&format!("\"{}\"", format.name)));
        assert!(named.count() < LIST_LEN, "{relative} lists sample formats");
    }
}

#[test]
fn the_reference_pages_name_every_format() {
    let page = |name: &str| fs::read_to_string(root().join("docs").join(name)).unwrap();
    let (keys, formats) = (keys_markdown(), page("formats.md"));
    for format in FORMATS {
        let name = format!("`{format}`");
        assert!(keys.contains(&name), "{name} is missing in the table of keys");
        assert!(formats.contains(&name), "{name} is missing in docs/formats.md");
    }
}
