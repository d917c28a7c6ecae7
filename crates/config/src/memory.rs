//! What a node's `memory` is for: what the program and its shards have first, and which part of the rest is whose.

use crate::config::{Config, together};
use crate::error::ConfigError;
use crate::quantity::show_size;

/// Less than this does not hold the program and a memtable per shard.
pub(crate) const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// The default where the system does not tell how much the machine has.
const MEMORY_BYTES_UNTOLD: u64 = 1 << 30;

/// What a node has in memory beside what is shared: the program with what its allocator keeps, and so much for each
/// shard.
const PROGRAM_BYTES: u64 = 22 << 20;
const SHARD_BYTES: u64 = 5 << 20;
/// And when it is one of a ring; half of it is more of the program. A build without what `patches` stands in for takes
/// 26 MiB more: `docs/dependencies.md`.
const RING_BYTES: u64 = 8 << 20;
/// What connections with other nodes may hold is one part in so many of what is shared, and taken from it before.
const INTERNODE_PART: u64 = 8;
/// With less than this beside it nothing could be held.
const SHARED_BYTES_MIN: u64 = 16 << 20;

/// The largest message of Cassandra as it comes.
const FRAME_BYTES_USUAL: u64 = 16 << 20;

/// Cassandra's largest message, and more than an `int` can count.
pub(crate) const FRAME_BYTES_LIMIT: u64 = 256 << 20;

/// A frame smaller than this does not hold the STARTUP of today's drivers.
pub(crate) const FRAME_BYTES_MIN: u64 = 16 << 10;

/// What is counted for a connection that waits for its client.
const CONNECTION_BYTES: u64 = 8 << 10;
/// And for a connection of another node.
const INTERNODE_CONNECTION_BYTES: u64 = 16 << 10;
/// As many connections as need no other reason than to be held at all.
const CONNECTIONS_USUAL: u64 = 10_000;

