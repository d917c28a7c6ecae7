//! Reads partitions of one table file without waiting.
//!
//! ```text
//!   Search ─┬─► Resolve ──► Open ──► Rows ──► Locate …        (or End)
//!   Locate ─┘
//!   Partitions  Rows entry  header   items
//!   or Index    or blocks
//! ```
//!
//! Each state does one thing that may lack a chunk. When it does, nothing has changed, the chunk
//! is asked for, and the same state tries again at the next step. Chunks in use are held, so that
//! progress does not depend on what a cache keeps.

mod blocks;
mod chunks;
mod forward;
mod items;
mod reversed;
mod single_row_scan;

use std::cmp::Ordering;
use std::sync::Arc;

use rows::{
    Bound, DeletionTime, PartitionHeader, PartitionKey, RingPlace, RingRange, Row, Slices, Step, Unfiltered,
    UnfilteredCursor,
};
use stdx::cursor::Cursor;
use types::byte_comparable::{self, ClusteringBoundKind};

use crate::big::{Blocks, Summary, read_entry};
use crate::bloom::KeyHash;
use crate::data::{HeadKind, Layout, ParseError, read_partition_head};
use crate::partition_index::{PartitionPlace, form_of, place_of};
use crate::row_index::RowIndexEntry;
use crate::search::PartitionSearch;
use crate::{ChunkId, ChunkNeed, ChunkSource, Component, FileNeed, SstableError, TableFile};
use chunks::{Attempt, Chunks};
pub(crate) use chunks::{Interrupt, Pieces};
use components::PAGE_BYTES;
use forward::Forward;
use items::Items;
pub(crate) use items::damaged;
use reversed::Reversed;
pub use single_row_scan::{SingleRowScan, SingleRowScanStep};
use trie::PayloadIterator;

/// Reads partitions of one table file, step by step.
#[derive(Debug)]
pub struct FileCursor<S> {
    chunks: Chunks<S>,
    items: Items,
    slices: Slices,
    which: Which,
    state: State,
}

/// Which partitions are read.
#[derive(Debug)]
enum Which {
    One {
        key: PartitionKey,
        hash: KeyHash,
        /// Its path in the trie of partitions; empty until the search begins.
        path: Vec<u8>,
        reversed: bool,
    },
    Range {
        range: RingRange,
        locator: Locator,
        last_key: Option<PartitionKey>,
    },
}

/// How a scan finds the next partition.
#[derive(Debug)]
enum Locator {
    Unstarted,
    /// Through the index: until the first partition of the range, and when partitions are not
    /// read to their ends.
    Index(PayloadIterator),
    /// At an entry of Index.
    Entry(EntryPlace),
    /// Behind the last one, in Data.
    Next(u64),
}

#[derive(Debug)]
enum State {
    Locate,
    /// Looking for the one partition, in the trie of partitions.
    Search(PartitionSearch),
    /// The same, at an entry of Index.
    Seek(EntryPlace),
    Resolve(PartitionPlace),
    /// At the blocks of an entry of Index: their place and bytes, and the partition's place in Data.
    ResolveBlocks {
        blocks: (u64, u64),
        start: u64,
    },
    Open(RowIndexPlace),
    /// The partition is known, and has a static row that is to be read. By itself: were a chunk of it to be waited for
    /// together with those of the partition's head, a cache of few chunks would lose the one for the other, for ever.
    Static(Opened),
    Forward(Forward),
    Reversed(Reversed),
    End,
}

/// A partition whose key and deletion were read.
#[derive(Clone, Debug)]
struct Opened {
    key: PartitionKey,
    deletion: DeletionTime,
    /// With the place of the static row, if there is one, as that of the first item.
    place: Place,
}

/// An entry of Index.
#[derive(Clone, Copy, Debug)]
struct EntryPlace {
    position: u64,
    /// Was it found in the summary, which must name its key?
    is_sampled: bool,
}

/// Where a partition is in Data, and how its rows are found.
#[derive(Clone, Copy, Debug)]
struct RowIndexPlace {
    start: u64,
    rows: RowIndex,
}

/// How rows of a partition are found.
#[derive(Clone, Copy, Debug)]
enum RowIndex {
    /// By reading them all.
    None,
    /// Through a trie of that root in Rows.
    Trie(u64),
    /// Through blocks in Index.
    Blocks(Blocks),
}

