//! Parses the value of an override, in Hydra's grammar, which is not YAML.
//!
//! Numbers, truth values and `null` in any case, quoted and bare text, lists and mappings. Unlike
//! in YAML, `off`, `on`, `yes`, `no` and `None` are text, and an empty value is an empty text.

use crate::node::{Map, Node, Value};

/// Deepest nesting of lists and mappings accepted.
const DEPTH_LIMIT: usize = 100;

/// What is wrong with a value and at which character, counted from 0.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ValueError {
    pub(crate) at: usize,
    pub(crate) reason: String,
}

/// Reads a whole value.
pub(crate) fn parse_value(text: &str) -> Result<Node, ValueError> {
    let mut cursor = Cursor { chars: text.chars().collect(), at: 0, depth: 0 };
    cursor.skip_blanks();
    if cursor.peek().is_none() {
        return Ok(Node::from(""));
    }
    let node = cursor.element(Stop::End)?;
    cursor.skip_blanks();
    match cursor.peek() {
        None => Ok(node),
        Some(',') => {
            Err(cursor.error("sweeps are not supported; write a list in brackets, `[a,b]`"))
        }
        Some(c) => Err(cursor.error(&format!("unexpected `{c}` after the value"))),
    }
}

/// Which character ends a bare text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    End,
    ListItem,
    MapKey,
    MapValue,
}

struct Cursor {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Cursor {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
    }

    fn error(&self, reason: &str) -> ValueError {
        ValueError { at: self.at, reason: reason.to_owned() }
    }

    fn element(&mut self, stop: Stop) -> Result<Node, ValueError> {
        self.skip_blanks();
        match self.peek() {
            Some('[') => self.nested(Self::list),
            Some('{') => self.nested(Self::map),
            Some(quote @ ('\'' | '"')) => self.quoted(quote).map(Node::from),
            _ => self.bare(stop).map(|text| Node::new(typed(&text))),
        }
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Node, ValueError>,
    ) -> Result<Node, ValueError> {
        if self.depth == DEPTH_LIMIT {
            return Err(self.error(&format!("more than {DEPTH_LIMIT} levels of nesting")));
        }
        self.depth += 1;
        self.at += 1;
        let node = read(self);
        self.depth -= 1;
        node
    }

