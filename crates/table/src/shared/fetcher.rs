//! How chunks are read from the disk: each once, and those that somebody waits for before others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use cache::ChunkCache;
use runtime::{ColdReader, ColdStats};
use sstable::{Chunk, ChunkId, ChunkNeed, SstableError};
use tokio::sync::Notify;

use crate::TableError;

/// How often who lets reads go first looks whether they are done: nobody waits for a prefetch; a merge that falls
/// behind makes reads dearer.
pub const PATIENCE_OF_PREFETCH: u32 = 20;
pub(crate) const PATIENCE_OF_MERGES: u32 = 4;
/// How long it waits each time.
const PAUSE: Duration = Duration::from_millis(1);
const _: () = assert!(PATIENCE_OF_MERGES < PATIENCE_OF_PREFETCH, "a merge that falls behind is dear");

/// Reads chunks from the disk: one that is waited for once, however many do, and several at a time for who reads ahead.
pub struct Fetcher {
    reader: ColdReader,
    /// Chunks being read.
    flights: RefCell<HashMap<ChunkId, Rc<Flight>>>,
    /// How many requests wait for the disk.
    waiting_count: Cell<usize>,
}

/// A chunk being read, perhaps with others behind it.
#[derive(Default)]
struct Flight {
    /// What was read; nothing if that failed.
    chunks: RefCell<Vec<(ChunkId, Chunk)>>,
    landed: Notify,
}

impl Fetcher {
    /// Which reads through that.
    pub(super) fn new(reader: ColdReader) -> Self {
        Fetcher { reader, flights: RefCell::default(), waiting_count: Cell::new(0) }
    }

    /// For who reads much and is in no hurry: waits until no request waits for the disk, `patience` times
    /// a millisecond at most.
    pub async fn let_reads_go_first(&self, patience: u32) {
        for _ in 0..patience {
            if self.waiting_count.get() == 0 {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    pub(super) fn stats(&self) -> ColdStats {
        self.reader.stats()
    }

    /// A request waits for the disk as long as this lives.
    pub fn begin_wait(&self) -> Waiting<'_> {
        self.waiting_count.set(self.waiting_count.get() + 1);
        Waiting(self)
    }

    /// The chunk and those that are likely to be needed with it, by a read of the disk or by somebody else's that is
    /// under way; they are in the cache then.
    ///
    /// # Errors
    /// The disk failed, or what it gave is damaged.
    pub async fn chunks(
        &self,
        need: ChunkNeed,
        cache: &ChunkCache,
    ) -> Result<Vec<(ChunkId, Chunk)>, TableError> {
        loop {
            let flight = self.flights.borrow().get(&need.id).cloned();
            let Some(flight) = flight else { break };
            let landed = flight.landed.notified();
            landed.await;
            let chunks = flight.chunks.borrow();
            if !chunks.is_empty() {
                return Ok(chunks.clone());
            }
            // Whoever read it failed, or went away. The next one to ask learns why.
        }
        let flight = Rc::new(Flight::default());
        let other = self.flights.borrow_mut().insert(need.id, Rc::clone(&flight));
        assert!(other.is_none(), "a chunk is read once at a time");
        let landing = Landing { fetcher: self, id: need.id, flight };
        let chunks = self.read(&need, need.likely_count).await?;
        chunks.iter().for_each(|(id, chunk)| cache.insert(*id, chunk.clone()));
        landing.flight.chunks.borrow_mut().clone_from(&chunks);
        Ok(chunks)
    }

    /// Reads a chunk and up to `count - 1` that follow it, in one go; they are not put into the cache.
    ///
    /// # Errors
    /// As [`Fetcher::chunks`].
    pub async fn read(&self, need: &ChunkNeed, count: usize) -> Result<Vec<(ChunkId, Chunk)>, TableError> {
        let extent = need.extent(count)?;
        let raw = self.reader.read(&extent.file, extent.offset, extent.bytes).await;
        let raw = raw.map_err(SstableError::Disk)?;
        let chunks = need.decode(&extent, &raw)?;
        // Less at the end of the file. No test can break it without another decoder.
        assert!((1..=count).contains(&chunks.len()), "the chunks that were asked for are read");
        let ids = (need.id.index..).map(|index| ChunkId { index, ..need.id });
        Ok(ids.zip(chunks).collect())
    }
}

/// The time in which a request waits for the disk.
pub struct Waiting<'a>(&'a Fetcher);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting_count.set(self.0.waiting_count.get().saturating_sub(1));
    }
}

/// Ends a flight, whatever becomes of who reads.
struct Landing<'a> {
    fetcher: &'a Fetcher,
    id: ChunkId,
    flight: Rc<Flight>,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        self.fetcher.flights.borrow_mut().remove(&self.id);
        self.flight.landed.notify_waiters();
    }
}
