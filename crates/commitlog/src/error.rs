//! What can go wrong with a commit log.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What can go wrong with a commit log. Cheap to clone: all who wait for one sync get the same one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitLogError {
    /// The record does not fit; nothing was appended.
    #[error("record of {record_bytes} bytes exceeds the limit of {record_bytes_max}")]
    RecordTooLarge {
        /// Its length.
        record_bytes: usize,
        /// The longest that fits.
        record_bytes_max: usize,
    },
    /// There is no room for a new segment. Records are refused until there is; those refused after
    /// their append may still become durable.
    #[error("no space for a commit log segment")]
    DiskFull {
        /// What the disk said.
        source: Arc<io::Error>,
    },
    /// A write or a sync failed. The log takes nothing more.
    #[error("commit log stopped after a failed write")]
    Failed {
        /// The failure that stopped it.
        source: Arc<io::Error>,
    },
    /// The log was closed.
    #[error("commit log is closed")]
    Closed,
    /// The option is out of range.
    #[error(
        "segment size of {segment_bytes} bytes is not between {segment_bytes_min} and {segment_bytes_max}"
    )]
    BadSegmentBytes {
        /// What was asked for.
        segment_bytes: u32,
        /// Smallest allowed.
        segment_bytes_min: u32,
        /// Largest allowed.
        segment_bytes_max: u32,
    },
    /// Bytes that were durable have changed.
    #[error("{path} is damaged at byte {offset}: checksum {got:#010x}, expected {expected:#010x}")]
    Damaged {
        /// The segment, or the roster.
        path: PathBuf,
        /// Where the damaged header or record begins.
        offset: u64,
        /// The checksum written there.
        expected: u32,
        /// The checksum of what is there.
        got: u32,
    },
    /// Records that were durable are not there.
    #[error("segment {path} is damaged at byte {offset}: it ends there, records are missing")]
    Truncated {
        /// The segment.
        path: PathBuf,
        /// Where it ends.
        offset: u64,
    },
    /// A segment, or the roster that names the segments, is not there.
    #[error("{path} is missing")]
    Missing {
        /// Where it was.
        path: PathBuf,
    },
    /// The file is larger than any segment.
    #[error("{path} of {file_bytes} bytes exceeds the limit of {file_bytes_max}")]
    SegmentTooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        file_bytes: u64,
        /// The largest segment.
        file_bytes_max: u64,
    },
    /// A file was written by a newer version.
    #[error("{path} has version {version}, this program reads version {supported}")]
    UnsupportedVersion {
        /// The segment, or the roster.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The version this program reads.
        supported: u32,
    },
    /// The disk failed while opening, replaying or discarding.
    #[error("{act} of the commit log")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// What the disk said, with the path.
        source: Arc<io::Error>,
    },
}

impl CommitLogError {
    /// An error of the disk while doing `act`.
    pub(crate) fn disk(act: &'static str) -> impl FnOnce(io::Error) -> CommitLogError {
        move |source| CommitLogError::Disk { act, source: Arc::new(source) }
    }

    /// Whether durable bytes were lost or changed, as opposed to a failing disk.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            CommitLogError::Damaged { .. }
                | CommitLogError::Truncated { .. }
                | CommitLogError::Missing { .. }
                | CommitLogError::SegmentTooLarge { .. }
        )
    }
}
