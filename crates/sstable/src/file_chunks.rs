//! The components of an open file that are read by chunks: Data and the index.

use components::{ComponentSet, CompressionParameters, DataFile, IndexFile, PAGE_BYTES};
use schema::CompressionOptions;

use crate::{Chunk, ChunkId, Component, Extent, SstableError};

/// The chunks of an open file: where they lie, and how they are read, verified and decompressed.
#[derive(Debug)]
pub struct FileChunks {
    data: DataFile,
    index: Index,
}

/// The components that partitions and rows are looked up in.
#[derive(Debug)]
enum Index {
    /// As in `da`.
    Tries { partitions: IndexFile, rows: IndexFile },
    /// As in `nb` and `oa`.
    Big(IndexFile),
}

impl FileChunks {
    pub(crate) fn open(components: &ComponentSet) -> Result<Self, SstableError> {
        let data = components.open_data()?;
        let index = if components.descriptor().version.is_big() {
            Index::Big(components.open_index(Component::Index)?)
        } else {
            let partitions = components.open_index(Component::Partitions)?;
            Index::Tries { partitions, rows: components.open_index(Component::Rows)? }
        };
        Ok(FileChunks { data, index })
    }

    /// Data, compressed or not.
    pub(crate) fn data(&self) -> &DataFile {
        &self.data
    }

    /// The component where partitions are looked up.
    pub(crate) fn partitions(&self) -> (Component, &IndexFile) {
        match &self.index {
            Index::Tries { partitions, .. } => (Component::Partitions, partitions),
            Index::Big(file) => (Component::Index, file),
        }
    }

    /// The components of the index.
    pub(crate) fn index_components(&self) -> &'static [Component] {
        match &self.index {
            Index::Tries { .. } => &[Component::Partitions, Component::Rows],
            Index::Big(_) => &[Component::Index],
        }
    }

    fn index_file(&self, component: Component) -> Option<&IndexFile> {
        match (&self.index, component) {
            (Index::Tries { partitions, .. }, Component::Partitions) => Some(partitions),
            (Index::Tries { rows, .. }, Component::Rows) => Some(rows),
            (Index::Big(file), Component::Index) => Some(file),
            _ => None,
        }
    }

    /// Length of a component, uncompressed; 0 for one that is not read by chunks.
    pub(crate) fn component_bytes(&self, component: Component) -> u64 {
        match component {
            Component::Data => self.data.uncompressed_bytes(),
            other => self.index_file(other).map_or(0, IndexFile::file_bytes),
        }
    }

    /// How many bytes a chunk of that component holds at most.
    pub(crate) fn chunk_bytes(&self, component: Component) -> usize {
        if component == Component::Data { self.data.chunk_bytes() as usize } else { PAGE_BYTES }
    }

    /// How many chunks a component has; none of one that is not read by chunks.
    pub(crate) fn count(&self, component: Component) -> u32 {
        match component {
            Component::Data => self.data.chunk_count(),
            other => self.index_file(other).map_or(0, IndexFile::page_count),
        }
    }

    /// Reads a chunk from the disk, verifies and decompresses it. Blocks.
    ///
    /// # Errors
    /// The disk fails, or the chunk is damaged.
    pub fn read_one(&self, id: ChunkId) -> Result<Chunk, SstableError> {
        let mut chunks = self.fetch(id, 1)?;
        chunks.pop().ok_or_else(|| self.data.damaged(0, "no such chunk"))
    }

    /// Reads up to `count` neighbouring chunks at once, at least one, for somebody who reads on and
    /// does not come back: the kernel need not keep them.
    ///
    /// # Errors
    /// As [`FileChunks::read_one`].
    pub fn read(&self, first: ChunkId, count: usize) -> Result<Vec<Chunk>, SstableError> {
        let chunks = self.fetch(first, count)?;
        let extent = self.extent(first, count)?;
        extent.file.is_done_with(extent.offset, extent.bytes as u64);
        Ok(chunks)
    }

    fn fetch(&self, first: ChunkId, count: usize) -> Result<Vec<Chunk>, SstableError> {
        match self.index_file(first.component) {
            Some(file) => file.read(first.index, count),
            None if first.component == Component::Data => self.data.read(first.index, count),
            None => Err(self.not_in_chunks()),
        }
    }

    /// Where up to `count` neighbouring chunks lie, at least one.
    pub(crate) fn extent(&self, first: ChunkId, count: usize) -> Result<Extent, SstableError> {
        match self.index_file(first.component) {
            Some(file) => file.extent(first.index, count),
            None if first.component == Component::Data => self.data.extent(first.index, count),
            None => Err(self.not_in_chunks()),
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

    fn not_in_chunks(&self) -> SstableError {
        self.data.damaged(0, "a component beside it is not read by chunks")
    }

    /// Would Data that is written by these options be compressed as it is? Options that nothing can be written
    /// by are no reason to write it anew.
    pub(crate) fn is_compressed_as(&self, options: &CompressionOptions) -> bool {
        let wanted = CompressionParameters::from_options(options, self.data.path());
        wanted.map_or(true, |wanted| wanted.as_ref() == self.data.parameters())
    }

    /// Options by which Data is written as it is here.
    pub(crate) fn compression(&self) -> CompressionOptions {
        let none = || CompressionOptions { class: None, ..CompressionOptions::default() };
        self.data.parameters().map_or_else(none, CompressionParameters::to_options)
    }

    /// Bytes of memory that the places of compressed chunks take; 0 when Data is not compressed.
    pub fn compression_metadata_bytes(&self) -> u64 {
        if self.data.is_compressed() { self.data.memory_bytes() } else { 0 }
    }

    /// Bytes of memory that places and checksums of chunks take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        // A checksum of four bytes for each page of 4 KiB.
        let checksums: u64 = match &self.index {
            Index::Tries { partitions, rows } => partitions.file_bytes() / 1024 + rows.file_bytes() / 1024,
            Index::Big(file) => file.file_bytes() / 1024,
        };
        checksums + self.data.memory_bytes()
    }
}