    fn list(&mut self) -> Result<Node, ValueError> {
        let mut items = Vec::new();
        self.skip_blanks();
        if self.peek() == Some(']') {
            self.at += 1;
            return Ok(Node::from(items));
        }
        loop {
            items.push(self.element(Stop::ListItem)?);
            self.skip_blanks();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(']') => {
                    self.at += 1;
                    return Ok(Node::from(items));
                }
                Some(c) => return Err(self.error(&format!("expected `,` or `]`, found `{c}`"))),
                None => return Err(self.error("unclosed list, expected `]`")),
            }
        }
    }

    fn map(&mut self) -> Result<Node, ValueError> {
        let mut map = Map::new();
        self.skip_blanks();
        if self.peek() == Some('}') {
            self.at += 1;
            return Ok(Node::from(map));
        }
        loop {
            self.skip_blanks();
            let key = match self.peek() {
                Some(quote @ ('\'' | '"')) => self.quoted(quote)?,
                _ => self.bare(Stop::MapKey)?,
            };
            self.skip_blanks();
            match self.peek() {
                Some(':') => self.at += 1,
                Some(c) => {
                    return Err(self.error(&format!("expected `:` after the key, found `{c}`")));
                }
                None => return Err(self.error("unclosed mapping, expected `:`")),
            }
            let node = self.element(Stop::MapValue)?;
            if map.insert(key.clone(), node).is_some() {
                return Err(self.error(&format!("duplicate key `{key}`")));
            }
            self.skip_blanks();
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => {
                    self.at += 1;
                    return Ok(Node::from(map));
                }
                Some(c) => return Err(self.error(&format!("expected `,` or `}}`, found `{c}`"))),
                None => return Err(self.error("unclosed mapping, expected `}`")),
            }
        }
    }

    /// A text in quotes. A backslash escapes the quote and itself; elsewhere it is literal.
    fn quoted(&mut self, quote: char) -> Result<String, ValueError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                c if c == quote => return Ok(text),
                '\\' => match self.peek() {
                    Some(next) if next == quote || next == '\\' => {
                        text.push(next);
                        self.at += 1;
                    }
                    _ => text.push('\\'),
                },
                c => text.push(c),
            }
        }
        Err(ValueError { at: start, reason: format!("unclosed quote {quote}") })
    }

    /// A text without quotes; `${…}` is kept as it is.
    fn bare(&mut self, stop: Stop) -> Result<String, ValueError> {
        let start = self.at;
        let mut text = String::new();
        let mut kept = 0;
        while let Some(c) = self.peek() {
            match c {
                ',' => break,
                ']' | '}' if stop != Stop::End => break,
                ':' if stop == Stop::MapKey => break,
                '\\' if self
                    .chars
                    .get(self.at + 1)
                    .is_some_and(|&next| ESCAPABLE.contains(next)) =>
                {
                    text.push(self.chars[self.at + 1]);
                    self.at += 2;
                    kept = text.len();
                    continue;
                }
                '$' if self.chars.get(self.at + 1) == Some(&'{') => {
                    self.reference(&mut text)?;
                    kept = text.len();
                    continue;
                }
                '(' if !text.is_empty() => {
                    return Err(self
                        .error("functions and sweeps are not supported; put the text in quotes"));
                }
                '(' | ')' | '[' | ']' | '{' | '}' | '\'' | '"' => {
                    return Err(self.error(&format!("`{c}` must be quoted or escaped with `\\`")));
                }
                c => text.push(c),
            }
            self.at += 1;
            if c != ' ' && c != '\t' {
                kept = text.len();
            }
        }
        text.truncate(kept);
        if self.at == start && stop != Stop::End {
            return Err(self.error(match stop {
                Stop::MapKey => "expected a key",
                _ => "expected a value",
            }));
        }
        Ok(text)
    }

    fn reference(&mut self, text: &mut String) -> Result<(), ValueError> {
        let start = self.at;
        while let Some(c) = self.peek() {
            text.push(c);
            self.at += 1;
            if c == '}' {
                return Ok(());
            }
        }
        Err(ValueError { at: start, reason: "unclosed `${`".to_owned() })
    }
}

/// Characters that a backslash escapes in a bare text.
const ESCAPABLE: &str = "\\()[]{}:=, \t'\"";

/// The value of a bare text.
fn typed(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "null" => return Value::Null,
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "inf" | "+inf" => return Value::Float(f64::INFINITY),
        "-inf" => return Value::Float(f64::NEG_INFINITY),
        "nan" | "+nan" | "-nan" => return Value::Float(f64::NAN),
        _ => {}
    }
    number(text).unwrap_or_else(|| Value::Str(text.to_owned()))
}

/// A number: `12`, `-1_000`, `1.5`, `.5`, `1.`, `1e-3`. Leading zeros make a text, as in Hydra.
fn number(text: &str) -> Option<Value> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let exponent_ok = exponent.is_none_or(|e| grouped(e.strip_prefix(['+', '-']).unwrap_or(e)));
    let whole_ok = whole == "0" || (grouped(whole) && !whole.starts_with('0'));
    let mantissa_ok = match fraction {
        Some("") => whole_ok,
        Some(fraction) => grouped(fraction) && (whole_ok || whole.is_empty()),
        None => whole_ok,
    };
    if !exponent_ok || !mantissa_ok {
        return None;
    }
    let clean = text.replace('_', "");
    if fraction.is_none()
        && exponent.is_none()
        && let Ok(value) = clean.parse()
    {
        return Some(Value::Int(value));
    }
    clean.parse().ok().map(Value::Float)
}

