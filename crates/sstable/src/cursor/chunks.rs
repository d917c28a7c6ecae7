//! The bytes a cursor reads, over the borders of chunks.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use stdx::prefetch::prefetch;

use crate::data::ParseError;
use crate::{Chunk, ChunkId, ChunkSource, Component, LargeRow, RowReader, SstableError, TableFile};
use trie::Pages;

/// Bytes of a file, in the chunks that they lie in.
#[derive(Debug)]
pub(crate) struct Pieces {
    chunks: Vec<Chunk>,
    /// Where they begin in the first chunk.
    start: usize,
    length: usize,
}

impl Pieces {
    /// In one piece; `None` when a chunk is shorter than it should be.
    pub(crate) fn join(&self) -> Option<Cow<'_, [u8]>> {
        let mut slices = self.chunks.iter().map(Chunk::as_slice);
        let first = slices.next()?.get(self.start..)?;
        if let Some(whole) = first.get(..self.length) {
            return Some(Cow::Borrowed(whole));
        }
        let mut joined = Vec::with_capacity(self.start + self.chunks.iter().map(Chunk::len).sum::<usize>());
        joined.extend_from_slice(first);
        slices.for_each(|slice| joined.extend_from_slice(slice));
        joined.truncate(self.length);
        (joined.len() == self.length).then_some(Cow::Owned(joined))
    }
}

/// Why a cursor can not go on: a chunk is to be fetched, or something is wrong.
#[derive(Debug)]
pub(crate) enum Interrupt {
    Need(ChunkId),
    /// A large row is to be read by somebody else.
    Row(Box<LargeRow>),
    Failed(SstableError),
}

impl From<SstableError> for Interrupt {
    fn from(error: SstableError) -> Self {
        Interrupt::Failed(error)
    }
}

pub(crate) type Attempt<T> = Result<T, Interrupt>;

/// The longest item: a row of more can not be held in memory as one.
const ITEM_BYTES_MAX: u64 = 1 << 31;

/// As much as the head of most items takes; who lacks a byte of it will lack the next one too.
const HEAD_BYTES: usize = 64;

/// Room that is made for an item before its bytes are there, at most: how long it is may be damaged.
const RESERVED_BYTES_MAX: usize = 1 << 20;

/// Pages of a trie held: paths cross fewer.
const HELD_PAGE_COUNT_MAX: usize = 16;

/// The chunks of one file under a cursor.
pub(crate) struct Chunks<S> {
    file: Arc<TableFile>,
    source: S,
    data: Window,
    /// Partitions, or Index.
    partitions: Window,
    rows: Window,
}

impl<S> fmt::Debug for Chunks<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("file", self.file.descriptor()).finish_non_exhaustive()
    }
}

/// The place of a component where a cursor reads.
#[derive(Debug)]
struct Window {
    current: Option<(u32, Chunk)>,
    /// Read lately: the path of a lookup that was interrupted must not be lost from its start
    /// while its end is fetched, however small the cache.
    held: Vec<(u32, Chunk)>,
    /// Bytes of an item that crosses chunks, from `assembled_at` on.
    assembled: Vec<u8>,
    assembled_at: u64,
    /// The chunks of a large row, from `pieces_at` on.
    pieces: Vec<Chunk>,
    pieces_at: u64,
    /// Bytes of a chunk, and of the whole component.
    chunk_bytes: u64,
    total_bytes: u64,
}

impl Window {
    fn new(file: &TableFile, component: Component) -> Self {
        Window {
            current: None,
            held: Vec::new(),
            assembled: Vec::new(),
            assembled_at: u64::MAX,
            pieces: Vec::new(),
            pieces_at: u64::MAX,
            chunk_bytes: file.chunk_bytes(component) as u64,
            total_bytes: file.chunks().component_bytes(component),
        }
    }

    /// What is at hand from an offset on, if it has at least `wanted` bytes.
    fn at_hand(&self, offset: u64, wanted: usize) -> Option<&[u8]> {
        if let Some((index, chunk)) = &self.current
            && let Some(within) = offset.checked_sub(u64::from(*index) * self.chunk_bytes)
            && within < self.chunk_bytes
        {
            let rest = chunk.as_slice().get(within as usize..).unwrap_or_default();
            if rest.len() >= wanted {
                return Some(rest);
            }
        }
        (self.assembled_at == offset && self.assembled.len() >= wanted).then_some(&self.assembled[..])
    }
}

