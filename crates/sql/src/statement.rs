//! The user's text as statements, and which tables they name.

use std::collections::{BTreeSet, VecDeque};

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::resolve::resolve_table_references;

use crate::error::SqlError;
use crate::trouble::explain;

/// Columns of a trace whose names SQL takes for its own words after a comma.
const WORDS: [&str; 2] = ["offset", "end"];
const QUOTE: &str =
    "the columns \"offset\" and \"end\" need double quotes: they are also SQL keywords";

/// Statements that stand one after another, with `;` between them.
pub(crate) fn parse(text: &str) -> Result<VecDeque<Statement>, SqlError> {
    let parsed =
        DFParserBuilder::new(text).build().and_then(|mut parser| parser.parse_statements());
    parsed.map_err(|error| match explain(&error) {
        SqlError::Syntax { place, found, .. } => {
            SqlError::Syntax { place, found, hint: names_word_of_sql(text).then_some(QUOTE) }
        }
        other => other,
    })
}

fn names_word_of_sql(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_\"".contains(letter);
    text.split(|letter| !is_part(letter)).any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// Tables and views that a statement names, those of its own `WITH` left out.
pub(crate) fn tables_of(statement: &Statement) -> Result<BTreeSet<String>, SqlError> {
    // Folders of the catalog, such as `information_schema`, are looked up when it is planned.
    let (tables, _) = resolve_table_references(statement, true).map_err(|error| explain(&error))?;
    let plain = tables.iter().filter(|table| table.schema().is_none());
    Ok(plain.map(|table| table.table().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_their_tables() {
        let text = "with s as (select * from steps) select * from s join Events e on true; \
                    explain select (select max(ns) from stalls) from information_schema.tables";
        let all = parse(text).unwrap();
        let names: Vec<Vec<String>> =
            all.iter().map(|one| tables_of(one).unwrap().into_iter().collect()).collect();
        assert_eq!(names, [vec!["events", "steps"], vec!["stalls"]]);
    }

    #[test]
    fn nothing_is_no_statement() {
        assert_eq!(parse(" ; -- nothing\n ;").unwrap().len(), 0);
    }
}
