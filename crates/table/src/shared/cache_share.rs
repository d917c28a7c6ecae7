//! How much memory the chunk cache of a shard has: its own, less what open files pin, and what memtables leave.

use std::cell::Cell;

use cache::ChunkCache;

/// Of the cache's memory, one part in so many is left to chunks however much is pinned.
const CACHE_PART_MIN: usize = 8;
/// So much must memtables grow or shrink before the cache borrows less or more.
const LENDING_STEP_BYTES: usize = 1 << 20;
const _: () = assert!(CACHE_PART_MIN > 1, "most of the cache's memory may be pinned");

/// What the cache's share of memory depends on.
pub(super) struct CacheShare {
    /// What it has of its own.
    budget: usize,
    /// What memtables may take, if it borrows what they leave of it.
    lendable: Option<usize>,
    /// Memory that table files hold as long as they are open.
    pinned_bytes: Cell<usize>,
    /// What memtables held when the cache last borrowed what they left.
    lent_beside: Cell<usize>,
    /// What the cache has to do without, since the process has too much.
    called_back_bytes: Cell<usize>,
}

impl CacheShare {
    /// Of so many bytes; `lendable` is what memtables may take, if it is to borrow of that.
    pub(super) fn new(budget: usize, lendable: Option<usize>) -> Self {
        CacheShare {
            budget,
            lendable,
            pinned_bytes: Cell::new(0),
            lent_beside: Cell::new(0),
            called_back_bytes: Cell::new(0),
        }
    }

    /// What open files pin.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.pinned_bytes.get()
    }

    /// Takes in how much open files pin, beside so many bytes of memtables.
    pub(super) fn pin(&self, bytes: usize, cache: &ChunkCache, memtable_bytes: usize) {
        self.pinned_bytes.set(bytes);
        self.size(cache, memtable_bytes);
    }

    /// Takes in how much memtables hold.
    #[inline]
    pub(super) fn lend(&self, cache: &ChunkCache, memtable_bytes: usize) {
        let is_step = memtable_bytes.abs_diff(self.lent_beside.get()) >= LENDING_STEP_BYTES;
        if is_step && self.lendable.is_some() {
            self.size(cache, memtable_bytes);
        }
    }

    /// Has the cache do without so many bytes, borrowed ones first.
    pub(super) fn call_back(&self, bytes: usize, cache: &ChunkCache, memtable_bytes: usize) {
        self.called_back_bytes.set(bytes);
        self.size(cache, memtable_bytes);
    }

    fn size(&self, cache: &ChunkCache, memtable_bytes: usize) {
        self.lent_beside.set(memtable_bytes);
        let left = |lendable: usize| lendable.saturating_sub(memtable_bytes + LENDING_STEP_BYTES);
        let borrowed = self.lendable.map_or(0, left);
        let own = self.budget.saturating_sub(self.pinned_bytes.get()).max(self.budget / CACHE_PART_MIN);
        // A sum of what is beside each other: no test can break it without another sum.
        assert!(own <= self.budget, "the cache takes none of the memory of others");
        let is_left =
            self.lendable.is_none_or(|lendable| borrowed <= lendable.saturating_sub(memtable_bytes));
        assert!(is_left, "the cache borrows what memtables leave");
        let called_back = self.called_back_bytes.get();
        let own_part = called_back.saturating_sub(borrowed);
        cache.set_capacity(own.saturating_sub(own_part), borrowed.saturating_sub(called_back));
    }
}
