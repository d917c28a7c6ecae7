//! A Cassandra node on a copy of our table files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{KEYSPACE, Writer, folder, lines, show_difference};
use crate::formats::statements::{ask, rows};
use crate::peers::{script, succeed};
use crate::report::{Failure, Tally};
use crate::wire::Connection;

const PORT: u16 = 19152;
const STORAGE_PORT: u16 = 17010;
const JMX_PORT: u16 = 17209;

/// A Cassandra of our own, stopped when dropped.
struct Cassandra {
    folder: PathBuf,
}

impl Cassandra {
    fn start(folder: &Path) -> Result<Cassandra, Failure> {
        let ports = [("--port", PORT), ("--storage-port", STORAGE_PORT), ("--jmx-port", JMX_PORT)];
        let mut command = script("cassandra");
        command.args(["start", "--heap", "768M", "--fast", "--profile", "latest", "--dir"]).arg(folder);
        for (name, port) in ports {
            command.arg(name).arg(port.to_string());
        }
        succeed(&mut command)?;
        Ok(Cassandra { folder: folder.to_owned() })
    }

    fn connect(&self) -> Result<Connection, Failure> {
        Ok(Connection::open(&format!("127.0.0.1:{PORT}"), 5)?)
    }
}

impl Drop for Cassandra {
    fn drop(&mut self) {
        // Nothing can be done about a peer that does not stop; the script has killed it then.
        let _ = succeed(script("cassandra").args(["stop", "--dir"]).arg(&self.folder));
    }
}

/// Asks the writer, copies its files, asks a Cassandra on the copy, and compares.
pub(super) fn serve(
    writer: &mut Writer,
    tables: &BTreeMap<String, String>,
    work: &Path,
) -> Result<Tally, Failure> {
    let queries = lines(&folder().join("queries.cql"))?;
    let mut connection = Connection::open(&writer.address, 5)?;
    let ours = answers(&mut connection, &queries)?;
    let schema = schema(&mut connection, tables)?;
    drop(connection);
    writer.rest()?;

    let cassandra = Cassandra::start(&work.join("cassandra"))?;
    let mut connection = cassandra.connect()?;
    schema.iter().try_for_each(|text| ask(&mut connection, text).map(drop))?;
    drop((connection, cassandra));
    // Our folders have the names that Cassandra gives to the same tables with the same ids.
    let target = work.join("cassandra/d/data");
    succeed(Command::new("cp").arg("-r").arg(writer.data.join(KEYSPACE)).arg(&target))?;
    let cassandra = Cassandra::start(&work.join("cassandra"))?;
    let theirs = answers(&mut cassandra.connect()?, &queries)?;
    let mut tally = Tally::default();
    for ((query, ours), theirs) in queries.iter().zip(&ours).zip(&theirs) {
        if ours == theirs {
            println!("ok: Cassandra on our files, {} rows: {query}", ours.len());
            tally += Tally::PASS;
        } else {
            println!("*** Cassandra on our files answers otherwise: {query}");
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

fn answers(connection: &mut Connection, queries: &[String]) -> Result<Vec<Vec<String>>, Failure> {
    ask(connection, &format!("USE {KEYSPACE}"))?;
    let answer = |query: &String| {
        let rows = rows(connection, query.trim_end_matches(';'))?;
        Ok(rows.iter().map(|row| row.join(" | ")).collect())
    };
    queries.iter().map(answer).collect()
}

/// Statements that make the same schema with the same ids.
fn schema(connection: &mut Connection, tables: &BTreeMap<String, String>) -> Result<Vec<String>, Failure> {
    let mut schema = Vec::new();
    for row in rows(connection, &format!("DESCRIBE ONLY KEYSPACE {KEYSPACE}"))? {
        schema.extend(row.last().map(|text| unquoted(text)));
    }
    for (table, id) in tables {
        for row in rows(connection, &format!("DESCRIBE TABLE {KEYSPACE}.{table}"))? {
            let text = row.last().map(|text| unquoted(text)).unwrap_or_default();
            schema.push(text.replacen(") WITH ", &format!(") WITH ID = {id}\n    AND "), 1));
        }
        schema.extend(dropped(connection, table)?);
    }
    Ok(schema)
}

/// A dropped column is made and dropped again, so that the node knows it when it meets one in a file.
fn dropped(connection: &mut Connection, table: &str) -> Result<Vec<String>, Failure> {
    let text = format!(
        "SELECT column_name, type FROM system_schema.dropped_columns WHERE keyspace_name = '{KEYSPACE}' AND table_name = '{table}'"
    );
    let mut statements = Vec::new();
    for row in rows(connection, &text)? {
        let (name, kind) = (row[0].trim_matches('\''), row[1].trim_matches('\''));
        statements.push(format!("ALTER TABLE {KEYSPACE}.{table} ADD {name} {kind}"));
        statements.push(format!("ALTER TABLE {KEYSPACE}.{table} DROP {name}"));
    }
    Ok(statements)
}

fn unquoted(literal: &str) -> String {
    let inner = literal.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).unwrap_or(literal);
    inner.replace("''", "'").trim_end_matches(';').to_owned()
}
