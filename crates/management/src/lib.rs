//! What the management port answers, as types: the server writes them, `nodetool` reads them, as JSON objects.
//!
//! The paths, and what the fields mean, stand in `docs/internals/management.md`; a field is called here what it is
//! called there. One that a server of another version leaves out reads as zero or nothing, and one that it has besides
//! is passed over.
#![allow(
    missing_docs,
    reason = "fields are described by their names on the wire in docs/internals/management.md"
)]

mod compactions;
mod faults;
mod gossip;
mod handoff;
mod latencies;
mod moving;
mod node;
mod ring;
mod tables;

pub use compactions::{
    ActiveCompaction, Compacted, Compaction, CompactionHistory, Compactions, CompactionsStopped,
    PendingCompactions, Rewritten,
};
pub use faults::{Directory, Fault, Faults, FileReport, FileReports};
pub use gossip::{Gossip, KnownNode, Messages, Network, ReadRepairs};
pub use handoff::{Handoffs, PendingNode};
pub use latencies::{Latencies, Latency, Tracing};
pub use moving::{Backups, FailedImport, Imported, Refreshed, Snapshot, Snapshots, SnapshotsCleared};
pub use node::{
    ChunkCache, Info, MemoryUse, Node, PreparedStatements, Requests, Status, Timeouts, Turns, Version,
};
pub use ring::{Cluster, DataCenter, Endpoints, Range, Ranges, Repaired, Replica, Replication};
pub use tables::{ChosenLength, ChunkLength, Keyspace, LengthCost, Prefetch, Table, TableStats};

use serde::{Deserialize, Serialize};

/// Something was done of which there is nothing to say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {}

/// Something was done to so many tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TablesDone {
    pub table_count: u64,
}

/// Why something was not done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refused {
    pub error: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_left_out_reads_as_nothing_and_one_besides_is_passed_over() {
        let read: Version =
            serde_json::from_str(r#"{"release_version": "5", "more": 1}"#).expect("an object");
        assert_eq!(read, Version { release_version: "5".into(), ..Version::default() });
    }

    #[test]
    fn an_answer_reads_as_it_was_written() {
        let node = Node { load_bytes: Some(3), owns: Some(1.0), ..Node::default() };
        let status = Status { nodes: vec![node], note: None };
        let text = serde_json::to_string(&status).expect("an object");
        assert_eq!(serde_json::from_str::<Status>(&text).expect("the same"), status);
    }
}
