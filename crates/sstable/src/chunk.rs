//! How a reader asks for bytes: chunk by chunk, from whoever keeps them.
//!
//! A chunk of Data is what one checksum covers: a compression chunk, or a chunk of `CRC.db`. A
//! chunk of Partitions or Rows is a page of 4 KiB. Chunks are verified and decompressed when read
//! from the disk, once; whoever caches them hands out clones, which share the bytes.

use std::cell::RefCell;
use std::sync::Arc;

use crate::{Chunk, Component, Extent, RowReader, SstableError, TableFile};

/// Which chunk of which open table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkId {
    /// Number of the [`TableFile`]: unique in the process, never used again.
    pub file: u64,
    /// Data, Partitions or Rows.
    pub component: Component,
    /// From 0.
    pub index: u32,
}

/// A chunk that a cursor lacks: read its [`Extent`] (or the chunk at once, where waiting is fine), make
/// chunks of the bytes, keep them where the cursor's [`ChunkSource`] finds them, and step again.
#[derive(Clone, Debug)]
pub struct ChunkNeed {
    /// The file to read it from.
    pub file: Arc<TableFile>,
    /// Which chunk.
    pub id: ChunkId,
    /// How many chunks are likely to be needed, that one and those behind it: one read gets them all.
    pub likely_count: usize,
}

impl ChunkNeed {
    /// One chunk, behind which nothing is known to be needed.
    pub fn alone(file: Arc<TableFile>, id: ChunkId) -> Self {
        ChunkNeed { file, id, likely_count: 1 }
    }

    /// Reads it from the disk; blocks.
    ///
    /// # Errors
    /// As [`FileChunks::read_one`](crate::FileChunks::read_one).
    pub fn read(&self) -> Result<Chunk, SstableError> {
        self.file.chunks().read_one(self.id)
    }

    /// Where it lies, with up to `count - 1` chunks that follow it.
    ///
    /// # Errors
    /// There is no such chunk: what led to it is damaged.
    pub fn extent(&self, count: usize) -> Result<Extent, SstableError> {
        self.file.chunks().extent(self.id, count)
    }

    /// Verifies and decompresses what was read at an extent of [`ChunkNeed::extent`]: the chunk, and
    /// those that follow it.
    ///
    /// # Errors
    /// A chunk is damaged.
    pub fn decode(&self, extent: &Extent, raw: &[u8]) -> Result<Vec<Chunk>, SstableError> {
        self.file.chunks().decode(self.id.component, extent, raw)
    }
}

/// Where a cursor finds chunks: a cache that does not wait, or a reader that does.
pub trait ChunkSource {
    /// The chunk, or `None` when it has to be fetched first.
    ///
    /// # Errors
    /// Only sources that read the disk themselves fail.
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError>;

    /// Who reads the large row at a place in a file's Data.
    fn large_row(&self, _file: &TableFile, _position: u64) -> RowReader {
        RowReader::Cursor
    }
}

impl<S: ChunkSource + ?Sized> ChunkSource for &S {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        (**self).get(file, id)
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        (**self).large_row(file, position)
    }
}

impl<S: ChunkSource + ?Sized> ChunkSource for std::rc::Rc<S> {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        (**self).get(file, id)
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        (**self).large_row(file, position)
    }
}

impl<S: ChunkSource + ?Sized> ChunkSource for Arc<S> {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        (**self).get(file, id)
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        (**self).large_row(file, position)
    }
}

impl<S: ChunkSource + ?Sized> ChunkSource for Box<S> {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        (**self).get(file, id)
    }

    fn large_row(&self, file: &TableFile, position: u64) -> RowReader {
        (**self).large_row(file, position)
    }
}

/// How many uncompressed bytes [`DirectChunks`] reads at once, unless it is to read less.
const READ_AHEAD_BYTES: usize = 128 * 1024;
/// Runs that [`DirectChunks`] keeps: of Data, of Partitions, of Rows, and one to spare.
const RUN_COUNT_MAX: usize = 4;

/// Reads through to the disk, ahead of a sequential reader: for compaction, where waiting is fine
/// and what was read is not read again. Cursors over it never say [`rows::Step::Need`].
#[derive(Debug)]
pub struct DirectChunks {
    /// How many uncompressed bytes are read at once.
    ahead_bytes: usize,
    /// Runs of neighbouring chunks, the latest last.
    runs: RefCell<Vec<Run>>,
}

#[derive(Debug)]
struct Run {
    first: ChunkId,
    chunks: Vec<Chunk>,
}

impl Default for DirectChunks {
    fn default() -> Self {
        DirectChunks::new()
    }
}

impl DirectChunks {
    /// Has read nothing yet.
    pub fn new() -> Self {
        Self::reading_ahead(READ_AHEAD_BYTES)
    }

    /// Has read nothing yet, and will read at most so many uncompressed bytes at once, or a chunk.
    pub fn reading_ahead(bytes: usize) -> Self {
        DirectChunks { ahead_bytes: bytes.min(READ_AHEAD_BYTES), runs: RefCell::default() }
    }

    /// Notes that the reader had a chunk from elsewhere: when it asks for the next, it goes on.
    pub fn passed(&self, id: ChunkId) {
        let mut runs = self.runs.borrow_mut();
        let next = ChunkId { index: id.index.saturating_add(1), ..id };
        let leads_to_next = |run: &Run| run.first.index <= next.index && u64::from(next.index) <= run.end();
        if !runs.iter().any(|run| run.is_of(next) && leads_to_next(run)) {
            runs.retain(|run| !run.is_of(next));
            put(&mut runs, Run { first: next, chunks: Vec::new() });
        }
    }
}

impl Run {
    /// Is the chunk of the same component of the same file?
    fn is_of(&self, id: ChunkId) -> bool {
        self.first.file == id.file && self.first.component == id.component
    }

    /// The index behind its last chunk.
    fn end(&self) -> u64 {
        u64::from(self.first.index) + self.chunks.len() as u64
    }
}

/// Puts a run behind the others; of too many the first goes.
fn put(runs: &mut Vec<Run>, run: Run) {
    if runs.len() == RUN_COUNT_MAX {
        runs.remove(0);
    }
    runs.push(run);
}

impl ChunkSource for DirectChunks {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let mut runs = self.runs.borrow_mut();
        let found = runs.iter().filter(|run| run.is_of(id)).find_map(|run| {
            let offset = id.index.checked_sub(run.first.index)?;
            run.chunks.get(offset as usize).cloned()
        });
        if found.is_some() {
            return Ok(found);
        }
        // Only a reader that goes on from where it was is read ahead for.
        let continues = runs.iter().any(|run| run.is_of(id) && run.end() == u64::from(id.index));
        let count = if continues { self.ahead_bytes / file.chunk_bytes(id.component).max(1) } else { 1 };
        let chunks = file.chunks().read(id, count.max(1))?;
        let chunk = chunks.first().cloned();
        runs.retain(|run| !(continues && run.is_of(id)));
        put(&mut runs, Run { first: id, chunks });
        Ok(chunk)
    }
}
