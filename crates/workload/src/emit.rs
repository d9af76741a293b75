//! Writes a tree as YAML in PyYAML's block style.
//!
//! Maps are indented by two spaces, lists are at the indentation of their key, and text is quoted only
//! if a YAML 1.1 parser would read it as something else. Long lines are not folded.

use crate::node::{Map, Node, Value};
use crate::scalar;

/// The tree as YAML, with a final newline.
pub fn to_yaml(node: &Node) -> String {
    let mut out = String::new();
    match &node.value {
        Value::Map(map) if !map.is_empty() => write_map(&mut out, map, 0),
        Value::List(items) if !items.is_empty() => write_list(&mut out, items, 0),
        _ => {
            out.push_str(&scalar_text(node));
            out.push('\n');
        }
    }
    out
}

/// A float as PyYAML writes it: the shortest text that reads back as the same number.
pub(crate) fn float_text(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a whole exponent");
    let with_point = |text: &str| match text.contains('.') {
        true => text.to_owned(),
        false => format!("{text}.0"),
    };
    if (-4..16).contains(&exponent) {
        return with_point(&value.to_string());
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", with_point(mantissa), exponent.abs())
}

/// Entries of a mapping, the first of them at the cursor if that is inside a list item.
fn write_map(out: &mut String, map: &Map, indent: usize) {
    for (index, (key, node)) in map.iter().enumerate() {
        if index > 0 || !out.ends_with("- ") {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&text(key));
        out.push(':');
        match &node.value {
            Value::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                write_map(out, inner, indent + 2);
            }
            Value::List(items) if !items.is_empty() => {
                out.push('\n');
                write_list(out, items, indent);
            }
            _ => {
                out.push(' ');
                out.push_str(&scalar_text(node));
                out.push('\n');
            }
        }
    }
}

/// Items of a list, the first of them at the cursor if that is inside another item.
fn write_list(out: &mut String, items: &[Node], indent: usize) {
    for (index, node) in items.iter().enumerate() {
        if index > 0 || !out.ends_with("- ") {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str("- ");
        match &node.value {
            Value::Map(inner) if !inner.is_empty() => write_map(out, inner, indent + 2),
            Value::List(inner) if !inner.is_empty() => write_list(out, inner, indent + 2),
            _ => {
                out.push_str(&scalar_text(node));
                out.push('\n');
            }
        }
    }
}

/// A value on one line. Only empty lists and mappings come here.
fn scalar_text(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float_text(*value),
        Value::Str(value) => text(value),
        Value::List(_) => "[]".to_owned(),
        Value::Map(_) => "{}".to_owned(),
    }
}

/// A text, quoted if necessary.
fn text(value: &str) -> String {
    if value.chars().any(|c| c.is_control() || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')) {
        return double_quoted(value);
    }
    if is_plain(value) { value.to_owned() } else { format!("'{}'", value.replace('\'', "''")) }
}

/// Whether the unquoted word reads back as the same text.
fn is_plain(value: &str) -> bool {
    if !matches!(scalar::read(value), Value::Str(_)) || looks_like_date(value) {
        return false;
    }
    let mut chars = value.chars();
    let first = chars.next().expect("the empty text reads as null");
    let second = chars.next();
    let bare_indicator =
        matches!(first, '-' | '?' | ':') && second.is_none_or(|c| c == ' ' || c == '\t');
    !(bare_indicator
        || "#,[]{}&*!|>'\"%@`".contains(first)
        || matches!(value, "=" | "<<")
        || value.starts_with("---")
        || value.starts_with("...")
        || value.starts_with(' ')
        || value.ends_with([' ', ':'])
        || value.contains(": ")
        || value.contains(" #"))
}

/// Whether PyYAML takes the word for a date: `2024-01-31`, with or without a time after it.
fn looks_like_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    if bytes.len() < 8 || digits(0) != 4 || bytes[4] != b'-' {
        return false;
    }
    let month = digits(5);
    if !(1..=2).contains(&month) || bytes.get(5 + month) != Some(&b'-') {
        return false;
    }
    let day = digits(6 + month);
    let rest = &value[6 + month + day..];
    match rest.chars().next() {
        None => month == 2 && day == 2,
        Some('T' | 't' | ' ' | '\t') => (1..=2).contains(&day) && rest.contains(':'),
        Some(_) => false,
    }
}

