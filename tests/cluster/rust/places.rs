//! Where the server says that tokens and rows are: the file `PERISTYLE_PLACES` of tests/cluster/README.md.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

/// The nodes that have a row, in the order of the ring.
pub(crate) struct Row {
    pub(crate) keyspace: String,
    pub(crate) key: i32,
    pub(crate) replicas: Vec<String>,
}

pub(crate) struct Places {
    /// Those of each address.
    pub(crate) tokens: BTreeMap<String, BTreeSet<i64>>,
    pub(crate) rows: Vec<Row>,
}

impl Places {
    pub(crate) fn read() -> Result<Places, Box<dyn Error>> {
        let mut places = Places { tokens: BTreeMap::new(), rows: Vec::new() };
        for line in std::fs::read_to_string(std::env::var("PERISTYLE_PLACES")?)?.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match *words {
                ["token", address, token] => {
                    places.tokens.entry(address.to_owned()).or_default().insert(token.parse()?);
                }
                ["row", keyspace, key, ref replicas @ ..] => {
                    let replicas = replicas.iter().map(|address| (*address).to_owned()).collect();
                    places.rows.push(Row { keyspace: keyspace.to_owned(), key: key.parse()?, replicas });
                }
                _ => return Err(format!("a line of places: {line}").into()),
            }
        }
        Ok(places)
    }
}
