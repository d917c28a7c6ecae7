//! Pages of rows to the output, in the form the user has chosen.

use std::io::{self, Write};

use client::{ResultRows, Row};
use protocol::ColumnSpec;
use serde_json::Value;

use super::Output;
use super::display::Page;
use super::shell::Settings;
use crate::csv::{Dialect, write_record};
use crate::values::{self, Style, json};

/// What was printed of a result so far.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    has_rows: bool,
    row_count: usize,
}

/// Prints one page. On a terminal every page has its header; elsewhere only the first one.
pub(crate) fn write_page(
    out: &mut impl Write,
    rows: &ResultRows,
    settings: &Settings,
    is_interactive: bool,
    printed: &mut Printed,
) -> io::Result<()> {
    let is_first = !printed.has_rows;
    match settings.output {
        Output::Json => write_json(out, rows)?,
        Output::Csv => write_csv(out, rows, is_first)?,
        Output::Table => {
            if is_first {
                writeln!(out)?;
            }
            let page = page(rows);
            if settings.is_expanded && !page.rows.is_empty() {
                page.write_expanded(out, printed.row_count)?;
            } else if is_first || !page.rows.is_empty() {
                page.write_table(out, is_first || is_interactive)?;
                if is_interactive || page.rows.is_empty() {
                    writeln!(out)?;
                }
            }
        }
    }
    printed.has_rows = true;
    printed.row_count += rows.rows.len();
    Ok(())
}

/// After the last page.
pub(crate) fn finish(
    out: &mut impl Write,
    settings: &Settings,
    is_interactive: bool,
    printed: &Printed,
) -> io::Result<()> {
    if printed.has_rows && settings.output == Output::Table {
        if !is_interactive {
            writeln!(out)?;
        }
        writeln!(out, "({} rows)", printed.row_count)?;
    }
    Ok(())
}

/// One page as a table of its own.
pub(crate) fn write_table(out: &mut impl Write, rows: &ResultRows) -> io::Result<()> {
    writeln!(out)?;
    page(rows).write_table(out, true)?;
    writeln!(out, "\n({} rows)", rows.rows.len())
}

/// Warnings, below the result. They go to the error output when rows are meant for a program.
pub(crate) fn write_warnings(out: &mut impl Write, warnings: &[String]) -> io::Result<()> {
    if warnings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nWarnings :")?;
    warnings.iter().try_for_each(|warning| writeln!(out, "{warning}\n"))
}

fn page(rows: &ResultRows) -> Page {
    let columns = rows.columns();
    let names = columns.iter().map(|column| column.name.to_string()).collect();
    let text = |row: &Row| {
        let cells = row.iter().zip(columns);
        cells.map(|(cell, column)| shown(cell.as_deref(), column)).collect()
    };
    Page { names, rows: rows.rows.iter().map(text).collect() }
}

/// An empty value of a type that has none is shown as null, as drivers read it.
fn shown(cell: Option<&[u8]>, column: &ColumnSpec) -> String {
    match present(cell, column) {
        Some(cell) => values::format(&column.cql_type, cell, Style::Screen),
        None => "null".to_owned(),
    }
}

fn present<'a>(cell: Option<&'a [u8]>, column: &ColumnSpec) -> Option<&'a [u8]> {
    use types::CqlType::{Ascii, Blob, Text};
    cell.filter(|cell| !cell.is_empty() || matches!(column.cql_type, Ascii | Blob | Text))
}

/// Columns keep their order, which a JSON object of the library would not.
fn write_json(out: &mut impl Write, rows: &ResultRows) -> io::Result<()> {
    for row in &rows.rows {
        let fields = row.iter().zip(rows.columns()).map(|(cell, column)| {
            let value =
                present(cell.as_deref(), column).map_or(Value::Null, |cell| json(&column.cql_type, cell));
            format!("{}:{value}", Value::from(&*column.name))
        });
        writeln!(out, "{{{}}}", fields.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

fn write_csv(out: &mut impl Write, rows: &ResultRows, is_first: bool) -> io::Result<()> {
    let columns = rows.columns();
    if is_first {
        write_record(out, Dialect::default(), "", columns.iter().map(|column| Some(&*column.name)))?;
    }
    for row in &rows.rows {
        let cells: Vec<Option<String>> = row
            .iter()
            .zip(columns)
            .map(|(cell, column)| {
                present(cell.as_deref(), column)
                    .map(|cell| values::format(&column.cql_type, cell, Style::Csv))
            })
            .collect();
        write_record(out, Dialect::default(), "", cells.iter().map(Option::as_deref))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use protocol::{Consistency, ResultMetadata};
    use types::CqlType;

    use super::*;

    fn check(output: Output, rows: Vec<Row>, expected: &str) {
        let column = |name: &str, cql_type| ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: name.into(),
            cql_type,
        };
        let columns = vec![column("id", CqlType::Int), column("name", CqlType::Text)];
        let rows = ResultRows { metadata: Arc::new(ResultMetadata::new(columns)), rows, paging_state: None };
        let settings = Settings {
            output,
            consistency: Consistency::One,
            serial_consistency: Consistency::Serial,
            page_size: None,
            is_tracing: false,
            is_expanded: false,
        };
        let (mut out, mut printed) = (Vec::new(), Printed::default());
        write_page(&mut out, &rows, &settings, false, &mut printed).unwrap();
        finish(&mut out, &settings, false, &printed).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    fn rows() -> Vec<Row> {
        let cell = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
        vec![vec![cell(&[0, 0, 0, 7]), cell(b"x,y")], vec![cell(&[]), None]]
    }

    #[test]
    fn rows_become_a_table_json_or_csv() {
        check(
            Output::Table,
            rows(),
            "\n id   | name\n------+------\n    7 |  x,y\n null | null\n\n(2 rows)\n",
        );
        check(Output::Json, rows(), "{\"id\":7,\"name\":\"x,y\"}\n{\"id\":null,\"name\":null}\n");
        check(Output::Csv, rows(), "id,name\n7,\"x,y\"\n,\n");
    }

    #[test]
    fn a_result_without_rows_has_a_header() {
        check(Output::Table, Vec::new(), "\n id | name\n----+------\n\n\n(0 rows)\n");
    }
}
