//! Which node has which rows, as a driver learns it: from `system.local` and `system.peers_v2` of one node, and the
//! keyspace's replication.
//!
//! So requests go to a replica of their row, and a server is not charged for a way that a driver would not have taken.
//! Cassandra's tokens lie anywhere. Here they are rounded to the finest grid of `ring`, each by at most a 65,536th of
//! the ring: requests for the keys between take one way more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use client::{Answer, ClientError, Connection, Row};
use ring::{Grid, Node, NodeIndex, Placement, Strategy, Topology};
use schema::Replication;
use types::Token;
use types::encoding::Parts;
use uuid::Uuid;

const LOCAL: &str = "SELECT host_id, data_center, rack, tokens FROM system.local";
/// Cassandra 3 and ScyllaDB have no `peers_v2`; all nodes listen on one port there.
const PEERS: [&str; 2] = [
    "SELECT host_id, data_center, rack, tokens, native_address, native_port FROM system.peers_v2",
    "SELECT host_id, data_center, rack, tokens, rpc_address FROM system.peers",
];

/// The nodes of a cluster that are asked, and the replicas of each token.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    /// Those of the first one's data centre, as a driver asks them.
    near: Vec<Near>,
    placement: Placement,
    /// The keyspace's, in words.
    replication: String,
}

/// A node that is asked.
#[derive(Clone, Debug)]
pub(crate) struct Near {
    /// Its place in the topology.
    pub(crate) index: NodeIndex,
    /// Where it serves clients.
    pub(crate) address: String,
}

impl Nodes {
    /// Asks the node at this address about all.
    ///
    /// # Errors
    /// It does not answer, or says what makes no ring: why.
    pub(crate) fn ask(
        connection: &mut Connection,
        address: &str,
        keyspace: &str,
    ) -> Result<Nodes, NodesError> {
        let (_, port) = address.rsplit_once(':').ok_or(NodesError::Answer("an address without a port"))?;
        let (mut addresses, mut nodes) = (BTreeMap::new(), Vec::new());
        for row in rows(connection, LOCAL)? {
            let node = node(&row)?;
            addresses.insert(node.host_id, address.to_owned());
            nodes.push(node);
        }
        for row in rows(connection, PEERS[0]).or_else(|_| rows(connection, PEERS[1]))? {
            let node = node(&row)?;
            addresses.insert(node.host_id, address_of(&row, port)?);
            nodes.push(node);
        }
        let data_center = nodes.first().map(|node| node.data_center.clone()).unwrap_or_default();
        // Two tokens may have come to the same place of the grid.
        let mut taken = BTreeSet::new();
        nodes.iter_mut().for_each(|node| node.tokens.retain(|token| taken.insert(*token)));
        let topology = Arc::new(Topology::new(Grid::new(Grid::SLOT_BITS_MAX)?, nodes)?);
        let near = topology.nodes().iter().zip(0u16..).filter(|(node, _)| node.data_center == data_center);
        let near = near.filter_map(|(node, index)| {
            Some(Near { index: NodeIndex(index), address: addresses.remove(&node.host_id)? })
        });
        let near = near.collect();
        let replication = replication(connection, keyspace)?;
        let placement = Placement::new(topology, &Strategy::of(&replication)?, NodeIndex(0));
        Ok(Nodes { near, placement, replication: in_words(&replication) })
    }

    /// How the keyspace is replicated, in words.
    pub(crate) fn replication(&self) -> &str {
        &self.replication
    }

    /// Those that are asked.
    pub(crate) fn near(&self) -> &[Near] {
        &self.near
    }

    /// Has this node the rows of that token?
    pub(crate) fn is_replica(&self, node: NodeIndex, token: Token) -> bool {
        self.placement.replicas_of(token).contains(&node)
    }
}

