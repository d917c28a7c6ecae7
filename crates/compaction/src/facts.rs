//! What strategies know of files.

use sstable::TableSummary;
use types::Token;
use uuid::Uuid;

/// Where a file stands with repair: files of different states are never merged with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Repair {
    /// It was never repaired.
    Unrepaired,
    /// A session of repair has it.
    Pending(Uuid),
    /// It is repaired.
    Repaired,
}

/// What a strategy looks at.
#[derive(Clone, Debug, PartialEq)]
pub struct FileFacts {
    /// Its own.
    pub id: Uuid,
    /// Bytes of its Data component on the disk.
    pub data_bytes: u64,
    /// Of its first partition.
    pub first: Token,
    /// Of its last partition.
    pub last: Token,
    /// How many partitions it has.
    pub partition_count: u64,
    /// Its level.
    pub level: u32,
    /// Of its oldest write.
    pub min_timestamp: i64,
    /// Of its newest write.
    pub max_timestamp: i64,
    /// When the last of its content is gone; the greatest number there is when some of it stays.
    pub max_local_deletion_time: u32,
    /// When it was written, ms since 1970.
    pub created_ms: u64,
    /// Share of its cells that are tombstones that may go, by estimate.
    pub droppable_ratio: f64,
    /// Where it stands with repair.
    pub repair: Repair,
    /// Is it being compacted?
    pub is_busy: bool,
    /// Was it found damaged?
    pub is_suspect: bool,
}

impl FileFacts {
    /// Of a file, given that tombstones before `gc_before` may go.
    pub fn of(summary: &TableSummary, gc_before: u32) -> Self {
        let repair = match (summary.pending_repair, summary.repaired_at) {
            (Some(session), _) => Repair::Pending(session),
            (None, 0) => Repair::Unrepaired,
            (None, _) => Repair::Repaired,
        };
        FileFacts {
            id: summary.id,
            data_bytes: summary.data_file_bytes,
            first: summary.first_key.token,
            last: summary.last_key.token,
            partition_count: summary.partition_count,
            level: summary.level,
            min_timestamp: summary.min_timestamp,
            max_timestamp: summary.max_timestamp,
            max_local_deletion_time: summary.max_local_deletion_time,
            created_ms: created_ms(summary.id),
            droppable_ratio: summary.droppable_tombstone_ratio(gc_before),
            repair,
            is_busy: false,
            is_suspect: false,
        }
    }

    /// Do both hold, or may both hold, something of one token?
    pub fn overlaps(&self, other: &FileFacts) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// May a strategy choose it?
    pub fn is_free(&self) -> bool {
        !self.is_busy && !self.is_suspect
    }
}

/// When a file of that id was made, ms since 1970: ids of table files are UUIDs of version 1.
fn created_ms(id: Uuid) -> u64 {
    let Some(timestamp) = id.get_timestamp() else { return 0 };
    let (seconds, nanos) = timestamp.to_unix();
    seconds.saturating_mul(1_000).saturating_add(u64::from(nanos) / 1_000_000)
}

/// A table as a strategy sees it.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// All its files.
    pub all: &'a [FileFacts],
    /// Milliseconds since 1970.
    pub now_ms: u64,
    /// Tombstones before this second may go.
    pub gc_before: u32,
    /// The oldest write in any memtable.
    pub memtable_timestamp_min: Option<i64>,
}

/// Bytes of files together.
pub(crate) fn total_bytes(files: &[&FileFacts]) -> u64 {
    files.iter().map(|file| file.data_bytes).sum()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Files for tests.

    use super::*;
    use crate::Memory;

    pub(crate) const MB: u64 = 1 << 20;

    /// A file of a size that covers the whole ring.
    pub(crate) fn file(number: u128, data_bytes: u64) -> FileFacts {
        FileFacts {
            id: Uuid::from_u128(number),
            data_bytes,
            first: Token(i64::MIN + 1),
            last: Token(i64::MAX),
            partition_count: 1_000,
            level: 0,
            min_timestamp: number as i64,
            max_timestamp: number as i64,
            max_local_deletion_time: u32::MAX,
            created_ms: 0,
            droppable_ratio: 0.0,
            repair: Repair::Unrepaired,
            is_busy: false,
            is_suspect: false,
        }
    }

    /// The same, from one token to another.
    pub(crate) fn part(number: u128, level: u32, data_bytes: u64, first: i64, last: i64) -> FileFacts {
        FileFacts { level, first: Token(first), last: Token(last), ..file(number, data_bytes) }
    }

    pub(crate) fn picture(all: &[FileFacts]) -> Picture<'_> {
        Picture { all, now_ms: 1_700_000_000_000, gc_before: 1_700_000_000, memtable_timestamp_min: None }
    }

    /// The settings of a strategy with some options.
    pub(crate) fn settings(class: &str, options: &[(&str, &str)]) -> crate::Settings {
        crate::Settings::of(&schema::CompactionOptions {
            class: format!("org.apache.cassandra.db.compaction.{class}"),
            options: options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        })
    }

    /// Numbers of the files that are chosen first, sorted.
    pub(crate) fn chosen(settings: &crate::Settings, files: &[FileFacts]) -> Option<Vec<u128>> {
        let task = settings.choose(picture(files), &mut Memory::default()).task?;
        let mut numbers: Vec<u128> = task.inputs.iter().map(|id| id.as_u128()).collect();
        numbers.sort_unstable();
        Some(numbers)
    }
}