/// A partition whose header was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// In Data.
    start: u64,
    rows: RowIndex,
    /// The first item that is not the static row.
    rows_start: u64,
}

/// What a reader of one partition yields.
#[derive(Debug)]
pub(crate) enum PartitionStep {
    Item(Unfiltered),
    /// The slices are read; where the next partition begins, if that was reached.
    Done {
        next: Option<u64>,
    },
}

impl<S: ChunkSource> FileCursor<S> {
    pub(crate) fn partition(
        file: Arc<TableFile>,
        source: S,
        key: PartitionKey,
        hash: KeyHash,
        slices: Slices,
        reversed: bool,
    ) -> Self {
        let which = Which::One { key, hash, path: Vec::new(), reversed };
        Self::new(file, source, slices, which)
    }

    /// Goes on where a search for the partition has come to, by that path in the trie of partitions.
    pub(crate) fn searched(mut self, search: PartitionSearch, its_path: &[u8]) -> Self {
        if let (Which::One { path, .. }, false) = (&mut self.which, search == PartitionSearch::Index) {
            *path = its_path.to_vec();
            self.state = State::Search(search);
        }
        self
    }

    pub(crate) fn scan(file: Arc<TableFile>, source: S, range: RingRange, slices: Slices) -> Self {
        let which = Which::Range { range, locator: Locator::Unstarted, last_key: None };
        Self::new(file, source, slices, which)
    }

    fn new(file: Arc<TableFile>, source: S, slices: Slices, which: Which) -> Self {
        let items = Items::new(Arc::clone(&file));
        FileCursor { chunks: Chunks::new(file, source), items, slices, which, state: State::Locate }
    }

    /// The file it reads.
    pub fn file(&self) -> &Arc<TableFile> {
        self.chunks.file()
    }

    /// Where the next item of the partition being read is in Data, uncompressed; 0 between partitions
    /// and against the clustering order. For tools.
    pub fn position(&self) -> u64 {
        match &self.state {
            State::Forward(forward) => forward.position(),
            _ => 0,
        }
    }

    /// Does one thing. `Ok(None)` when there is nothing to tell yet.
    fn advance(&mut self) -> Attempt<Option<Step<FileNeed>>> {
        match &mut self.state {
            State::End => return Ok(Some(Step::End)),
            State::Locate => self.state = self.locate()?,
            State::Search(search) => {
                let search = *search;
                self.state = self.search(search)?;
            }
            State::Seek(entry) => {
                let entry = *entry;
                self.state = self.seek(entry)?;
            }
            State::ResolveBlocks { blocks, start } => {
                let ((position, bytes), start) = (*blocks, *start);
                self.state = self.resolve_blocks(position, bytes, start)?;
            }
            State::Resolve(place) => {
                let place = *place;
                self.state = self.resolve(place)?;
            }
            State::Open(place) => {
                let place = *place;
                return Ok(self.open(place)?.map(Step::Header));
            }
            State::Static(opened) => {
                let opened = opened.clone();
                return Ok(Some(Step::Header(self.read_static(opened)?)));
            }
            State::Forward(forward) => {
                let step = forward.step(&mut self.chunks, &mut self.items, &self.slices)?;
                return Ok(self.after(step));
            }
            State::Reversed(reversed) => {
                let step = reversed.step(&mut self.chunks, &mut self.items, &self.slices)?;
                return Ok(self.after(step));
            }
        }
        Ok(None)
    }

    /// What to read for a chunk that is lacking: where a partition begins that is asked for by itself, perhaps more.
    fn chunk_need(&self, id: ChunkId) -> ChunkNeed {
        let file = self.chunks.file();
        let likely = match (&self.which, &self.state) {
            (Which::One { .. }, State::Open(RowIndexPlace { start, rows: RowIndex::None })) => {
                file.chunk_need(PartitionSearch::Data { position: *start })
            }
            _ => None,
        };
        let likely = likely.filter(|need| need.id == id);
        likely.unwrap_or_else(|| ChunkNeed::alone(Arc::clone(file), id))
    }

