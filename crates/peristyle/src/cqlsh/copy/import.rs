//! `COPY … FROM`: prepared inserts, many of them in flight.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use client::Connection;
use protocol::{ColumnSpec, Consistency, Prepared, Response, Value, Values};

use super::command::CopyCommand;
use super::options::CopyOptions;
use super::{Progress, in_words, table_name};
use crate::cqlsh::errors;
use crate::cqlsh::shell::{Shell, ShellError};
use crate::csv::{Field, Reader, write_record};
use crate::values::{ParseError, parse};

/// The bar moves every so many rows.
const PROGRESS_ROWS: u64 = 256;
/// Of like errors so many are shown.
const ERRORS_SHOWN_MAX: u64 = 10;

/// Reads the file row by row and inserts.
pub(super) fn run(shell: &mut Shell, command: &CopyCommand) -> Result<(), ShellError> {
    let mut connection = shell.another_connection()?;
    let (input, position, length) = open(command)?;
    let mut reader = Reader::new(input, command.options.dialect);
    let header = if command.options.header { reader.record()? } else { None };
    let columns = columns(&mut connection, command, header)?;
    let table = table_name(command);
    let prepared = connection.prepare(&insert(&table, &columns, &command.options))?;
    println!("\nStarting copy of {table} with columns [{}].", kept_names(&columns).join(", "));
    let progress = Progress::new(length);
    let mut import = Import {
        connection,
        prepared,
        keeps: columns.iter().map(Option::is_some).collect(),
        consistency: shell.settings.consistency,
        options: &command.options,
        in_flight: HashMap::new(),
        imported: 0,
        parse_errors: 0,
        insert_errors: 0,
        rejected: None,
        error_file: command
            .options
            .error_file
            .clone()
            .unwrap_or_else(|| format!("import_{}.err", table.replace('.', "_"))),
    };
    let mut read = 0u64;
    while let Some(record) = reader.record()? {
        read += 1;
        if read <= command.options.skip_rows {
            continue;
        }
        if command.options.rows_max.is_some_and(|max| read - command.options.skip_rows > max) {
            break;
        }
        import.insert(record)?;
        if read.is_multiple_of(PROGRESS_ROWS) {
            progress.update(import.imported, length.map(|_| position.load(Ordering::Relaxed)));
        }
    }
    import.finish()?;
    let time = progress.finish();
    println!(
        "{} rows imported from 1 files in {} ({} skipped).",
        import.imported,
        in_words(time),
        command.options.skip_rows,
    );
    match import.parse_errors + import.insert_errors {
        0 => Ok(()),
        failed => Err(ShellError::Command(format!(
            "Failed to process {failed} rows; failed rows written to {}",
            import.error_file
        ))),
    }
}

/// A file that counts what is read of it.
struct Counted<R> {
    inner: R,
    position: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.position.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// The input, how much of it was read, and how long it is.
type Input = (Box<dyn BufRead>, Arc<AtomicU64>, Option<u64>);

fn open(command: &CopyCommand) -> Result<Input, ShellError> {
    let position = Arc::new(AtomicU64::new(0));
    let Some(path) = &command.path else {
        return Ok((Box::new(io::stdin().lock()), position, None));
    };
    let file = File::open(path)
        .map_err(|error| ShellError::Command(format!("Can't open '{path}' for reading: {error}")))?;
    let length = file.metadata()?.len();
    let counted = Counted { inner: file, position: position.clone() };
    Ok((Box::new(BufReader::with_capacity(1 << 20, counted)), position, Some(length)))
}

/// What each field of a record goes to: a column's name as it goes into a statement, or nothing.
///
/// Without a list of columns the header tells, if all its names are columns of the table; else
/// fields are the table's columns in the order of `SELECT *`.
fn columns(
    connection: &mut Connection,
    command: &CopyCommand,
    header: Option<Vec<Field>>,
) -> Result<Vec<Option<String>>, ShellError> {
    let skips =
        |name: &str| command.options.skip_columns.iter().any(|skipped| skipped == name.trim_matches('"'));
    if let Some(listed) = &command.columns {
        return Ok(listed.iter().map(|name| (!skips(name)).then(|| name.clone())).collect());
    }
    let all = connection.prepare(&format!("SELECT * FROM {}", table_name(command)))?;
    let of_table: Vec<&str> = all.result.columns().iter().map(|column: &ColumnSpec| &*column.name).collect();
    let of_header: Vec<String> = header.unwrap_or_default().into_iter().map(|field| field.text).collect();
    let is_known = |name: &String| of_table.contains(&name.as_str()) || skips(name);
    let names: Vec<String> = match !of_header.is_empty() && of_header.iter().all(is_known) {
        true => of_header,
        false => of_table.iter().map(|name| (*name).to_owned()).collect(),
    };
    Ok(names.into_iter().map(|name| (!skips(&name)).then(|| types::quote_if_needed(&name))).collect())
}

fn kept_names(columns: &[Option<String>]) -> Vec<&str> {
    columns.iter().flatten().map(String::as_str).collect()
}

fn insert(table: &str, columns: &[Option<String>], options: &CopyOptions) -> String {
    let names = kept_names(columns);
    let markers = vec!["?"; names.len()].join(", ");
    let ttl = options.ttl.map(|ttl| format!(" USING TTL {ttl}")).unwrap_or_default();
    format!("INSERT INTO {table} ({}) VALUES ({markers}){ttl}", names.join(", "))
}

/// A copy under way.
struct Import<'a> {
    connection: Connection,
    prepared: Prepared,
    /// Which fields of a record are columns.
    keeps: Vec<bool>,
    consistency: Consistency,
    options: &'a CopyOptions,
    /// Records that are not acknowledged, by stream.
    in_flight: HashMap<i16, Vec<Field>>,
    imported: u64,
    parse_errors: u64,
    insert_errors: u64,
    rejected: Option<File>,
    error_file: String,
}

