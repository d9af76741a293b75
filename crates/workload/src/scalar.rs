//! The meaning of an unquoted word in YAML 1.1, as PyYAML and OmegaConf read it.
//!
//! `off` is a boolean, `010` is eight, `1:30` is ninety and `1e-3` is a number. The writer asks
//! the same function whether a text must be quoted, so the two cannot disagree.

use crate::node::Value;

/// The value of a plain scalar.
pub(crate) fn read(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    if let Some(value) = read_int(text) {
        return value;
    }
    match read_float(text) {
        Some(value) => Value::Float(value),
        None => Value::Str(text.to_owned()),
    }
}

/// A whole number in any base; one beyond 64 bits becomes the nearest float.
fn read_int(text: &str) -> Option<Value> {
    let (negative, digits) = split_sign(text);
    let (radix, body) = if let Some(body) = digits.strip_prefix("0b") {
        (2, body)
    } else if let Some(body) = digits.strip_prefix("0x") {
        (16, body)
    } else if digits == "0" {
        (10, digits)
    } else if let Some(body) = digits.strip_prefix('0') {
        (8, body)
    } else if digits.contains(':') {
        return read_sexagesimal_int(negative, digits);
    } else {
        (10, digits)
    };
    if radix == 10 && !body.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let clean: String = body.chars().filter(|&c| c != '_').collect();
    if body.is_empty() || !clean.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some(whole_number(negative, &clean, radix))
}

/// The number, or its nearest float beyond 64 bits. Underscores alone are zero, as in PyYAML.
fn whole_number(negative: bool, digits: &str, radix: u32) -> Value {
    let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
    match i64::from_str_radix(&signed, radix) {
        Ok(value) => Value::Int(value),
        Err(_) if digits.is_empty() => Value::Int(0),
        Err(_) if radix == 10 => Value::Float(signed.parse().expect("digits make a float")),
        Err(_) => {
            let magnitude = digits.chars().fold(0.0, |sum, c| {
                sum * f64::from(radix) + f64::from(c.to_digit(radix).unwrap_or(0))
            });
            Value::Float(if negative { -magnitude } else { magnitude })
        }
    }
}

/// `h:m:s` without a fraction.
fn read_sexagesimal_int(negative: bool, digits: &str) -> Option<Value> {
    let mut parts = digits.split(':');
    let first: String = parts.next()?.chars().filter(|&c| c != '_').collect();
    if !digits.starts_with(|c: char| ('1'..='9').contains(&c)) {
        return None;
    }
    let mut total: i64 = decimal(&first)?;
    for part in parts {
        total = total.checked_mul(60)?.checked_add(sixtieth(part)?)?;
    }
    Some(Value::Int(if negative { -total } else { total }))
}

/// A number of at most two digits below sixty.
fn sixtieth(part: &str) -> Option<i64> {
    if part.len() > 2 {
        return None;
    }
    decimal(part).filter(|&value| value < 60)
}

/// Digits and nothing else.
fn decimal(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// A number with a point or an exponent, infinity or not-a-number. More lenient than PyYAML in one
/// respect: `.5e2` needs no sign in its exponent.
fn read_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let (negative, body) = split_sign(text);
    let signed = |value: f64| if negative { -value } else { value };
    if matches!(body, ".inf" | ".Inf" | ".INF") {
        return Some(signed(f64::INFINITY));
    }
    if let Some(value) = read_sexagesimal_float(body) {
        return Some(signed(value));
    }
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], Some(&body[at + 1..])),
        None => (body, None),
    };
    if let Some(exponent) = exponent {
        let (_, digits) = split_sign(exponent);
        decimal(digits)?;
    }
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let starts_with_digit = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let well_formed = match fraction {
        Some(fraction) if whole.is_empty() => {
            text.starts_with('.') && starts_with_digit(fraction) && digits(fraction)
        }
        Some(fraction) => starts_with_digit(whole) && digits(whole) && digits(fraction),
        None => exponent.is_some() && starts_with_digit(whole) && digits(whole),
    };
    if !well_formed {
        return None;
    }
    body.replace('_', "").parse().ok().map(signed)
}

/// `h:m:s.fraction`.
fn read_sexagesimal_float(body: &str) -> Option<f64> {
    let (whole, fraction) = body.split_once('.')?;
    let mut parts = whole.split(':');
    let first: String = parts.next()?.chars().filter(|&c| c != '_').collect();
    let rest: Vec<&str> = parts.collect();
    let starts_with_digit = whole.starts_with(|c: char| c.is_ascii_digit());
    if rest.is_empty()
        || !starts_with_digit
        || !fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    {
        return None;
    }
    let mut total = decimal(&first)?;
    for part in rest {
        total = total.checked_mul(60)?.checked_add(sixtieth(part)?)?;
    }
    format!("{total}.{}", fraction.replace('_', "")).parse().ok()
}

/// The sign and what follows it.
fn split_sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(read(text), expected, "{text}");
    }

    #[test]
    fn words_are_truth_values_in_three_cases() {
        for text in ["yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"] {
            check(text, Value::Bool(true));
        }
        for text in ["no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"] {
            check(text, Value::Bool(false));
        }
        for text in ["y", "n", "tRue", "oFF"] {
            check(text, Value::Str(text.to_owned()));
        }
    }

    #[test]
    fn null_has_five_spellings() {
        for text in ["", "~", "null", "Null", "NULL"] {
            check(text, Value::Null);
        }
        check("None", Value::Str("None".to_owned()));
    }

    #[test]
    fn whole_numbers_come_in_four_bases() {
        check("0", Value::Int(0));
        check("-12", Value::Int(-12));
        check("+7", Value::Int(7));
        check("1_000", Value::Int(1000));
        check("0x1F", Value::Int(31));
        check("0b101", Value::Int(5));
        check("010", Value::Int(8));
        check("1:30", Value::Int(90));
        check("9223372036854775807", Value::Int(i64::MAX));
        check("-9223372036854775808", Value::Int(i64::MIN));
        check("9223372036854775808", Value::Float(9_223_372_036_854_775_808.0));
        check("08", Value::Str("08".to_owned()));
        check("0x", Value::Str("0x".to_owned()));
        check("_1", Value::Str("_1".to_owned()));
        check("localhost:9020", Value::Str("localhost:9020".to_owned()));
    }

    #[test]
    fn numbers_with_point_or_exponent_are_floats() {
        check("1e-3", Value::Float(0.001));
        check("1E3", Value::Float(1000.0));
        check("0.00551", Value::Float(0.00551));
        check("1.", Value::Float(1.0));
        check(".5", Value::Float(0.5));
        check("-2.5e+2", Value::Float(-250.0));
        check("1_0.5", Value::Float(10.5));
        check("1:30.5", Value::Float(90.5));
        check(".inf", Value::Float(f64::INFINITY));
        check("-.INF", Value::Float(f64::NEG_INFINITY));
        assert!(matches!(read(".nan"), Value::Float(value) if value.is_nan()));
        for text in ["_6:8.9", "1e", "e5", ".", "-.5x", "1.2.3", "inf", "nan", "1.5.e3", "-", "+"] {
            check(text, Value::Str(text.to_owned()));
        }
    }
}
