//! The part of the node's memory and disk that is each shard's.

use table::Share;

use super::ShardContext;

/// The log may take so many segments at least: a few always are.
const LOG_SEGMENTS_MIN: u64 = 4;
/// Of what the log may take, one part in so many may be segments that are kept to be written again.
const LOG_PART_SPARE: u64 = 4;
const SPARE_SEGMENTS_MAX: u64 = 8;
const _: () = assert!(LOG_PART_SPARE > 1, "most of the log is not spare");
const _: () = assert!(
    LOG_SEGMENTS_MIN >= LOG_PART_SPARE && SPARE_SEGMENTS_MAX >= 1,
    "a log that goes on has a segment to go on in"
);

/// What waits to be written to the log is beside the memtables, which have it already: one part of theirs in so many,
/// and as much again that is being written.
const MEMTABLES_PART_PENDING: usize = 8;
const _: () = assert!(2 * 2 < MEMTABLES_PART_PENDING, "what waits for the log is the lesser part");

impl ShardContext {
    /// What each shard has.
    pub(crate) fn share(&self) -> Share {
        let (options, shard_count) = (&self.options, self.sharding.shard_count());
        let log_bytes_min = LOG_SEGMENTS_MIN * u64::from(options.segment_bytes);
        Share {
            memtable_bytes: options.memtable_bytes / shard_count,
            cache_bytes: options.cache_bytes / shard_count,
            cache_borrows: options.cache_borrows,
            log_bytes: (options.log_bytes / shard_count as u64).max(log_bytes_min),
        }
    }
}

/// How many bytes may wait for the log's disk, before a shard with that share takes no more under `periodic`.
pub(super) fn pending_log_bytes_max(share: &Share) -> usize {
    share.memtable_bytes / MEMTABLES_PART_PENDING
}

/// How many segments of its log a shard with that share keeps to write them again.
pub(super) fn spare_segments_max(share: &Share, segment_bytes: u32) -> usize {
    let spare_bytes = share.log_bytes / LOG_PART_SPARE;
    (spare_bytes / u64::from(segment_bytes)).min(SPARE_SEGMENTS_MAX) as usize
}
