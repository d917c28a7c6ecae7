//! Tries written and read again, at the edges of pages and of pointers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::*;

struct Number(u64);

impl Payload for Number {
    fn flags(&self) -> u8 {
        signed_bytes(self.0 as i64) as u8
    }

    fn bytes(&self) -> usize {
        signed_bytes(self.0 as i64)
    }

    fn write(&self, out: &mut Vec<u8>) {
        push_low_bytes(self.0, self.bytes(), out);
    }
}

/// A file in memory.
struct Bytes(Vec<u8>);

impl PageFile for Bytes {
    type Error = &'static str;

    fn position(&self) -> u64 {
        self.0.len() as u64
    }

    fn write_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Self::Error> {
        write(&mut self.0);
        Ok(())
    }

    fn keys_do_not_rise(&self) -> Self::Error {
        "keys do not rise"
    }
}

impl Pages for Bytes {
    type Interrupt = (u64, &'static str);

    fn page(&mut self, position: u64) -> Result<&[u8], Self::Interrupt> {
        let start = usize::try_from(position).expect("small");
        let end = (start / 4096 + 1) * 4096;
        self.0.get(start..end.min(self.0.len())).ok_or((position, "beyond the end"))
    }

    fn damaged(&self, position: u64, what: &'static str) -> Self::Interrupt {
        (position, what)
    }
}

/// Follows a key from the root as far as the trie goes.
fn follow(pages: &mut Bytes, root: u64, key: &[u8]) -> Followed {
    let (mut position, mut rest) = (root, key);
    loop {
        let start = position - position % 4096;
        let page = pages.page(start).expect("there");
        if let Some(end) = follow_in_page(page, start, &mut position, &mut rest).expect("sound") {
            return end;
        }
    }
}

fn number(payload: &Payloads) -> u64 {
    read_signed(&payload.bytes()[..usize::from(payload.flags).min(payload.bytes().len())]) as u64
}

/// Writes a trie behind `offset` bytes of something else.
fn write(keys: &BTreeMap<Vec<u8>, u64>, offset: usize) -> (Bytes, u64) {
    let mut file = Bytes(vec![0xee; offset]);
    let mut trie = TrieWriter::new();
    for (key, value) in keys {
        trie.add(key, Number(*value), &mut file).expect("keys rise");
    }
    let root = trie.finish(&mut file).expect("written");
    (file, root)
}

fn check(keys: &BTreeMap<Vec<u8>, u64>, offset: usize) {
    let (mut pages, root) = write(keys, offset);
    for (key, value) in keys {
        let found = follow(&mut pages, root, key);
        assert!(found.is_whole && found.payload.flags != 0, "{key:?}");
        assert_eq!(number(&found.payload), *value);
    }
    let all = |iterator: &mut PayloadIterator, pages: &mut Bytes| {
        let mut numbers = Vec::new();
        while let Some(payload) = iterator.next(pages).expect("sound") {
            numbers.push(number(&payload));
        }
        numbers
    };
    let expected: Vec<u64> = keys.values().copied().collect();
    let mut forward = PayloadIterator::forward(&mut pages, root, b"").expect("sound");
    assert_eq!(all(&mut forward, &mut pages), expected);
    for key in keys.keys().step_by(1 + keys.len() / 50) {
        let mut reversed = PayloadIterator::reversed(&mut pages, root, key).expect("sound");
        let expected: Vec<u64> = keys.range(..=key.clone()).rev().map(|(_, value)| *value).collect();
        assert_eq!(all(&mut reversed, &mut pages), expected);
        let mut forward = PayloadIterator::forward(&mut pages, root, key).expect("sound");
        let expected: Vec<u64> = keys.range(key.clone()..).map(|(_, value)| *value).collect();
        assert_eq!(all(&mut forward, &mut pages), expected);
    }
}

/// Keys of hashes, each followed by a terminator so that none is the prefix of another.
fn spread(count: u64) -> BTreeMap<Vec<u8>, u64> {
    (0..count).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(), i * i)).collect()
}

#[test]
fn small_and_large_tries_give_back_their_keys() {
    for count in [1, 2, 3, 16, 255, 256, 257, 1000, 20_000] {
        check(&spread(count), 0);
    }
}

#[test]
fn long_chains_cross_pages() {
    let mut keys = BTreeMap::new();
    for i in 0..40u8 {
        let mut key = vec![7; 3000];
        key.push(i);
        keys.insert(key, u64::from(i) << 40);
        keys.insert(vec![7, 8, i], 1);
    }
    check(&keys, 0);
    check(&keys, 4090);
}

#[test]
fn very_long_keys_do_not_overflow_the_stack() {
    let keys: BTreeMap<Vec<u8>, u64> =
        (0..3u8).map(|i| ([vec![b'x'; 65_000], vec![i]].concat(), 5)).collect();
    check(&keys, 100);
}

#[test]
fn nodes_with_payload_and_children_are_walked() {
    let keys = [&b""[..], b"a", b"ab", b"abc", b"b", b"ba\0", b"ba\xff"];
    check(&keys.iter().zip(1..).map(|(key, value)| (key.to_vec(), value)).collect(), 4000);
}

#[test]
fn keys_that_do_not_rise_are_refused() {
    let mut file = Bytes(Vec::new());
    let mut trie = TrieWriter::new();
    trie.add(b"b", Number(1), &mut file).expect("first");
    assert!(trie.add(b"b", Number(1), &mut file).is_err());
    assert!(trie.add(b"a", Number(1), &mut file) == Err("keys do not rise"));
}

#[test]
fn signed_integers_take_as_few_bytes_as_hold_them() {
    for (value, bytes) in
        [(0, 1), (127, 1), (128, 2), (-1, 1), (-128, 1), (-129, 2), (i64::MAX, 8), (i64::MIN, 8)]
    {
        assert_eq!(signed_bytes(value), bytes, "{value}");
        let mut out = Vec::new();
        push_low_bytes(value as u64, bytes, &mut out);
        assert_eq!(read_signed(&out), value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_keys_round_trip(
        keys in prop::collection::btree_map(
            prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 0x7f, 0xff]), 0..12), 0..1u64 << 50, 1..300),
        offset in 0..5000usize,
    ) {
        check(&keys, offset);
    }

    #[test]
    fn damaged_tries_end(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..20),
        key in prop::collection::vec(any::<u8>(), 0..10),
    ) {
        let (mut pages, root) = write(&spread(3000), 0);
        for (index, mask) in flips {
            let index = index.index(pages.0.len());
            pages.0[index] ^= mask;
        }
        let _ = follow(&mut pages, root, &key);
        for reversed in [false, true] {
            let start = if reversed { PayloadIterator::reversed } else { PayloadIterator::forward };
            if let Ok(mut iterator) = start(&mut pages, root, &key) {
                // Shared nodes can make a walk long, but never endless; nobody reads on for that long.
                for _ in 0..50_000 {
                    if !matches!(iterator.next(&mut pages), Ok(Some(_))) {
                        break;
                    }
                }
            }
        }
    }
}
