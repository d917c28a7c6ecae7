//! What changes in a finished table file: its level and its state of repair.

use runtime::Disk;
use uuid::Uuid;

use super::file::changed;
use crate::{Component, Descriptor, SstableError};

/// New values; `None` leaves the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatisticsChange {
    /// Level of the leveled compaction strategy.
    pub level: Option<u32>,
    /// Milliseconds since 1970 when the content was repaired; 0 when it was not.
    pub repaired_at: Option<u64>,
    /// The repair session that holds the file, or none.
    pub pending_repair: Option<Option<Uuid>>,
}

/// Changes Statistics.db: after a crash the old or the new one is there. Files that are open keep
/// the summary they were opened with.
///
/// # Errors
/// The disk fails, or the statistics are damaged.
pub fn change_statistics(
    disk: &dyn Disk,
    descriptor: &Descriptor,
    change: StatisticsChange,
) -> Result<(), SstableError> {
    let path = descriptor.path(Component::Statistics);
    let bytes = changed(&path, descriptor.version, &disk.read(&path)?, change)?;
    Ok(disk.write_atomically(&path, &bytes)?)
}
