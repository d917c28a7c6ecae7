//! Reads a whole table file and checks all that can be checked.

use std::sync::Arc;

use rows::{RingRange, Slices, Step, Unfiltered, UnfilteredCursor};

use crate::cursor::FileCursor;
use crate::{ChunkId, Component, DirectChunks, KeyHash, SstableError, TableFile};

/// Chunks read at once.
const RUN_CHUNK_COUNT: usize = 16;

impl TableFile {
    /// Reads everything and checks every checksum and every row. Blocks, for long.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(self: &Arc<Self>) -> Result<(), SstableError> {
        self.components().verify(self.chunks().data())?;
        verify_chunks(self, Component::Data)?;
        self.index_components().iter().try_for_each(|component| verify_chunks(self, *component))?;
        verify_rows(self)
    }
}

fn verify_chunks(file: &TableFile, component: Component) -> Result<(), SstableError> {
    let count = file.chunks().count(component);
    let mut index = 0;
    while index < count {
        let id = ChunkId { file: file.number(), component, index };
        index += file.chunks().read(id, RUN_CHUNK_COUNT)?.len() as u32;
    }
    Ok(())
}

/// Every row parses and stands behind the one before; every partition is found by its key.
fn verify_rows(file: &Arc<TableFile>) -> Result<(), SstableError> {
    let all = DirectChunks::new();
    let one = DirectChunks::new();
    let mut cursor = file.scan(&all, &RingRange::ALL, &Slices::all());
    let mut last: Option<Unfiltered> = None;
    let mut partition_count = 0;
    loop {
        match cursor.step()? {
            Step::Need(_) => unreachable!("direct chunks wait"),
            Step::End => break,
            Step::Header(header) => {
                last = None;
                partition_count += 1;
                let none = Slices::none();
                let mut found: FileCursor<_> =
                    file.partition_cursor(&one, &header.key, KeyHash::of(&header.key.bytes), &none, false);
                let is_found = file.may_contain(&header.key, KeyHash::of(&header.key.bytes))
                    && matches!(found.step()?, Step::Header(other) if other.key == header.key);
                if !is_found {
                    let what = "a partition is not found by its key";
                    return Err(file.damaged(file.chunks().partitions().0, 0, what));
                }
            }
            Step::Item(item) => {
                if last.as_ref().is_some_and(|last| !rises(file, last, &item)) {
                    return Err(file.damaged(Component::Data, 0, "rows do not rise"));
                }
                last = Some(item);
            }
        }
    }
    if partition_count != file.summary().partition_count {
        let what = "the partitions are not as many as the index says";
        return Err(file.damaged(file.chunks().partitions().0, 0, what));
    }
    Ok(())
}

fn rises(file: &TableFile, left: &Unfiltered, right: &Unfiltered) -> bool {
    let comparator = &file.layout().comparator;
    match (left, right) {
        (Unfiltered::Row(a), Unfiltered::Row(b)) => {
            comparator.compare_encoded(a.encoded_clustering(), b.encoded_clustering()).is_lt()
        }
        (Unfiltered::Row(a), Unfiltered::Marker(b)) => {
            comparator.compare_encoded_to_bound(a.encoded_clustering(), &b.start_bound()).is_lt()
        }
        (Unfiltered::Marker(a), Unfiltered::Row(b)) => {
            comparator.compare_encoded_to_bound(b.encoded_clustering(), &a.start_bound()).is_gt()
        }
        (Unfiltered::Marker(a), Unfiltered::Marker(b)) => {
            comparator.compare_bounds(&a.start_bound(), &b.start_bound()).is_lt()
        }
    }
}
