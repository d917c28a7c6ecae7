//! The chunk cache of a shard: decompressed, verified chunks of table files, within a budget.
//!
//! Clock replacement: a hit marks its slot, the hand passes over marked slots once and takes the
//! first that is not. One pass of a scan so costs what was not touched twice.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use sstable::{Chunk, ChunkId, ChunkSource, SstableError, TableFile};

/// Rough cost of an entry beside its bytes.
const ENTRY_OVERHEAD_BYTES: usize = 128;

pub(crate) struct ChunkCache {
    state: RefCell<State>,
}

struct State {
    capacity_bytes: usize,
    used_bytes: usize,
    slots: Vec<Slot>,
    places: HashMap<ChunkId, usize>,
    hand: usize,
    hit_count: u64,
    miss_count: u64,
}

struct Slot {
    id: ChunkId,
    chunk: Chunk,
    was_hit: bool,
}

/// What the cache has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Budget.
    pub capacity_bytes: u64,
    /// Used of it.
    pub used_bytes: u64,
    /// Chunks held.
    pub entry_count: u64,
    /// Requests answered.
    pub hit_count: u64,
    /// Requests not answered.
    pub miss_count: u64,
}

impl ChunkCache {
    pub(crate) fn new(capacity_bytes: usize) -> Self {
        ChunkCache {
            state: RefCell::new(State {
                capacity_bytes,
                used_bytes: 0,
                slots: Vec::new(),
                places: HashMap::new(),
                hand: 0,
                hit_count: 0,
                miss_count: 0,
            }),
        }
    }

    /// Keeps a chunk, giving up others to stay within the budget.
    pub(crate) fn insert(&self, id: ChunkId, chunk: Chunk) {
        let state = &mut *self.state.borrow_mut();
        let cost = chunk.len() + ENTRY_OVERHEAD_BYTES;
        if cost > state.capacity_bytes || state.places.contains_key(&id) {
            return;
        }
        while state.used_bytes + cost > state.capacity_bytes {
            state.evict_one();
        }
        state.used_bytes += cost;
        state.places.insert(id, state.slots.len());
        state.slots.push(Slot { id, chunk, was_hit: false });
    }

    /// Forgets the chunks of a file that is gone.
    pub(crate) fn forget(&self, file: u64) {
        let state = &mut *self.state.borrow_mut();
        let mut index = 0;
        while index < state.slots.len() {
            if state.slots[index].id.file == file {
                state.remove(index);
            } else {
                index += 1;
            }
        }
    }

    pub(crate) fn stats(&self) -> CacheStats {
        let state = self.state.borrow();
        CacheStats {
            capacity_bytes: state.capacity_bytes as u64,
            used_bytes: state.used_bytes as u64,
            entry_count: state.slots.len() as u64,
            hit_count: state.hit_count,
            miss_count: state.miss_count,
        }
    }
}

impl State {
    fn evict_one(&mut self) {
        loop {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let Some(slot) = self.slots.get_mut(self.hand) else { return };
            if std::mem::take(&mut slot.was_hit) {
                self.hand += 1;
            } else {
                self.remove(self.hand);
                return;
            }
        }
    }

    fn remove(&mut self, index: usize) {
        let slot = self.slots.swap_remove(index);
        self.used_bytes -= slot.chunk.len() + ENTRY_OVERHEAD_BYTES;
        self.places.remove(&slot.id);
        if let Some(moved) = self.slots.get(index) {
            self.places.insert(moved.id, index);
        }
    }
}

impl ChunkSource for ChunkCache {
    fn get(&self, _file: &Arc<TableFile>, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        let state = &mut *self.state.borrow_mut();
        let Some(&place) = state.places.get(&id) else {
            state.miss_count += 1;
            return Ok(None);
        };
        state.hit_count += 1;
        let slot = &mut state.slots[place];
        slot.was_hit = true;
        Ok(Some(slot.chunk.clone()))
    }
}
