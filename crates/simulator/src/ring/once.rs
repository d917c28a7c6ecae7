//! Rows that a client writes once each, and that nobody reads before the end.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::World;

/// Keys of a client; more than it writes.
const KEYS_PER_CLIENT: i32 = 100_000;

/// The first key of a client.
fn first_key(client: u8) -> i32 {
    (i32::from(client) + 1) * KEYS_PER_CLIENT
}

/// Keys that a client has written once each, several in a logged batch.
pub(crate) struct Batched(std::ops::Range<i32>);

impl Batched {
    /// None yet.
    pub(crate) fn of(client: u8) -> Batched {
        Batched(first_key(client)..first_key(client))
    }

    /// The key of one that is written now.
    pub(crate) fn next_key(&mut self) -> i32 {
        self.0.end += 1;
        self.0.end - 1
    }

    /// All of them.
    pub(crate) fn keys(&self) -> Vec<i32> {
        self.0.clone().collect()
    }
}

/// The rows of one client.
pub(crate) struct Once {
    first_key: i32,
    /// Which node was asked to write it, and when; by key.
    asked: Vec<(usize, Instant)>,
}

impl Once {
    /// None yet.
    pub(crate) fn of(client: u8) -> Once {
        Once { first_key: first_key(client), asked: Vec::new() }
    }

    /// The key of one that a node is asked to write now.
    pub(crate) fn next_key(&mut self, node: usize) -> i32 {
        let key = self.first_key + self.asked.len() as i32;
        self.asked.push((node, Instant::now()));
        key
    }

    /// The keys of those of which somebody knows who has missed them, unless the node that was asked has lost its disk.
    pub(crate) fn known_keys(&self, world: &World) -> Vec<i32> {
        self.keys(|node, sent| !world.has_forgotten(node, sent))
    }

    /// The keys of those that a node was asked to write shortly before it was killed.
    pub(crate) fn unsettled_keys(&self, world: &World) -> BTreeSet<i32> {
        self.keys(|node, sent| world.was_killed_soon(node, sent)).into_iter().collect()
    }

    fn keys(&self, is_wanted: impl Fn(usize, Instant) -> bool) -> Vec<i32> {
        let keyed = (self.first_key..).zip(&self.asked);
        keyed.filter(|(_, (node, sent))| is_wanted(*node, *sent)).map(|(key, _)| key).collect()
    }
}