    /// Finds the next partition in the index, or behind the last one.
    fn locate(&mut self) -> Attempt<State> {
        let file = Arc::clone(self.chunks.file());
        match &mut self.which {
            Which::One { key, hash, path, .. } => {
                let summary = file.summary();
                if *key < summary.first_key || *key > summary.last_key {
                    return Ok(State::End);
                }
                if file.finder().root().is_none() {
                    let entry = first_entry(&file, &RingPlace::AfterKey(key.clone()));
                    return Ok(entry.map_or(State::End, State::Seek));
                }
                *path = form_of(key);
                Ok(State::Search(file.finder().begin(path, *hash)))
            }
            Which::Range { range, locator, .. } => match locator {
                Locator::Unstarted => {
                    let Some(root) = file.finder().root() else {
                        let first = first_entry(&file, &range.start).map(Locator::Entry);
                        *locator = first.unwrap_or(Locator::Next(u64::MAX));
                        return Ok(State::Locate);
                    };
                    let mut pages = self.chunks.trie(Component::Partitions);
                    let form = place_form(&range.start);
                    let index = PayloadIterator::forward(&mut pages, root, &form)?;
                    *locator = Locator::Index(index);
                    Ok(State::Locate)
                }
                Locator::Index(index) => {
                    let Some(payload) = index.next(&mut self.chunks.trie(Component::Partitions))? else {
                        return Ok(State::End);
                    };
                    let place = place_of(&payload).ok_or_else(|| {
                        file.damaged(Component::Partitions, payload.position, "payload of a partition")
                    })?;
                    Ok(State::Resolve(place))
                }
                Locator::Entry(entry)
                    if entry.position >= file.chunks().component_bytes(Component::Index) =>
                {
                    Ok(State::End)
                }
                Locator::Entry(entry) => {
                    let (key, state, next) = read_at(&mut self.chunks, *entry)?;
                    *entry = EntryPlace { position: next, is_sampled: false };
                    Ok(if range.start.is_before(&key) { state } else { State::Locate })
                }
                Locator::Next(position) if *position >= file.chunks().component_bytes(Component::Data) => {
                    Ok(State::End)
                }
                Locator::Next(position) => {
                    Ok(State::Open(RowIndexPlace { start: *position, rows: RowIndex::None }))
                }
            },
        }
    }

    /// Takes the search for the one partition further.
    fn search(&mut self, search: PartitionSearch) -> Attempt<State> {
        let (place, path, hash) = match (search, &self.which) {
            (PartitionSearch::Page { position, .. }, Which::One { path, hash, .. }) => {
                (position, path, *hash)
            }
            (PartitionSearch::Data { position }, _) => {
                return Ok(State::Resolve(PartitionPlace::Data(position)));
            }
            (PartitionSearch::Rows { position }, _) => {
                return Ok(State::Resolve(PartitionPlace::Rows(position)));
            }
            (PartitionSearch::Damaged { position, what }, _) => {
                return Err(self.chunks.file().damaged(Component::Partitions, position, what).into());
            }
            _ => return Ok(State::End),
        };
        let file = Arc::clone(self.chunks.file());
        let within = place % PAGE_BYTES as u64;
        let page = self.chunks.bytes(Component::Partitions, place - within, within as usize + 1)?;
        Ok(State::Search(file.finder().go_on(search, path, hash, page)))
    }

    /// Reads the entry in Rows, if that is where the index points.
    fn resolve(&mut self, place: PartitionPlace) -> Attempt<State> {
        let position = match place {
            PartitionPlace::Data(start) => {
                return Ok(State::Open(RowIndexPlace { start, rows: RowIndex::None }));
            }
            PartitionPlace::Rows(position) => position,
        };
        let entry = self.chunks.parse(Component::Rows, position, |bytes| {
            RowIndexEntry::read(bytes, position)?.ok_or(ParseError::Malformed("entry of a partition"))
        })?;
        match &self.which {
            Which::One { key, .. } if entry.key != key.bytes => {
                self.chunks.file().filter().note_looked_up(false);
                Ok(State::End)
            }
            _ => {
                let rows = RowIndex::Trie(entry.root);
                Ok(State::Open(RowIndexPlace { start: entry.data_position, rows }))
            }
        }
    }

