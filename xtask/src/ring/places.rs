//! Where the server says that tokens and rows are, for drivers to hold what they find by themselves against.
//!
//! Replicas are asked for in keyspaces with fewer of them than there are nodes: with three of three, all is right. The
//! nodes stand in two racks, so that the strategies differ.
//!
//! ```text
//!   token 127.0.0.1 -1918533441259831297
//!   row simple_2 17 127.0.0.3 127.0.0.1        the order of the ring: the first one is the primary
//! ```

use std::collections::BTreeSet;

use super::{HOSTS, Ring};
use crate::report::Failure;
use crate::wire::answer::Rows;
use crate::wire::value::literal;
use crate::wire::{Answer, Connection, Request};

const KEYSPACES: [(&str, &str); 3] = [
    ("simple_1", "{'class': 'SimpleStrategy', 'replication_factor': 1}"),
    ("simple_2", "{'class': 'SimpleStrategy', 'replication_factor': 2}"),
    ("topology_2", "{'class': 'NetworkTopologyStrategy', 'replication_factor': 2}"),
];
/// Rows of each keyspace that are asked for.
const ROW_COUNT: usize = 50;
/// The drivers speak newer ones; here any will do.
const PROTOCOL_VERSION: u8 = 4;

/// Makes the keyspaces, and tells where all is.
pub(super) fn places(ring: &Ring) -> Result<String, Failure> {
    let mut connection = Connection::open(&ring.address(HOSTS[0]), PROTOCOL_VERSION)?;
    let mut lines: Vec<String> = tokens(ring)?.into_iter().collect();
    for (keyspace, replication) in KEYSPACES {
        ask(&mut connection, &format!("CREATE KEYSPACE {keyspace} WITH replication = {replication}"))?;
        ask(&mut connection, &format!("CREATE TABLE {keyspace}.rows (id int PRIMARY KEY, v text)"))?;
        for (key, host) in (0..ROW_COUNT).zip(HOSTS.into_iter().cycle()) {
            let key = key.to_string();
            // Whichever node is asked says the same.
            let replicas = ring.nodetool(host, &["getendpoints", keyspace, "rows", &key])?;
            let replicas: Vec<&str> = replicas.lines().collect();
            lines.push(format!("row {keyspace} {key} {}", replicas.join(" ")));
        }
    }
    lines.push(String::new());
    Ok(lines.join("\n"))
}

/// A line for each token, as all nodes tell it of themselves and of the others.
fn tokens(ring: &Ring) -> Result<BTreeSet<String>, Failure> {
    let mut found: Option<BTreeSet<String>> = None;
    for host in HOSTS {
        let mut connection = Connection::open(&ring.address(host), PROTOCOL_VERSION)?;
        let mut lines = BTreeSet::new();
        for table in ["local", "peers"] {
            let text = format!("SELECT rpc_address, tokens FROM system.{table}");
            lines.extend(token_lines(&ask(&mut connection, &text)?));
        }
        match &found {
            Some(others) if *others != lines => {
                return Err(Failure::new(format!("{host} tells other tokens than the nodes before it")));
            }
            _ => found = Some(lines),
        }
    }
    Ok(found.unwrap_or_default())
}

fn token_lines(rows: &Rows) -> Vec<String> {
    let mut lines = Vec::new();
    for row in &rows.rows {
        let columns = rows.metadata.columns.iter().zip(row);
        let words: Vec<String> =
            columns.map(|(column, value)| literal(&column.kind, value.as_deref())).collect();
        let [address, tokens] = words.as_slice() else { continue };
        let bare = |word: &str| word.trim_matches(['{', '}', '\'']).to_owned();
        lines.extend(tokens.split(", ").map(|token| format!("token {} {}", bare(address), bare(token))));
    }
    lines
}

fn ask(connection: &mut Connection, text: &str) -> Result<Rows, Failure> {
    match connection.query(text, &Request::default())?.answer {
        Answer::Rows(rows) => Ok(rows),
        Answer::SchemaChange { .. } => Ok(Rows { metadata: Default::default(), rows: Vec::new() }),
        other => Err(Failure::new(format!("{text}: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::answer::{Column, Metadata};
    use crate::wire::value::Type;

    #[test]
    fn each_token_of_a_node_is_a_line() {
        let column = |name: &str, kind| Column { table: "system.peers".into(), name: name.into(), kind };
        let (inet, text) = (Type::Native(0x10), Type::Native(0x0d));
        let columns = vec![column("rpc_address", inet), column("tokens", Type::Set(Box::new(text)))];
        let tokens = b"\0\0\0\x02\0\0\0\x02-7\0\0\0\x019".to_vec();
        let rows = vec![vec![Some(vec![127, 0, 0, 2]), Some(tokens)]];
        let rows = Rows { metadata: Metadata { columns, paging_state: None }, rows };
        assert_eq!(token_lines(&rows), ["token 127.0.0.2 -7", "token 127.0.0.2 9"]);
    }
}
