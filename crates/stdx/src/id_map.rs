//! Maps by ids that are as good as random: an MD5, a UUID.
//!
//! The standard hasher defends against keys that an attacker chose to collide, and costs more than
//! the rest of a look-up. Ids made by this program need no such defence.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map whose keys are ids of this program's making.
pub type IdMap<Id, T> = HashMap<Id, T, IdHash>;

/// How it hashes.
pub type IdHash = BuildHasherDefault<IdHasher>;

/// Hashes an id by taking eight of its bytes and spreading them.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdHasher(u64);

/// 2^64 over the golden ratio: spreads neighbours far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk::<8>() {
            self.0 = (self.0 ^ u64::from_ne_bytes(*first)).wrapping_mul(SPREAD);
        }
    }

    // Lengths of ids do not differ.
    fn write_usize(&mut self, _length: usize) {}

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_a_little_are_told_apart() {
        let mut map: IdMap<[u8; 16], usize> = IdMap::default();
        let id = |number: usize| {
            let mut id = [7; 16];
            id[..8].copy_from_slice(&number.to_be_bytes());
            id
        };
        for number in 0..1000 {
            map.insert(id(number), number);
        }
        assert!((0..1000).all(|number| map.get(&id(number)) == Some(&number)));
    }
}
