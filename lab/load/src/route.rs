//! Which nodes of a ring have a row, so that a request goes to one of them: what drivers call token awareness.
//!
//! Every host is asked for its own tokens, and the first one for the keyspace's replicas. A row is on the owner of its
//! token and on the next nodes along the ring, as many as the keyspace says. Data centres and racks are not looked at,
//! so this holds for a ring of one rack.

use crate::Outcome;
use crate::link::Talk;
use crate::murmur;
use crate::rows::elements;

/// Tokens of a ring with their nodes, and how many of these have a row.
pub(crate) struct Route {
    /// By token; a node is known by its place among the hosts.
    owners: Vec<(i64, usize)>,
    replica_count: usize,
}

impl Route {
    /// Asks the hosts, on one connection to each, in their order. Together they must be the whole ring.
    pub(crate) fn ask(talks: &mut [Talk], keyspace: &str) -> Outcome<Route> {
        let (host_count, mut owners) = (talks.len(), Vec::new());
        for (host, talk) in talks.iter_mut().enumerate() {
            let node_count = talk.column("SELECT peer FROM system.peers")?.len() + 1;
            if node_count != host_count {
                return Err(format!("the ring has {node_count} nodes, hosts= names {host_count}").into());
            }
            for tokens in talk.column("SELECT tokens FROM system.local")? {
                for token in elements(&tokens, 1)? {
                    owners.push((std::str::from_utf8(token)?.parse()?, host));
                }
            }
        }
        owners.sort_unstable();
        let first = talks.first_mut().ok_or("a ring has nodes")?;
        let text =
            format!("SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = '{keyspace}'");
        let replication = first.column(&text)?.pop().ok_or_else(|| format!("no keyspace '{keyspace}'"))?;
        Ok(Route { owners, replica_count: replica_count(&replication)? })
    }

    /// Has this host the row of this key?
    pub(crate) fn is_replica(&self, host: usize, key: &[u8]) -> bool {
        let token = murmur::token(key);
        let owner = self.owners.partition_point(|(of_node, _)| *of_node < token);
        let mut replicas: Vec<usize> = Vec::with_capacity(self.replica_count);
        for (_, node) in self.owners[owner..].iter().chain(&self.owners[..owner]) {
            if replicas.len() == self.replica_count {
                break;
            }
            if !replicas.contains(node) {
                replicas.push(*node);
            }
        }
        replicas.contains(&host)
    }
}

/// What a map as `{'class': …, 'replication_factor': '3'}` says, or one with a data centre's name instead.
fn replica_count(replication: &[u8]) -> Outcome<usize> {
    let words = elements(replication, 2)?;
    let values = words.chunks_exact(2).filter(|pair| pair[0] != b"class").map(|pair| pair[1]);
    match values.collect::<Vec<_>>().as_slice() {
        [count] => Ok(std::str::from_utf8(count)?.parse()?),
        _ => Err("a keyspace over several data centres".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_on_its_owner_and_on_the_next_other_nodes() {
        let token = murmur::token(b"123");
        let owners = vec![(token - 9, 0), (token, 1), (token + 1, 1), (token + 5, 2), (token + 7, 0)];
        let mut route = Route { owners, replica_count: 1 };
        let mut check = |count, expected: [bool; 3]| {
            route.replica_count = count;
            assert_eq!([0, 1, 2].map(|host| route.is_replica(host, b"123")), expected);
        };
        check(1, [false, true, false]);
        check(2, [false, true, true]);
        check(3, [true, true, true]);
    }

    #[test]
    fn behind_the_last_token_the_ring_begins_again() {
        let token = murmur::token(b"123");
        let route = Route { owners: vec![(token - 9, 0), (token - 1, 1)], replica_count: 1 };
        assert!(route.is_replica(0, b"123") && !route.is_replica(1, b"123"));
    }

    #[test]
    fn the_replicas_of_a_keyspace_are_a_number_in_a_map() {
        let map = b"\0\0\0\x02\0\0\0\x05class\0\0\0\x01S\0\0\0\x03dc1\0\0\0\x013";
        assert_eq!(replica_count(map).unwrap(), 3);
        assert!(replica_count(b"\0\0\0\x01\0\0\0\x05class\0\0\0\x01S").is_err());
    }
}
