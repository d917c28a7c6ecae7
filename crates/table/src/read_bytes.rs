//! How much memory a read of a table works in.

use std::cell::Cell;

/// For each place, beside rows: a chunk, and what it is decompressed from.
const PLACE_BYTES: usize = 32 << 10;
/// A row is there as it comes, decoded and merged.
const ROW_COPIES: usize = 3;

/// What a read of a table is taken for: as much as one took of late.
#[derive(Debug)]
pub struct ReadBytes(Cell<usize>);

impl Default for ReadBytes {
    fn default() -> Self {
        ReadBytes(Cell::new(ReadBytes::UNKNOWN))
    }
}

impl ReadBytes {
    /// What a read is taken for as long as nothing is known of its table.
    pub const UNKNOWN: usize = 64 << 10;

    /// So many bytes.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.get()
    }

    /// Notes that a read from so many places, of rows of so many bytes at most, is over.
    #[inline]
    pub fn learn(&self, place_count: usize, row_bytes_max: usize) {
        let bytes = place_count * (PLACE_BYTES + ROW_COPIES * row_bytes_max);
        let before = self.0.get();
        self.0.set(bytes.max(before - before / 16));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_take_is_forgotten_bit_by_bit() {
        let expected = ReadBytes::default();
        expected.learn(10, 1 << 20);
        let large = expected.get();
        (0..100).for_each(|_| expected.learn(1, 100));
        assert!(expected.get() < large / 100, "{} of {large}", expected.get());
    }
}
