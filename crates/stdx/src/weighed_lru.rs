//! A map that keeps what was used most recently, up to a number of bytes.

use std::hash::{BuildHasher, Hash};

use lru::LruCache;

/// Keeps values by key, as long as all together are no more than so many bytes; who keeps one says how many it has.
/// The least recently used goes first.
#[derive(Debug)]
pub struct WeighedLru<K: Hash + Eq, V, S: BuildHasher> {
    /// Each with its bytes.
    entries: LruCache<K, (V, usize), S>,
    /// Sum over `entries`. Invariant: `bytes <= bytes_max`.
    bytes: usize,
    bytes_max: usize,
    evicted_count: u64,
}

impl<K: Hash + Eq, V, S: BuildHasher + Default> WeighedLru<K, V, S> {
    /// What an entry has beside its value: two links, a place in the table that is a quarter empty, the block's head.
    const ENTRY_BYTES: usize = size_of::<K>() + size_of::<(V, usize)>() + 64;

    /// An empty map of at most so many bytes.
    pub fn new(bytes_max: usize) -> Self {
        let entries = LruCache::unbounded_with_hasher(S::default());
        WeighedLru { entries, bytes: 0, bytes_max, evicted_count: 0 }
    }

    /// The value of a key, which counts as a use.
    pub fn get(&mut self, key: &K) -> Option<&V> {
        // The one that was used last stays where it is: most clients ask for one many times in a row.
        let is_latest = self.entries.peek_mru().is_some_and(|(latest, _)| latest == key);
        let entry =
            if is_latest { self.entries.peek_mru().map(|(_, entry)| entry) } else { self.entries.get(key) };
        entry.map(|(value, _)| value)
    }

    /// Keeps a value that has so many bytes beside itself, in the place of an earlier one of that key. Those that were
    /// not used for longest make room; a value that is too large for all of the room is not kept.
    pub fn put(&mut self, key: K, value: V, value_bytes: usize) {
        let bytes = value_bytes.saturating_add(Self::ENTRY_BYTES);
        if bytes > self.bytes_max {
            self.remove(&key);
            self.evicted_count += 1;
            return;
        }
        self.bytes += bytes;
        if let Some((_, replaced_bytes)) = self.entries.put(key, (value, bytes)) {
            self.bytes -= replaced_bytes;
        }
        while self.bytes > self.bytes_max {
            let (_, (_, evicted_bytes)) = self.entries.pop_lru().expect("what has bytes is an entry");
            self.bytes -= evicted_bytes;
            self.evicted_count += 1;
        }
    }

    /// Forgets a value.
    pub fn remove(&mut self, key: &K) {
        if let Some((_, bytes)) = self.entries.pop(key) {
            self.bytes -= bytes;
        }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many values did not stay, or not even begin to, because there was no room.
    pub fn evicted_count(&self) -> u64 {
        self.evicted_count
    }
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use super::*;

    const ENTRY_BYTES: usize = WeighedLru::<u32, char, RandomState>::ENTRY_BYTES;

    #[test]
    fn the_least_recently_used_makes_room() {
        let mut map = WeighedLru::<u32, char, RandomState>::new(3 * (ENTRY_BYTES + 100));
        (0..3).for_each(|key| map.put(key, 'a', 100));
        assert_eq!(map.get(&0), Some(&'a'));
        map.put(3, 'b', 100);
        let kept: Vec<_> =
            (0..4).filter_map(|key| map.get(&key).copied().map(|value| (key, value))).collect();
        assert_eq!(kept, [(0, 'a'), (2, 'a'), (3, 'b')]);
        assert_eq!((map.count(), map.bytes(), map.evicted_count()), (3, 3 * (ENTRY_BYTES + 100), 1));
        map.put(4, 'c', 2 * ENTRY_BYTES + 300);
        assert_eq!(map.get(&4), Some(&'c'));
        assert_eq!((map.count(), map.evicted_count()), (1, 4));
    }

    #[test]
    fn what_replaces_or_does_not_fit_leaves_no_bytes_behind() {
        let mut map = WeighedLru::<u32, char, RandomState>::new(1000);
        map.put(0, 'a', 100);
        map.put(0, 'b', 50);
        assert_eq!(map.get(&0), Some(&'b'));
        assert_eq!(map.bytes(), ENTRY_BYTES + 50);
        map.put(0, 'c', 1000);
        assert_eq!(map.get(&0), None);
        assert_eq!((map.bytes(), map.evicted_count()), (0, 1));
        map.put(1, 'd', 0);
        map.remove(&1);
        assert_eq!((map.count(), map.bytes(), map.evicted_count()), (0, 0, 1));
    }
}
