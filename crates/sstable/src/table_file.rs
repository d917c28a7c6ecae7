//! An open table file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use components::{ComponentSet, PAGE_BYTES};
use rows::{PartitionKey, RingRange, Slices};
use runtime::Disk;
use schema::{CompressionOptions, Table};

use crate::big::Summary;
use crate::bloom::KeyHash;
use crate::cursor::{FileCursor, SingleRowScan};
use crate::data::Layout;
use crate::finder::{Contents, Finder};
use crate::statistics::Statistics;
use crate::{
    Chunk, ChunkId, ChunkSource, Component, Descriptor, FileChunks, Filter, KeptChunks, PartitionSearch,
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
    chunks: FileChunks,
    finder: Finder,
    /// Of a file just written, until somebody takes it.
    kept: Mutex<KeptChunks>,
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
        let chunks = FileChunks::open(&components)?;
        let (finder, contents) = Finder::open(&components, &chunks, &statistics)?;
        let Contents { keys, partition_count } = contents;
        let data = chunks.data();
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
            chunks,
            finder,
            kept: Mutex::default(),
        }))
    }

    /// Takes what the writer of this file kept, adds pages of the index for which there still is room, and
    /// holds all of it for [`TableFile::take_kept`]. Blocks.
    ///
    /// # Errors
    /// As [`FileChunks::read_one`].
    pub fn keep(&self, mut kept: KeptChunks) -> Result<(), SstableError> {
        for &component in self.index_components() {
            let page_count = self.chunk_count(component);
            let mut index = 0;
            while index < page_count && kept.room_bytes() >= PAGE_BYTES {
                let first = ChunkId { file: self.number, component, index };
                let count = KEPT_PAGES_AT_ONCE.min((page_count - index) as usize);
                for page in self.chunks.read(first, count)? {
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
        if self.spans(key) {
            self.finder.filter().fetch(hash);
        }
    }

    /// Is the key between the first and the last?
    fn spans(&self, key: &PartitionKey) -> bool {
        (&self.summary.first_key..=&self.summary.last_key).contains(&key)
    }

    /// May the partition be in it? Asks key range and filter; no means no.
    /// `hash` is the key's, made once for all files that are asked.
    pub fn may_contain(&self, key: &PartitionKey, hash: KeyHash) -> bool {
        self.spans(key) && self.finder.filter().may_contain(hash)
    }

    /// Its filter, and how that was right.
    #[inline]
    pub fn filter(&self) -> &Filter {
        self.finder.filter()
    }

    /// Its chunks, on the disk.
    #[inline]
    pub fn chunks(&self) -> &FileChunks {
        &self.chunks
    }

    /// What is held of it to find partitions.
    #[inline]
    pub(crate) fn finder(&self) -> &Finder {
        &self.finder
    }

    /// Bytes of memory that the samples of an index take; only files of the format big have one.
    pub fn index_summary_bytes(&self) -> u64 {
        self.finder.summary().map_or(0, Summary::memory_bytes)
    }

    /// Bytes of memory that its filter, offsets, checksums and the upper levels of its index take.
    pub fn memory_bytes(&self) -> u64 {
        self.finder.memory_bytes() + self.chunks.memory_bytes()
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
        self.chunks.chunk_bytes(component)
    }

    /// Would Data that is written by these options be compressed as it is? Options that nothing can be written
    /// by are no reason to write it anew.
    pub fn is_compressed_as(&self, options: &CompressionOptions) -> bool {
        self.chunks.is_compressed_as(options)
    }

    /// Options by which Data is written as it is here.
    pub fn compression(&self) -> CompressionOptions {
        self.chunks.compression()
    }

    /// The components of its index that are read by chunks.
    pub fn index_components(&self) -> &'static [Component] {
        self.chunks.index_components()
    }

    /// How many chunks a component has, from the first on, that are not always in memory; none of one that
    /// is not read by chunks.
    pub fn chunk_count(&self, component: Component) -> u32 {
        self.finder.unpinned_count(component, self.chunks.count(component))
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn damaged(&self, component: Component, offset: u64, what: &'static str) -> SstableError {
        self.components.damaged(component, offset, what)
    }

    pub(crate) fn components(&self) -> &ComponentSet {
        &self.components
    }
}
