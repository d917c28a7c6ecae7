//! `DESCRIBE`: answered by the server row by row, laid out here as cqlsh does.

use std::io::{self, Write};

use super::display::write_columns;
use super::shell::{Shell, ShellError};

/// Sends the command as it was typed and prints what it is about.
pub(crate) fn run(shell: &mut Shell, text: &str) -> Result<(), ShellError> {
    let mut words = text.split_whitespace().skip(1).map(str::to_lowercase);
    let mut what = words.next().unwrap_or_default();
    if what == "full" {
        what = words.next().unwrap_or_default();
    }
    let (names, rows) = shell.texts(text)?;
    let mut out = io::stdout().lock();
    let column = |name: &str| names.iter().position(|other| other == name);
    match what.as_str() {
        "keyspaces" => {
            let Some(name) = column("name") else { return Err(unexpected()) };
            writeln!(out)?;
            write_columns(&mut out, &rows.iter().map(|row| row[name].clone()).collect::<Vec<_>>())?;
            writeln!(out)?;
        }
        "tables" | "columnfamilies" | "types" | "functions" | "aggregates" => {
            let (Some(keyspace), Some(name)) = (column("keyspace_name"), column("name")) else {
                return Err(unexpected());
            };
            write_lists(&mut out, &rows, keyspace, name, shell.keyspace.is_some())?;
        }
        "cluster" => {
            let field = |name: &str| {
                column(name).and_then(|index| rows.first()?.get(index).cloned()).unwrap_or_default()
            };
            writeln!(out, "\nCluster: {}\nPartitioner: {}", field("cluster"), field("partitioner"))?;
            writeln!(out, "Snitch: {}\n", field("snitch"))?;
        }
        _ => {
            let Some(statement) = column("create_statement") else { return Err(unexpected()) };
            for row in &rows {
                writeln!(out, "\n{}", row[statement])?;
            }
            writeln!(out)?;
        }
    }
    Ok(out.flush()?)
}

/// Names under their keyspaces; the server gives them sorted.
fn write_lists(
    out: &mut impl Write,
    rows: &[Vec<String>],
    keyspace: usize,
    name: usize,
    is_in_keyspace: bool,
) -> io::Result<()> {
    for group in rows.chunk_by(|a, b| a[keyspace] == b[keyspace]) {
        let title = &group[0][keyspace];
        writeln!(out)?;
        if !is_in_keyspace {
            writeln!(out, "Keyspace {title}\n---------{}", "-".repeat(title.chars().count()))?;
        }
        write_columns(out, &group.iter().map(|row| row[name].clone()).collect::<Vec<_>>())?;
    }
    writeln!(out)
}

fn unexpected() -> ShellError {
    ShellError::Command("the server's answer to DESCRIBE lacks the columns expected".to_owned())
}
