//! An open table file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use components::{ComponentSet, CompressionParameters, DataFile, Fetch, IndexFile, PAGE_BYTES, Pinned};
use rows::{PartitionKey, Slices};
use runtime::Disk;
use schema::{CompressionOptions, Table};

use crate::big::{BigIndex, Summary};
use crate::bloom::{BloomFilter, KeyHash};
use crate::cursor::{FileCursor, SingleRowScan};
use crate::data::Layout;
use crate::partition_index::{Footer, read_footer};
use crate::statistics::Statistics;
use crate::{
    Chunk, ChunkId, ChunkSource, Component, Descriptor, Extent, KeptChunks, PartitionSearch, RingRange,
    SearchKey, SstableError, TableSummary,
};

/// Numbers of open files; nothing else in the process is shared by them.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Pages of an index that are read in one go to be kept.
const KEPT_PAGES_AT_ONCE: usize = 32;

/// An open table file: immutable, shared by all who read it.
#[derive(Debug)]
pub struct TableFile {
    number: u64,
    components: ComponentSet,
    summary: TableSummary,
    layout: Layout,
    mean_partition_bytes: u64,
    filter: Option<BloomFilter>,
    filter_use: FilterUse,
    data: DataFile,
    index: Index,
    /// The upper levels of the trie of partitions.
    pinned: Option<Pinned>,
    /// Of a file just written, until somebody takes it.
    kept: Mutex<KeptChunks>,
}

/// What became of questions to the filter. Counted with plain loads and stores, for the sake of reads:
/// of a file that several shards share, a few may be missed.
#[derive(Debug, Default)]
struct FilterUse {
    negative_count: AtomicU64,
    positive_count: AtomicU64,
    false_positive_count: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// What a file's filter was asked, and how it was right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterCounts {
    /// It said no.
    pub negative_count: u64,
    /// It said perhaps, and the partition was there.
    pub positive_count: u64,
    /// It said perhaps, and the partition was not there.
    pub false_positive_count: u64,
}

/// How partitions and rows are found.
#[derive(Debug)]
enum Index {
    /// As in `da`.
    Tries { partitions: IndexFile, rows: IndexFile, footer: Footer },
    /// As in `nb` and `oa`.
    Big(BigIndex),
}

/// Opened, with the first and last key and the count of partitions.
struct OpenedIndex {
    index: Index,
    keys: (PartitionKey, PartitionKey),
    partition_count: u64,
}

impl OpenedIndex {
    fn open(components: &ComponentSet, statistics: &Statistics) -> Result<Self, SstableError> {
        if components.descriptor().version.is_big() {
            let file = components.open_index(Component::Index)?;
            let summary = components.read(Component::Summary)?;
            let summary = summary.and_then(|bytes| Summary::from_bytes(&bytes, file.file_bytes()));
            let summary = summary.map_or_else(|| Summary::build(&file), Ok)?;
            let keys = (summary.first_key.clone(), summary.last_key.clone());
            let partition_count = statistics.stats.partition_bytes.count();
            return Ok(OpenedIndex { index: Index::Big(BigIndex { file, summary }), keys, partition_count });
        }
        let partitions = components.open_index(Component::Partitions)?;
        let rows = components.open_index(Component::Rows)?;
        let (footer, keys) = read_footer(&partitions)?;
        let partition_count = footer.key_count;
        Ok(OpenedIndex { index: Index::Tries { partitions, rows, footer }, keys, partition_count })
    }
}