/// Digits, with single underscores between them.
fn grouped(text: &str) -> bool {
    !text.is_empty()
        && text
            .split('_')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::to_yaml;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(parse_value(text), Ok(Node::new(expected)), "{text}");
    }

    #[track_caller]
    fn check_text(text: &str, expected: &str) {
        check(text, Value::Str(expected.to_owned()));
    }

    #[test]
    fn numbers_words_and_null() {
        check("12", Value::Int(12));
        check("-3", Value::Int(-3));
        check("1_000", Value::Int(1000));
        check("1e-3", Value::Float(0.001));
        check("1.", Value::Float(1.0));
        check(".5", Value::Float(0.5));
        check("INF", Value::Float(f64::INFINITY));
        check("9223372036854775808", Value::Float(9_223_372_036_854_775_808.0));
        check("TRUE", Value::Bool(true));
        check("False", Value::Bool(false));
        check("NULL", Value::Null);
        check("0", Value::Int(0));
    }

    #[test]
    fn what_yaml_would_convert_stays_text() {
        for text in
            ["off", "on", "yes", "no", "None", "~", "0x1f", "007", "1:30", "1__0", "1e", "-"]
        {
            check_text(text, text);
        }
    }

    #[test]
    fn texts_bare_and_quoted() {
        check_text("", "");
        check_text("  ", "");
        check_text("/mnt/data set/x ", "/mnt/data set/x");
        check_text("http://localhost:9020", "http://localhost:9020");
        check_text("a=b", "a=b");
        check_text("'12'", "12");
        check_text("\"a, 'b'\"", "a, 'b'");
        check_text("'it\\'s'", "it's");
        check_text("'a\\\\b\\n'", "a\\b\\n");
        check_text("a\\,b", "a,b");
        check_text("a\\ ", "a ");
        check_text("x/${model.name}/${now:%Y}", "x/${model.name}/${now:%Y}");
    }

    #[test]
    fn lists_and_mappings_nest() {
        #[track_caller]
        fn check(text: &str, yaml: &str) {
            assert_eq!(parse_value(text).map(|node| to_yaml(&node)), Ok(yaml.to_owned()));
        }
        check("[1, 2]", "- 1\n- 2\n");
        check("[]", "[]\n");
        check("{}", "{}\n");
        check("{a:1}", "a: 1\n");
        check(
            "{a: {b: [x, 'y z', off]}, c: http://h:1}",
            "a:\n  b:\n  - x\n  - y z\n  - 'off'\nc: http://h:1\n",
        );
        check("[[1,2],[]]", "- - 1\n  - 2\n- []\n");
    }

    #[test]
    fn every_error_says_where_and_what() {
        #[track_caller]
        fn check(text: &str, at: usize, reason: &str) {
            assert_eq!(
                parse_value(text),
                Err(ValueError { at, reason: reason.to_owned() }),
                "{text}"
            );
        }
        check("1,2", 1, "sweeps are not supported; write a list in brackets, `[a,b]`");
        check("'a", 0, "unclosed quote '");
        check("[1,2", 4, "unclosed list, expected `]`");
        check("[1,,2]", 3, "expected a value");
        check("[1,]", 3, "expected a value");
        check("['a' 'b']", 5, "expected `,` or `]`, found `'`");
        check("{a:1", 4, "unclosed mapping, expected `}`");
        check("{a}", 2, "expected `:` after the key, found `}`");
        check("{a", 2, "unclosed mapping, expected `:`");
        check("{:1}", 1, "expected a key");
        check("{a:}", 3, "expected a value");
        check("{a:1,a:2}", 8, "duplicate key `a`");
        check("{'a':'b' c}", 9, "expected `,` or `}`, found `c`");
        check("choice(1,2)", 6, "functions and sweeps are not supported; put the text in quotes");
        check("(a)", 0, "`(` must be quoted or escaped with `\\`");
        check("a]", 1, "`]` must be quoted or escaped with `\\`");
        check("'a'b", 3, "unexpected `b` after the value");
        check("x${a", 1, "unclosed `${`");
        check(&"[".repeat(200), 100, "more than 100 levels of nesting");
    }
}
