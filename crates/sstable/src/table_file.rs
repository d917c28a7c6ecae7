//! An open table file.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rows::{PartitionKey, Slices};
use runtime::{Disk, OpenMode};
use schema::{CompressionOptions, Table};

use crate::big::{BigIndex, Summary};
use crate::bloom::{BloomFilter, KeyHash};
use crate::checksums::{Checksums, PAGE_BYTES};
use crate::chunk::Fetch;
use crate::compression::{CompressionParameters, DataFile};
use crate::cursor::{FileCursor, SingleRowScan};
use crate::data::Layout;
use crate::index_file::{IndexFile, Pinned, read_footer};
use crate::partition_index::Footer;
use crate::statistics::Statistics;
use crate::{
    Chunk, ChunkId, ChunkSource, Component, Descriptor, Extent, KeptChunks, PartitionSearch, RingRange,
    SearchKey, SstableError, TableSummary, toc,
};

/// Numbers of open files; nothing else in the process is shared by them.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// Small components are read whole; no sound one comes near this.
const SMALL_COMPONENT_BYTES_MAX: u64 = 4 << 30;
/// Pages of an index that are read in one go to be kept.
const KEPT_PAGES_AT_ONCE: usize = 32;

/// An open table file: immutable, shared by all who read it.
#[derive(Debug)]
pub struct TableFile {
    number: u64,
    descriptor: Descriptor,
    summary: TableSummary,
    layout: Layout,
    mean_partition_bytes: u64,
    filter: Option<BloomFilter>,
    filter_use: FilterUse,
    data: DataFile,
    index: Index,
    /// The upper levels of the trie of partitions.
    pinned: Option<Pinned>,
    checksums: Option<Checksums>,
    disk: Arc<dyn Disk>,
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

/// What is needed to open the components of one table file.
struct Opening<'a> {
    disk: &'a dyn Disk,
    descriptor: &'a Descriptor,
    checksums: Option<&'a Checksums>,
}