/// A text in double quotes, with escapes.
fn double_quoted(value: &str) -> String {
    let mut out = String::from('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c if c.is_control() => out.push_str(&format!("\\x{:02X}", u32::from(c))),
            '\u{feff}' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse_yaml;

    #[track_caller]
    fn unchanged(yaml: &str) {
        let tree = parse_yaml("t.yaml", yaml).expect("the text is valid");
        assert_eq!(to_yaml(&tree), yaml);
    }

    #[test]
    fn block_style_is_that_of_pyyaml() {
        unchanged("a:\n  b: 1\n  c:\n  - 1\n  - x\n  d: {}\n  e: []\nf: null\ng: true\n");
        unchanged("a:\n- - 1\n  - 2\n- b: 1\n  c:\n  - 3\n- - - 4\n- {}\n- []\n");
    }

    #[test]
    fn a_text_is_quoted_exactly_when_it_would_be_misread() {
        #[track_caller]
        fn check(value: &str, expected: &str) {
            let map = Map::from_iter([("k".to_owned(), Node::from(value))]);
            let yaml = to_yaml(&Node::from(map));
            assert_eq!(yaml, format!("k: {expected}\n"));
            let back = parse_yaml("t.yaml", &yaml).expect("what is written can be read");
            assert_eq!(back.get("k"), Some(&Node::from(value)), "{yaml}");
        }
        for plain in ["data/unet3d", "http://localhost:9020", "s3://b", "a b", "-x", ":x", "None"] {
            check(plain, plain);
        }
        for plain in ["2024-01", "2024-01-5", "2024-01-01x", "y", "a#b", "a:b", "é", "it's"] {
            check(plain, plain);
        }
        for quoted in ["", "off", "1", "1e3", "0x1f", "null", "~", "1:30", ".5", "true", "=", "<<"]
        {
            check(quoted, &format!("'{quoted}'"));
        }
        for quoted in ["- x", "-", "? x", "a: b", "a #b", "[x", "{x", "&x", "*x", "!x", "%x", "@x"]
        {
            check(quoted, &format!("'{quoted}'"));
        }
        for quoted in [" x", "x ", "x:", "---", "2024-01-31", "2024-01-31 10:00:00", "#x", ",x"] {
            check(quoted, &format!("'{quoted}'"));
        }
        check("'x", "'''x'");
        check("a\nb\t\"\\", "\"a\\nb\\t\\\"\\\\\"");
        check("\u{7}\u{85}", "\"\\x07\\x85\"");
    }

    #[test]
    fn floats_read_back_as_the_same_number() {
        #[track_caller]
        fn check(value: f64, expected: &str) {
            assert_eq!(float_text(value), expected);
            assert_eq!(scalar::read(expected), Value::Float(value), "{expected}");
        }
        check(1.0, "1.0");
        check(-0.5, "-0.5");
        check(114_660.07, "114660.07");
        check(0.0001, "0.0001");
        check(0.000_01, "1.0e-05");
        check(1.25e-7, "1.25e-07");
        check(1e15, "1000000000000000.0");
        check(1e16, "1.0e+16");
        check(1.5e300, "1.5e+300");
        check(f64::MIN_POSITIVE, "2.2250738585072014e-308");
        check(f64::INFINITY, ".inf");
        check(f64::NEG_INFINITY, "-.inf");
        assert_eq!(float_text(f64::NAN), ".nan");
    }

    #[test]
    fn every_preset_survives_a_round_trip() {
        for preset in crate::presets::presets() {
            let tree = parse_yaml(preset.name, preset.yaml).expect("a preset is valid");
            let back = parse_yaml(preset.name, &to_yaml(&tree)).expect("what is written is valid");
            assert_eq!(back, tree, "{}", preset.name);
        }
    }
}
