//! Loading one file into its table: prepared inserts, many in flight.

use std::io::{BufReader, IsTerminal};
use std::time::Instant;

use client::{Answer, Connection};
use indicatif::{ProgressBar, ProgressStyle};
use protocol::{Consistency, Prepared, Value, Values};

use super::DemoError;
use super::tables::Data;
use crate::csv::{Dialect, Field, Reader};
use crate::values::{ParseOptions, parse};

/// How the data spells a missing value.
const MISSING: &str = "NA";
const IN_FLIGHT_MAX: usize = 512;
/// The bar moves every so many rows.
const PROGRESS_ROWS: u64 = 512;

/// Is the file's mark there? It is written last, so a load that was cut off is done again; it writes the same
/// rows.
pub(super) fn is_loaded(connection: &mut Connection, data: &Data) -> Result<bool, DemoError> {
    let mark = format!("SELECT row_count FROM nycflights.datasets WHERE name = '{}'", data.name);
    Ok(!connection.query(&mark)?.rows()?.rows.is_empty())
}

/// Loads a file and marks it.
pub(super) fn load(connection: &mut Connection, data: &Data) -> Result<(), DemoError> {
    let started = Instant::now();
    // A bar tells it on a terminal.
    if !std::io::stderr().is_terminal() {
        println!("loading {:>7} rows into nycflights.{}", data.row_count, data.name);
    }
    let row_count = insert_all(connection, data)?;
    let mark =
        format!("INSERT INTO nycflights.datasets (name, row_count) VALUES ('{}', {row_count})", data.name);
    connection.query(&mark)?;
    println!(
        "loaded {:>8} rows into nycflights.{:<8} in {:.1} s",
        row_count,
        data.name,
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn insert_all(connection: &mut Connection, data: &Data) -> Result<u64, DemoError> {
    let decompressed = zstd::Decoder::new(data.compressed)?;
    let mut reader = Reader::new(BufReader::with_capacity(1 << 18, decompressed), Dialect::default());
    let names: Vec<String> =
        reader.record()?.unwrap_or_default().into_iter().map(|field| field.text).collect();
    let markers = vec!["?"; names.len()].join(", ");
    let insert = format!("INSERT INTO nycflights.{} ({}) VALUES ({markers})", data.name, names.join(", "));
    let prepared = connection.prepare(&insert)?;
    let bar = progress_bar(data);
    let mut row_count = 0;
    while let Some(record) = reader.record()? {
        row_count += 1;
        let values = values(&record, &prepared, data.name, row_count + 1)?;
        if connection.in_flight() >= IN_FLIGHT_MAX {
            connection.receive().and_then(Answer::checked)?;
        }
        connection.send(Connection::execute_request(&prepared, values, Consistency::One))?;
        if row_count % PROGRESS_ROWS == 0 {
            bar.set_position(row_count);
        }
    }
    while connection.in_flight() > 0 {
        connection.receive().and_then(Answer::checked)?;
    }
    bar.finish_and_clear();
    Ok(row_count)
}

fn progress_bar(data: &Data) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(data.row_count).with_message(data.name);
    match ProgressStyle::with_template("loading {msg:8} {bar:40} {pos}/{len} rows, {per_sec}, {eta} to go") {
        Ok(style) => bar.with_style(style),
        // The template is ours and well-formed.
        Err(_) => bar,
    }
}

/// A missing value stays unset: it needs no tombstone.
fn values(record: &[Field], prepared: &Prepared, name: &'static str, line: u64) -> Result<Values, DemoError> {
    let columns = &prepared.bind.columns;
    if record.len() != columns.len() {
        return Err(DemoError::Columns { name, got: record.len(), expected: columns.len() });
    }
    let mut cells = Vec::with_capacity(record.len());
    for (field, column) in record.iter().zip(columns) {
        cells.push(match field.text.as_str() {
            MISSING => None,
            text => Some(
                parse(&column.cql_type, text, &ParseOptions::default())
                    .map_err(|source| DemoError::Value { name, line, source })?,
            ),
        });
    }
    Ok(Values::pack(cells.iter().map(|cell| cell.as_deref().map_or(Value::Unset, Value::Bytes))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tables::DATA;

    #[test]
    fn the_data_in_the_binary_has_the_rows_it_promises() {
        for data in DATA {
            let decompressed = zstd::Decoder::new(data.compressed).unwrap();
            let mut reader = Reader::new(BufReader::new(decompressed), Dialect::default());
            let column_count = reader.record().unwrap().unwrap().len();
            let mut row_count = 0;
            while let Some(record) = reader.record().unwrap() {
                assert_eq!(record.len(), column_count);
                row_count += 1;
            }
            assert_eq!(row_count, data.row_count, "{}", data.name);
        }
    }
}