    /// Looks at an entry of Index for the one partition.
    fn seek(&mut self, entry: EntryPlace) -> Attempt<State> {
        let Which::One { key: wanted, .. } = &self.which else { return Ok(State::End) };
        if entry.position >= self.chunks.file().chunks().component_bytes(Component::Index) {
            return Ok(State::End);
        }
        let (key, state, next) = read_at(&mut self.chunks, entry)?;
        let order = key.cmp(wanted);
        if order != Ordering::Less {
            self.chunks.file().filter().note_looked_up(order.is_eq());
        }
        Ok(match order {
            Ordering::Equal => state,
            Ordering::Less => State::Seek(EntryPlace { position: next, is_sampled: false }),
            Ordering::Greater => State::End,
        })
    }

    fn resolve_blocks(&mut self, position: u64, block_bytes: u64, start: u64) -> Attempt<State> {
        let version = self.chunks.file().descriptor().version;
        let blocks = self
            .chunks
            .parse(Component::Index, position, |bytes| Blocks::read(version, bytes, position, block_bytes))?;
        Ok(State::Open(RowIndexPlace { start, rows: RowIndex::Blocks(blocks) }))
    }

    /// Reads key and deletion. `None` when the partition is not asked for, or has a static row to be read next.
    fn open(&mut self, place: RowIndexPlace) -> Attempt<Option<PartitionHeader>> {
        let file = Arc::clone(self.chunks.file());
        let known = match &self.which {
            Which::One { key, .. } => Some(key.clone()),
            Which::Range { .. } => None,
        };
        let decoder = &mut self.items.decoder;
        let (key, deletion, rows_start) = self.chunks.parse(Component::Data, place.start, |bytes| {
            let mut input = Cursor::new(bytes);
            let (key_bytes, deletion) = read_partition_head(file.descriptor().version, &mut input)?;
            let key = match &known {
                Some(known) => (known.bytes == key_bytes).then(|| known.clone()),
                None => Some(PartitionKey::new(decoder.keep(key_bytes))),
            };
            Ok((key, deletion, place.start + input.position() as u64))
        })?;
        let Some(key) = key else {
            if file.descriptor().version.is_big() {
                let what = "another partition than the index says";
                return Err(file.damaged(Component::Data, place.start, what).into());
            }
            file.filter().note_looked_up(false);
            self.state = State::End;
            return Ok(None);
        };
        if let Some(state) = self.outside_of_range(&file, &key, place.start)? {
            self.state = state;
            return Ok(None);
        }
        let opened =
            Opened { key, deletion, place: Place { start: place.start, rows: place.rows, rows_start } };
        if file.layout().statics.list.is_empty() {
            return Ok(Some(self.enter(opened, None)));
        }
        self.state = State::Static(opened);
        Ok(None)
    }

    /// Reads the static row of a partition.
    fn read_static(&mut self, mut opened: Opened) -> Attempt<PartitionHeader> {
        let position = opened.place.rows_start;
        let head = self.items.head(&mut self.chunks, position, true)?;
        if head.kind != HeadKind::Row {
            let what = "no static row where there must be one";
            return Err(self.chunks.file().damaged(Component::Data, position, what).into());
        }
        let static_row = self.items.row(&mut self.chunks, position, &head, true)?;
        opened.place.rows_start += head.item_bytes;
        Ok(self.enter(opened, static_row))
    }

    /// What to do instead of reading a partition that is not in the range of a scan.
    fn outside_of_range(
        &mut self,
        file: &TableFile,
        key: &PartitionKey,
        position: u64,
    ) -> Attempt<Option<State>> {
        let Which::Range { range, last_key, .. } = &mut self.which else { return Ok(None) };
        if last_key.as_ref().is_some_and(|last| last >= key) {
            return Err(file.damaged(Component::Data, position, "partition keys do not rise").into());
        }
        if range.end.is_before(key) {
            return Ok(Some(State::End));
        }
        if !range.start.is_before(key) {
            *last_key = Some(key.clone());
        }
        Ok((!range.start.is_before(key)).then_some(State::Locate))
    }

