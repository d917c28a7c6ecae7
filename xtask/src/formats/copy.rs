//! A Cassandra node on a copy of our table files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{Writer, show_difference};
use crate::formats::statements::{ask, rows};
use crate::measure::Cassandra;
use crate::peers::succeed;
use crate::report::{Failure, Tally, complain};
use crate::wire::Connection;

const PROFILE: &str = "latest";
const HEAP: &str = "768M";

/// A keyspace that is copied, and what is asked of it before and after.
pub(super) struct Kept {
    pub(super) keyspace: &'static str,
    /// Names and ids.
    pub(super) tables: BTreeMap<String, String>,
    pub(super) queries: Vec<String>,
}

/// Asks the writer, copies its files, asks a Cassandra on the copy, and compares.
pub(super) fn serve(writer: &mut Writer, kept: &[Kept], work: &Path) -> Result<Tally, Failure> {
    let mut connection = Connection::open(&writer.address, 5)?;
    let (mut ours, mut schemas) = (Vec::new(), Vec::new());
    for kept in kept {
        ours.push(answers(&mut connection, kept)?);
        schemas.extend(schema(&mut connection, kept.keyspace, &kept.tables)?);
    }
    drop(connection);
    writer.rest()?;

    let folder = work.join("cassandra");
    let cassandra = Cassandra::start(&folder, PROFILE, HEAP)?;
    let mut connection = Connection::open(&cassandra.address(), 5)?;
    schemas.iter().try_for_each(|text| ask(&mut connection, text).map(drop))?;
    drop((connection, cassandra));
    // Our folders have the names that Cassandra gives to the same tables with the same ids.
    let target = folder.join("d/data");
    for kept in kept {
        succeed(Command::new("cp").arg("-r").arg(writer.data.join(kept.keyspace)).arg(&target))?;
    }
    let cassandra = Cassandra::start(&folder, PROFILE, HEAP)?;
    let mut connection = Connection::open(&cassandra.address(), 5)?;
    let mut tally = Tally::default();
    for (kept, ours) in kept.iter().zip(&ours) {
        tally += compare(kept, ours, &answers(&mut connection, kept)?)?;
    }
    Ok(tally)
}

fn compare(kept: &Kept, ours: &[Vec<String>], theirs: &[Vec<String>]) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for ((query, ours), theirs) in kept.queries.iter().zip(ours).zip(theirs) {
        if ours == theirs {
            println!("ok: Cassandra on our files, {} rows: {query}", ours.len());
            tally += Tally::PASS;
        } else {
            complain!("Cassandra on our files answers otherwise: {query}");
            show_difference(&theirs.join("\n"), &ours.join("\n"));
            tally += Tally::FAIL;
        }
    }
    // Equal because nothing is there would be no success.
    match theirs.iter().any(|rows| rows.len() > 1) {
        true => Ok(tally),
        false => Err(Failure::new("the Cassandra on our files has no rows")),
    }
}

fn answers(connection: &mut Connection, kept: &Kept) -> Result<Vec<Vec<String>>, Failure> {
    ask(connection, &format!("USE {}", kept.keyspace))?;
    let answer = |query: &String| {
        let rows = patiently(|| rows(connection, query.trim_end_matches(';')))?;
        Ok(rows.iter().map(|row| row.join(" | ")).collect())
    };
    kept.queries.iter().map(answer).collect()
}

/// A node that has just started on a busy machine times out; it is asked again.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    const TRIES: usize = 6;
    const READ_TIMEOUT: &str = "error 0x1200";
    for _ in 1..TRIES {
        match ask() {
            Err(failure) if failure.to_string().contains(READ_TIMEOUT) => {}
            done => return done,
        }
    }
    ask()
}

/// Statements that make the same schema with the same ids.
pub(crate) fn schema(
    connection: &mut Connection,
    keyspace: &str,
    tables: &BTreeMap<String, String>,
) -> Result<Vec<String>, Failure> {
    let mut schema = Vec::new();
    for row in rows(connection, &format!("DESCRIBE ONLY KEYSPACE {keyspace}"))? {
        schema.extend(row.last().map(|text| unquoted(text)));
    }
    for (table, id) in tables {
        for row in rows(connection, &format!("DESCRIBE TABLE {keyspace}.{table}"))? {
            let text = row.last().map(|text| unquoted(text)).unwrap_or_default();
            schema.push(text.replacen(") WITH ", &format!(") WITH ID = {id}\n    AND "), 1));
        }
        schema.extend(dropped(connection, keyspace, table)?);
    }
    Ok(schema)
}

/// A dropped column is made and dropped again, so that the node knows it when it meets one in a file.
fn dropped(connection: &mut Connection, keyspace: &str, table: &str) -> Result<Vec<String>, Failure> {
    let text = format!(
        "SELECT column_name, type FROM system_schema.dropped_columns WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
    );
    let mut statements = Vec::new();
    for row in rows(connection, &text)? {
        let (name, kind) = (row[0].trim_matches('\''), row[1].trim_matches('\''));
        statements.push(format!("ALTER TABLE {keyspace}.{table} ADD {name} {kind}"));
        statements.push(format!("ALTER TABLE {keyspace}.{table} DROP {name}"));
    }
    Ok(statements)
}

fn unquoted(literal: &str) -> String {
    let inner = literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(literal);
    inner.replace("''", "'").trim_end_matches(';').to_owned()
}