impl TableFile {
    /// Opens it, and loads and verifies the small components. Blocks.
    ///
    /// # Errors
    /// A component is missing, damaged, or of another table.
    pub fn open(
        disk: Arc<dyn Disk>,
        descriptor: Descriptor,
        table: &Arc<Table>,
    ) -> Result<Arc<TableFile>, SstableError> {
        let components = ComponentSet::open(disk, descriptor)?;
        let statistics_path = components.path(Component::Statistics);
        let statistics = components.read(Component::Statistics)?;
        let statistics =
            statistics.ok_or_else(|| components.damaged(Component::Statistics, 0, "it is missing"))?;
        let version = components.descriptor().version;
        let statistics = Statistics::from_bytes(&statistics_path, version, &statistics)?;
        let layout = statistics.header.layout(table, &statistics_path)?;
        let data = components.open_data()?;
        let OpenedIndex { index, keys, partition_count } = OpenedIndex::open(&components, &statistics)?;
        let pinned = match &index {
            Index::Tries { partitions, footer, .. } => Some(partitions.upper_levels(footer.keys_offset)?),
            Index::Big(_) => None,
        };
        let filter = components.read(Component::Filter)?.filter(|bytes| !bytes.is_empty());
        let filter = filter.map(|bytes| BloomFilter::from_bytes(&components.path(Component::Filter), &bytes));
        let filter = filter.transpose()?;
        let bytes = (data.uncompressed_bytes(), data.file_bytes(), components.disk_bytes()?);
        let mean_partition_bytes = data.uncompressed_bytes() / partition_count.max(1);
        let id = components.descriptor().id;
        let summary = TableSummary::new(id, keys, partition_count, &statistics, bytes);
        Ok(Arc::new(TableFile {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            components,
            summary,
            layout,
            mean_partition_bytes,
            filter,
            filter_use: FilterUse::default(),
            data,
            index,
            pinned,
            kept: Mutex::default(),
        }))
    }

    /// Takes what the writer of this file kept, adds pages of the index for which there still is room, and
    /// holds all of it for [`TableFile::take_kept`]. Blocks.
    ///
    /// # Errors
    /// As [`TableFile::read_chunk`].
    pub fn keep(&self, mut kept: KeptChunks) -> Result<(), SstableError> {
        for &component in self.index_components() {
            let page_count = self.chunk_count(component);
            let mut index = 0;
            while index < page_count && kept.room_bytes() >= PAGE_BYTES {
                let first = ChunkId { file: self.number, component, index };
                let count = KEPT_PAGES_AT_ONCE.min((page_count - index) as usize);
                for page in self.read_chunks(first, count)? {
                    kept.keep(component, index, page);
                    index += 1;
                }
            }
        }
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        Ok(())
    }

    /// Hands out what is held of this file, once.
    pub fn take_kept(&self) -> impl Iterator<Item = (ChunkId, Chunk)> {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let file = self.number;
        let named = move |(component, index, chunk)| (ChunkId { file, component, index }, chunk);
        kept.into_chunks().into_iter().map(named)
    }

    /// Which table file it is.
    pub fn descriptor(&self) -> &Descriptor {
        self.components.descriptor()
    }

    /// What is known of it.
    pub fn summary(&self) -> &TableSummary {
        &self.summary
    }

    /// Bytes of a partition in Data, uncompressed, on the average.
    pub(crate) fn mean_partition_bytes(&self) -> u64 {
        self.mean_partition_bytes
    }

    /// Its number in [`ChunkId::file`].
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Has the processor fetch what [`TableFile::may_contain`] will look at.
    pub fn fetch_filter(&self, key: &PartitionKey, hash: KeyHash) {
        if let Some(filter) = &self.filter
            && self.spans(key)
        {
            filter.fetch(hash);
        }
    }

    /// Is the key between the first and the last?
    fn spans(&self, key: &PartitionKey) -> bool {
        (&self.summary.first_key..=&self.summary.last_key).contains(&key)
    }

    /// May the partition be in it? Asks key range and filter; no means no.
    /// `hash` is the key's, made once for all files that are asked.
    pub fn may_contain(&self, key: &PartitionKey, hash: KeyHash) -> bool {
        if !self.spans(key) {
            return false;
        }
        let Some(filter) = &self.filter else { return true };
        let may_contain = filter.may_contain(hash);
        if !may_contain {
            count(&self.filter_use.negative_count);
        }
        may_contain
    }

    /// Notes whether a partition, of which the filter said that it may be there, was found.
    pub(crate) fn note_looked_up(&self, is_there: bool) {
        if self.filter.is_some() {
            let of = &self.filter_use;
            count(if is_there { &of.positive_count } else { &of.false_positive_count });
        }
    }

