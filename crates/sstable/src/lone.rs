//! Looks for the only row of a partition, through chunks that are handed in.
//!
//! ```text
//!   begin ──► pages that are always in memory ──┬─► Page ── go_on ─► … ─┐
//!                                               └───────────────────────┴─► Data ── read ─► deletion, row or values
//! ```
//!
//! A [`crate::FileCursor`] asks for a chunk and waits for its memory, then for the next. Here the two are
//! apart: whoever looks for many rows asks for the chunks of all of them, has the processor fetch these,
//! and only then goes on with each. This knows the usual case, a trie of partitions and a row within one
//! chunk. What else there is, damage included, is [`LoneSearch::Unusual`], and for a cursor to tell.

use rows::{CellMerge, DeletionTime, PartitionKey, Row, ValuesInPlace};
use stdx::cursor::Cursor;
use stdx::prefetch::prefetch;

use crate::bloom::KeyHash;
use crate::checksums::PAGE_BYTES;
use crate::data::{Decoder, Head, HeadKind, read_partition_head};
use crate::partition_index::{PartitionPlace, form_of, place_at_end};
use crate::trie::follow_in_page;
use crate::{Chunk, ChunkId, Component, TableFile};

/// Of a page, what is fetched before a node and behind its first byte: a path goes to the front.
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
    form: Vec<u8>,
}

impl<'k> SearchKey<'k> {
    /// The forms of a key.
    pub fn new(key: &'k PartitionKey) -> Self {
        SearchKey { key, hash: KeyHash::of(&key.bytes), form: form_of(key) }
    }
}

/// How far the search for a partition in one file has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoneSearch {
    /// It is not there.
    Absent,
    /// The next node of the index is in a page that is not always in memory.
    Page {
        /// Where in Partitions.
        position: u64,
        /// How much of the key's form was followed.
        depth: usize,
    },
    /// The partition begins there, if it is not another of the same path.
    Data {
        /// Where in Data.
        position: u64,
    },
    /// For a cursor.
    Unusual,
}

/// What a file has of a partition.
#[derive(Debug)]
pub enum LonePartition {
    /// Nothing.
    Absent,
    /// A deletion, which may be none, and the row, if there is one.
    Row(DeletionTime, Option<Row>),
    /// For a cursor.
    Unusual,
}

/// The first item of a partition without clustering columns.
enum LoneItem<'c> {
    /// The partition is another.
    OfAnother,
    Of {
        deletion: DeletionTime,
        head: Head,
        /// Behind the head, of a row.
        body: &'c [u8],
    },
}

impl TableFile {
    /// Looks for a partition in what is always in memory. Does not ask the filter: see
    /// [`TableFile::may_contain`].
    pub fn begin_search(&self, key: &SearchKey<'_>) -> LoneSearch {
        match self.partition_root() {
            Some(root) => self.follow_path(key, None, root, 0),
            None => LoneSearch::Unusual,
        }
    }

    /// The chunk that the search goes on in, and where in it.
    pub fn wanted_chunk(&self, search: LoneSearch) -> Option<(ChunkId, usize)> {
        let (component, position) = match search {
            LoneSearch::Page { position, .. } => (Component::Partitions, position),
            LoneSearch::Data { position } => (Component::Data, position),
            LoneSearch::Absent | LoneSearch::Unusual => return None,
        };
        let chunk_bytes = self.chunk_bytes(component) as u64;
        let index = u32::try_from(position / chunk_bytes).ok()?;
        Some((ChunkId { file: self.number(), component, index }, (position % chunk_bytes) as usize))
    }

    /// Has the processor fetch what the search will read of that chunk, from an offset in it on.
    pub fn fetch_wanted(&self, search: LoneSearch, chunk: &Chunk, offset: usize) {
        let bytes = chunk.as_slice();
        let (from, to) = match search {
            LoneSearch::Page { .. } => (offset.saturating_sub(NODE_BYTES.0), offset + NODE_BYTES.1),
            _ => (offset, offset + self.mean_partition_bytes().min(ROW_BYTES_MAX) as usize),
        };
        prefetch(bytes.get(from..to.min(bytes.len())).unwrap_or_default());
    }

    /// Goes on in a page of the index, the one that was wanted.
    pub fn go_on(&self, search: LoneSearch, key: &SearchKey<'_>, page: &Chunk) -> LoneSearch {
        match search {
            LoneSearch::Page { position, depth } => self.follow_path(key, Some(page), position, depth),
            other => other,
        }
    }

    /// Reads a partition from the chunk that was wanted, from an offset in it on.
    pub fn read_lone(&self, key: &SearchKey<'_>, chunk: &Chunk, offset: usize) -> LonePartition {
        let bytes = chunk.as_slice().get(offset..).unwrap_or_default();
        match self.parse_lone(key, bytes) {
            Some(LonePartition::Absent) => {
                self.note_looked_up(false);
                LonePartition::Absent
            }
            Some(found) => found,
            None => LonePartition::Unusual,
        }
    }

