//! From DataFusion's errors to ours: the innermost one, one line, names instead of structures.

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;

use crate::error::SqlError;

/// Names that are shown of a table whose columns are all unlike the one that was asked for.
const SHOWN: usize = 40;
/// Names are near if this much of them is equal.
const NEAR: f64 = 0.8;

/// What an error of the engine means for the user.
pub(crate) fn explain(error: &DataFusionError) -> SqlError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            explain(inner)
        }
        DataFusionError::Shared(inner) => explain(inner),
        DataFusionError::Collection(errors) if !errors.is_empty() => explain(&errors[0]),
        DataFusionError::SQL(error, _) => syntax(&error.to_string()),
        DataFusionError::SchemaError(error, _) => schema(error),
        DataFusionError::Plan(message) if message.starts_with("Invalid function '") => {
            let mut names = message.split('\'').skip(1).step_by(2).map(str::to_owned);
            SqlError::UnknownFunction {
                function: names.next().unwrap_or_default(),
                near: names.next().unwrap_or_default(),
            }
        }
        other => SqlError::Query { message: one_line(&other.strip_backtrace()) },
    }
}

fn schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => SqlError::UnknownColumn {
            column: field.flat_name(),
            columns: nearest(&field.name, valid_fields),
        },
        SchemaError::AmbiguousReference { field } => SqlError::Query {
            message: format!("column `{}` is in more than one table", field.name),
        },
        other => SqlError::Query { message: one_line(&other.to_string()) },
    }
}

/// Columns with names like this one; if there are none, all of them, up to a number.
fn nearest(name: &str, columns: &[Column]) -> Vec<String> {
    let likeness = |column: &Column| strsim::jaro_winkler(name, &column.name);
    let mut near: Vec<_> = columns.iter().filter(|column| likeness(column) > NEAR).collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    if near.is_empty() {
        near = columns.iter().take(SHOWN).collect();
    }
    let mut names: Vec<String> = Vec::new();
    for column in near {
        if !names.contains(&column.name) {
            names.push(column.name.clone());
        }
    }
    names
}

/// `sql parser error: Expected: X, found: Y at Line: 1, Column: 8`.
fn syntax(text: &str) -> SqlError {
    let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
    let (found, place) = match text.rsplit_once(" at Line: ") {
        Some((found, place)) => {
            (found, format!("line {}", place.replace(", Column: ", ", column ")))
        }
        None => (text, "the end".to_owned()),
    };
    let found = found.replace("Expected: ", "expected ").replace("found: ", "found ");
    SqlError::Syntax { place, found: lower(&one_line(&found)), hint: None }
}

/// The first line, without DataFusion's prefixes, and of a refused argument only why.
pub(crate) fn one_line(text: &str) -> String {
    const PREFIXES: [&str; 7] = [
        "Error during planning: ",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Parquet error: ",
        "Object Store error: ",
        "This feature is not implemented: ",
    ];
    const REFUSED: &str = "user-defined coercion failed with: ";
    let mut line = text.lines().next().unwrap_or_default().trim();
    if let Some((_, why)) = line.split_once(REFUSED) {
        line = why.split(" No function matches").next().unwrap_or(why);
    }
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| line.strip_prefix(prefix)) {
        line = rest;
    }
    line.trim_end_matches('.').to_owned()
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    let is_word = text.chars().nth(1).is_some_and(char::is_lowercase);
    match letters.next() {
        Some(first) if is_word => first.to_lowercase().chain(letters).collect(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syntax_errors_say_where() {
        let told =
            syntax("sql parser error: Expected: an expression, found: from at Line: 1, Column: 8");
        assert_eq!(
            told.to_string(),
            "syntax error at line 1, column 8: expected an expression, found from"
        );
        let told = syntax("Unterminated string literal at Line: 2, Column: 5");
        assert_eq!(
            told.to_string(),
            "syntax error at line 2, column 5: unterminated string literal"
        );
    }

    #[test]
    fn the_nearest_column_comes_first_and_none_is_named_twice() {
        let columns = ["class", "result", "size", "class"].map(Column::from_name);
        assert_eq!(nearest("clas", &columns), ["class"]);
        assert_eq!(nearest("zzz", &columns), ["class", "result", "size"]);
    }
}
