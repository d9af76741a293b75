//! Tables as files: Parquet, CSV, JSON.

use std::sync::Arc;

use feedline_analyze::tables::{Column, Table, Values};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::{Map, Value};

/// A table as a Parquet file.
pub fn parquet(table: &Table) -> Result<Vec<u8>, ParquetError> {
    let mut message = format!("message {} {{\n", table.name);
    for Column { name, values } in &table.columns {
        message += &match values {
            Values::Integers(_) => format!("OPTIONAL INT64 {name};\n"),
            Values::Real(_) => format!("OPTIONAL DOUBLE {name};\n"),
            Values::Text(_) => format!("REQUIRED BYTE_ARRAY {name} (STRING);\n"),
        };
    }
    message.push('}');
    let properties = WriterProperties::builder()
        .set_created_by(format!("Feedline {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .build();
    let schema = Arc::new(parse_message_type(&message)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in &table.columns {
        if let Some(mut writer) = group.next_column()? {
            write(&mut writer, &column.values)?;
            writer.close()?;
        }
    }
    group.close()?;
    file.into_inner()
}

fn write(writer: &mut SerializedColumnWriter<'_>, values: &Values) -> Result<(), ParquetError> {
    match values {
        Values::Integers(values) => {
            let (there, levels) = levels(values);
            writer.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
        }
        Values::Real(values) => {
            let (there, levels) = levels(values);
            writer.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
        }
        Values::Text(values) => {
            let texts: Vec<ByteArray> = values.iter().map(|text| text.as_str().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
        }
    }
    Ok(())
}

/// The values that are there, and a one for each of them among all.
fn levels<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    let there = values.iter().flatten().copied().collect();
    (there, values.iter().map(|value| i16::from(value.is_some())).collect())
}

/// A table as lines of values with commas between them, as RFC 4180 says.
pub fn csv(table: &Table) -> String {
    let mut text = String::new();
    let line = |cells: &mut dyn Iterator<Item = String>, text: &mut String| {
        for (at, cell) in cells.enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&cell);
        }
        text.push_str("\r\n");
    };
    line(&mut table.columns.iter().map(|column| quoted(&column.name)), &mut text);
    for row in 0..table.rows() {
        let cells = table.columns.iter().map(|column| match &column.values {
            Values::Integers(values) => values[row].map(|v| v.to_string()).unwrap_or_default(),
            Values::Real(values) => values[row].map(|v| v.to_string()).unwrap_or_default(),
            Values::Text(values) => quoted(&values[row]),
        });
        line(&mut cells.into_iter(), &mut text);
    }
    text
}

fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// A table as a list of objects.
pub fn json(table: &Table) -> String {
    let mut text = String::from("[");
    for row in 0..table.rows() {
        let object: Map<String, Value> = table
            .columns
            .iter()
            .map(|column| {
                let value = match &column.values {
                    Values::Integers(values) => values[row].into(),
                    Values::Real(values) => values[row].into(),
                    Values::Text(values) => values[row].clone().into(),
                };
                (column.name.clone(), value)
            })
            .collect();
        text.push_str(if row == 0 { "\n" } else { ",\n" });
        text.push_str(&Value::Object(object).to_string());
    }
    text.push_str("\n]\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |name: &str, values| Column { name: name.to_owned(), values };
        Table {
            name: "steps",
            columns: vec![
                column("rank", Values::Integers(vec![Some(1), None, Some(-3)])),
                column("share", Values::Real(vec![None, Some(0.5), Some(2.0)])),
                column("path", Values::Text(vec!["a".into(), "b,\"c\"".into(), "d\ne".into()])),
            ],
        }
    }

    #[test]
    fn csv_quotes_what_must_be_quoted() {
        let expected = "rank,share,path\r\n1,,a\r\n,0.5,\"b,\"\"c\"\"\"\r\n-3,2,\"d\ne\"\r\n";
        assert_eq!(csv(&table()), expected);
    }

    #[test]
    fn json_has_an_object_a_row() {
        let rows: Value = serde_json::from_str(&json(&table())).unwrap();
        assert_eq!(rows[0], serde_json::json!({"rank": 1, "share": null, "path": "a"}));
        assert_eq!(rows[2], serde_json::json!({"rank": -3, "share": 2.0, "path": "d\ne"}));
        assert_eq!(rows.as_array().unwrap().len(), 3);
    }

    #[test]
    fn parquet_comes_back() {
        use parquet::file::reader::FileReader as _;
        use parquet::record::RowAccessor as _;
        let bytes = bytes::Bytes::from(parquet(&table()).unwrap());
        let reader = parquet::file::serialized_reader::SerializedFileReader::new(bytes).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].get_long(0).unwrap(), 1);
        assert_eq!(rows[2].get_double(1).unwrap(), 2.0);
        assert_eq!(rows[1].get_string(2).unwrap(), "b,\"c\"");
        assert!(rows[1].get_long(0).is_err());
    }

    #[test]
    fn empty_tables_are_files_too() {
        let mut empty = table();
        for column in &mut empty.columns {
            column.values = match column.values {
                Values::Integers(_) => Values::Integers(Vec::new()),
                Values::Real(_) => Values::Real(Vec::new()),
                Values::Text(_) => Values::Text(Vec::new()),
            };
        }
        assert_eq!(csv(&empty), "rank,share,path\r\n");
        assert_eq!(json(&empty), "[\n]\n");
        assert!(!parquet(&empty).unwrap().is_empty());
    }
}
