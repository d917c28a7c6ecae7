//! An open table file.

use std::sync::Arc;

use rows::{PartitionKey, Slices, Step, UnfilteredCursor};
use runtime::Disk;
use schema::Table;

use crate::{
    Chunk, ChunkId, ChunkNeed, ChunkSource, Component, Descriptor, RingRange, SstableError, TableSummary,
};

/// An open table file: immutable, shared by all who read it.
#[derive(Debug)]
pub struct TableFile {
    descriptor: Descriptor,
    summary: TableSummary,
}

impl TableFile {
    /// Opens it, and loads and verifies the small components. Blocks.
    ///
    /// # Errors
    /// A component is missing, damaged, or of another table.
    pub fn open(
        _disk: Arc<dyn Disk>,
        descriptor: Descriptor,
        _table: &Arc<Table>,
    ) -> Result<Arc<TableFile>, SstableError> {
        Err(SstableError::Unsupported {
            path: descriptor.path(Component::Data),
            what: "reading is not built yet".into(),
        })
    }

    /// Which table file it is.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// What is known of it.
    pub fn summary(&self) -> &TableSummary {
        &self.summary
    }

    /// Its number in [`ChunkId::file`].
    pub fn number(&self) -> u64 {
        0
    }

    /// May the partition be in it? Asks key range and filter; no means no.
    pub fn may_contain(&self, _key: &PartitionKey) -> bool {
        true
    }

    /// Reads slices of one partition, `reversed` or not inside it. A partition that is not there
    /// gives [`Step::End`] at once.
    pub fn partition_cursor<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        _key: &PartitionKey,
        _slices: &Slices,
        _reversed: bool,
    ) -> FileCursor<S> {
        FileCursor { file: Arc::clone(self), source }
    }

    /// Reads slices of all partitions in a range of the ring.
    pub fn scan<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        _range: &RingRange,
        _slices: &Slices,
    ) -> FileCursor<S> {
        FileCursor { file: Arc::clone(self), source }
    }

    /// How many bytes a chunk of that component holds at most.
    pub fn chunk_bytes(&self, _component: Component) -> usize {
        4096
    }

    /// Reads a chunk from the disk, verifies and decompresses it. Blocks.
    ///
    /// # Errors
    /// The disk fails, or the chunk is damaged.
    pub fn read_chunk(&self, id: ChunkId) -> Result<Chunk, SstableError> {
        Err(SstableError::Damaged {
            path: self.descriptor.path(id.component),
            offset: 0,
            what: "reading is not built yet",
        })
    }

    /// Reads up to `count` neighbouring chunks at once, at least one.
    ///
    /// # Errors
    /// As [`TableFile::read_chunk`].
    pub fn read_chunks(&self, first: ChunkId, _count: usize) -> Result<Vec<Chunk>, SstableError> {
        self.read_chunk(first).map(|chunk| vec![chunk])
    }

    /// Reads everything and checks every checksum and every row. Blocks, for long.
    ///
    /// # Errors
    /// The first damage found.
    pub fn verify(self: &Arc<Self>) -> Result<(), SstableError> {
        self.read_chunk(ChunkId { file: 0, component: Component::Data, index: 0 }).map(|_| ())
    }
}

/// Reads partitions of one table file, step by step.
#[derive(Debug)]
pub struct FileCursor<S> {
    file: Arc<TableFile>,
    source: S,
}

impl<S: ChunkSource> UnfilteredCursor for FileCursor<S> {
    type Need = ChunkNeed;
    type Error = SstableError;

    fn step(&mut self) -> Result<Step<ChunkNeed>, SstableError> {
        let id = ChunkId { file: self.file.number(), component: Component::Data, index: 0 };
        self.source.get(&self.file, id).map(|_| Step::End)
    }
}

/// Deletes all components of a table file, the list of components first.
///
/// # Errors
/// The disk fails.
pub fn delete_table_file(disk: &dyn Disk, descriptor: &Descriptor) -> Result<(), SstableError> {
    for component in Component::ALL {
        let path = descriptor.path(component);
        if disk.exists(&path)? {
            disk.remove_file(&path)?;
        }
    }
    Ok(disk.sync_dir(&descriptor.directory)?)
}
