//! What a node tells of its compactions.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use types::Token;
use uuid::Uuid;

/// Finished compactions that a shard remembers.
const HISTORY_MAX: usize = 1_000;
/// And for how long, as in Cassandra.
const HISTORY_MS: i64 = 7 * 86_400_000;

/// What a compaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// The strategy chose it.
    Compaction,
    /// One file, for its tombstones.
    TombstoneCompaction,
    /// Somebody asked for it.
    MajorCompaction,
    /// One file, written anew in the form that the table asks for now; nothing of it goes.
    UpgradeSstables,
}

impl CompactionKind {
    /// All of them.
    pub const ALL: [CompactionKind; 4] = [
        CompactionKind::Compaction,
        CompactionKind::TombstoneCompaction,
        CompactionKind::MajorCompaction,
        CompactionKind::UpgradeSstables,
    ];

    /// Cassandra's name of it.
    pub fn name(self) -> &'static str {
        match self {
            CompactionKind::Compaction => "Compaction",
            CompactionKind::TombstoneCompaction => "Tombstone Compaction",
            CompactionKind::MajorCompaction => "Major compaction",
            CompactionKind::UpgradeSstables => "Upgrade sstables",
        }
    }
}

/// A compaction that goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveCompaction {
    /// Its own.
    pub id: Uuid,
    /// What it is for.
    pub kind: CompactionKind,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table's name.
    pub table: String,
    /// Uncompressed bytes read by now.
    pub completed_bytes: u64,
    /// Uncompressed bytes to read.
    pub total_bytes: u64,
    /// Bytes of Data to read, as they lie on the disk.
    pub total_compressed_bytes: u64,
    /// How many files are merged.
    pub file_count: u64,
    /// Where the result is written.
    pub directory: PathBuf,
}

/// A compaction that ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Its own: a UUID of version 1.
    pub id: Uuid,
    /// The table's keyspace.
    pub keyspace: String,
    /// The table's name.
    pub table: String,
    /// When it ended, ms since 1970.
    pub finished_ms: i64,
    /// Bytes of Data on the disk before.
    pub bytes_in: u64,
    /// Bytes of Data on the disk after.
    pub bytes_out: u64,
    /// How many partitions were merged from so many files.
    pub rows_merged: BTreeMap<i32, i64>,
    /// `compaction_type`.
    pub properties: BTreeMap<String, String>,
}

/// What compactions of a shard, or of all, did since the start.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionTotals {
    /// How many ended well.
    pub completed: u64,
    /// Uncompressed bytes they read.
    pub bytes: u64,
    /// Bytes of Data on the disk that they read.
    pub compressed_bytes: u64,
    /// How many were stopped or failed.
    pub aborted: u64,
    /// Files that went without being read.
    pub dropped_files: u64,
    /// How many went without some of their inputs, since there was no room on the disk for all.
    pub reduced: u64,
    /// How many inputs that were.
    pub left_out_files: u64,
    /// What strategies last thought was left to do and what goes on or is about to, by keyspace and table, as in
    /// Cassandra's `pending tasks`.
    pub pending: BTreeMap<(String, String), u64>,
    /// How many may run at once on the node.
    pub concurrent: u64,
    /// Bytes a second that all may read together; 0 is without limit.
    pub bytes_per_second: u64,
}

impl CompactionTotals {
    /// Adds what another shard says.
    pub fn add(&mut self, other: &CompactionTotals) {
        self.completed += other.completed;
        self.bytes += other.bytes;
        self.compressed_bytes += other.compressed_bytes;
        self.aborted += other.aborted;
        self.dropped_files += other.dropped_files;
        self.reduced += other.reduced;
        self.left_out_files += other.left_out_files;
        for (table, count) in &other.pending {
            *self.pending.entry(table.clone()).or_default() += count;
        }
        self.concurrent = self.concurrent.max(other.concurrent);
        self.bytes_per_second = self.bytes_per_second.max(other.bytes_per_second);
    }
}

/// Which compaction somebody asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompactionRequest {
    /// Not one large file, but one of half of all, one of a quarter, and so on.
    pub split_output: bool,
    /// Only files that hold tokens from the first to the last.
    pub tokens: Option<(Token, Token)>,
    /// Only these files.
    pub files: Option<Vec<Uuid>>,
}

impl CompactionRequest {
    /// The id of the table file whose component has that name, or lies at that path.
    pub fn file_id(name: &str) -> Option<Uuid> {
        sstable::Descriptor::from_path(std::path::Path::new(name)).ok().map(|(descriptor, _)| descriptor.id)
    }
}

/// Which files somebody wants to be written anew, one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteFiles {
    /// Those of a version that we do not write.
    OldVersion,
    /// Those that are compressed in another way than they would be now.
    OtherCompression,
    /// All.
    All,
}

/// What somebody wants to be written anew (`nodetool upgradesstables`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RewriteRequest {
    /// Which files.
    pub files: RewriteFiles,
    /// Of them, those that were made by then, ms since 1970.
    pub created_max_ms: Option<u64>,
}

/// The last compactions that ended.
#[derive(Debug, Default)]
pub struct History {
    records: VecDeque<CompactionRecord>,
}

impl History {
    /// Goes on from what is remembered, the oldest first, as far as it is not too long ago.
    pub fn of(records: Vec<CompactionRecord>, now_ms: i64) -> Self {
        let mut history = History { records: records.into() };
        history.forget(now_ms, HISTORY_MAX);
        history
    }

    /// Takes in one that has ended.
    pub fn push(&mut self, record: CompactionRecord) {
        self.forget(record.finished_ms, HISTORY_MAX - 1);
        self.records.push_back(record);
    }

    fn forget(&mut self, now_ms: i64, count_max: usize) {
        let is_old = |record: &CompactionRecord| record.finished_ms < now_ms.saturating_sub(HISTORY_MS);
        while self.records.len() > count_max || self.records.front().is_some_and(is_old) {
            self.records.pop_front();
        }
    }

    /// All, the oldest first.
    pub fn records(&self) -> Vec<CompactionRecord> {
        self.records.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(finished_ms: i64) -> CompactionRecord {
        CompactionRecord {
            id: Uuid::from_u128(finished_ms as u128),
            keyspace: "k".into(),
            table: "t".into(),
            finished_ms,
            bytes_in: 2,
            bytes_out: 1,
            rows_merged: BTreeMap::from([(2, 5)]),
            properties: BTreeMap::new(),
        }
    }

    #[test]
    fn a_week_is_remembered_and_no_more_than_so_many() {
        let mut history = History::of(vec![record(1), record(2), record(HISTORY_MS)], HISTORY_MS + 2);
        assert_eq!(history.records(), [record(2), record(HISTORY_MS)]);
        history.push(record(2 * HISTORY_MS));
        assert_eq!(history.records(), [record(HISTORY_MS), record(2 * HISTORY_MS)]);
        for _ in 0..2 * HISTORY_MAX {
            history.push(record(3 * HISTORY_MS));
        }
        assert_eq!(history.records().len(), HISTORY_MAX);
        let many = History::of([history.records(), history.records()].concat(), 0);
        assert_eq!(many.records().len(), HISTORY_MAX);
    }
}