impl Import<'_> {
    /// Sends one record; waits for an answer first when enough are in flight.
    fn insert(&mut self, record: Vec<Field>) -> Result<(), ShellError> {
        let values = match self.values(&record) {
            Ok(values) => values,
            Err(message) => {
                self.parse_errors += 1;
                return self.reject(
                    &record,
                    &message,
                    self.parse_errors,
                    self.options.parse_errors_max,
                    "parse",
                );
            }
        };
        while self.in_flight.len() >= self.options.in_flight_max {
            self.receive()?;
        }
        let request = Connection::execute_request(&self.prepared, values, self.consistency);
        let stream = self.connection.send(request)?;
        self.in_flight.insert(stream, record);
        Ok(())
    }

    /// The record's fields as values of the statement.
    fn values(&self, record: &[Field]) -> Result<Values, String> {
        if record.len() != self.keeps.len() {
            let (got, expected) = (record.len(), self.keeps.len());
            return Err(format!("Invalid row length {got} should be {expected}"));
        }
        let kept = record.iter().zip(&self.keeps).filter(|(_, keeps)| **keeps).map(|(field, _)| field);
        let cells: Result<Vec<Option<Vec<u8>>>, String> =
            kept.zip(&self.prepared.bind.columns).map(|(field, column)| self.cell(field, column)).collect();
        let cells = cells?;
        Ok(Values::pack(cells.iter().map(|cell| cell.as_deref().map_or(Value::Null, Value::Bytes))))
    }

    fn cell(&self, field: &Field, column: &ColumnSpec) -> Result<Option<Vec<u8>>, String> {
        if field.text == self.options.null && !field.is_quoted {
            return Ok(None);
        }
        let value = parse(&column.cql_type, &field.text, &self.options.values);
        value.map(Some).map_err(|error: ParseError| format!("Failed to parse {} : {error}", field.text))
    }

    /// Takes one answer.
    fn receive(&mut self) -> Result<(), ShellError> {
        let answer = self.connection.receive()?;
        let record = self.in_flight.remove(&answer.stream).unwrap_or_default();
        match answer.envelope.response {
            Response::Error(error) => {
                self.insert_errors += 1;
                let message = errors::of_server(&error);
                self.reject(&record, &message, self.insert_errors, self.options.insert_errors_max, "insert")
            }
            _ => {
                self.imported += 1;
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(), ShellError> {
        while !self.in_flight.is_empty() {
            self.receive()?;
        }
        Ok(())
    }

    /// Keeps a record that did not make it, and gives up after too many.
    fn reject(
        &mut self,
        record: &[Field],
        message: &str,
        count: u64,
        count_max: Option<u64>,
        what: &str,
    ) -> Result<(), ShellError> {
        if count <= ERRORS_SHOWN_MAX {
            eprintln!("Failed to import 1 rows: {message}");
        }
        let file = match &mut self.rejected {
            Some(file) => file,
            none => none.insert(File::create(&self.error_file)?),
        };
        write_record(file, self.options.dialect, "", record.iter().map(|field| Some(field.text.as_str())))?;
        file.flush()?;
        match count_max {
            Some(max) if count > max => Err(ShellError::Command(format!(
                "Exceeded maximum number of {what} errors {max}; failed rows written to {}",
                self.error_file
            ))),
            _ => Ok(()),
        }
    }
}
