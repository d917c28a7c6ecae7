//! Which files to merge: pure choices over what is known of them.

mod size_tiered;

use sstable::TableSummary;

pub(crate) use size_tiered::SizeTiered;

/// What a strategy looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileFacts {
    /// Bytes of its Data component.
    pub(crate) data_bytes: u64,
    /// Repaired, pending repair, or neither: files of different states never mix.
    pub(crate) repair: (bool, Option<uuid::Uuid>),
}

impl FileFacts {
    pub(crate) fn of(summary: &TableSummary) -> Self {
        FileFacts {
            data_bytes: summary.data_file_bytes,
            repair: (summary.repaired_at != 0, summary.pending_repair),
        }
    }
}
