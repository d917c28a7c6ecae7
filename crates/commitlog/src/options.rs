//! How a log is kept.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::error::CommitLogError;
use crate::format::{SEGMENT_BYTES_MAX, record_bytes_max};
use crate::log::WRITE_OUT_BYTES;

/// When a record counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// After an `fdatasync` that all waiting writers share. It starts as soon as the one before is
    /// done and somebody waits, `window` later if that is not zero.
    Group {
        /// Extra time to let more writers join; zero unless the disk's syncs are dear.
        window: Duration,
    },
    /// At once; a sync follows within the period. A power cut may lose the last period's records.
    Periodic {
        /// From an append to the sync that covers it.
        period: Duration,
    },
    /// As [`SyncMode::Group`] without a window: every append's batch is synced right away.
    Batch,
}

/// How a log is kept.
#[derive(Clone, Copy, Debug)]
pub struct CommitLogOptions {
    /// Size of a segment, reserved when it is created. A record takes at most half of it.
    pub segment_bytes: u32,
    /// When a record counts as durable.
    pub sync: SyncMode,
    /// Ids of new segments are greater than this. Pass the greatest id that anything (a manifest)
    /// remembers, so that positions never repeat even if all segments were removed by hand.
    pub segment_above: u64,
    /// After a failed write or sync: end the segment as a start would and go on in a new one, as soon as
    /// the disk lets us. Otherwise the log takes nothing more.
    pub goes_on_after_failure: bool,
    /// How many segments that are needed no more are kept to be written again: a sync of what has been
    /// written once is cheaper.
    pub spare_segments_max: usize,
    /// Under `periodic`, bytes that wait for the disk before writers do: so many or half a segment, whichever is less,
    /// but 512 KiB to 16 MiB. As many again may be on their way to it.
    pub pending_bytes_max: usize,
}

/// Smallest useful segment: room for a record of a kilobyte.
pub(crate) const SEGMENT_BYTES_MIN: u32 = 4096;
const _: () = assert!(record_bytes_max(SEGMENT_BYTES_MIN) >= 1024);

impl Default for CommitLogOptions {
    fn default() -> CommitLogOptions {
        CommitLogOptions {
            segment_bytes: 32 * 1024 * 1024,
            sync: SyncMode::Group { window: Duration::ZERO },
            segment_above: 0,
            goes_on_after_failure: false,
            spare_segments_max: 4,
            pending_bytes_max: *PENDING_BYTES.end(),
        }
    }
}

/// Least and most of the bytes that may wait for the disk.
const PENDING_BYTES: RangeInclusive<usize> = 512 * 1024..=16 * 1024 * 1024;
const _: () =
    assert!(*PENDING_BYTES.start() > WRITE_OUT_BYTES, "bytes are written out before writers wait for that");

impl CommitLogOptions {
    /// Pending bytes at which `periodic` makes writers wait for the disk.
    pub(crate) fn pending_bytes_max(&self) -> usize {
        let most = self.pending_bytes_max.min(self.segment_bytes as usize / 2);
        most.clamp(*PENDING_BYTES.start(), *PENDING_BYTES.end())
    }

    pub(crate) fn check(&self) -> Result<(), CommitLogError> {
        if (SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            return Ok(());
        }
        Err(CommitLogError::BadSegmentBytes {
            segment_bytes: self.segment_bytes,
            segment_bytes_min: SEGMENT_BYTES_MIN,
            segment_bytes_max: SEGMENT_BYTES_MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_as_given_and_half_a_segment_may_wait_for_the_disk_within_bounds() {
        let mebibyte = 1 << 20;
        let cases = [(1, mebibyte / 2), (3, 3 * mebibyte / 2), (32, 16 * mebibyte), (64, 16 * mebibyte)];
        for (segment_mebibytes, expected) in cases {
            let segment_bytes = segment_mebibytes << 20;
            let options = CommitLogOptions { segment_bytes, ..CommitLogOptions::default() };
            assert_eq!(options.pending_bytes_max(), expected, "{segment_mebibytes} MiB");
        }
        let given = |pending_bytes_max| {
            CommitLogOptions { pending_bytes_max, ..CommitLogOptions::default() }.pending_bytes_max()
        };
        assert_eq!((given(3 * mebibyte), given(0)), (3 * mebibyte, mebibyte / 2));
        let least = CommitLogOptions { segment_bytes: SEGMENT_BYTES_MIN, ..CommitLogOptions::default() };
        assert_eq!(least.pending_bytes_max(), mebibyte / 2);
    }
}