impl<S: ChunkSource> Chunks<S> {
    pub(crate) fn new(file: Arc<TableFile>, source: S) -> Self {
        let data = Window::new(&file, Component::Data);
        let partitions = Window::new(&file, file.chunks().partitions().0);
        let rows = Window::new(&file, Component::Rows);
        Chunks { file, source, data, partitions, rows }
    }

    pub(crate) fn file(&self) -> &Arc<TableFile> {
        &self.file
    }

    fn looked_at(&self, component: Component) -> &Window {
        match component {
            Component::Partitions | Component::Index => &self.partitions,
            Component::Rows => &self.rows,
            _ => &self.data,
        }
    }

    fn window(&mut self, component: Component) -> &mut Window {
        match component {
            Component::Partitions | Component::Index => &mut self.partitions,
            Component::Rows => &mut self.rows,
            _ => &mut self.data,
        }
    }

    /// Who reads the large row at a place in Data.
    pub(crate) fn large_row(&self, position: u64) -> RowReader {
        self.source.large_row(&self.file, position)
    }

    /// At least `wanted` bytes of a component from an offset on, at least one.
    pub(crate) fn bytes(&mut self, component: Component, offset: u64, wanted: usize) -> Attempt<&[u8]> {
        let wanted = wanted.max(1);
        if self.window(component).at_hand(offset, wanted).is_none() {
            self.fill(component, offset, wanted)?;
        }
        let found = self.looked_at(component).at_hand(offset, wanted);
        found.ok_or_else(|| {
            self.file.damaged(component, offset, "a chunk is shorter than it should be").into()
        })
    }

    /// Bytes of Data that were parsed last.
    ///
    /// # Panics
    /// When others were asked for since.
    pub(crate) fn data_at_hand(&self, offset: u64, length: usize) -> &[u8] {
        let found = self.data.at_hand(offset, length).expect("nothing else was asked for");
        &found[..length]
    }

    /// Has the processor fetch what will be read of Data next, as far as the chunk at hand has it.
    pub(crate) fn fetch_data_ahead(&self, offset: u64, byte_count: usize) {
        let bytes = self.data.at_hand(offset, 0).unwrap_or_default();
        prefetch(&bytes[..byte_count.min(bytes.len())]);
    }

    /// All chunks of Data that bytes from an offset on lie in, for somebody who puts them together.
    pub(crate) fn pieces(&mut self, offset: u64, wanted: usize) -> Attempt<Pieces> {
        self.check_end(Component::Data, offset, wanted)?;
        let chunk_bytes = self.data.chunk_bytes;
        if self.data.pieces_at != offset {
            self.data.pieces.clear();
            self.data.pieces_at = offset;
        }
        let (start, end) = (offset / chunk_bytes, (offset + wanted as u64).div_ceil(chunk_bytes));
        for index in start + self.data.pieces.len() as u64..end {
            self.load(Component::Data, index as u32)?;
            let Some((_, chunk)) = &self.data.current else { unreachable!("it was loaded just now") };
            if index + 1 < end && chunk.len() as u64 != chunk_bytes {
                let what = "a chunk is shorter than it should be";
                return Err(self.file.damaged(Component::Data, index * chunk_bytes, what).into());
            }
            self.data.pieces.push(chunk.clone());
        }
        self.data.pieces_at = u64::MAX;
        let chunks = std::mem::take(&mut self.data.pieces);
        Ok(Pieces { chunks, start: (offset % chunk_bytes) as usize, length: wanted })
    }

    fn check_end(&self, component: Component, offset: u64, wanted: usize) -> Attempt<()> {
        if offset.checked_add(wanted as u64).is_none_or(|end| end > self.looked_at(component).total_bytes)
            || wanted as u64 > ITEM_BYTES_MAX
        {
            let what = "something reaches beyond the end of the file";
            return Err(self.file.damaged(component, offset, what).into());
        }
        Ok(())
    }

