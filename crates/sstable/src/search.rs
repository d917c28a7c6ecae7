//! Finds a partition in one file by its key, through pages and chunks that are handed in.
//!
//! ```text
//!   begin ──► pages that are always in memory ──┬─► Page ── go_on ─► … ─┐
//!                                               └───────────────────────┴─► Data or Rows
//! ```
//!
//! A search is a value: it says what it needs next, and whoever has that goes on with it. Whoever looks for many keys
//! asks for what all of them need, has the processor fetch it, and only then goes on with each. A reader that has to
//! wait for the disk keeps the value meanwhile. A [`crate::FileCursor`] steps the same search.

use std::sync::Arc;

use rows::PartitionKey;
use stdx::prefetch::prefetch;

use crate::bloom::KeyHash;
use crate::partition_index::form_of;
use crate::{Chunk, ChunkId, ChunkNeed, Component, TableFile};

/// Of a page, what is fetched before a node and after its first byte: a path goes to the front.
const NODE_BYTES: (usize, usize) = (64, 64);
/// Of a row, at most.
const ROW_BYTES_MAX: u64 = 2048;

/// A key in the forms in which files look for it, made once for all of them.
#[derive(Debug)]
pub struct SearchKey<'k> {
    /// The key.
    pub key: &'k PartitionKey,
    /// What filters are asked for.
    pub hash: KeyHash,
    /// Its path in tries.
    path: Vec<u8>,
}

impl<'k> SearchKey<'k> {
    /// The forms of a key.
    pub fn new(key: &'k PartitionKey) -> Self {
        SearchKey { key, hash: KeyHash::of(&key.bytes), path: form_of(key) }
    }

    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }
}

/// How far the search for a partition in one file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionSearch {
    /// The partition is not there.
    Absent,
    /// The next node of the index is in a page that is not always in memory.
    Page {
        /// Where in Partitions.
        position: u64,
        /// How many bytes of the key's path were followed.
        depth: usize,
    },
    /// The partition begins there, if it is not another one of the same path.
    Data {
        /// Where in Data.
        position: u64,
    },
    /// The partition has an index of its own rows, if it is not another one of the same path.
    Rows {
        /// Where in Rows its entry is.
        position: u64,
    },
    /// The file has no trie: its index is of the format `big`.
    Index,
    /// The index is damaged.
    Damaged {
        /// Where in Partitions.
        position: u64,
        /// How.
        what: &'static str,
    },
}

impl TableFile {
    /// Looks for a partition in what is always in memory. Does not ask the filter: see
    /// [`TableFile::may_contain`].
    pub fn begin_search(&self, key: &SearchKey<'_>) -> PartitionSearch {
        self.finder().begin(&key.path, key.hash)
    }

    /// The chunk that the search goes on in, and where in it.
    pub fn wanted_chunk(&self, search: PartitionSearch) -> Option<(ChunkId, usize)> {
        let (component, position) = match search {
            PartitionSearch::Page { position, .. } => (Component::Partitions, position),
            PartitionSearch::Data { position } => (Component::Data, position),
            _ => return None,
        };
        let chunk_bytes = self.chunk_bytes(component) as u64;
        let index = u32::try_from(position / chunk_bytes).ok()?;
        Some((ChunkId { file: self.number(), component, index }, (position % chunk_bytes) as usize))
    }

    /// What to read from the disk when the chunk that the search goes on in is lacking. A partition that begins near
    /// the end of its chunk lies in the next one too, if it is as long as most of its file.
    pub fn chunk_need(self: &Arc<Self>, search: PartitionSearch) -> Option<ChunkNeed> {
        let (id, offset) = self.wanted_chunk(search)?;
        let (chunk_bytes, expected_bytes) = (self.chunk_bytes(id.component), self.mean_partition_bytes());
        let crosses = id.component == Component::Data
            && expected_bytes <= chunk_bytes as u64
            && offset + expected_bytes as usize > chunk_bytes;
        Some(ChunkNeed { file: Arc::clone(self), id, likely_count: 1 + usize::from(crosses) })
    }

    /// Has the processor fetch what the search will read of that chunk, from an offset in it on.
    pub fn fetch_wanted(&self, search: PartitionSearch, chunk: &Chunk, offset: usize) {
        let bytes = chunk.as_slice();
        let (from, to) = match search {
            PartitionSearch::Page { .. } => (offset.saturating_sub(NODE_BYTES.0), offset + NODE_BYTES.1),
            _ => (offset, offset + self.mean_partition_bytes().min(ROW_BYTES_MAX) as usize),
        };
        prefetch(bytes.get(from..to.min(bytes.len())).unwrap_or_default());
    }

    /// Goes on in a page of the index, the one that was wanted.
    pub fn go_on(&self, search: PartitionSearch, key: &SearchKey<'_>, page: &Chunk) -> PartitionSearch {
        self.finder().go_on(search, &key.path, key.hash, page.as_slice())
    }
}
