//! Filter.db: a Bloom filter of the partition keys.
//!
//! ```text
//!   u32 hash count | u32 count of 8-byte words | bits, bit i in byte i / 8 at i % 8
//! ```
//!
//! The two halves of the key's Murmur3 hash give all hashes: half 1 plus i times half 0.

use std::path::Path;

use stdx::cursor::Cursor;
use stdx::prefetch::prefetch;
use types::murmur3_x64_128;

use crate::SstableError;

/// Bits beyond what the keys need.
const EXCESS_BITS: u64 = 20;
/// More hashes than any filter of Cassandra has.
const HASH_COUNT_MAX: u32 = 64;
/// Bits a key that a filter ever gets.
const BITS_PER_KEY_MAX: usize = 20;

/// Rate of false positives by bits per key (row) and hash count (column), from the analysis of
/// Bloom filters; Cassandra takes the same, so that our filters have the size of theirs.
const RATES: [&[f64]; BITS_PER_KEY_MAX + 1] = [
    &[1.0],
    &[1.0, 1.0],
    &[1.0, 0.393, 0.400],
    &[1.0, 0.283, 0.237, 0.253],
    &[1.0, 0.221, 0.155, 0.147, 0.160],
    &[1.0, 0.181, 0.109, 0.092, 0.092, 0.101],
    &[1.0, 0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638],
    &[1.0, 0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364],
    &[1.0, 0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229],
    &[1.0, 0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145],
    &[1.0, 0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846],
    &[1.0, 0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509],
    &[1.0, 0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314],
    &[1.0, 0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194],
    &[1.0, 0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012],
    &[1.0, 0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744],
    &[
        1.0, 0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047,
        0.000459,
    ],
    &[
        1.0, 0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335, 0.000302,
        0.000287, 0.000284,
    ],
    &[
        1.0, 0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226, 0.000198,
        0.000183, 0.000176,
    ],
    &[
        1.0, 0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155, 0.000132,
        0.000118, 0.000111, 0.000109,
    ],
    &[
        1.0, 0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000108, 8.89e-05,
        7.77e-05, 7.12e-05, 6.79e-05, 6.71e-05,
    ],
];

/// The hash of a partition key that filter and partition index share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash([u64; 2]);

impl KeyHash {
    /// Of a serialized partition key.
    pub fn of(key: &[u8]) -> Self {
        KeyHash(murmur3_x64_128(key))
    }

    /// The byte that the partition index keeps.
    pub(crate) fn index_byte(self) -> u8 {
        self.0[1] as u8
    }
}

/// A Bloom filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BloomFilter {
    hash_count: u32,
    bits: Vec<u8>,
    bit_count: Divisor,
}

/// A number that others are divided by, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Divisor {
    number: u64,
    /// 2^64 over the number, or one less.
    reciprocal: u64,
}

impl Divisor {
    fn new(number: u64) -> Self {
        Divisor { number, reciprocal: u64::MAX / number }
    }

    /// What is left of a number of up to 2^63: by a multiplication, since a division takes many times as long.
    fn remainder(self, of: u64) -> u64 {
        debug_assert!(of <= 1 << 63, "the quotient is short by one at most");
        let quotient = (u128::from(of) * u128::from(self.reciprocal)) >> 64;
        let left = of - quotient as u64 * self.number;
        if left < self.number { left } else { left - self.number }
    }
}

impl BloomFilter {
    /// An empty one for so many keys; `None` when that many false positives need no filter.
    pub(crate) fn new(key_count: u64, false_positives: f64) -> Option<Self> {
        if false_positives.is_nan() || false_positives >= 1.0 {
            return None;
        }
        let (bits_per_key, hash_count) = specification(false_positives);
        let bits = key_count.max(1).saturating_mul(bits_per_key).saturating_add(EXCESS_BITS);
        let words = bits.div_ceil(64).min(u64::from(i32::MAX as u32) / 8);
        Some(Self::with_bits(hash_count, vec![0; words as usize * 8]))
    }

    /// Of at least one word.
    fn with_bits(hash_count: u32, bits: Vec<u8>) -> Self {
        assert!(!bits.is_empty() && bits.len().is_multiple_of(8), "a filter is of whole words");
        assert!((1..=HASH_COUNT_MAX).contains(&hash_count), "a key has some bits, and not too many");
        let bit_count = Divisor::new(bits.len() as u64 * 8);
        BloomFilter { hash_count, bits, bit_count }
    }

    /// Has the processor fetch the bits of a key.
    pub(crate) fn fetch(&self, hash: KeyHash) {
        self.places_of(hash).for_each(|(byte, _)| prefetch(&self.bits[byte..=byte]));
    }

    pub(crate) fn may_contain(&self, hash: KeyHash) -> bool {
        self.places_of(hash).all(|(byte, bit)| self.bits[byte] & bit != 0)
    }

