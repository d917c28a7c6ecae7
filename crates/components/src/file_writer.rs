//! Appends to one component, and keeps the checksums of what went by.

use std::path::PathBuf;
use std::sync::Arc;

use runtime::{Disk, DiskFile, OpenMode};
use trie::PageFile;

use crate::SstableError;
use crate::checksums::{FileChecksums, PAGE_BYTES};

/// Bytes gathered before they are handed to the disk.
const BUFFER_BYTES: usize = 256 * 1024;
const _: () = assert!(BUFFER_BYTES > PAGE_BYTES, "what is handed out has whole pages in it");

/// A component while it is written.
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Bytes handed to the disk.
    flushed_bytes: u64,
    /// Bytes of the buffer that are in `page`.
    hashed_bytes: usize,
    page: crc32fast::Hasher,
    page_fill: usize,
    pages: Vec<u32>,
    keeps_pages: bool,
}

impl FileWriter {
    /// Creates the file. `keeps_pages`: checksums of its pages are wanted.
    ///
    /// # Errors
    /// It is there already, or the disk fails.
    pub fn create(disk: &dyn Disk, path: PathBuf, keeps_pages: bool) -> Result<Self, SstableError> {
        let file = disk.open(&path, OpenMode::CreateNew)?;
        Ok(FileWriter {
            path,
            file,
            buffer: Vec::new(),
            flushed_bytes: 0,
            hashed_bytes: 0,
            page: crc32fast::Hasher::new(),
            page_fill: 0,
            pages: Vec::new(),
            keeps_pages,
        })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk fails.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), SstableError> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), SstableError> {
        self.hash();
        self.file.write_all_at(&self.buffer, self.flushed_bytes)?;
        self.flushed_bytes += self.buffer.len() as u64;
        self.buffer.clear();
        self.hashed_bytes = 0;
        Ok(())
    }

    fn hash(&mut self) {
        if !self.keeps_pages {
            return;
        }
        assert!(self.hashed_bytes <= self.buffer.len(), "what is in a checksum is not taken back");
        let mut rest = &self.buffer[self.hashed_bytes..];
        while !rest.is_empty() {
            let (head, tail) = rest.split_at(rest.len().min(PAGE_BYTES - self.page_fill));
            self.page.update(head);
            self.page_fill += head.len();
            if self.page_fill == PAGE_BYTES {
                self.pages.push(std::mem::take(&mut self.page).finalize());
                self.page_fill = 0;
            }
            rest = tail;
        }
        self.hashed_bytes = self.buffer.len();
    }

    /// Writes what is left and makes it durable.
    ///
    /// # Errors
    /// The disk fails.
    pub fn finish(mut self) -> Result<FileChecksums, SstableError> {
        self.flush()?;
        if self.page_fill > 0 {
            self.pages.push(std::mem::take(&mut self.page).finalize());
        }
        let page_count = self.flushed_bytes.div_ceil(PAGE_BYTES as u64);
        assert!(!self.keeps_pages || self.pages.len() as u64 == page_count, "every page has a checksum");
        self.file.sync_data()?;
        // It is read past the page cache.
        self.file.is_done_with(0, self.flushed_bytes);
        Ok(FileChecksums { file_bytes: self.flushed_bytes, pages: self.pages })
    }

    /// Where it is written.
    pub(crate) fn path(&self) -> &PathBuf {
        &self.path
    }
}

impl PageFile for FileWriter {
    type Error = SstableError;

    #[inline]
    fn position(&self) -> u64 {
        self.flushed_bytes + self.buffer.len() as u64
    }

    fn write_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), SstableError> {
        write(&mut self.buffer);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn keys_do_not_rise(&self) -> SstableError {
        SstableError::Misuse { path: self.path.clone(), what: "index keys do not rise" }
    }
}