    /// Begins to read the rows.
    fn enter(&mut self, opened: Opened, static_row: Option<Row>) -> PartitionHeader {
        let Opened { key, deletion, place } = opened;
        let reversed = match &mut self.which {
            Which::One { reversed, .. } => *reversed,
            Which::Range { last_key, .. } => {
                *last_key = Some(key.clone());
                false
            }
        };
        self.state = if reversed {
            State::Reversed(Reversed::new(place, &self.slices))
        } else {
            State::Forward(Forward::new(place))
        };
        PartitionHeader { key, deletion, static_row }
    }

    fn after(&mut self, step: PartitionStep) -> Option<Step<FileNeed>> {
        let next = match step {
            PartitionStep::Item(item) => return Some(Step::Item(item)),
            PartitionStep::Done { next } => next,
        };
        self.state = match &mut self.which {
            Which::One { .. } => State::End,
            Which::Range { locator, .. } => {
                if let Some(next) = next.filter(|_| self.slices.is_all()) {
                    *locator = Locator::Next(next);
                }
                State::Locate
            }
        };
        None
    }
}

impl<S: ChunkSource> UnfilteredCursor for FileCursor<S> {
    type Need = FileNeed;
    type Error = SstableError;

    fn step(&mut self) -> Result<Step<FileNeed>, SstableError> {
        loop {
            match self.advance() {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(Interrupt::Need(id)) => {
                    return Ok(Step::Need(FileNeed::Chunk(self.chunk_need(id))));
                }
                Err(Interrupt::Row(row)) => return Ok(Step::Need(FileNeed::Row(row))),
                Err(Interrupt::Failed(error)) => {
                    self.state = State::End;
                    return Err(error);
                }
            }
        }
    }
}

/// The entry of Index to begin at when looking for what is behind a place.
fn first_entry(file: &TableFile, place: &RingPlace) -> Option<EntryPlace> {
    let (_, position) = file.finder().summary()?.floor(place);
    Some(EntryPlace { position, is_sampled: true })
}

/// Reads an entry of Index: its key, how to go on to its partition, and the place of the next one.
fn read_at<S: ChunkSource>(chunks: &mut Chunks<S>, entry: EntryPlace) -> Attempt<(PartitionKey, State, u64)> {
    let EntryPlace { position, is_sampled } = entry;
    let file = Arc::clone(chunks.file());
    let (key, start, head_bytes, block_bytes) = chunks.parse(Component::Index, position, |bytes| {
        let entry = read_entry(bytes)?;
        let key = PartitionKey::new(bytes::Bytes::copy_from_slice(entry.key));
        Ok((key, entry.data_position, entry.head_bytes, entry.block_bytes))
    })?;
    let is_named = |summary: &Summary| summary.floor(&RingPlace::AfterKey(key.clone())) == (&key, position);
    if is_sampled && !file.finder().summary().is_some_and(is_named) {
        return Err(file.damaged(Component::Summary, 0, "a key is not where the summary says").into());
    }
    let blocks = position.saturating_add(head_bytes);
    let state = match block_bytes {
        0 => State::Open(RowIndexPlace { start, rows: RowIndex::None }),
        _ => State::ResolveBlocks { blocks: (blocks, block_bytes), start },
    };
    Ok((key, state, blocks.saturating_add(block_bytes)))
}

/// The byte-comparable form of a bound of a slice.
fn bound_form(layout: &Layout, bound: &Bound) -> Vec<u8> {
    let kind = if bound.kind.is_before() { ClusteringBoundKind::Before } else { ClusteringBoundKind::After };
    let mut form = Vec::new();
    byte_comparable::clustering(layout.comparator.types(), bound.prefix.components(), kind, &mut form);
    form
}

/// Where in the trie of partitions a place on the ring is.
fn place_form(place: &RingPlace) -> Vec<u8> {
    let mut form = Vec::new();
    match place {
        RingPlace::Start => {}
        RingPlace::End => form.push(0xff),
        RingPlace::BeforeKey(key) | RingPlace::AfterKey(key) => {
            byte_comparable::decorated_key(key.token, &key.bytes, &mut form);
        }
        RingPlace::BeforeToken(token) | RingPlace::AfterToken(token) => {
            // The form of a key begins so, up to its bytes; nothing in it is above 0xfe there.
            byte_comparable::decorated_key(*token, b"", &mut form);
            form.truncate(1 + 8);
            if matches!(place, RingPlace::AfterToken(_)) {
                form.push(0xff);
            }
        }
    }
    form
}
