//! Reads a whole table file and checks all that can be checked.

use std::sync::Arc;

use rows::{Slices, Step, Unfiltered, UnfilteredCursor};

use crate::cursor::FileCursor;
use crate::{ChunkId, Component, DirectChunks, KeyHash, RingRange, SstableError, TableFile};
use components::PAGE_BYTES;

/// Chunks read at once.
const RUN_CHUNK_COUNT: usize = 16;

impl TableFile {
    /// Reads everything and checks every checksum and every row. Blocks, for long.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(self: &Arc<Self>) -> Result<(), SstableError> {
        self.components().verify(self.data_file())?;
        let of_bti = [Component::Data, Component::Partitions, Component::Rows];
        let of_big = [Component::Data, Component::Index];
        for component in if self.descriptor().version.is_big() { &of_big[..] } else { &of_bti } {
            let component = *component;
            self.verify_chunks(component)?;
        }
        self.verify_rows()
    }

    fn verify_chunks(&self, component: Component) -> Result<(), SstableError> {
        let bytes = if component == Component::Data { self.chunk_bytes(component) } else { PAGE_BYTES };
        let count = self.component_bytes(component).div_ceil(bytes as u64);
        let mut index = 0;
        while u64::from(index) < count {
            let id = ChunkId { file: self.number(), component, index };
            let read = self.read_chunks(id, RUN_CHUNK_COUNT)?.len();
            index += read as u32;
        }
        Ok(())
    }

    /// Every row parses and stands behind the one before; every partition is found by its key.
    fn verify_rows(self: &Arc<Self>) -> Result<(), SstableError> {
        let all = DirectChunks::new();
        let one = DirectChunks::new();
        let mut cursor = self.scan(&all, &RingRange::ALL, &Slices::all());
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
                    let mut found: FileCursor<_> = self.partition_cursor(
                        &one,
                        &header.key,
                        KeyHash::of(&header.key.bytes),
                        &none,
                        false,
                    );
                    let is_found = self.may_contain(&header.key, KeyHash::of(&header.key.bytes))
                        && matches!(found.step()?, Step::Header(other) if other.key == header.key);
                    if !is_found {
                        let what = "a partition is not found by its key";
                        return Err(self.damaged(self.partition_component(), 0, what));
                    }
                }
                Step::Item(item) => {
                    if last.as_ref().is_some_and(|last| !self.rises(last, &item)) {
                        return Err(self.damaged(Component::Data, 0, "rows do not rise"));
                    }
                    last = Some(item);
                }
            }
        }
        if partition_count != self.summary().partition_count {
            let what = "the partitions are not as many as the index says";
            return Err(self.damaged(self.partition_component(), 0, what));
        }
        Ok(())
    }

    fn rises(&self, left: &Unfiltered, right: &Unfiltered) -> bool {
        let comparator = &self.layout().comparator;
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
}
