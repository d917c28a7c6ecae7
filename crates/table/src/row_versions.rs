//! What all places have of a partition of at most one row, gathered without a cursor over all of them.

use rows::{DeletionTime, Row, Step, Unfiltered, UnfilteredCursor, merge_row, merge_rows};
use schema::Table;
use smallvec::SmallVec;
use sstable::{ChunkSource, FileCursor, FileNeed, SstableError};

/// What all places have of a partition of at most one row.
pub struct RowVersions {
    /// Of the partition, the latest.
    pub deletion: DeletionTime,
    /// Each place's version of the row.
    pub rows: SmallVec<[Row; 4]>,
}

/// What a cursor over a file gave of such a partition.
pub enum VersionsStep {
    /// Something is lacking.
    Need(FileNeed),
    /// It was taken.
    Whole,
    /// The partition has more than a row and a deletion.
    More,
}

impl RowVersions {
    /// Of no place yet.
    #[inline]
    pub fn none() -> Self {
        RowVersions { deletion: DeletionTime::LIVE, rows: SmallVec::new() }
    }

    /// Adds what one place has.
    #[inline]
    pub fn add(&mut self, deletion: DeletionTime, row: Option<Row>) {
        self.deletion = self.deletion.max(deletion);
        self.rows.extend(row);
    }

    /// Adds what a file has, as far as its chunks are there.
    ///
    /// # Errors
    /// What is there is damaged.
    pub fn take_from<S: ChunkSource>(
        &mut self,
        cursor: &mut FileCursor<S>,
    ) -> Result<VersionsStep, SstableError> {
        loop {
            match cursor.step()? {
                Step::Need(need) => return Ok(VersionsStep::Need(need)),
                Step::Header(header) if header.static_row.is_none() => self.add(header.deletion, None),
                Step::Item(Unfiltered::Row(row)) => {
                    self.rows.push(row);
                    // Without clustering columns there is one.
                    return Ok(VersionsStep::Whole);
                }
                Step::Header(_) | Step::Item(Unfiltered::Marker(_)) => return Ok(VersionsStep::More),
                Step::End => return Ok(VersionsStep::Whole),
            }
        }
    }

    /// Is any of them a large row?
    #[inline]
    pub fn has_large(&self) -> bool {
        self.rows.iter().any(Row::is_large)
    }

    /// The row they make; `None` when nothing is left of it.
    ///
    /// Takes long if it [has large](RowVersions::has_large) ones.
    #[inline]
    pub fn merge(mut self, table: &Table) -> Option<Row> {
        match self.rows.len() {
            1 => merge_row(self.rows.pop()?, self.deletion),
            _ => merge_rows(&self.rows, self.deletion, table),
        }
    }
}
