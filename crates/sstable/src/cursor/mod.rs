//! Reads partitions of one table file without waiting.
//!
//! ```text
//!   Locate ──► Resolve ──► Open ──► Rows ──► Locate …        (or End)
//!   Partitions  Rows entry  header   items
//! ```
//!
//! Each state does one thing that may lack a chunk. When it does, nothing has changed, the chunk
//! is asked for, and the same state tries again at the next step. Chunks in use are held, so that
//! progress does not depend on what a cache keeps.

mod chunks;
mod forward;
mod items;
mod reversed;

use std::sync::Arc;

use rows::{Bound, PartitionHeader, PartitionKey, Slices, Step, Unfiltered, UnfilteredCursor};
use stdx::cursor::Cursor;
use types::byte_comparable::{self, ClusteringBoundKind};

use crate::bloom::KeyHash;
use crate::data::{HeadKind, Layout, ParseError, read_whole_deletion};
use crate::partition_index::{PartitionPlace, find, place_of};
use crate::row_index::RowIndexEntry;
use crate::trie::PayloadIterator;
use crate::{ChunkNeed, ChunkSource, Component, RingPlace, RingRange, SstableError, TableFile};
pub(crate) use chunks::Interrupt;
use chunks::{Attempt, Chunks};
use forward::Forward;
use items::Items;
use reversed::Reversed;

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
    One { key: PartitionKey, reversed: bool },
    Range { range: RingRange, locator: Locator, last_key: Option<PartitionKey> },
}

/// How a scan finds the next partition.
#[derive(Debug)]
enum Locator {
    Unstarted,
    /// Through the index: until the first partition of the range, and when partitions are not
    /// read to their ends.
    Index(PayloadIterator),
    /// Behind the last one, in Data.
    Next(u64),
}

#[derive(Debug)]
enum State {
    Locate,
    Resolve(PartitionPlace),
    Open(RowIndexPlace),
    Forward(Forward),
    Reversed(Reversed),
    End,
}

/// Where a partition is in Data, and the root of its row index.
#[derive(Clone, Copy, Debug)]
struct RowIndexPlace {
    start: u64,
    index_root: Option<u64>,
}

/// A partition whose header was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// In Data.
    start: u64,
    index_root: Option<u64>,
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
        slices: Slices,
        reversed: bool,
    ) -> Self {
        let which = Which::One { key, reversed };
        Self::new(file, source, slices, which)
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

    /// Does one thing. `Ok(None)` when there is nothing to tell yet.
    fn advance(&mut self) -> Attempt<Option<Step<ChunkNeed>>> {
        match &mut self.state {
            State::End => return Ok(Some(Step::End)),
            State::Locate => self.state = self.locate()?,
            State::Resolve(place) => {
                let place = *place;
                self.state = self.resolve(place)?;
            }
            State::Open(place) => {
                let place = *place;
                return Ok(self.open(place)?.map(Step::Header));
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

    /// Finds the next partition in the index, or behind the last one.
    fn locate(&mut self) -> Attempt<State> {
        let file = Arc::clone(self.chunks.file());
        match &mut self.which {
            Which::One { key, .. } => {
                let summary = file.summary();
                if *key < summary.first_key || *key > summary.last_key {
                    return Ok(State::End);
                }
                let mut form = Vec::with_capacity(key.bytes.len() + 16);
                byte_comparable::decorated_key(key.token, &key.bytes, &mut form);
                let mut pages = self.chunks.trie(Component::Partitions);
                let place = find(&mut pages, file.partition_root(), &form, KeyHash::of(&key.bytes))?;
                Ok(place.map_or(State::End, State::Resolve))
            }
            Which::Range { range, locator, .. } => match locator {
                Locator::Unstarted => {
                    let mut pages = self.chunks.trie(Component::Partitions);
                    let form = place_form(&range.start);
                    let index = PayloadIterator::forward(&mut pages, file.partition_root(), &form)?;
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
                Locator::Next(position) if *position >= file.component_bytes(Component::Data) => {
                    Ok(State::End)
                }
                Locator::Next(position) => {
                    Ok(State::Open(RowIndexPlace { start: *position, index_root: None }))
                }
            },
        }
    }

    /// Reads the entry in Rows, if that is where the index points.
    fn resolve(&mut self, place: PartitionPlace) -> Attempt<State> {
        let position = match place {
            PartitionPlace::Data(start) => return Ok(State::Open(RowIndexPlace { start, index_root: None })),
            PartitionPlace::Rows(position) => position,
        };
        let entry = self.chunks.parse(Component::Rows, position, |bytes| {
            RowIndexEntry::read(bytes, position)?.ok_or(ParseError::Malformed("entry of a partition"))
        })?;
        match &self.which {
            Which::One { key, .. } if entry.key != key.bytes => Ok(State::End),
            _ => Ok(State::Open(RowIndexPlace { start: entry.data_position, index_root: Some(entry.root) })),
        }
    }

    /// Reads key, deletion and static row. `None` when the partition is not asked for.
    fn open(&mut self, place: RowIndexPlace) -> Attempt<Option<PartitionHeader>> {
        let file = Arc::clone(self.chunks.file());
        let known = match &self.which {
            Which::One { key, .. } => Some(key.clone()),
            Which::Range { .. } => None,
        };
        let decoder = &mut self.items.decoder;
        let (key, deletion, mut position) = self.chunks.parse(Component::Data, place.start, |bytes| {
            let mut input = Cursor::new(bytes);
            let length = usize::from(input.u16()?);
            let key_bytes = input.take(length)?;
            let key = match &known {
                Some(known) => (known.bytes == key_bytes).then(|| known.clone()),
                None => Some(PartitionKey::new(decoder.keep(key_bytes))),
            };
            let deletion = read_whole_deletion(&mut input)?;
            let deletion = deletion.ok_or(ParseError::Malformed("deletion of a partition"))?;
            Ok((key, deletion, place.start + input.position() as u64))
        })?;
        let Some(key) = key else {
            self.state = State::End;
            return Ok(None);
        };
        if let Some(state) = self.outside_of_range(&file, &key, place.start)? {
            self.state = state;
            return Ok(None);
        }
        let mut static_row = None;
        if !file.layout().statics.list.is_empty() {
            let head = self.items.head(&mut self.chunks, position, true)?;
            if head.kind != HeadKind::Row {
                let what = "no static row where there must be one";
                return Err(file.damaged(Component::Data, position, what).into());
            }
            static_row = self.items.row(&mut self.chunks, position, &head, true)?;
            position += head.item_bytes;
        }
        self.enter(&key, Place { start: place.start, index_root: place.index_root, rows_start: position });
        Ok(Some(PartitionHeader { key, deletion, static_row }))
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
    fn enter(&mut self, key: &PartitionKey, place: Place) {
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
    }

    fn after(&mut self, step: PartitionStep) -> Option<Step<ChunkNeed>> {
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
    type Need = ChunkNeed;
    type Error = SstableError;

    fn step(&mut self) -> Result<Step<ChunkNeed>, SstableError> {
        loop {
            match self.advance() {
                Ok(Some(step)) => return Ok(step),
                Ok(None) => {}
                Err(Interrupt::Need(id)) => {
                    return Ok(Step::Need(ChunkNeed { file: Arc::clone(self.chunks.file()), id }));
                }
                Err(Interrupt::Failed(error)) => {
                    self.state = State::End;
                    return Err(error);
                }
            }
        }
    }
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
