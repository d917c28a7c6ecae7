//! The statements that fill the tables, and what the tables are called then.

use std::collections::BTreeMap;
use std::path::Path;

use crate::report::Failure;
use crate::wire::answer::Rows;
use crate::wire::value::literal;
use crate::wire::{Answer, Connection, Request};

/// Statements, each with how often it runs.
pub(super) struct Statements(Vec<(String, u32)>);

impl Statements {
    /// Reads a file of statements; `--@ repeat N` stands before one that runs more often.
    pub(super) fn read(path: &Path) -> Result<Statements, Failure> {
        let mut statements = Vec::new();
        let (mut text, mut count) = (String::new(), 1);
        for line in super::lines(path)? {
            if let Some(number) = line.strip_prefix("--@ repeat ") {
                count = number.trim().parse()?;
                continue;
            }
            if line == "--" {
                continue;
            }
            text.push_str(&line);
            if let Some(statement) = text.trim_end().strip_suffix(';') {
                statements.push((statement.to_owned(), count));
                (text, count) = (String::new(), 1);
            } else {
                text.push('\n');
            }
        }
        Ok(Statements(statements))
    }

    /// Runs all in a keyspace that is made anew.
    pub(super) fn run(&self, connection: &mut Connection, keyspace: &str) -> Result<(), Failure> {
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        ask(connection, &format!("DROP KEYSPACE IF EXISTS {keyspace}"))?;
        ask(connection, &format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}"))?;
        ask(connection, &format!("USE {keyspace}"))?;
        for (text, count) in &self.0 {
            for index in 0..*count {
                ask(connection, &text.replace("{i}", &index.to_string()))?;
            }
        }
        Ok(())
    }
}

/// Runs a statement that must work.
pub(crate) fn ask(connection: &mut Connection, text: &str) -> Result<Answer, Failure> {
    match connection.query(text, &Request::default())?.answer {
        Answer::Error { code, message, .. } => {
            Err(Failure::new(format!("{text}: error {code:#06x}: {message}")))
        }
        answer => Ok(answer),
    }
}

/// The rows that a statement answers, as literals.
pub(crate) fn rows(connection: &mut Connection, text: &str) -> Result<Vec<Vec<String>>, Failure> {
    let Answer::Rows(Rows { metadata, rows }) = ask(connection, text)? else { return Ok(Vec::new()) };
    let literals = |row: &Vec<Option<Vec<u8>>>| {
        let pairs = metadata.columns.iter().zip(row);
        pairs.map(|(column, value)| literal(&column.kind, value.as_deref())).collect()
    };
    Ok(rows.iter().map(literals).collect())
}

/// The tables of a keyspace with their ids.
pub(crate) fn table_ids(
    connection: &mut Connection,
    keyspace: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let text = format!("SELECT table_name, id FROM system_schema.tables WHERE keyspace_name = '{keyspace}'");
    let rows = rows(connection, &text)?;
    Ok(rows.into_iter().map(|row| (row[0].trim_matches('\'').to_owned(), row[1].clone())).collect())
}
