//! Files and functions stay small, and no function takes a bare `bool`.
//!
//! `exceptions.txt` names what was larger when the limits came; it may only get shorter.

use std::collections::BTreeSet;
use std::path::Path;

use crate::scan::{Token, tokens};
use crate::{root, rust_files};

const LONGEST_FILE: usize = 800;
const LONGEST_FUNCTION: usize = 70;

/// What a pair of braces belongs to.
#[derive(Debug, Clone, Default)]
struct Scope {
    /// The name of a module, type, trait or function; empty for every other block.
    name: String,
    is_test: bool,
    /// The parameters of a trait's method are the trait's, which may be another crate's.
    implements_trait: bool,
    /// Where a function's signature begins.
    function_line: Option<usize>,
}

/// What of a file is over a limit: `function PATH name` and `bool PATH name`.
struct Excess<'a> {
    path: &'a str,
    tokens: Vec<Token>,
    /// The braces that are open at the current place.
    open: Vec<Scope>,
    found: BTreeSet<String>,
}

impl<'a> Excess<'a> {
    fn of(path: &'a str, code: &str) -> BTreeSet<String> {
        let mut excess =
            Self { path, tokens: tokens(code), open: Vec::new(), found: BTreeSet::new() };
        excess.scan();
        excess.found
    }

    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &token.text)
    }

    fn scan(&mut self) {
        let (mut at, mut next) = (0, Scope::default());
        while at < self.tokens.len() {
            match self.text(at) {
                "#" if self.text(at + 1) == "[" => {
                    let end = self.closing(at + 1);
                    let attribute: Vec<_> = (at + 2..end).map(|at| self.text(at)).collect();
                    next.is_test |= ["test", "cfg(test)"].contains(&&*attribute.concat());
                    at = end;
                }
                "mod" | "trait" => next.name = self.text(at + 1).to_owned(),
                "impl" if self.is_item(at) => at = self.implementation(at, &mut next),
                "fn" if is_name(self.text(at + 1)) => at = self.function(at, &mut next),
                "{" => self.open.push(std::mem::take(&mut next)),
                ";" => next = Scope::default(),
                "}" => self.close(at),
                _ => {}
            }
            at += 1;
        }
        assert!(self.open.is_empty(), "{}: braces do not match", self.path);
    }

    /// Whether an `impl` opens a block, and is not the type of a parameter.
    fn is_item(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |before| self.text(before));
        ["", ";", "{", "}", "]", "unsafe"].contains(&before)
    }

    /// Reads up to the brace of an `impl`; answers with the place before it.
    fn implementation(&self, at: usize, next: &mut Scope) -> usize {
        let end = self.find(at, &["{"]);
        let mut depth = 0;
        for place in at + 1..end {
            match self.text(place) {
                "<" => depth += 1,
                ">" if self.text(place - 1) != "-" => depth -= 1,
                "for" if depth == 0 => next.implements_trait = true,
                "where" if depth == 0 => break,
                name if depth == 0 && is_name(name) => next.name = name.to_owned(),
                _ => {}
            }
        }
        end - 1
    }

    /// Reads up to the brace or semicolon after a signature; answers with the place before it.
    fn function(&mut self, at: usize, next: &mut Scope) -> usize {
        let start = self.find(at, &["("]);
        let close = self.closing(start);
        // A macro's table of functions has `=` or `=>` after a signature.
        let end = self.find(close + 1, &["{", ";", "="]);
        next.name = self.text(at + 1).to_owned();
        next.function_line = Some(self.tokens[at].line);
        let is_free = !self.open.last().is_some_and(|scope| scope.implements_trait);
        if is_free && self.has_bool(start + 1, close) {
            self.open.push(next.clone());
            self.note("bool");
            self.open.pop();
        }
        if self.text(end) == "=" {
            *next = Scope::default();
        }
        end - 1
    }

    /// Whether one of the parameters in these places is a `bool` and nothing around it.
    fn has_bool(&self, start: usize, end: usize) -> bool {
        let is_end = |at: usize| at == end || self.text(at) == ",";
        let mut depth = 0;
        for at in start..end {
            match self.text(at) {
                "(" | "[" | "<" => depth += 1,
                ")" | "]" => depth -= 1,
                ">" if self.text(at - 1) != "-" => depth -= 1,
                "bool" if depth == 0 && self.text(at - 1) == ":" && is_end(at + 1) => return true,
                _ => {}
            }
        }
        false
    }

    /// The first of these signs from here on that is in no brackets or parentheses.
    fn find(&self, mut at: usize, signs: &[&str]) -> usize {
        let mut angles = 0;
        while at < self.tokens.len() {
            match self.text(at) {
                sign if angles == 0 && signs.contains(&sign) => return at,
                "(" | "[" => at = self.closing(at),
                "<" => angles += 1,
                ">" if self.text(at - 1) != "-" => angles -= 1,
                _ => {}
            }
            at += 1;
        }
        panic!("{}: no {signs:?} before the end", self.path);
    }

    /// Where a parenthesis or bracket is closed again.
    fn closing(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.tokens.len() {
            match self.text(at) {
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at;
            }
        }
        panic!("{}: line {} is not closed", self.path, self.tokens[open].line);
    }

    fn close(&mut self, at: usize) {
        let end = self.tokens[at].line;
        let scope = self.open.last().unwrap_or_else(|| panic!("{}:{end}: no brace", self.path));
        if scope.function_line.is_some_and(|start| end - start + 1 > LONGEST_FUNCTION) {
            self.note("function");
        }
        self.open.pop();
    }

    /// The innermost scope is over a limit; tests may be.
    fn note(&mut self, kind: &str) {
        if !self.open.iter().any(|scope| scope.is_test) {
            let names: Vec<_> = self.open.iter().map(|scope| &*scope.name).collect();
            let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();
            self.found.insert(format!("{kind} {} {}", self.path, names.join("::")));
        }
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The code of a file without the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

/// Whether a file is a test or belongs to one; their functions may be as long as their cases need.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| part == "tests" || part == "tests.rs")
}