/// Why nothing is known of the nodes.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    /// A node can not be asked, or refuses.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// What it says makes no ring.
    #[error(transparent)]
    Ring(#[from] ring::RingError),
    /// What it says is not what such tables hold.
    #[error("the node's system tables hold {0}")]
    Answer(&'static str),
}

fn rows(connection: &mut Connection, text: &str) -> Result<Vec<Row>, ClientError> {
    connection.query(text).and_then(Answer::rows).map(|rows| rows.rows)
}

/// The first columns of both statements.
fn node(row: &Row) -> Result<Node, NodesError> {
    let host_id = cell(row, 0).and_then(|cell| Uuid::from_slice(cell).ok());
    let tokens = elements(cell(row, 3).ok_or(NodesError::Answer("a node without tokens"))?, 1)?;
    let tokens = tokens.into_iter().map(token).collect::<Result<Vec<Token>, NodesError>>()?;
    Ok(Node {
        host_id: host_id.ok_or(NodesError::Answer("a node without an id"))?,
        data_center: text(row, 1)?,
        rack: text(row, 2)?,
        num_tokens: tokens.len() as u16,
        tokens,
    })
}

/// On the grid.
fn token(text: &[u8]) -> Result<Token, NodesError> {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    let token = Token(number.ok_or(NodesError::Answer("a token that is no number"))?);
    Ok(Grid::new(Grid::SLOT_BITS_MAX)?.nearest(token))
}

/// Where a peer serves clients: its address, and its port where that is told.
fn address_of(row: &Row, port: &str) -> Result<String, NodesError> {
    let bytes = cell(row, 4).ok_or(NodesError::Answer("a node without an address"))?;
    let address = match (<[u8; 4]>::try_from(bytes.as_ref()), <[u8; 16]>::try_from(bytes.as_ref())) {
        (Ok(bytes), _) => std::net::IpAddr::from(bytes),
        (_, Ok(bytes)) => std::net::IpAddr::from(bytes),
        _ => return Err(NodesError::Answer("an address that is none")),
    };
    let told = cell(row, 5).and_then(|cell| Some(i32::from_be_bytes(cell.as_ref().try_into().ok()?)));
    let port = told.map_or_else(|| port.to_owned(), |port| port.to_string());
    Ok(if address.is_ipv6() { format!("[{address}]:{port}") } else { format!("{address}:{port}") })
}

/// The keyspace's replication, a map of texts.
fn replication(connection: &mut Connection, keyspace: &str) -> Result<Replication, NodesError> {
    let text = format!("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'");
    let rows = rows(connection, &text)?;
    let map = rows.first().and_then(|row| cell(row, 0)).ok_or(NodesError::Answer("no such keyspace"))?;
    let words = elements(map, 2)?;
    let word = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut options: BTreeMap<String, String> =
        words.chunks_exact(2).map(|pair| (word(pair[0]), word(pair[1]))).collect();
    let class = options.remove("class").ok_or(NodesError::Answer("a keyspace without a strategy"))?;
    Ok(Replication { class, options })
}

/// `NetworkTopologyStrategy dc1: 3`.
fn in_words(replication: &Replication) -> String {
    let class = replication.class.rsplit('.').next().unwrap_or_default();
    let options = replication.options.iter().map(|(name, value)| format!("{name}: {value}"));
    format!("{class} {}", options.collect::<Vec<_>>().join(", "))
}

fn cell(row: &Row, index: usize) -> Option<&Bytes> {
    row.get(index).and_then(Option::as_ref)
}

fn text(row: &Row, index: usize) -> Result<String, NodesError> {
    let bytes = cell(row, index).ok_or(NodesError::Answer("a node without a data centre or rack"))?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// The values of a collection: elements, or keys and values in turns, which make two an entry.
fn elements(collection: &[u8], values_per_entry: u64) -> Result<Vec<&[u8]>, NodesError> {
    let cut = |_| NodesError::Answer("a collection that is cut off");
    let values = Parts::new(collection, values_per_entry).map_err(cut)?;
    values.map(|value| value.map(Option::unwrap_or_default).map_err(cut)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collection(values: &[&str], value_count: usize) -> Vec<u8> {
        let mut bytes = ((values.len() / value_count) as i32).to_be_bytes().to_vec();
        for value in values {
            bytes.extend_from_slice(&(value.len() as i32).to_be_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
        bytes
    }

    #[test]
    fn a_collection_that_is_cut_off_is_refused() {
        let whole = collection(&["a", "bc"], 1);
        assert_eq!(elements(&whole, 1).unwrap(), [b"a".as_slice(), b"bc"]);
        assert!((0..whole.len()).all(|length| elements(&whole[..length], 1).is_err()));
    }

    #[test]
    fn a_node_is_read_as_system_tables_hold_it() {
        let id = Uuid::from_u128(7);
        let cells: [&[u8]; 6] = [
            id.as_bytes(),
            b"dc1",
            b"rack1",
            &collection(&["-9223372036854775808", "17"], 1),
            &[127, 0, 0, 2],
            &9042i32.to_be_bytes(),
        ];
        let row: Row = cells.iter().map(|cell| Some(Bytes::copy_from_slice(cell))).collect();
        let node = node(&row).unwrap();
        assert_eq!((node.host_id, node.tokens.len(), node.rack.as_str()), (id, 2, "rack1"));
        assert_eq!(address_of(&row, "1").unwrap(), "127.0.0.2:9042");
        assert_eq!(address_of(&row[..5].to_vec(), "1").unwrap(), "127.0.0.2:1");
    }
}