    /// Finds the values of the only row of a partition where they lie in the chunk that was wanted. `None` when
    /// there is anything else to be said of row and partition, and for [`TableFile::read_lone`].
    pub fn lone_values<'c>(
        &'c self,
        key: &SearchKey<'_>,
        chunk: &'c Chunk,
        offset: usize,
    ) -> Option<ValuesInPlace<'c>> {
        let (head, body) = self.lone_row(&mut Decoder::default(), key, chunk, offset)?;
        let mut values = ValuesInPlace::new();
        Decoder::values(self.layout(), &head, body, |id, value| values.push((id, value)))?;
        Some(values)
    }

    /// Adds the only row of a partition to what other versions of it have come to, where it lies in the chunk that
    /// was wanted. `None` when there is more to be said of it than single cells, or of its partition: the merge is of
    /// no use then.
    pub fn merge_lone<'c>(
        &'c self,
        key: &SearchKey<'_>,
        chunk: &'c Chunk,
        offset: usize,
        merge: &mut CellMerge<'c>,
    ) -> Option<()> {
        let mut decoder = Decoder::default();
        let (head, body) = self.lone_row(&mut decoder, key, chunk, offset)?;
        decoder.merge_into(self.layout(), &head, body, merge)
    }

    /// The head and the body of the only row of a partition that has no deletion.
    fn lone_row<'c>(
        &self,
        decoder: &mut Decoder,
        key: &SearchKey<'_>,
        chunk: &'c Chunk,
        offset: usize,
    ) -> Option<(Head, &'c [u8])> {
        match self.lone_item(decoder, key, chunk.as_slice().get(offset..)?)? {
            LoneItem::Of { deletion: DeletionTime::LIVE, head, body } if head.kind == HeadKind::Row => {
                Some((head, body))
            }
            _ => None,
        }
    }

    fn follow_path(
        &self,
        key: &SearchKey<'_>,
        mut handed: Option<&Chunk>,
        mut position: u64,
        depth: usize,
    ) -> LoneSearch {
        let mut rest = key.form.get(depth..).unwrap_or_default();
        loop {
            let page_start = position - position % PAGE_BYTES as u64;
            let index = u32::try_from(page_start / PAGE_BYTES as u64);
            let pinned = || self.pinned_page(Component::Partitions, index.ok()?);
            let Some(page) = handed.take().or_else(pinned) else {
                return LoneSearch::Page { position, depth: key.form.len() - rest.len() };
            };
            let end = match follow_in_page(page.as_slice(), page_start, &mut position, &mut rest) {
                Ok(Some(end)) => end,
                Ok(None) => continue,
                Err(_) => return LoneSearch::Unusual,
            };
            let place = place_at_end(&end, key.hash);
            if let Ok(place) = place {
                self.note_looked_up(place.is_some());
            }
            return match place {
                Ok(None) => LoneSearch::Absent,
                Ok(Some(PartitionPlace::Data(position))) => LoneSearch::Data { position },
                Ok(Some(PartitionPlace::Rows(_))) | Err(_) => LoneSearch::Unusual,
            };
        }
    }

    /// `None` when there is more than that, or it is not all in these bytes.
    fn parse_lone(&self, key: &SearchKey<'_>, bytes: &[u8]) -> Option<LonePartition> {
        let mut decoder = Decoder::default();
        let LoneItem::Of { deletion, head, body } = self.lone_item(&mut decoder, key, bytes)? else {
            return Some(LonePartition::Absent);
        };
        let row = match head.kind {
            HeadKind::End => None,
            HeadKind::Marker(_) => return None,
            HeadKind::Row => decoder.row(self.layout(), &head, false, body).ok()?,
        };
        Some(LonePartition::Row(deletion, row))
    }

    /// `None` when it is not all in these bytes, or they are damaged, or rows here are told apart by more than the
    /// key.
    fn lone_item<'c>(
        &self,
        decoder: &mut Decoder,
        key: &SearchKey<'_>,
        bytes: &'c [u8],
    ) -> Option<LoneItem<'c>> {
        let layout = self.layout();
        let mut input = Cursor::new(bytes);
        let (key_bytes, deletion) = read_partition_head(self.descriptor().version, &mut input).ok()?;
        if key_bytes != key.key.bytes {
            return Some(LoneItem::OfAnother);
        }
        if !layout.statics.list.is_empty() || !layout.clustering.is_empty() {
            return None;
        }
        let item = &bytes[input.position()..];
        let head = decoder.head(layout, item, false).ok()?;
        let body = item.get(head.body_start..usize::try_from(head.item_bytes).ok()?)?;
        Some(LoneItem::Of { deletion, head, body })
    }
}
