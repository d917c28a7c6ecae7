//! How far it is with what of a table is to come into memory before anybody asks; who brings it is the shard.

use std::cell::Cell;

use schema::{Prefetch, Table};

/// How far it is with a table on a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrefetchState {
    /// All that was to come is there.
    Done,
    /// As much as there was room for.
    Full,
    /// The node has just started, or nobody told it to begin.
    #[default]
    NotBegun,
    /// It goes on.
    Going,
}

/// What of a table came into memory after the start, before anybody asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefetchStats {
    /// What the table asks for.
    pub wanted: Prefetch,
    /// How far it is; of several shards, the one that has most to do.
    pub state: PrefetchState,
    /// Chunks that are to come.
    pub planned_chunks: u64,
    /// Chunks that came.
    pub read_chunks: u64,
    /// Bytes of them.
    pub read_bytes: u64,
}

impl PrefetchStats {
    /// Adds what another shard says.
    pub fn add(&mut self, other: &PrefetchStats) {
        // Adding to nothing is taking over.
        let is_first = self.wanted.is_none();
        self.state = if is_first { other.state } else { self.state.max(other.state) };
        self.wanted = other.wanted;
        self.planned_chunks += other.planned_chunks;
        self.read_chunks += other.read_chunks;
        self.read_bytes += other.read_bytes;
    }
}

/// The part of a table's metrics that this is about.
#[derive(Debug, Default)]
pub struct PrefetchProgress {
    state: Cell<PrefetchState>,
    planned_chunks: Cell<u64>,
    read_chunks: Cell<u64>,
    read_bytes: Cell<u64>,
}

impl PrefetchProgress {
    /// So many chunks are to come.
    pub fn begin(&self, planned_chunks: u64) {
        self.planned_chunks.set(planned_chunks);
        self.state.set(PrefetchState::Going);
    }

    /// One has come.
    pub fn note_chunk(&self, bytes: usize) {
        self.read_chunks.set(self.read_chunks.get().wrapping_add(1));
        self.read_bytes.set(self.read_bytes.get().wrapping_add(bytes as u64));
    }

    /// There is no room for more.
    pub fn note_full(&self) {
        self.state.set(PrefetchState::Full);
    }

    /// No more is to come.
    pub fn end(&self) {
        if self.state.get() == PrefetchState::Going {
            self.state.set(PrefetchState::Done);
        }
    }

    /// `None` when the table asks for nothing.
    pub(crate) fn stats(&self, table: &Table) -> Option<PrefetchStats> {
        let wanted = table.options().caching.prefetch;
        (!wanted.is_none()).then(|| PrefetchStats {
            wanted,
            state: self.state.get(),
            planned_chunks: self.planned_chunks.get(),
            read_chunks: self.read_chunks.get(),
            read_bytes: self.read_bytes.get(),
        })
    }
}
