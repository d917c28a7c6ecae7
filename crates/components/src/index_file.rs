//! Partitions.db, Rows.db or Index.db: read page by page, each page checked.

use std::sync::Arc;

use runtime::DiskFile;

use crate::checksums::{FileChecksums, PAGE_BYTES};
use crate::{Chunk, Extent, SstableError};

/// One of so many pages of an index is pinned, at least one.
const PINNED_PART: u64 = 64;
/// Never more pages are pinned of one index: 1 MiB.
const PINNED_PAGE_COUNT_MAX: u64 = 256;

/// A component with an index, open for reading.
#[derive(Debug)]
pub struct IndexFile {
    file: Arc<dyn DiskFile>,
    file_bytes: u64,
    checksums: Option<FileChecksums>,
}

impl IndexFile {
    pub(crate) fn new(file: Arc<dyn DiskFile>, file_bytes: u64, checksums: Option<FileChecksums>) -> Self {
        IndexFile { file, file_bytes, checksums }
    }

    /// How many bytes it has.
    #[inline]
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// How many pages it has.
    pub fn page_count(&self) -> u32 {
        u32::try_from(self.file_bytes.div_ceil(PAGE_BYTES as u64)).unwrap_or(u32::MAX)
    }

    /// Reads up to `count` neighbouring pages, at least one.
    ///
    /// # Errors
    /// There are none, the disk fails, or a page is damaged.
    pub fn read(&self, first: u32, count: usize) -> Result<Vec<Chunk>, SstableError> {
        let extent = self.extent(first, count)?;
        let mut raw = vec![0; extent.bytes];
        self.file.read_exact_at(&mut raw, extent.offset)?;
        self.decode(&extent, &raw)
    }

    /// Where up to `count` neighbouring pages lie, at least one.
    ///
    /// # Errors
    /// There are none.
    pub fn extent(&self, first: u32, count: usize) -> Result<Extent, SstableError> {
        let offset = u64::from(first) * PAGE_BYTES as u64;
        let wanted = (count.max(1) as u64).saturating_mul(PAGE_BYTES as u64);
        let bytes = self.file_bytes.saturating_sub(offset).min(wanted) as usize;
        if bytes == 0 {
            return Err(self.damaged(offset, "a place beyond the end"));
        }
        let count = bytes.div_ceil(PAGE_BYTES);
        Ok(Extent { file: Arc::clone(&self.file), offset, bytes, first, count })
    }

    /// Verifies the pages of an extent.
    ///
    /// # Errors
    /// One of them is damaged.
    pub fn decode(&self, extent: &Extent, raw: &[u8]) -> Result<Vec<Chunk>, SstableError> {
        if raw.len() != extent.bytes {
            return Err(self.damaged(extent.offset, "a page is cut off"));
        }
        let pages = (extent.first..).zip(raw.chunks(PAGE_BYTES)).map(|(index, page)| {
            if let Some(checksums) = &self.checksums {
                checksums.check_page(self.file.path(), index, page)?;
            }
            Ok(Chunk::from(page.to_vec()))
        });
        pages.collect()
    }

    /// Reads the pages that end at an offset and are the upper levels of the trie before it, to be held
    /// as long as the file is open. Nodes are written children first, so the paths to all leaves begin
    /// in the last pages; that many pages hold two levels of 256 children and more.
    ///
    /// # Errors
    /// As [`IndexFile::read`].
    pub fn upper_levels(&self, end: u64) -> Result<Pinned, SstableError> {
        let page_count = end.div_ceil(PAGE_BYTES as u64).max(1);
        let count = (page_count / PINNED_PART).clamp(1, PINNED_PAGE_COUNT_MAX);
        let first = (page_count - count.min(page_count)) as u32;
        Ok(Pinned { first, pages: self.read(first, count as usize)? })
    }

    /// Reads bytes from `start` to `end` through whole pages, so that they are verified.
    ///
    /// # Errors
    /// As [`IndexFile::read`].
    pub fn read_verified(&self, start: u64, end: u64) -> Result<Vec<u8>, SstableError> {
        let page_bytes = PAGE_BYTES as u64;
        let first = start / page_bytes;
        let count = end.div_ceil(page_bytes).saturating_sub(first).max(1);
        let pages = self.read(first as u32, count as usize)?;
        let bytes: Vec<u8> = pages.iter().flat_map(|page| page.as_slice()).copied().collect();
        let from = (start - first * page_bytes) as usize;
        Ok(bytes.get(from..from + (end - start) as usize).unwrap_or_default().to_vec())
    }

    /// The error for bytes that do not say what they should.
    pub fn damaged(&self, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.file.path().to_owned(), offset, what }
    }
}

/// Neighbouring pages that are held as long as their file is open.
#[derive(Debug)]
pub struct Pinned {
    first: u32,
    pages: Vec<Chunk>,
}

impl Pinned {
    /// The number of the first.
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The page, if it is one of them.
    #[inline]
    pub fn page(&self, index: u32) -> Option<&Chunk> {
        self.pages.get(index.checked_sub(self.first)? as usize)
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        let bytes_of = |page: &Chunk| (page.len() + size_of::<Chunk>()) as u64;
        self.pages.iter().map(bytes_of).sum()
    }
}
