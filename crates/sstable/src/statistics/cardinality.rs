//! About how many distinct keys: HyperLogLog++ (Heule, Nunkesser, Hall, 2013), in the form that
//! Cassandra's library keeps it.
//!
//! ```text
//!   i32 -2 | varint p = 13 | varint sp = 25
//!   sparse: varint 1 | varint count | entries by index, each as varint of its difference to the last
//!   normal: varint 0 | varint bytes | i32 words, six registers of five bits each
//! ```
//!
//! A sparse entry keeps 25 bits of the hash, and the run of zeros behind them where the 13 bits
//! that count as index leave nothing else to tell it. "varint" is of seven bits a byte, low first.

use std::collections::BTreeMap;

const P: u32 = 13;
const SPARSE_P: u32 = 25;
const REGISTER_COUNT: usize = 1 << P;
/// More sparse entries than this take more room than the registers.
const SPARSE_COUNT_MAX: usize = REGISTER_COUNT * 3 / 4;
const REGISTERS_PER_WORD: usize = 6;
const REGISTER_BITS: usize = 5;
const _: () = assert!(REGISTERS_PER_WORD * REGISTER_BITS <= u32::BITS as usize, "registers fit their word");
const _: () = assert!(P < SPARSE_P && SPARSE_P < u32::BITS, "a sparse entry keeps more of the hash");
const _: () = assert!(SPARSE_COUNT_MAX < REGISTER_COUNT, "sparse entries go before they are dear");

/// Estimates how many distinct keys were added.
#[derive(Clone, Debug)]
pub(crate) struct Cardinality {
    /// Entry by its 25-bit index; `None` once there are too many.
    sparse: Option<BTreeMap<u32, u32>>,
    registers: Box<[u8]>,
}

impl Cardinality {
    pub(crate) fn new() -> Self {
        Cardinality { sparse: Some(BTreeMap::new()), registers: vec![0; REGISTER_COUNT].into() }
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        let hash = murmur2_64(key);
        let run = (hash << P | 1 << (P - 1)).leading_zeros() + 1;
        let register = &mut self.registers[(hash >> (64 - P)) as usize];
        *register = (*register).max(run as u8);
        let Some(sparse) = &mut self.sparse else { return };
        let index = (hash >> (64 - SPARSE_P)) as u32;
        let rest_is_zero = index << (32 - SPARSE_P + P) == 0;
        let entry = if rest_is_zero { (index << 6 | (run ^ 63)) << 1 | 1 } else { index << 1 };
        let kept = sparse.entry(index).or_insert(entry);
        // The lower of two entries has the longer run, kept inverted.
        *kept = (*kept).min(entry);
        if sparse.len() > SPARSE_COUNT_MAX {
            self.sparse = None;
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = (-2i32).to_be_bytes().to_vec();
        push_varint(P, &mut out);
        push_varint(SPARSE_P, &mut out);
        match &self.sparse {
            Some(sparse) => {
                push_varint(1, &mut out);
                push_varint(sparse.len() as u32, &mut out);
                let mut last = 0u32;
                for entry in sparse.values() {
                    push_varint(entry.wrapping_sub(last), &mut out);
                    last = *entry;
                }
            }
            None => {
                let word_count = REGISTER_COUNT / REGISTERS_PER_WORD + 1;
                push_varint(0, &mut out);
                push_varint(word_count as u32 * 4, &mut out);
                for registers in self.registers.chunks(REGISTERS_PER_WORD) {
                    let shifted = registers.iter().enumerate();
                    let word = shifted
                        .fold(0u32, |word, (i, register)| word | u32::from(*register) << (i * REGISTER_BITS));
                    out.extend_from_slice(&word.to_be_bytes());
                }
            }
        }
        out
    }
}

fn push_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// MurmurHash 2 of 64 bits with seed 0, the tail's bytes sign-extended as Cassandra's are.
fn murmur2_64(key: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let mut hash = M.wrapping_mul(key.len() as u64);
    let (blocks, tail) = key.as_chunks::<8>();
    for block in blocks {
        let mut k = u64::from_le_bytes(*block).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (index, byte) in tail.iter().enumerate() {
            hash ^= (*byte as i8 as i64 as u64) << (8 * index);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> R;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> R
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keys_are_kept_sparse_and_many_in_registers() {
        let mut cardinality = Cardinality::new();
        assert_eq!(cardinality.to_bytes(), [0xff, 0xff, 0xff, 0xfe, 13, 25, 1, 0]);
        (0..10_000u32).for_each(|key| cardinality.add(&key.to_be_bytes()));
        let bytes = cardinality.to_bytes();
        assert_eq!(&bytes[4..7], [13, 25, 0]);
        assert_eq!(bytes.len(), 7 + 2 + (8192 / 6 + 1) * 4);
        // The harmonic mean over the registers is near the count.
        let sum: f64 = cardinality.registers.iter().map(|run| 0.5f64.powi(i32::from(*run))).sum();
        let estimate = 0.7213 / (1.0 + 1.079 / 8192.0) * 8192.0 * 8192.0 / sum;
        assert!((9_000.0..12_500.0).contains(&estimate), "{estimate}");
    }
}