    fn fill(&mut self, component: Component, offset: u64, wanted: usize) -> Attempt<()> {
        self.check_end(component, offset, wanted)?;
        let chunk_bytes = self.window(component).chunk_bytes;
        if self.window(component).assembled_at != offset {
            let index = (offset / chunk_bytes) as u32;
            self.load(component, index)?;
            let window = self.window(component);
            window.assembled.clear();
            window.assembled_at = u64::MAX;
            if window.at_hand(offset, wanted).is_some() {
                return Ok(());
            }
            let mut assembled = std::mem::take(&mut window.assembled);
            assembled.extend_from_slice(window.at_hand(offset, 0).unwrap_or_default());
            window.assembled = assembled;
            window.assembled_at = offset;
        }
        loop {
            let reached = offset + self.window(component).assembled.len() as u64;
            if reached - offset >= wanted as u64 {
                return Ok(());
            }
            self.load(component, (reached / chunk_bytes) as u32)?;
            let window = self.window(component);
            let Some((_, chunk)) = &window.current else { return Ok(()) };
            let more = chunk.as_slice().get((reached % chunk_bytes) as usize..).unwrap_or_default();
            if more.is_empty() {
                let what = "a chunk is shorter than it should be";
                return Err(self.file.damaged(component, reached, what).into());
            }
            // Little more than is asked for: the rest may be most of a chunk.
            let lacking = (wanted - window.assembled.len()).max(HEAD_BYTES);
            window.assembled.reserve(lacking.min(RESERVED_BYTES_MAX));
            window.assembled.extend_from_slice(&more[..lacking.min(more.len())]);
        }
    }

    fn load(&mut self, component: Component, index: u32) -> Attempt<()> {
        let window = self.window(component);
        if window.current.as_ref().is_some_and(|(current, _)| *current == index) {
            return Ok(());
        }
        if let Some(pinned) = self.file.finder().pinned_page(component, index).cloned() {
            self.window(component).current = Some((index, pinned));
            return Ok(());
        }
        let window = self.window(component);
        if let Some(held) = window.held.iter().find(|(held, _)| *held == index) {
            window.current = Some(held.clone());
            return Ok(());
        }
        let id = ChunkId { file: self.file.number(), component, index };
        let chunk = self.source.get(&self.file, id)?.ok_or(Interrupt::Need(id))?;
        let window = self.window(component);
        if component != Component::Data {
            if window.held.len() == HELD_PAGE_COUNT_MAX {
                window.held.remove(0);
            }
            window.held.push((index, chunk.clone()));
        }
        window.current = Some((index, chunk));
        Ok(())
    }

    /// Parses what is at an offset, getting more bytes as long as the parser lacks some.
    pub(crate) fn parse<T>(
        &mut self,
        component: Component,
        offset: u64,
        mut parser: impl FnMut(&[u8]) -> Result<T, ParseError>,
    ) -> Attempt<T> {
        let mut wanted = 1;
        loop {
            let bytes = self.bytes(component, offset, wanted)?;
            let length = bytes.len();
            match parser(bytes) {
                Ok(parsed) => return Ok(parsed),
                Err(ParseError::Short { wanted_bytes }) => wanted = wanted_bytes.max(length + 1),
                Err(ParseError::Malformed(what)) => {
                    return Err(self.file.damaged(component, offset, what).into());
                }
            }
        }
    }

    /// The tries of Partitions or Rows.
    pub(crate) fn trie(&mut self, component: Component) -> TriePages<'_, S> {
        TriePages { chunks: self, component }
    }
}

/// The pages of a trie.
pub(crate) struct TriePages<'a, S> {
    chunks: &'a mut Chunks<S>,
    component: Component,
}

impl<S: ChunkSource> Pages for TriePages<'_, S> {
    type Interrupt = Interrupt;

    fn page(&mut self, position: u64) -> Attempt<&[u8]> {
        self.chunks.bytes(self.component, position, 1)
    }

    fn damaged(&self, position: u64, what: &'static str) -> Interrupt {
        self.chunks.file.damaged(self.component, position, what).into()
    }
}