    /// What its filter was asked since it was opened.
    pub fn filter_counts(&self) -> FilterCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FilterCounts {
            negative_count: of(&self.filter_use.negative_count),
            positive_count: of(&self.filter_use.positive_count),
            false_positive_count: of(&self.filter_use.false_positive_count),
        }
    }

    /// Bytes of memory its filter takes.
    pub fn filter_bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, BloomFilter::memory_bytes)
    }

    /// Bytes of its filter on the disk.
    pub fn filter_disk_bytes(&self) -> u64 {
        self.filter.as_ref().map_or(0, BloomFilter::disk_bytes)
    }

    /// Bytes of memory that the places of compressed chunks take; 0 when Data is not compressed.
    pub fn compression_metadata_bytes(&self) -> u64 {
        if self.data.is_compressed() { self.data.memory_bytes() } else { 0 }
    }

    /// Bytes of memory that the samples of an index take; only files of the format big have one.
    pub fn index_summary_bytes(&self) -> u64 {
        match &self.index {
            Index::Tries { .. } => 0,
            Index::Big(index) => index.summary.memory_bytes(),
        }
    }

    /// Bytes of memory that its filter, offsets, checksums and the upper levels of its index take.
    pub fn memory_bytes(&self) -> u64 {
        let pages = match &self.index {
            Index::Tries { partitions, rows, .. } => {
                partitions.file_bytes() / 1024 + rows.file_bytes() / 1024
            }
            Index::Big(index) => index.file.file_bytes() / 1024 + index.summary.memory_bytes(),
        };
        let pinned = self.pinned.as_ref().map_or(0, Pinned::memory_bytes);
        self.filter_bytes() + pages + pinned + self.data.memory_bytes()
    }

    /// Reads slices of one partition, `reversed` or not inside it. A partition that is not there
    /// gives [`rows::Step::End`] at once. Does not ask the filter: see [`TableFile::may_contain`].
    pub fn partition_cursor<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        key: &PartitionKey,
        hash: KeyHash,
        slices: &Slices,
        reversed: bool,
    ) -> FileCursor<S> {
        FileCursor::partition(Arc::clone(self), source, key.clone(), hash, slices.clone(), reversed)
    }

    /// Reads the whole of one partition, from where a search for it has come to.
    pub fn searched_partition_cursor<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        key: &SearchKey<'_>,
        search: PartitionSearch,
    ) -> FileCursor<S> {
        self.partition_cursor(source, key.key, key.hash, &Slices::all(), false).searched(search, key.path())
    }

    /// Reads slices of all partitions in a range of the ring.
    pub fn scan<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        range: &RingRange,
        slices: &Slices,
    ) -> FileCursor<S> {
        FileCursor::scan(Arc::clone(self), source, range.clone(), slices.clone())
    }

    /// Walks over the partitions in a range of the ring, of a table without clustering and static columns.
    pub fn scan_single_rows<S: ChunkSource>(
        self: &Arc<Self>,
        source: S,
        range: &RingRange,
    ) -> SingleRowScan<S> {
        SingleRowScan::new(Arc::clone(self), source, range.clone())
    }

    /// How many bytes a chunk of that component holds at most.
    pub fn chunk_bytes(&self, component: Component) -> usize {
        if component == Component::Data { self.data.chunk_bytes() as usize } else { PAGE_BYTES }
    }

    /// Would Data that is written by these options be compressed as it is? Options that nothing can be written
    /// by are no reason to write it anew.
    pub fn is_compressed_as(&self, options: &CompressionOptions) -> bool {
        let wanted = CompressionParameters::from_options(options, &self.components.path(Component::Data));
        wanted.map_or(true, |wanted| wanted.as_ref() == self.data.parameters())
    }

    /// Options by which Data is written as it is here.
    pub fn compression(&self) -> CompressionOptions {
        let none = || CompressionOptions { class: None, ..CompressionOptions::default() };
        self.data.parameters().map_or_else(none, CompressionParameters::to_options)
    }

    /// The components of its index that are read by chunks.
    pub fn index_components(&self) -> &'static [Component] {
        match &self.index {
            Index::Tries { .. } => &[Component::Partitions, Component::Rows],
            Index::Big(_) => &[Component::Index],
        }
    }

    /// How many chunks a component has, from the first on, that are not always in memory; none of one that
    /// is not read by chunks.
    pub fn chunk_count(&self, component: Component) -> u32 {
        if component == Component::Data {
            return self.data.chunk_count();
        }
        let pages = self.component_bytes(component).div_ceil(PAGE_BYTES as u64);
        let pages = u32::try_from(pages).unwrap_or(u32::MAX);
        match &self.pinned {
            Some(pinned) if component == Component::Partitions => pages.min(pinned.first()),
            _ => pages,
        }
    }

    /// Reads a chunk from the disk, verifies and decompresses it. Blocks.
    ///
    /// # Errors
    /// The disk fails, or the chunk is damaged.
    pub fn read_chunk(&self, id: ChunkId) -> Result<Chunk, SstableError> {
        let mut chunks = self.fetch_chunks(id, 1, Fetch::Blocking)?;
        chunks.pop().ok_or_else(|| self.damaged(id.component, 0, "no such chunk"))
    }

    /// As [`TableFile::read_chunk`], but never waits for the disk: `None` when it would have to,
    /// because the kernel has not got the bytes in memory.
    ///
    /// # Errors
    /// The chunk is damaged.
    pub fn read_cached_chunk(&self, id: ChunkId) -> Result<Option<Chunk>, SstableError> {
        match self.fetch_chunks(id, 1, Fetch::Cached) {
            Ok(mut chunks) => Ok(chunks.pop()),
            Err(SstableError::Disk(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads up to `count` neighbouring chunks at once, at least one, for somebody who reads on and
    /// does not come back: the kernel need not keep them.
    ///
    /// # Errors
    /// As [`TableFile::read_chunk`].
    pub fn read_chunks(&self, first: ChunkId, count: usize) -> Result<Vec<Chunk>, SstableError> {
        let chunks = self.fetch_chunks(first, count, Fetch::Blocking)?;
        let extent = self.extent(first, count)?;
        extent.file.is_done_with(extent.offset, extent.bytes as u64);
        Ok(chunks)
    }

    /// Where up to `count` neighbouring chunks lie, at least one.
    pub(crate) fn extent(&self, first: ChunkId, count: usize) -> Result<Extent, SstableError> {
        match self.index_file(first.component) {
            Some(file) => file.extent(first.index, count),
            None if first.component == Component::Data => self.data.extent(first.index, count),
            None => Err(self.damaged(first.component, 0, "a component that is not read by chunks")),
        }
    }

    /// Verifies and decompresses the chunks of an extent.
    pub(crate) fn decode(
        &self,
        component: Component,
        extent: &Extent,
        raw: &[u8],
    ) -> Result<Vec<Chunk>, SstableError> {
        match self.index_file(component) {
            Some(file) => file.decode(extent, raw),
            None => self.data.decode(extent, raw),
        }
    }

    /// A chunk that is always in memory.
    pub(crate) fn pinned_page(&self, component: Component, index: u32) -> Option<&Chunk> {
        match component {
            Component::Partitions => self.pinned.as_ref()?.page(index),
            _ => None,
        }
    }

    fn fetch_chunks(&self, first: ChunkId, count: usize, fetch: Fetch) -> Result<Vec<Chunk>, SstableError> {
        match self.index_file(first.component) {
            Some(file) => file.read(first.index, count, fetch),
            None if first.component == Component::Data => self.data.read(first.index, count, fetch),
            None => Err(self.damaged(first.component, 0, "a component that is not read by chunks")),
        }
    }

    fn index_file(&self, component: Component) -> Option<&IndexFile> {
        match (&self.index, component) {
            (Index::Tries { partitions, .. }, Component::Partitions) => Some(partitions),
            (Index::Tries { rows, .. }, Component::Rows) => Some(rows),
            (Index::Big(index), Component::Index) => Some(&index.file),
            _ => None,
        }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Root of the trie of partitions; a file of the format `big` has none.
    pub(crate) fn partition_root(&self) -> Option<u64> {
        match &self.index {
            Index::Tries { footer, .. } => Some(footer.root),
            Index::Big(_) => None,
        }
    }

    /// What is held of the index of a file of the format `big`.
    pub(crate) fn big_summary(&self) -> Option<&Summary> {
        match &self.index {
            Index::Tries { .. } => None,
            Index::Big(index) => Some(&index.summary),
        }
    }

    /// The component where partitions are looked up.
    pub(crate) fn partition_component(&self) -> Component {
        if self.descriptor().version.is_big() { Component::Index } else { Component::Partitions }
    }

    /// Length of a component that is read by chunks, uncompressed.
    pub(crate) fn component_bytes(&self, component: Component) -> u64 {
        match component {
            Component::Data => self.data.uncompressed_bytes(),
            other => self.index_file(other).map_or(0, |file| file.file_bytes()),
        }
    }

    pub(crate) fn damaged(&self, component: Component, offset: u64, what: &'static str) -> SstableError {
        self.components.damaged(component, offset, what)
    }

    pub(crate) fn components(&self) -> &ComponentSet {
        &self.components
    }

    pub(crate) fn data_file(&self) -> &DataFile {
        &self.data
    }
}
