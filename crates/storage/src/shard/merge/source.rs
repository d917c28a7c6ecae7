//! What a merge reads, and how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use rows::{Step, UnfilteredCursor};
use sstable::{Chunk, ChunkId, ChunkSource, Component, DirectChunks, SstableError, TableFile};
use types::Token;

use crate::compaction::control::MergeWatch;

/// Reads through to the disk, and counts the bytes of rows that it hands out.
pub(super) struct WatchedChunks {
    chunks: DirectChunks,
    watch: Arc<MergeWatch>,
    /// Of each input, the chunk of Data that is being read.
    reached: Arc<[AtomicU32]>,
    /// Which input this is.
    index: usize,
}

impl WatchedChunks {
    pub(super) fn new(watch: Arc<MergeWatch>, reached: Arc<[AtomicU32]>, index: usize) -> Self {
        WatchedChunks { chunks: DirectChunks::new(), watch, reached, index }
    }
}

impl ChunkSource for WatchedChunks {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let chunk = self.chunks.get(file, id)?;
        if id.component == Component::Data {
            let bytes = chunk.as_ref().map_or(0, Chunk::len) as u64;
            self.watch.read_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.reached[self.index].store(id.index, Ordering::Relaxed);
        }
        Ok(chunk)
    }
}

/// In which partition each input is.
pub(super) struct Places(Vec<AtomicI64>);

impl Places {
    pub(super) fn new(count: usize) -> Self {
        Places((0..count).map(|_| AtomicI64::new(i64::MIN)).collect())
    }

    /// How many inputs are in the partition.
    pub(super) fn count(&self, token: Token) -> usize {
        self.0.iter().filter(|place| place.load(Ordering::Relaxed) == token.0).count()
    }
}

/// A cursor that says in which partition it is.
pub(super) struct Tracked<C> {
    cursor: C,
    places: Arc<Places>,
    index: usize,
}

impl<C> Tracked<C> {
    pub(super) fn new(cursor: C, places: Arc<Places>, index: usize) -> Self {
        Tracked { cursor, places, index }
    }
}

impl<C: UnfilteredCursor> UnfilteredCursor for Tracked<C> {
    type Need = C::Need;
    type Error = C::Error;

    fn step(&mut self) -> Result<Step<C::Need>, C::Error> {
        let step = self.cursor.step()?;
        if let Step::Header(header) = &step {
            self.places.0[self.index].store(header.key.token.0, Ordering::Relaxed);
        }
        Ok(step)
    }
}