impl Config {
    /// The budget of the whole process in bytes: as given, or a quarter of what the machine can give.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_limit.unwrap_or_else(|| {
            self.machine_bytes.map_or(MEMORY_BYTES_UNTOLD, |bytes| (bytes / 4).max(MEMORY_BYTES_MIN))
        })
    }

    fn is_in_ring(&self) -> bool {
        self.listen_address.is_some()
    }

    /// What the program and so many shards have of it before anything is shared.
    fn own_bytes(&self, shard_count: u16) -> u64 {
        let ring_bytes = if self.is_in_ring() { RING_BYTES } else { 0 };
        PROGRAM_BYTES + ring_bytes + u64::from(shard_count) * SHARD_BYTES
    }

    /// What of the budget is for data, caches and requests, when the program and so many shards have theirs, and
    /// connections with other nodes.
    pub fn shared_bytes(&self, shard_count: u16) -> u64 {
        let bytes = self.memory_bytes().saturating_sub(self.own_bytes(shard_count));
        if self.is_in_ring() { bytes / (INTERNODE_PART + 1) * INTERNODE_PART } else { bytes }
    }

    /// How many clients may be connected: as given, or as many as a sixth of what is shared has room for.
    pub fn connections_max(&self, shard_count: u16) -> u32 {
        let count = (self.shared_bytes(shard_count) / 6 / CONNECTION_BYTES).clamp(1, CONNECTIONS_USUAL);
        self.connections_limit.unwrap_or(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// How many of them may come from one address: as given, or all but one in sixteen.
    pub fn connections_max_per_address(&self, shard_count: u16) -> u32 {
        let all = self.connections_max(shard_count);
        self.connections_limit_per_address.unwrap_or(all - all / 16)
    }

    /// The largest request: as given, or Cassandra's 16 MiB where that is no more than a 24th of what is shared.
    pub fn frame_bytes_max(&self, shard_count: u16) -> u64 {
        let part = self.shared_bytes(shard_count) / 24;
        self.frame_bytes_limit.unwrap_or_else(|| part.clamp(FRAME_BYTES_MIN, FRAME_BYTES_USUAL))
    }

    /// How many bytes connections may hold for their clients: as given, or an eighth of what is shared.
    pub fn in_flight_bytes_max(&self, shard_count: u16) -> u64 {
        let part = self.shared_bytes(shard_count) / 8;
        self.in_flight_bytes_limit.unwrap_or_else(|| part.max(self.frame_bytes_max(shard_count)))
    }

    /// How many connections other nodes may have: as given, or as many as a sixteenth of what is shared has room for.
    pub fn internode_connections_max(&self, shard_count: u16) -> u32 {
        let count = self.shared_bytes(shard_count) / 16 / INTERNODE_CONNECTION_BYTES;
        let count = u32::try_from(count.clamp(1, CONNECTIONS_USUAL)).unwrap_or(u32::MAX);
        self.internode_connections_limit.unwrap_or(count)
    }

    /// How many of them may come from one address: as given, or half of them.
    pub fn internode_connections_max_per_address(&self, shard_count: u16) -> u32 {
        let all = self.internode_connections_max(shard_count);
        self.internode_connections_limit_per_address.unwrap_or(all.div_ceil(2))
    }

    /// How many bytes connections with other nodes may hold, beside what is shared.
    pub fn internode_bytes_max(&self, shard_count: u16) -> u64 {
        self.shared_bytes(shard_count) / INTERNODE_PART
    }

    /// The least budget of such a node with so many shards.
    pub fn memory_bytes_min(&self, shard_count: u16) -> u64 {
        let internode_bytes = if self.is_in_ring() { SHARED_BYTES_MIN / INTERNODE_PART } else { 0 };
        (self.own_bytes(shard_count) + SHARED_BYTES_MIN + internode_bytes).max(MEMORY_BYTES_MIN)
    }

    /// Checks that the memory is enough for so many shards.
    ///
    /// # Errors
    /// It is not.
    pub fn check_shards(&self, shard_count: u16) -> Result<(), ConfigError> {
        let least = self.memory_bytes_min(shard_count);
        if self.memory_bytes() >= least {
            return Ok(());
        }
        let place = if self.is_in_ring() { " in a ring" } else { "" };
        let shards = if shard_count == 1 { "one shard".to_owned() } else { format!("{shard_count} shards") };
        let problem = format!("less than the {}MiB that a node of {shards}{place} needs", least >> 20);
        Err(together("memory", show_size(self.memory_bytes()), problem))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn the_program_and_its_shards_have_theirs_before_anything_is_shared() {
        let with = |bytes| Config { memory_limit: Some(bytes), ..Config::default() };
        let least = with(64 << 20);
        assert_eq!((least.shared_bytes(1), least.shared_bytes(4)), (37 << 20, 22 << 20));
        assert_eq!(least.check_shards(5), Ok(()));
        assert_eq!(
            least.check_shards(6).unwrap_err().to_string(),
            "configuration: `memory` = 64MiB: less than the 68MiB that a node of 6 shards needs"
        );
        assert_eq!((least.connections_max(2), least.connections_max_per_address(2)), (682, 640));
        assert_eq!((least.frame_bytes_max(1), least.frame_bytes_max(4)), ((37 << 20) / 24, (22 << 20) / 24));
        assert_eq!(least.in_flight_bytes_max(2), (32 << 20) / 8);
        let large = with(4 << 30);
        assert_eq!((large.connections_max(2), large.connections_max_per_address(2)), (10_000, 9_375));
        assert_eq!((large.frame_bytes_max(2), large.in_flight_bytes_max(2)), (16 << 20, (4064 << 20) / 8));
        assert_eq!(with(64 << 30).shared_bytes(0), (64 << 30) - (22 << 20));
    }

    #[test]
    fn a_node_of_a_ring_has_more_of_its_own() {
        let in_ring = |bytes| Config {
            memory_limit: Some(bytes),
            listen_address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            ..Config::default()
        };
        assert_eq!(in_ring(128 << 20).shared_bytes(2), ((128 - 22 - 8 - 10) << 20) / 9 * 8);
        let usual = in_ring(128 << 20);
        assert_eq!(
            (usual.internode_connections_max(2), usual.internode_connections_max_per_address(2)),
            (312, 156)
        );
        assert_eq!(usual.internode_bytes_max(2), (88 << 20) / 9);
        assert_eq!(in_ring(64 << 20).check_shards(3), Ok(()));
        assert_eq!(
            in_ring(64 << 20).check_shards(4).unwrap_err().to_string(),
            "configuration: `memory` = 64MiB: less than the 68MiB that a node of 4 shards in a ring needs"
        );
    }
}
