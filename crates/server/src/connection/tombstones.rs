//! What the log says of reads that came upon many tombstones and went well: one line for a read, with the client's
//! own statement. The client is warned in Cassandra's words, of each partition, which is nothing to be logged twice.
//!
//! As in Cassandra the partition's key is shown: it says which one is to be looked after.

use protocol::Request;
use query::TombstoneWarning;

use super::ShardServer;
use super::failed::statement;

/// Logs what a read met, by the partition that had most of it.
pub(super) fn note(server: &ShardServer, request: &Request, met: &[TombstoneWarning]) {
    let Some(most) = met.iter().max_by_key(|warning| warning.tombstone_count) else { return };
    let Some(left_out) = server.tombstones.admit(server.tracer.coordinator.now_millis()) else { return };
    let TombstoneWarning { table, key, live_count, tombstone_count, text: _ } = most;
    let (statement, partition_count) = (statement(&server.engine, request), met.len());
    tracing::warn!(%statement, %table, %key, tombstone_count, live_count, partition_count, left_out, "a read came upon many tombstones");
}
