//! What a merge reads, and how far it is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rows::{Step, UnfilteredCursor};
use sstable::{Chunk, ChunkId, ChunkSource, Component, DirectChunks, SstableError, TableFile};
use types::Token;

use super::MergeJob;
use crate::MergeWatch;

/// Chunks of one input's Data that the cache had, handed to the merge before it comes to them.
#[derive(Debug, Default)]
pub struct Ahead {
    /// The chunk that is being read.
    reached: AtomicU32,
    /// In their order.
    given: Mutex<VecDeque<(u32, Chunk)>>,
}

impl Ahead {
    /// The chunk that is being read.
    pub fn reached(&self) -> u32 {
        self.reached.load(Ordering::Relaxed)
    }

    /// Hands a chunk out; their indexes must rise.
    pub fn give(&self, index: u32, chunk: Chunk) {
        self.given().push_back((index, chunk));
    }

    /// The chunk, if it was handed out; those before it are of no use any more.
    fn take(&self, index: u32) -> Option<Chunk> {
        self.reached.store(index, Ordering::Relaxed);
        let mut given = self.given();
        while given.front().is_some_and(|(other, _)| *other < index) {
            given.pop_front();
        }
        let (other, chunk) = given.front()?;
        (*other == index).then(|| chunk.clone())
    }

    fn given(&self) -> MutexGuard<'_, VecDeque<(u32, Chunk)>> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what is handed out, reads the rest through to the disk, and counts the bytes of rows.
pub(super) struct WatchedChunks {
    chunks: DirectChunks,
    watch: Arc<MergeWatch>,
    ahead: Arc<[Ahead]>,
    /// Which input this is.
    index: usize,
}

impl WatchedChunks {
    pub(super) fn new(job: &MergeJob, index: usize) -> Self {
        let chunks = DirectChunks::reading_ahead(job.input_bytes);
        WatchedChunks { chunks, watch: Arc::clone(&job.watch), ahead: Arc::clone(&job.ahead), index }
    }
}

impl ChunkSource for WatchedChunks {
    fn get(&self, file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        if id.component != Component::Data {
            return self.chunks.get(file, id);
        }
        let given = self.ahead[self.index].take(id.index);
        let chunk = if given.is_some() {
            self.chunks.passed(id);
            given
        } else {
            self.chunks.get(file, id)?
        };
        let bytes = chunk.as_ref().map_or(0, Chunk::len) as u64;
        self.watch.read_bytes.fetch_add(bytes, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_that_was_handed_out_is_taken_and_those_before_it_are_let_go() {
        let ahead = Ahead::default();
        [2, 3, 7].into_iter().for_each(|index| ahead.give(index, Chunk::from(vec![index as u8])));
        let taken = |index| {
            let chunk = ahead.take(index).map(|chunk| chunk.as_slice().to_vec());
            (chunk, ahead.reached(), ahead.given().len())
        };
        assert_eq!(taken(1), (None, 1, 3));
        assert_eq!(taken(3), (Some(vec![3]), 3, 2));
        assert_eq!(taken(5), (None, 5, 1));
        assert_eq!(taken(7), (Some(vec![7]), 7, 1));
    }
}
