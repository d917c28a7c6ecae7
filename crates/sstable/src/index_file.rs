//! Partitions.db, Rows.db or Index.db: read page by page, each page checked.

use std::sync::Arc;

use rows::PartitionKey;
use runtime::DiskFile;

use crate::checksums::{FileChecksums, PAGE_BYTES};
use crate::chunk::Fetch;
use crate::partition_index::{FOOTER_BYTES, Footer, read_keys};
use crate::{Chunk, Extent, SstableError};

/// One of so many pages of an index is pinned, at least one.
const PINNED_PART: u64 = 64;
/// Never more pages are pinned of one index: 1 MiB.
const PINNED_PAGE_COUNT_MAX: u64 = 256;

/// A component with an index, open for reading.
#[derive(Debug)]
pub(crate) struct IndexFile {
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) file_bytes: u64,
    pub(crate) checksums: Option<FileChecksums>,
}

impl IndexFile {
    /// Reads up to `count` neighbouring pages, at least one.
    pub(crate) fn read(&self, first: u32, count: usize, fetch: Fetch) -> Result<Vec<Chunk>, SstableError> {
        let extent = self.extent(first, count)?;
        let mut raw = vec![0; extent.bytes];
        fetch.read(&*self.file, &mut raw, extent.offset)?;
        self.decode(&extent, &raw)
    }

    /// Where up to `count` neighbouring pages lie, at least one.
    pub(crate) fn extent(&self, first: u32, count: usize) -> Result<Extent, SstableError> {
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
    pub(crate) fn decode(&self, extent: &Extent, raw: &[u8]) -> Result<Vec<Chunk>, SstableError> {
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
    pub(crate) fn upper_levels(&self, end: u64) -> Result<Pinned, SstableError> {
        let page_count = end.div_ceil(PAGE_BYTES as u64).max(1);
        let count = (page_count / PINNED_PART).clamp(1, PINNED_PAGE_COUNT_MAX);
        let first = (page_count - count.min(page_count)) as u32;
        Ok(Pinned { first, pages: self.read(first, count as usize, Fetch::Blocking)? })
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.file.path().to_owned(), offset, what }
    }
}

/// Neighbouring pages that are held as long as their file is open.
#[derive(Debug)]
pub(crate) struct Pinned {
    first: u32,
    pages: Vec<Chunk>,
}

impl Pinned {
    /// The number of the first.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// The page, if it is one of them.
    pub(crate) fn page(&self, index: u32) -> Option<&Chunk> {
        self.pages.get(index.checked_sub(self.first)? as usize)
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes_of = |page: &Chunk| (page.len() + size_of::<Chunk>()) as u64;
        self.pages.iter().map(bytes_of).sum()
    }
}

/// Reads the footer of Partitions.db, and the first and last keys.
pub(crate) fn read_footer(file: &IndexFile) -> Result<(Footer, (PartitionKey, PartitionKey)), SstableError> {
    let damaged = |offset, what| file.damaged(offset, what);
    let start = file.file_bytes.checked_sub(FOOTER_BYTES).ok_or_else(|| damaged(0, "no footer"))?;
    let bytes = read_verified(file, start, file.file_bytes)?;
    let footer = Footer::read(&bytes, file.file_bytes).ok_or_else(|| damaged(start, "footer"))?;
    // Two keys of at most 65,535 bytes each.
    if start - footer.keys_offset > 2 * (2 + u64::from(u16::MAX)) {
        return Err(damaged(start, "place of the first and last key"));
    }
    let bytes = read_verified(file, footer.keys_offset, start)?;
    let (first, last) = read_keys(&bytes)
        .map_err(|end| damaged(footer.keys_offset + end.offset as u64, "first and last key"))?;
    let keys = (PartitionKey::new(first), PartitionKey::new(last));
    if keys.0 > keys.1 {
        return Err(damaged(footer.keys_offset, "the first key is behind the last"));
    }
    Ok((footer, keys))
}

/// Reads bytes from `start` to `end` through whole pages, so that they are verified.
fn read_verified(file: &IndexFile, start: u64, end: u64) -> Result<Vec<u8>, SstableError> {
    let page_bytes = PAGE_BYTES as u64;
    let first = start / page_bytes;
    let count = end.div_ceil(page_bytes).saturating_sub(first).max(1);
    let pages = file.read(first as u32, count as usize, Fetch::Blocking)?;
    let bytes: Vec<u8> = pages.iter().flat_map(|page| page.as_slice()).copied().collect();
    let from = (start - first * page_bytes) as usize;
    Ok(bytes.get(from..from + (end - start) as usize).unwrap_or_default().to_vec())
}
