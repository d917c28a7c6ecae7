//! What one file has of a partition of at most one row, where a cursor has to read it.

use rows::{RowVersions, Step, Unfiltered, UnfilteredCursor};
use sstable::{ChunkSource, FileCursor, FileNeed, SstableError};

/// What a cursor over a file gave of such a partition.
pub enum VersionsStep {
    /// Something is lacking.
    Need(FileNeed),
    /// It was taken.
    Whole,
    /// The partition has more than a row and a deletion.
    More,
}

/// Adds what a file has to the versions of a row, as far as its chunks are there.
///
/// # Errors
/// What is there is damaged.
pub fn take_versions<S: ChunkSource>(
    cursor: &mut FileCursor<S>,
    versions: &mut RowVersions,
) -> Result<VersionsStep, SstableError> {
    loop {
        match cursor.step()? {
            Step::Need(need) => return Ok(VersionsStep::Need(need)),
            Step::Header(header) if header.static_row.is_none() => versions.add(header.deletion, None),
            Step::Item(Unfiltered::Row(row)) => {
                versions.rows.push(row);
                // Without clustering columns there is one.
                return Ok(VersionsStep::Whole);
            }
            Step::Header(_) | Step::Item(Unfiltered::Marker(_)) => return Ok(VersionsStep::More),
            Step::End => return Ok(VersionsStep::Whole),
        }
    }
}
