//! Some of up to 32 things that are done together, by their index.

/// Which of up to [`IndexSet::END`] things, each by its index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSet(u32);

impl IndexSet {
    /// Indexes are below this.
    pub const END: usize = u32::BITS as usize;

    /// None of them.
    pub const EMPTY: IndexSet = IndexSet(0);

    /// The first so many.
    ///
    /// # Panics
    /// When they are more than [`IndexSet::END`].
    pub fn first(count: usize) -> Self {
        assert!(count <= Self::END, "so many things are done together at most");
        // In more bits, so that all of them is no overflow.
        IndexSet(((1u64 << count) - 1) as u32)
    }

    /// A bit for each index, the first in the lowest place: for those who send it.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// What has these [`IndexSet::bits`].
    pub fn of_bits(bits: u32) -> Self {
        IndexSet(bits)
    }

    /// Adds an index.
    pub fn insert(&mut self, index: usize) {
        debug_assert!(index < Self::END, "so many things are done together at most");
        self.0 |= 1 << index;
    }

    /// Is the index among them?
    pub fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// Those of either.
    #[must_use]
    pub fn union(self, other: IndexSet) -> IndexSet {
        IndexSet(self.0 | other.0)
    }

    /// How many they are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Are there none?
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The indexes, rising.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let index = (left != 0).then(|| left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(index)
        })
    }
}

impl FromIterator<usize> for IndexSet {
    fn from_iter<T: IntoIterator<Item = usize>>(indexes: T) -> Self {
        let mut set = IndexSet::EMPTY;
        indexes.into_iter().for_each(|index| set.insert(index));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_come_back_rising_and_once() {
        let set: IndexSet = [31, 0, 5, 5].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 5, 31]);
        assert_eq!((set.len(), set.is_empty(), set.contains(5), set.contains(6)), (3, false, true, false));
        assert_eq!(set.union(IndexSet::first(2)).iter().collect::<Vec<_>>(), [0, 1, 5, 31]);
    }

    #[test]
    fn the_first_may_be_none_or_all() {
        assert!(IndexSet::first(0).is_empty());
        assert_eq!(IndexSet::first(IndexSet::END).len(), 32);
        assert_eq!(IndexSet::first(3).iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