    /// The bits of a key: bytes, and of each the bit.
    fn places_of(&self, hash: KeyHash) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bit_count = self.bit_count;
        let mut base = hash.0[1] as i64;
        (0..self.hash_count).map(move |_| {
            let index = bit_count.remainder(base.unsigned_abs());
            base = base.wrapping_add(hash.0[0] as i64);
            ((index / 8) as usize, 1 << (index % 8))
        })
    }

    /// Bytes it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bits.len() as u64
    }

    /// Bytes that [`BloomFilter::to_bytes`] gives.
    pub(crate) fn disk_bytes(&self) -> u64 {
        8 + self.memory_bytes()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.bits.len());
        out.extend_from_slice(&self.hash_count.to_be_bytes());
        out.extend_from_slice(&((self.bits.len() / 8) as u32).to_be_bytes());
        out.extend_from_slice(&self.bits);
        out
    }

    pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Self, SstableError> {
        let damaged = |offset, what| SstableError::Damaged { path: path.to_owned(), offset, what };
        let mut input = Cursor::new(bytes);
        let mut read = || -> Result<_, stdx::cursor::EndOfInput> {
            let hash_count = input.u32()?;
            let word_count = input.u32()? as usize;
            Ok((hash_count, input.take(word_count.saturating_mul(8))?))
        };
        let (hash_count, bits) = read().map_err(|end| damaged(end.offset as u64, "filter is cut off"))?;
        if hash_count == 0 || hash_count > HASH_COUNT_MAX || bits.is_empty() {
            return Err(damaged(0, "filter without bits, or with too many hashes"));
        }
        Ok(Self::with_bits(hash_count, bits.to_vec()))
    }
}

/// Bits per key and hash count for a rate of false positives.
fn specification(rate: f64) -> (u64, u32) {
    let best = |bits: usize| {
        let rates = RATES[bits];
        (0..rates.len()).min_by(|a, b| rates[*a].total_cmp(&rates[*b])).unwrap_or(1).max(1)
    };
    if rate >= RATES[2][1] {
        return (best(2) as u64, 2);
    }
    let mut bits = 2;
    while bits < BITS_PER_KEY_MAX && RATES[bits][best(bits)] > rate {
        bits += 1;
    }
    let mut hashes = best(bits);
    while hashes > 1 && RATES[bits][hashes - 1] <= rate {
        hashes -= 1;
    }
    (bits as u64, hashes as u32)
}

/// A filter that keys are put into, a few of them at a time: each of their bits is in memory that the processor
/// has to fetch, and so waits for all of them at once.
#[derive(Debug)]
pub(crate) struct FilterWriter {
    filter: BloomFilter,
    /// Bits that are being fetched.
    places: Vec<(usize, u8)>,
    key_count: u64,
}

/// Bits that are fetched at the same time.
const PLACES_TOGETHER: usize = 64;
const _: () = assert!(BITS_PER_KEY_MAX < HASH_COUNT_MAX as usize, "what is written can be read");

impl FilterWriter {
    /// As [`BloomFilter::new`].
    pub(crate) fn new(key_count: u64, false_positives: f64) -> Option<Self> {
        let filter = BloomFilter::new(key_count, false_positives)?;
        let places = Vec::with_capacity(PLACES_TOGETHER + HASH_COUNT_MAX as usize);
        Some(FilterWriter { filter, places, key_count: 0 })
    }

    /// How many keys were put in.
    pub(crate) fn key_count(&self) -> u64 {
        self.key_count
    }

    pub(crate) fn add(&mut self, hash: KeyHash) {
        self.key_count += 1;
        let places = self.filter.places_of(hash);
        self.places.extend(places.inspect(|(byte, _)| prefetch(&self.filter.bits[*byte..=*byte])));
        if self.places.len() >= PLACES_TOGETHER {
            self.set();
        }
    }

    /// With all that was added.
    pub(crate) fn finish(mut self) -> BloomFilter {
        self.set();
        self.filter
    }

    fn set(&mut self) {
        for (byte, bit) in self.places.drain(..) {
            self.filter.bits[byte] |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_added_are_found_and_others_rarely() {
        let mut filter = FilterWriter::new(1000, 0.01).expect("a filter");
        (0..1000u32).for_each(|key| filter.add(KeyHash::of(&key.to_be_bytes())));
        let filter = filter.finish();
        let found = |key: u32| filter.may_contain(KeyHash::of(&key.to_be_bytes()));
        assert!((0..1000).all(found));
        assert!((1000..11_000).filter(|key| found(*key)).count() < 150);
    }

    #[test]
    fn a_remainder_is_that_of_a_division() {
        let numbers = [1 << 6, 320, 9_600_064, 1 << 32, (1 << 34) - 64];
        for divisor in numbers {
            let near = [0, 1, divisor - 1, divisor, divisor + 1, 1 << 62, (1 << 63) - 1, 1 << 63];
            let multiples = [3, 1 << 20, (1 << 63) / divisor].map(|times: u64| times * divisor);
            let around = multiples.iter().flat_map(|of| [of - 1, *of, (of + 1).min(1 << 63)]);
            for of in near.into_iter().chain(around) {
                assert_eq!(Divisor::new(divisor).remainder(of), of % divisor, "{of} % {divisor}");
            }
        }
    }

    #[test]
    fn filter_round_trips() {
        let mut filter = FilterWriter::new(10, 0.1).expect("a filter");
        filter.add(KeyHash::of(b"a"));
        let filter = filter.finish();
        assert_eq!(BloomFilter::from_bytes(Path::new("f"), &filter.to_bytes()).expect("sound"), filter);
        assert!(BloomFilter::from_bytes(Path::new("f"), &filter.to_bytes()[..9]).is_err());
    }

    #[test]
    fn no_filter_when_every_key_may_be_found() {
        assert_eq!(BloomFilter::new(10, 1.0), None);
    }
}
