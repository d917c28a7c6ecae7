//! Values that tell to which key and column they belong.
//!
//! ```text
//!   | salt (8 characters) | what follows from key, column and salt ... |
//! ```
//!
//! Each write has a salt of its own, so that values differ and do not compress better than YCSB's. Whoever reads one
//! makes the rest anew and compares: a value of another row or column, or one that was cut or mixed, is found out.
//! Which of several writes it is from can not be told. Eight characters are made at a time; a value of 100 bytes costs
//! some 20 ns.

use crate::generator::scattered;

/// Six bits of each byte ...
const MASK: u64 = 0x3f3f_3f3f_3f3f_3f3f;
/// ... and what makes them printable: `0` to `o`.
const OFFSET: u64 = 0x3030_3030_3030_3030;
/// Bytes made at a time.
const STEP_BYTES: usize = 8;

/// A key and a column, as a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner(u64);

impl Owner {
    /// The column of the row with this key.
    pub(super) fn new(key: &[u8], column: usize) -> Owner {
        let mut chunks = key.chunks_exact(STEP_BYTES);
        let mut hash = chunks.by_ref().fold(key.len() as u64, |hash, chunk| scattered(hash ^ word(chunk)));
        hash = scattered(hash ^ word(chunks.remainder()));
        Owner(scattered(hash ^ column as u64))
    }

    /// Writes a value.
    pub(super) fn fill(self, salt: u64, value: &mut [u8]) {
        let salt = (salt & MASK) + OFFSET;
        let mut state = self.0 ^ scattered(salt);
        let (words, end) = value.as_chunks_mut::<STEP_BYTES>();
        let mut made = salt;
        for word in words {
            *word = made.to_le_bytes();
            made = next(&mut state);
        }
        end.copy_from_slice(&made.to_le_bytes()[..end.len()]);
    }

    /// Is this a value that was written for this key and column? One that is shorter than a salt always is.
    pub(super) fn has(self, value: &[u8]) -> bool {
        let Some((salt, rest)) = value.split_first_chunk::<STEP_BYTES>() else { return true };
        let mut state = self.0 ^ scattered(u64::from_le_bytes(*salt));
        // Words as numbers: comparing them as bytes was a third of a client's time.
        let (words, end) = rest.as_chunks::<STEP_BYTES>();
        words.iter().all(|word| u64::from_le_bytes(*word) == next(&mut state))
            && *end == next(&mut state).to_le_bytes()[..end.len()]
    }
}

/// The next eight characters.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    (scattered(*state) & MASK) + OFFSET
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; STEP_BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(key: &[u8], column: usize, salt: u64) -> Vec<u8> {
        let mut value = vec![0; 100];
        Owner::new(key, column).fill(salt, &mut value);
        value
    }

    #[test]
    fn a_value_is_known_by_its_key_and_column() {
        let written = value(b"user17", 3, 42);
        assert!(written.iter().all(|byte| byte.is_ascii_graphic()));
        assert!(Owner::new(b"user17", 3).has(&written));
        assert!(!Owner::new(b"user18", 3).has(&written));
        assert!(!Owner::new(b"user17", 4).has(&written));
        assert_ne!(written, value(b"user17", 3, 43));
    }

    #[test]
    fn a_changed_or_mixed_value_is_found_out() {
        let (written, other) = (value(b"user17", 3, 42), value(b"user17", 3, 43));
        for index in 0..written.len() {
            let mut changed = written.clone();
            changed[index] ^= 1;
            assert!(!Owner::new(b"user17", 3).has(&changed), "{index}");
        }
        let mixed = [&written[..50], &other[50..]].concat();
        assert!(!Owner::new(b"user17", 3).has(&mixed));
    }
}
