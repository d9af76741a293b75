//! Rust source as words and signs, without comments and literals: enough to find functions in it.
//!
//! No parser of Rust on purpose: `syn` with its features for tests would make cargo build all procedural
//! macros twice, once for `cargo test` and once for `cargo build`, and all that depends on them.

/// A word or a sign, and the line that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

pub(crate) fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = code;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, is_code) = next(rest, first);
        let (text, after) = rest.split_at(length);
        if is_code {
            tokens.push(Token { text: text.to_owned(), line });
        }
        line += text.matches('\n').count();
        rest = after;
    }
    tokens
}

/// The length of what comes next, and whether it is code.
fn next(rest: &str, first: char) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), false);
    }
    if let Some(length) = literal(rest) {
        return (length, false);
    }
    if is_of_word(first) {
        return (rest.find(|c| !is_of_word(c)).unwrap_or(rest.len()), true);
    }
    (first.len_utf8(), !first.is_whitespace())
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Block comments nest in Rust.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        let here = &rest[at..];
        if here.is_empty() {
            return at;
        } else if here.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if here.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += here.chars().next().map_or(0, char::len_utf8);
        }
    }
}

/// The length of the text or character that `rest` begins with, if it does.
fn literal(rest: &str) -> Option<usize> {
    let quoted = rest.trim_start_matches(['b', 'c', 'r']);
    let prefix = &rest[..rest.len() - quoted.len()];
    if !["", "b", "c", "r", "br", "cr"].contains(&prefix) {
        return None;
    }
    if prefix.ends_with('r') {
        let hashes = quoted.len() - quoted.trim_start_matches('#').len();
        let body = quoted[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    if let Some(body) = quoted.strip_prefix('"') {
        return Some(prefix.len() + 1 + escaped(body, '"'));
    }
    let body = quoted.strip_prefix('\'')?;
    let mut chars = body.chars();
    // `'a'` is a character, `'a` a lifetime.
    let is_character = chars.next()? == '\\' || chars.next()? == '\'';
    is_character.then(|| prefix.len() + 1 + escaped(body, '\''))
}

/// The length up to and with a quote that no backslash stands before.
fn escaped(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    body.len()
}

#[test]
fn comments_and_literals_are_no_code() {
    let check = |code: &str, expected: &[&str]| {
        let found = tokens(code);
        assert_eq!(found.iter().map(|token| &*token.text).collect::<Vec<_>>(), expected, "{code}");
    };
    check("fn f() {}", &["fn", "f", "(", ")", "{", "}"]);
    check("a // {\nb /* { /* } */ { */ c", &["a", "b", "c"]);
    check(r#"a "{ \" {" b "\\" c"#, &["a", "b", "c"]);
    check(r###"a r"\" b r#"" { "# br##"{"# "## c"###, &["a", "b", "c"]);
    check(r"a '{' b '\'' c b'\\' d", &["a", "b", "c", "d"]);
    check(
        "f::<'a>(&'static x, 'é')",
        &["f", ":", ":", "<", "'", "a", ">", "(", "&", "'", "static", "x", ",", ")"],
    );
    check("r#type + bar + crate", &["r", "#", "type", "+", "bar", "+", "crate"]);
}

#[test]
fn lines_count_through_comments_and_literals() {
    let found = tokens("a\n/* 2\n3 */ b\n\"4\n5\" c\n");
    let lines: Vec<_> = found.iter().map(|token| (&*token.text, token.line)).collect();
    assert_eq!(lines, [("a", 1), ("b", 3), ("c", 5)]);
}
