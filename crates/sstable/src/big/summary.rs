//! Summary.db: some keys of Index.db, each with its place there.
//!
//! ```text
//!   u32 least interval | u32 count | u64 bytes of offsets and entries | u32 sampling level
//!   | u32 count at full sampling | u32 LE offset of each entry, from the first offset
//!   | entries: key, u64 LE place in Index | u32 first key bytes, first key | u32 bytes, last key
//! ```
//!
//! It can be made anew from Index at any time. Cassandra keeps no checksum of it, so one that makes
//! no sense is passed over and made anew; what it says of a place is checked there.

use bytes::Bytes;
use rows::{PartitionKey, RingPlace};
use stdx::cursor::{Cursor, EndOfInput};

use super::read_entry;
use crate::SstableError;
use components::IndexFile;

/// Cassandra's default: so many keys of Index for one of Summary.
const INTERVAL: usize = 128;
/// Pages of Index read at once.
const RUN_PAGE_COUNT: usize = 64;

/// Some keys of Index, held in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Keys in ring order with rising places; the first is that of the first partition.
    entries: Vec<(PartitionKey, u64)>,
    pub(crate) first_key: PartitionKey,
    pub(crate) last_key: PartitionKey,
}

impl Summary {
    /// Reads Summary.db; `None` when it does not fit an index of that length.
    pub(crate) fn from_bytes(bytes: &[u8], index_bytes: u64) -> Option<Self> {
        let summary = Self::parse(bytes).ok()??;
        let places = summary.entries.iter().map(|(_, place)| *place);
        let is_sound = summary.entries.first()? == &(summary.first_key.clone(), 0)
            && summary.entries.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1)
            && places.last()? < index_bytes
            && summary.entries.last()?.0 <= summary.last_key;
        is_sound.then_some(summary)
    }

    fn parse(bytes: &[u8]) -> Result<Option<Self>, EndOfInput> {
        let mut input = Cursor::new(bytes);
        input.u32()?;
        let count = input.u32()? as usize;
        let body_bytes = usize::try_from(input.u64()?).unwrap_or(usize::MAX);
        input.skip(8)?;
        let body = input.take(body_bytes)?;
        let Some(offsets) = count.checked_mul(4).and_then(|bytes| body.get(..bytes)) else { return Ok(None) };
        let offsets: Vec<usize> =
            offsets.as_chunks::<4>().0.iter().map(|offset| u32::from_le_bytes(*offset) as usize).collect();
        let mut entries = Vec::with_capacity(offsets.len());
        for (index, start) in offsets.iter().enumerate() {
            let end = offsets.get(index + 1).copied().unwrap_or(body.len());
            let Some((key, place)) = body.get(*start..end).and_then(|entry| entry.split_last_chunk::<8>())
            else {
                return Ok(None);
            };
            entries.push((PartitionKey::new(Bytes::copy_from_slice(key)), u64::from_le_bytes(*place)));
        }
        let mut key = || -> Result<PartitionKey, EndOfInput> {
            let length = input.u32()? as usize;
            Ok(PartitionKey::new(Bytes::copy_from_slice(input.take(length)?)))
        };
        let (first_key, last_key) = (key()?, key()?);
        Ok(Some(Summary { entries, first_key, last_key }))
    }

    /// Makes it from the whole of Index. Blocks.
    pub(crate) fn build(file: &IndexFile) -> Result<Self, SstableError> {
        let mut reader = Reader { file, bytes: Vec::new(), start: 0, next_page: 0 };
        let mut entries: Vec<(PartitionKey, u64)> = Vec::new();
        let mut last: Option<PartitionKey> = None;
        let mut place = 0;
        let mut index = 0;
        while place < file.file_bytes() {
            let (key, entry_bytes) = reader.entry(place)?;
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(file.damaged(place, "partition keys do not rise"));
            }
            if index % INTERVAL == 0 {
                entries.push((key.clone(), place));
            }
            last = Some(key);
            index += 1;
            place = place.saturating_add(entry_bytes);
        }
        if place != file.file_bytes() {
            return Err(file.damaged(place, "an entry reaches beyond the end of the file"));
        }
        match (entries.first(), last) {
            (Some((first, _)), Some(last_key)) => Ok(Summary { first_key: first.clone(), entries, last_key }),
            _ => Err(file.damaged(0, "an index without partitions")),
        }
    }

    /// The last sampled key not behind a place on the ring, with its place in Index.
    pub(crate) fn floor(&self, place: &RingPlace) -> (&PartitionKey, u64) {
        let behind = self.entries.partition_point(|(key, _)| !place.is_before(key));
        let (key, position) = &self.entries[behind.saturating_sub(1)];
        (key, *position)
    }

    /// Bytes it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let bytes = |(key, _): &(PartitionKey, u64)| {
            (key.bytes.len() + std::mem::size_of::<(PartitionKey, u64)>()) as u64
        };
        self.entries.iter().map(bytes).sum()
    }
}

/// Reads Index from its start to its end.
struct Reader<'a> {
    file: &'a IndexFile,
    /// Bytes of the file from `start` on.
    bytes: Vec<u8>,
    start: u64,
    next_page: u32,
}

impl Reader<'_> {
    /// Key and length of the entry at a place.
    fn entry(&mut self, place: u64) -> Result<(PartitionKey, u64), SstableError> {
        loop {
            let skipped = place - self.start;
            if let Ok(skipped) = usize::try_from(skipped)
                && let Some(rest) = self.bytes.get(skipped..)
                && let Ok(entry) = read_entry(rest)
            {
                let key = PartitionKey::new(Bytes::copy_from_slice(entry.key));
                return Ok((key, entry.entry_bytes()));
            }
            self.more(place)?;
        }
    }

    /// Drops what is before a place and reads on.
    fn more(&mut self, place: u64) -> Result<(), SstableError> {
        let page_bytes = components::PAGE_BYTES as u64;
        let end = self.start + self.bytes.len() as u64;
        if place >= end {
            self.bytes.clear();
            self.next_page = u32::try_from(place / page_bytes).unwrap_or(u32::MAX);
            self.start = u64::from(self.next_page) * page_bytes;
        } else {
            self.bytes.drain(..(place - self.start) as usize);
            self.start = place;
        }
        if u64::from(self.next_page) * page_bytes >= self.file.file_bytes() {
            return Err(self.file.damaged(place, "an entry reaches beyond the end of the file"));
        }
        let pages = self.file.read(self.next_page, RUN_PAGE_COUNT)?;
        self.next_page = self.next_page.saturating_add(pages.len() as u32);
        pages.iter().for_each(|page| self.bytes.extend_from_slice(page.as_slice()));
        Ok(())
    }
}
