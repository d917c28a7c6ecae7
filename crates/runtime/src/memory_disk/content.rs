//! A file's bytes, twice: as written and as synced, in pages shared until they differ.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::toss;
use crate::random::{Random, SeededRandom};

const PAGE_BYTES: u64 = 4096;
/// What a medium writes whole or not at all.
const SECTOR_BYTES: usize = 512;

type Page = Arc<[u8; PAGE_BYTES as usize]>;

/// Sparse bytes: a page that is not there reads as zeros. Invariant: bytes past `file_bytes` are zero.
#[derive(Clone, Default)]
struct Content {
    file_bytes: u64,
    pages: BTreeMap<u64, Page>,
}

/// One file.
#[derive(Clone, Default)]
pub(super) struct FileState {
    written: Content,
    synced: Content,
    /// Pages that the next sync makes durable.
    dirty: BTreeSet<u64>,
    /// Pages whose sync failed: seen by readers, on the medium or not, and no sync helps.
    lost: BTreeSet<u64>,
}

impl FileState {
    pub(super) fn len(&self) -> u64 {
        self.written.file_bytes
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let available = self.len().saturating_sub(offset);
        let wanted = (buffer.len() as u64).min(available) as usize;
        for_each_page(offset, wanted, |page_index, in_page, in_buffer, part_bytes| {
            let target = &mut buffer[in_buffer..in_buffer + part_bytes];
            match self.written.pages.get(&page_index) {
                Some(page) => target.copy_from_slice(&page[in_page..in_page + part_bytes]),
                None => target.fill(0),
            }
        });
        wanted
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        for_each_page(offset, bytes.len(), |page_index, in_page, in_bytes, part_bytes| {
            let page = Arc::make_mut(self.written.pages.entry(page_index).or_insert_with(zero_page));
            page[in_page..in_page + part_bytes].copy_from_slice(&bytes[in_bytes..in_bytes + part_bytes]);
            self.dirty.insert(page_index);
            self.lost.remove(&page_index);
        });
        self.written.file_bytes = self.written.file_bytes.max(offset + bytes.len() as u64);
    }

    pub(super) fn set_len(&mut self, file_bytes: u64) {
        if file_bytes < self.written.file_bytes {
            let cut = self.written.cut(file_bytes);
            self.dirty.extend(cut);
        }
        self.written.file_bytes = file_bytes;
    }

    pub(super) fn flip(&mut self, offset: u64, mask: u8) -> bool {
        if offset >= self.len() {
            return false;
        }
        let in_page = (offset % PAGE_BYTES) as usize;
        for content in [&mut self.written, &mut self.synced] {
            let page = content.pages.entry(offset / PAGE_BYTES).or_insert_with(zero_page);
            Arc::make_mut(page)[in_page] ^= mask;
        }
        true
    }

    pub(super) fn sync(&mut self) {
        for page_index in std::mem::take(&mut self.dirty) {
            match self.written.pages.get(&page_index) {
                Some(page) => _ = self.synced.pages.insert(page_index, Arc::clone(page)),
                None => _ = self.synced.pages.remove(&page_index),
            }
        }
        self.synced.file_bytes = self.written.file_bytes;
    }

    pub(super) fn fail_sync(&mut self) {
        self.lost.append(&mut self.dirty);
    }

    /// What a power cut leaves, as a fresh file.
    pub(super) fn crash(&self, random: &SeededRandom) -> FileState {
        let mut left = self.synced.clone();
        left.file_bytes = self.crash_len(random);
        let unsynced: BTreeSet<u64> = self.dirty.union(&self.lost).copied().collect();
        // A quarter each: nothing and everything arrived; else sector by sector.
        let luck = random.below(4);
        for page_index in unsynced {
            let new = self.written.pages.get(&page_index);
            let page = Arc::make_mut(left.pages.entry(page_index).or_insert_with(zero_page));
            for sector in 0..PAGE_BYTES as usize / SECTOR_BYTES {
                let arrived = match luck {
                    0 => false,
                    1 => true,
                    _ => toss(random),
                };
                if arrived {
                    let range = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                    match new {
                        Some(new) => page[range.clone()].copy_from_slice(&new[range]),
                        None => page[range].fill(0),
                    }
                }
            }
        }
        let file_bytes = left.file_bytes;
        left.cut(file_bytes);
        FileState { written: left.clone(), synced: left, ..FileState::default() }
    }

    fn crash_len(&self, random: &SeededRandom) -> u64 {
        let (old, new) = (self.synced.file_bytes, self.written.file_bytes);
        let (low, high) = (old.min(new), old.max(new));
        match random.below(3) {
            0 => old,
            1 => new,
            _ => {
                let between = low + random.below(high - low + 1);
                (between - between % SECTOR_BYTES as u64).max(low)
            }
        }
    }
}

impl Content {
    /// Removes what lies past `file_bytes`; gives the pages that changed.
    fn cut(&mut self, file_bytes: u64) -> Vec<u64> {
        let first_whole = file_bytes.div_ceil(PAGE_BYTES);
        let mut changed: Vec<u64> = self.pages.split_off(&first_whole).into_keys().collect();
        let kept = (file_bytes % PAGE_BYTES) as usize;
        if kept > 0
            && let Some(page) = self.pages.get_mut(&(file_bytes / PAGE_BYTES))
            && page[kept..].iter().any(|byte| *byte != 0)
        {
            Arc::make_mut(page)[kept..].fill(0);
            changed.push(file_bytes / PAGE_BYTES);
        }
        changed
    }
}

fn zero_page() -> Page {
    Arc::new([0; PAGE_BYTES as usize])
}

/// Calls `part(page_index, offset in page, offset in buffer, length)` for each page touched.
fn for_each_page(offset: u64, total_bytes: usize, mut part: impl FnMut(u64, usize, usize, usize)) {
    let mut done = 0;
    while done < total_bytes {
        let at = offset + done as u64;
        let in_page = (at % PAGE_BYTES) as usize;
        let part_bytes = (PAGE_BYTES as usize - in_page).min(total_bytes - done);
        part(at / PAGE_BYTES, in_page, done, part_bytes);
        done += part_bytes;
    }
}
