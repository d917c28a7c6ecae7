//! Partitions.db, Rows.db or Index.db: read page by page, each page checked.

use std::sync::Arc;

use rows::PartitionKey;
use runtime::DiskFile;

use crate::checksums::{FileChecksums, PAGE_BYTES};
use crate::chunk::Fetch;
use crate::partition_index::{FOOTER_BYTES, Footer, read_keys};
use crate::{Chunk, SstableError};

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
        let start = u64::from(first) * PAGE_BYTES as u64;
        let bytes = self.file_bytes.saturating_sub(start).min(count.max(1) as u64 * PAGE_BYTES as u64);
        if bytes == 0 {
            return Err(self.damaged(start, "a place beyond the end"));
        }
        let mut raw = vec![0; bytes as usize];
        fetch.read(&*self.file, &mut raw, start)?;
        let pages = (first..).zip(raw.chunks(PAGE_BYTES)).map(|(index, page)| {
            if let Some(checksums) = &self.checksums {
                checksums.check_page(self.file.path(), index, page)?;
            }
            Ok(Chunk::new(page.to_vec()))
        });
        pages.collect()
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> SstableError {
        SstableError::Damaged { path: self.file.path().to_owned(), offset, what }
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