fn excess_of_tree() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut seen = 0;
    for path in rust_files(&root().join("crates")) {
        seen += 1;
        let name = relative(&path);
        let text = std::fs::read_to_string(&path).unwrap();
        if without_tests(&text).lines().count() > LONGEST_FILE {
            found.insert(format!("file {name}"));
        }
        if !is_test_file(&name) {
            found.extend(Excess::of(&name, &text));
        }
    }
    assert!(seen > 50, "the tree was found");
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// What the tests of this file count, by example.
fn check(code: &str, expected: &[&str]) {
    let found = Excess::of("a.rs", code);
    assert_eq!(found, expected.iter().map(|&line| line.to_owned()).collect());
}

/// A function with this many lines, from the line with its name to its closing brace.
fn of_lines(signature: &str, lines: usize) -> String {
    format!("{signature} {{\n{}}}\n", "    call();\n".repeat(lines - 2))
}

#[test]
fn a_function_counts_from_its_name_to_its_last_brace() {
    check(&of_lines("fn short()", LONGEST_FUNCTION), &[]);
    check(&of_lines("fn long()", LONGEST_FUNCTION + 1), &["function a.rs long"]);
    let method = of_lines("fn long(&self)", LONGEST_FUNCTION + 1);
    check(&format!("mod m {{ impl T {{ {method} }} }}"), &["function a.rs m::T::long"]);
    check(&format!("impl A for T {{ {method} }}"), &["function a.rs T::long"]);
    check(
        &format!("impl<F: Fn() -> u8> A<F> for T<F> where F: B {{ {method} }}"),
        &["function a.rs T::long"],
    );
    check(&format!("trait A {{ {method} }}"), &["function a.rs A::long"]);
    let comment = "/// Doc.\n".repeat(LONGEST_FUNCTION);
    check(&format!("{comment}#[inline]\n{}", of_lines("fn short()", 3)), &[]);
}

#[test]
fn tests_may_be_long() {
    let long = of_lines("fn long()", LONGEST_FUNCTION + 1);
    check(&format!("#[test]\n{long}"), &[]);
    check(&format!("#[cfg(test)]\nmod tests {{ {long} }}"), &[]);
    check(&format!("#[cfg(test)]\nmod tests;\n{long}"), &["function a.rs long"]);
    assert!(is_test_file("crates/bench/tests/data.rs"));
    assert!(is_test_file("crates/bench/src/generate/tests.rs"));
    assert!(!is_test_file("crates/bench/src/generate.rs"));
}

#[test]
fn a_bool_counts_where_its_parameter_is_declared() {
    check("fn f(is_open: bool) {}", &["bool a.rs f"]);
    check("impl T { fn f(&self, is_open: bool) {} }", &["bool a.rs T::f"]);
    check("trait A { fn f(&self, is_open: bool); }", &["bool a.rs A::f"]);
    check("impl A for T { fn f(&self, is_open: bool) {} }", &[]);
    check("fn f() -> bool { |is_open: bool| is_open }", &[]);
    check("fn f(set: &mut bool, may: Option<bool>) {}", &[]);
    check("fn f<F: Fn(bool) -> bool>(it: F, of: [bool; 2], at: usize) {}", &[]);
    check("fn f<F>(it: F, is_open: bool,) -> [u8; 4] where F: Fn(u8) {}", &["bool a.rs f"]);
    check("hooks! { fn a(x: u8) -> u8 = f; fn b(x: bool) => g; }", &["bool a.rs b"]);
    check("type F = fn(bool); struct S { is_open: bool }", &[]);
}

#[test]
fn files_and_functions_stay_small_and_take_no_bool() {
    let list = std::fs::read_to_string(root().join("crates/feedline/tests/tidy/exceptions.txt"));
    let list = list.unwrap();
    let excepted: BTreeSet<String> =
        list.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let found = excess_of_tree();
    let over: Vec<_> = found.difference(&excepted).collect();
    assert_eq!(over, [""; 0], "over a limit: see CONTRIBUTING.md, \"Limits\"");
    let needless: Vec<_> = excepted.difference(&found).collect();
    assert_eq!(needless, [""; 0], "within the limits now: delete these lines of exceptions.txt");
}
