//! `COPY … TO`.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use client::{Answer, Row};
use protocol::{ColumnSpec, Query, QueryParameters, Request, Text};
use types::CqlType;

use super::command::CopyCommand;
use super::{Progress, in_words, table_name};
use crate::cqlsh::shell::{Shell, ShellError};
use crate::csv::write_record;
use crate::values::{Style, format};

/// Reads the table page by page, the next page being on its way while one is written.
pub(super) fn run(shell: &mut Shell, command: &CopyCommand) -> Result<(), ShellError> {
    let mut connection = shell.another_connection()?;
    let statement = select(&mut connection, command)?;
    let request = |paging_state| {
        let parameters = QueryParameters {
            page_size: Some(command.options.page_size),
            paging_state,
            ..QueryParameters::at(shell.settings.consistency)
        };
        Request::Query(Query { query: Text::from(statement.as_str()), parameters })
    };
    // A file is made once there is something to write: a table that is not there leaves none behind.
    let mut answer: Answer = connection.call(request(None))?.checked()?;
    let mut out: Box<dyn Write> = match &command.path {
        Some(path) => Box::new(BufWriter::new(File::create(path)?)),
        None => Box::new(io::stdout().lock()),
    };
    let progress = Progress::new(None);
    let mut row_count = 0u64;
    let mut is_first = true;
    loop {
        let page = answer.rows()?;
        if let Some(next) = page.paging_state.clone() {
            connection.send(request(Some(next)))?;
            connection.flush()?;
        }
        if is_first {
            let names: Vec<&str> = page.columns().iter().map(|column| &*column.name).collect();
            if command.path.is_some() {
                println!("\nStarting copy of {} with columns [{}].", table_name(command), names.join(", "));
            }
            if command.options.header {
                write_record(&mut out, command.options.dialect, "", names.into_iter().map(Some))?;
            }
            is_first = false;
        }
        write_rows(&mut out, &page.rows, page.columns(), command)?;
        row_count += page.rows.len() as u64;
        progress.update(row_count, None);
        match page.paging_state {
            Some(_) => answer = connection.receive()?,
            None => break,
        }
    }
    out.flush()?;
    let time = progress.finish();
    if command.path.is_some() {
        println!("{row_count} rows exported to 1 files in {}.", in_words(time));
    }
    Ok(())
}

/// The whole table, or the part of the ring asked for.
fn select(connection: &mut client::Connection, command: &CopyCommand) -> Result<String, ShellError> {
    let table = table_name(command);
    let columns = command.columns.as_ref().map_or_else(|| "*".to_owned(), |columns| columns.join(", "));
    let (begin, end) = (command.options.begin_token, command.options.end_token);
    if begin.is_none() && end.is_none() {
        return Ok(format!("SELECT {columns} FROM {table}"));
    }
    // The names of the partition key's columns, in order: a prepared statement tells them.
    let key = partition_key(connection, &table)?;
    let mut conditions = Vec::new();
    conditions.extend(begin.map(|token| format!("token({key}) > {token}")));
    conditions.extend(end.map(|token| format!("token({key}) <= {token}")));
    Ok(format!("SELECT {columns} FROM {table} WHERE {}", conditions.join(" AND ")))
}

fn partition_key(connection: &mut client::Connection, table: &str) -> Result<String, ShellError> {
    let all = connection.prepare(&format!("SELECT * FROM {table}"))?;
    let Some(first) = all.result.columns().first() else {
        return Err(ShellError::Command(format!("the columns of {table} are not known")));
    };
    let query = format!(
        "SELECT column_name, position FROM system_schema.columns WHERE keyspace_name = '{}' AND table_name = '{}' \
         AND kind = 'partition_key' ALLOW FILTERING",
        first.keyspace, first.table
    );
    let rows = connection.query(&query)?.rows()?;
    let mut names: Vec<(i32, String)> = Vec::new();
    for row in &rows.rows {
        if let [Some(name), Some(position)] = row.as_slice() {
            let position = <[u8; 4]>::try_from(&position[..]).map(i32::from_be_bytes).unwrap_or(0);
            names.push((position, types::quote_if_needed(&String::from_utf8_lossy(name))));
        }
    }
    names.sort();
    Ok(names.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(", "))
}

fn write_rows(
    out: &mut impl Write,
    rows: &[Row],
    columns: &[ColumnSpec],
    command: &CopyCommand,
) -> io::Result<()> {
    let options = &command.options;
    for row in rows {
        let cells: Vec<Option<String>> = row
            .iter()
            .zip(columns)
            .map(|(cell, column)| cell.as_ref().map(|cell| text(&column.cql_type, cell, options)))
            .collect();
        write_record(out, options.dialect, &options.null, cells.iter().map(Option::as_deref))?;
    }
    Ok(())
}

fn text(cql_type: &CqlType, cell: &[u8], options: &super::options::CopyOptions) -> String {
    match (cql_type, cell) {
        (CqlType::Boolean, [0]) => options.values.booleans.1.clone(),
        (CqlType::Boolean, [_]) => options.values.booleans.0.clone(),
        _ => format(cql_type, cell, Style::Csv),
    }
}