impl Opening<'_> {
    fn path(&self, component: Component) -> PathBuf {
        self.descriptor.path(component)
    }

    /// A small component, verified; `None` when there is none.
    fn read(&self, component: Component) -> Result<Option<Vec<u8>>, SstableError> {
        let path = self.path(component);
        let Some(entry) = self.disk.metadata(&path)? else { return Ok(None) };
        if entry.file_bytes > SMALL_COMPONENT_BYTES_MAX {
            return Err(self.damaged(component, "larger than it can be"));
        }
        let bytes = self.disk.read(&path)?;
        if let Some(checksums) = self.checksums.and_then(|checksums| checksums.of(component)) {
            checksums.check(&path, &bytes)?;
        }
        Ok(Some(bytes))
    }

    fn index(&self, component: Component) -> Result<IndexFile, SstableError> {
        let path = self.path(component);
        let file = self.disk.open(&path, OpenMode::Read)?;
        let file_bytes = file.len()?;
        let checksums = self.checksums.and_then(|checksums| checksums.of(component)).cloned();
        if let Some(checksums) = &checksums {
            checksums.check_length(&path, file_bytes)?;
        }
        if file_bytes.div_ceil(PAGE_BYTES as u64) > u64::from(u32::MAX) {
            return Err(self.damaged(component, "larger than it can be"));
        }
        Ok(IndexFile { file, file_bytes, checksums })
    }

    fn open_index(&self, statistics: &Statistics) -> Result<OpenedIndex, SstableError> {
        if self.descriptor.version.is_big() {
            let file = self.index(Component::Index)?;
            let summary = self.read(Component::Summary)?;
            let summary = summary.and_then(|bytes| Summary::from_bytes(&bytes, file.file_bytes));
            let summary = summary.map_or_else(|| Summary::build(&file), Ok)?;
            let keys = (summary.first_key.clone(), summary.last_key.clone());
            let partition_count = statistics.stats.partition_bytes.count();
            return Ok(OpenedIndex { index: Index::Big(BigIndex { file, summary }), keys, partition_count });
        }
        let (partitions, rows) = (self.index(Component::Partitions)?, self.index(Component::Rows)?);
        let (footer, keys) = read_footer(&partitions)?;
        let partition_count = footer.key_count;
        Ok(OpenedIndex { index: Index::Tries { partitions, rows, footer }, keys, partition_count })
    }

    fn data(&self) -> Result<DataFile, SstableError> {
        let file = self.disk.open(&self.path(Component::Data), OpenMode::Read)?;
        match self.read(Component::CompressionInfo)? {
            Some(info) => DataFile::compressed(file, &self.path(Component::CompressionInfo), &info),
            None => {
                let crc = self.read(Component::Crc)?;
                DataFile::plain(file, &self.path(Component::Crc), crc.as_deref())
            }
        }
    }

    fn statistics(&self) -> Result<Statistics, SstableError> {
        let bytes = self.read(Component::Statistics)?;
        let bytes = bytes.ok_or_else(|| self.damaged(Component::Statistics, "it is missing"))?;
        Statistics::from_bytes(&self.path(Component::Statistics), self.descriptor.version, &bytes)
    }

    fn filter(&self) -> Result<Option<BloomFilter>, SstableError> {
        let bytes = self.read(Component::Filter)?.filter(|bytes| !bytes.is_empty());
        bytes.map(|bytes| BloomFilter::from_bytes(&self.path(Component::Filter), &bytes)).transpose()
    }

    /// Bytes of all files.
    fn disk_bytes(&self) -> Result<u64, SstableError> {
        let mut sum = 0;
        for component in Component::ALL {
            let entry = self.disk.metadata(&self.path(component))?;
            sum += entry.map_or(0, |entry| entry.file_bytes);
        }
        Ok(sum)
    }

    fn damaged(&self, component: Component, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.path(component), offset: 0, what }
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
        let checksums_path = descriptor.path(Component::Checksums);
        let checksums = match disk.exists(&checksums_path)? {
            true => Some(Checksums::from_bytes(&checksums_path, &disk.read(&checksums_path)?)?),
            false => None,
        };
        let opening = Opening { disk: &*disk, descriptor: &descriptor, checksums: checksums.as_ref() };
        let toc = opening.read(Component::Toc)?;
        let toc = toc.ok_or_else(|| opening.damaged(Component::Toc, "it is missing: an unfinished file"))?;
        for component in toc::from_text(&opening.path(Component::Toc), &toc)? {
            if !disk.exists(&opening.path(component))? {
                return Err(opening.damaged(component, "it is missing"));
            }
        }
        // No read needs the checksum of the whole of Data; damage is told all the same.
        opening.read(Component::Digest)?;
        let statistics = opening.statistics()?;
        let layout = statistics.header.layout(table, &opening.path(Component::Statistics))?;
        let data = opening.data()?;
        let OpenedIndex { index, keys, partition_count } = opening.open_index(&statistics)?;
        let pinned = match &index {
            Index::Tries { partitions, footer, .. } => Some(partitions.upper_levels(footer.keys_offset)?),
            Index::Big(_) => None,
        };
        let filter = opening.filter()?;
        let bytes = (data.uncompressed_bytes(), data.file_bytes(), opening.disk_bytes()?);
        let mean_partition_bytes = data.uncompressed_bytes() / partition_count.max(1);
        let summary = TableSummary::new(descriptor.id, keys, partition_count, &statistics, bytes);
        Ok(Arc::new(TableFile {
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            descriptor,
            summary,
            layout,
            mean_partition_bytes,
            filter,
            filter_use: FilterUse::default(),
            data,
            index,
            pinned,
            checksums,
            disk,
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
        &self.descriptor
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
            Index::Tries { partitions, rows, .. } => partitions.file_bytes / 1024 + rows.file_bytes / 1024,
            Index::Big(index) => index.file.file_bytes / 1024 + index.summary.memory_bytes(),
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
        let wanted = CompressionParameters::from_options(options, &self.descriptor.path(Component::Data));
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
        if self.descriptor.version.is_big() { Component::Index } else { Component::Partitions }
    }

    /// Length of a component that is read by chunks, uncompressed.
    pub(crate) fn component_bytes(&self, component: Component) -> u64 {
        match component {
            Component::Data => self.data.uncompressed_bytes(),
            other => self.index_file(other).map_or(0, |file| file.file_bytes),
        }
    }

    pub(crate) fn damaged(&self, component: Component, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.descriptor.path(component), offset, what }
    }

    pub(crate) fn data_file(&self) -> &DataFile {
        &self.data
    }

    pub(crate) fn checksums(&self) -> Option<&Checksums> {
        self.checksums.as_ref()
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }
}

/// Deletes all components of a table file, the list of components first.
///
/// # Errors
/// The disk fails.
pub fn delete_table_file(disk: &dyn Disk, descriptor: &Descriptor) -> Result<(), SstableError> {
    for component in Component::ALL {
        let path = descriptor.path(component);
        if disk.exists(&path)? {
            disk.remove_file(&path)?;
        }
    }
    Ok(disk.sync_dir(&descriptor.directory)?)
}
