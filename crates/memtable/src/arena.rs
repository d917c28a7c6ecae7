//! Memory for the keys and small rows of a memtable: they lie one behind the other in a few large regions.
//!
//! What comes with a write is copied here, so that the write's own memory is free again at once, for the next
//! one, while the processor still has it at hand. A key or row so needs no block of its own, none is freed one
//! by one when the memtable goes, and what the arena takes is known to the byte. Rows that are merged from
//! several lie on the heap: the next merge frees them.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use rows::{PartitionKey, Row};

/// The first region: most tables have no more than a few rows in memory.
const REGION_BYTES_MIN: usize = 1 << 10;
/// Regions grow up to this as the memtable does.
const REGION_BYTES_MAX: usize = 256 << 10;
const _: () = assert!(REGION_BYTES_MIN <= REGION_BYTES_MAX, "regions grow");

/// Regions, the last of them with room.
#[derive(Debug, Default)]
pub(super) struct Arena {
    room: BytesMut,
    /// By where they begin: how long they are, and a handle, so that their memory is not used for anything else.
    regions: BTreeMap<usize, (usize, BytesMut)>,
    memory_bytes: usize,
}

impl Arena {
    /// Bytes of all regions.
    #[inline]
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// A copy of a key.
    pub(super) fn key(&mut self, key: &PartitionKey) -> PartitionKey {
        let room = self.room_for(key.bytes.len());
        room.extend_from_slice(&key.bytes);
        PartitionKey { token: key.token, bytes: room.split().freeze() }
    }

    /// A copy of a small row, or a longer one beside the arena, and how many bytes it takes there: what an arena saves
    /// is blocks and not bytes, and what is overwritten in it is held until the flush. Where it came with little else,
    /// of `held_bytes` in all, a longer row stays in the memory it came with.
    pub(super) fn row(&mut self, row: &Row, held_bytes: usize) -> (Row, usize) {
        let bytes = row.as_encoded().len();
        match row.is_small() {
            true => (row.copy_into(self.room_for(bytes)), 0),
            false => (row.kept(held_bytes), bytes),
        }
    }

    /// Do these bytes lie here?
    pub(super) fn holds(&self, bytes: &Bytes) -> bool {
        let place = bytes.as_ptr() as usize;
        let before = self.regions.range(..=place).next_back();
        before.is_some_and(|(start, (length, _))| place - start < *length)
    }

    /// Memory that takes so many bytes more.
    fn room_for(&mut self, bytes: usize) -> &mut BytesMut {
        if bytes > self.room.capacity() {
            let next = self.memory_bytes.clamp(REGION_BYTES_MIN, REGION_BYTES_MAX);
            self.room = BytesMut::with_capacity(next.max(bytes));
            let length = self.room.capacity();
            let region = (length, self.room.split_to(0));
            let before = self.regions.insert(self.room.as_ptr() as usize, region);
            assert!(before.is_none(), "the memory of a region is held as long as the arena");
            self.memory_bytes += length;
        }
        assert!(self.room.capacity() >= bytes, "what is copied does not leave its region");
        &mut self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(bytes: usize) -> PartitionKey {
        PartitionKey::new(Bytes::from(vec![7; bytes]))
    }

    #[test]
    fn copies_are_equal_and_all_of_their_memory_is_counted() {
        let mut arena = Arena::default();
        let mut copied = 0;
        for length in (0..300).map(|index| index * 211 % 65_535) {
            let original = key(length);
            let copy = arena.key(&original);
            copied += length;
            assert_eq!(copy, original);
            assert!(length == 0 || arena.holds(&copy.bytes) && !arena.holds(&original.bytes), "{length}");
            assert!(arena.memory_bytes() >= copied);
        }
        assert_eq!(arena.memory_bytes(), arena.regions.values().map(|(length, _)| length).sum::<usize>());
    }

    #[test]
    fn small_keys_waste_no_more_than_a_region() {
        let mut arena = Arena::default();
        (0..100_000).for_each(|_| _ = arena.key(&key(20)));
        assert!(arena.memory_bytes() < 2_000_000 + 2 * REGION_BYTES_MAX, "{}", arena.memory_bytes());
        let mut arena = Arena::default();
        arena.key(&key(20));
        assert_eq!(arena.memory_bytes(), REGION_BYTES_MIN);
    }
}
