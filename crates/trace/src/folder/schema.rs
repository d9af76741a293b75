//! The tables of a trace folder: which columns they have, and what these contain.
//!
//! `docs/trace-format.md` shows these tables; a test compares them.

use std::fmt::Write as _;
use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor};

/// The version of the format: readers read every version up to their own.
pub const VERSION: u32 = 1;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// A number of 64 bits.
    Int64,
    /// A number of 32 bits.
    Int32,
    /// A number of 32 bits without a sign.
    Uint32,
    /// Nanoseconds since 1970.
    Timestamp,
    /// A 64-bit floating point number.
    Double,
    /// True or false.
    Boolean,
    /// Text in UTF-8.
    Text,
}

impl Type {
    /// The name in the documentation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Timestamp => "timestamp[ns, UTC]",
            Self::Double => "double",
            Self::Boolean => "boolean",
            Self::Text => "string",
        }
    }

    fn physical(self) -> &'static str {
        match self {
            Self::Int64 | Self::Timestamp => "INT64",
            Self::Int32 | Self::Uint32 => "INT32",
            Self::Double => "DOUBLE",
            Self::Boolean => "BOOLEAN",
            Self::Text => "BYTE_ARRAY",
        }
    }

    fn logical(self) -> &'static str {
        match self {
            Self::Uint32 => " (INTEGER(32,false))",
            Self::Timestamp => " (TIMESTAMP(NANOS,true))",
            Self::Text => " (STRING)",
            Self::Int64 | Self::Int32 | Self::Double | Self::Boolean => "",
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    pub(crate) is_optional: bool,
}

const fn needed(name: &'static str, kind: Type) -> Column {
    Column { name, kind, is_optional: false }
}

const fn optional(name: &'static str, kind: Type) -> Column {
    Column { name, kind, is_optional: true }
}

/// A table: a folder of files with the same columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// The name of the folder.
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

/// The table of events.
pub(crate) const EVENTS: Table = Table {
    name: "events",
    columns: &[
        needed("process", Type::Int64),
        needed("thread", Type::Uint32),
        needed("start", Type::Timestamp),
        needed("duration", Type::Int64),
        needed("kind", Type::Text),
        needed("category", Type::Text),
        needed("name", Type::Text),
        optional("class", Type::Text),
        optional("file", Type::Int64),
        optional("other_file", Type::Int64),
        optional("offset", Type::Int64),
        optional("size", Type::Int64),
        optional("result", Type::Int64),
        needed("errno", Type::Int32),
        optional("arg", Type::Int64),
        optional("epoch", Type::Int64),
        optional("step", Type::Int64),
        optional("sample", Type::Int64),
        needed("count", Type::Int64),
        optional("shortest", Type::Int64),
        optional("longest", Type::Int64),
        optional("value", Type::Double),
        optional("extra", Type::Text),
    ],
};

/// The files that events are about.
pub(crate) const FILES: Table =
    Table { name: "files", columns: &[needed("id", Type::Int64), needed("path", Type::Text)] };

/// The table of processes.
pub(crate) const PROCESSES: Table = Table {
    name: "processes",
    columns: &[
        needed("id", Type::Int64),
        needed("host", Type::Text),
        needed("pid", Type::Uint32),
        optional("parent_pid", Type::Uint32),
        optional("parent", Type::Int64),
        optional("rank", Type::Uint32),
        needed("program", Type::Text),
        needed("arguments", Type::Text),
        needed("folder", Type::Text),
        optional("name", Type::Text),
        needed("start", Type::Timestamp),
        optional("end", Type::Timestamp),
        needed("ending", Type::Text),
        optional("status", Type::Int32),
        needed("dropped", Type::Int64),
        optional("trouble", Type::Text),
        needed("filtered", Type::Int64),
        needed("skipped", Type::Int64),
        needed("is_traced", Type::Boolean),
    ],
};

/// All tables.
pub(crate) const TABLES: [Table; 3] = [EVENTS, FILES, PROCESSES];

/// A column of a table, for those who read a trace with another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnFacts {
    /// Name of the column.
    pub name: &'static str,
    /// Its type, as `docs/trace-format.md` calls it: `int64`, `timestamp[ns, UTC]`.
    pub type_name: &'static str,
    /// Whether it may be null.
    pub is_optional: bool,
}

/// The columns of a table of trace folders: `events`, `files` or `processes`. Others have none.
pub fn columns_of(table: &str) -> Vec<ColumnFacts> {
    let columns =
        TABLES.into_iter().filter(|found| found.name == table).flat_map(|found| found.columns);
    let facts = columns.map(|column| ColumnFacts {
        name: column.name,
        type_name: column.kind.name(),
        is_optional: column.is_optional,
    });
    facts.collect()
}

impl Table {
    /// The table in Parquet's terms.
    pub(crate) fn schema(&self) -> SchemaDescPtr {
        let mut text = format!("message {} {{\n", self.name);
        for column in self.columns {
            let repetition = if column.is_optional { "OPTIONAL" } else { "REQUIRED" };
            let (physical, logical) = (column.kind.physical(), column.kind.logical());
            writeln!(text, "  {repetition} {physical} {}{logical};", column.name)
                .expect("a string takes everything");
        }
        text.push('}');
        let message = parse_message_type(&text).expect("the tables above are well formed");
        Arc::new(SchemaDescriptor::new(Arc::new(message)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table below a heading: name, type, null.
    fn documented(text: &str, heading: &str) -> Vec<[String; 3]> {
        let section = text.split("\n## ").find(|section| section.lines().next() == Some(heading));
        let section = section.unwrap_or_else(|| panic!("no section {heading}"));
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`'));
            [(); 3].map(|()| cells.next().unwrap_or_default().to_owned())
        });
        cells.collect()
    }

    #[test]
    fn the_documentation_shows_these_tables() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/trace-format.md");
        let text = std::fs::read_to_string(path).unwrap();
        for table in TABLES {
            let columns = table.columns.iter().map(|column| {
                let null = if column.is_optional { "yes" } else { "no" };
                [column.name, column.kind.name(), null].map(str::to_owned)
            });
            assert_eq!(
                documented(&text, table.name),
                columns.collect::<Vec<_>>(),
                "{}",
                table.name
            );
        }
        assert!(text.contains(&format!("This describes version {VERSION} of the format.")));
        let classes = feedline_recorder::OPS.iter().map(|op| op.info().class.name());
        for class in classes.filter(|class| !["span", "counter"].contains(class)) {
            assert!(text.contains(&format!("`{class}`")), "{class}");
        }
    }

    #[test]
    fn tables_are_well_formed() {
        for table in TABLES {
            let schema = table.schema();
            assert_eq!(schema.num_columns(), table.columns.len());
            for (index, column) in table.columns.iter().enumerate() {
                assert_eq!(schema.column(index).name(), column.name);
            }
        }
    }
}
