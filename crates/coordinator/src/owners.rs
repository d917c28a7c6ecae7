//! Which shard owns what, and what goes to the same shard together.

use smallvec::SmallVec;
use stdx::index_set::IndexSet;
use storage::{KEYS_TOGETHER, Shards};
use types::Token;

/// The shards of the node as owners of the ring: where a request goes, whichever way it takes.
#[derive(Clone, Copy)]
pub struct Owners<'s>(pub(crate) &'s Shards);

/// Of things that are at most as many as are done in one go, indexes of those that go to a shard together.
pub(crate) type BatchIndexes = SmallVec<[usize; KEYS_TOGETHER]>;

/// Plain requests that are left, batch by batch, each by its index among those that were given.
pub type Batches = SmallVec<[IndexSet; 2]>;
const _: () = assert!(KEYS_TOGETHER <= IndexSet::END, "each has its index in a set");

impl Owners<'_> {
    /// How many there are.
    #[inline]
    pub fn count(self) -> usize {
        self.0.count()
    }

    /// The shard that owns the keys of a token.
    #[inline]
    pub fn of(self, token: Token) -> usize {
        self.0.owner(token)
    }

    /// The shard that owns all of these tokens, if one does; `None` for no tokens.
    pub(crate) fn of_all(self, mut tokens: impl Iterator<Item = Token>) -> Option<usize> {
        let owner = self.of(tokens.next()?);
        tokens.all(|token| self.of(token) == owner).then_some(owner)
    }

    /// Deals things out to their owners, each owner's in their order.
    pub(crate) fn split<T>(self, things: Vec<T>, token_of: impl Fn(&T) -> Token) -> Vec<(usize, Vec<T>)> {
        let thing_count = things.len();
        let mut counts = vec![0; self.count()];
        things.iter().for_each(|thing| counts[self.of(token_of(thing))] += 1);
        let mut parts: Vec<Vec<T>> = counts.into_iter().map(Vec::with_capacity).collect();
        for thing in things {
            parts[self.of(token_of(&thing))].push(thing);
        }
        let parted_count: usize = parts.iter().map(Vec::len).sum();
        assert_eq!(parted_count, thing_count, "everything goes to its owner");
        parts.into_iter().enumerate().filter(|(_, part)| !part.is_empty()).collect()
    }
}

/// Puts together those of a few things that go to the same shard in one go, in their order. Takes no memory.
///
/// # Panics
/// When they are more than [`KEYS_TOGETHER`].
pub(crate) fn batches<T>(
    things: &[T],
    goes_with: impl Fn(&T, &T) -> bool,
) -> impl Iterator<Item = BatchIndexes> {
    assert!(things.len() <= KEYS_TOGETHER, "no more than are done in one go");
    let mut left: BatchIndexes = (0..things.len()).collect();
    std::iter::from_fn(move || {
        let first = &things[*left.first()?];
        let mut batch = BatchIndexes::new();
        left.retain(|index| {
            let goes_along = goes_with(&things[*index], first);
            if goes_along {
                batch.push(*index);
            }
            !goes_along
        });
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_of_those_that_go_together_in_their_order() {
        let things = ["a1", "b1", "a2", "c1", "b2", "a3"];
        let batches: Vec<Vec<usize>> =
            batches(&things, |one, other| one[..1] == other[..1]).map(|batch| batch.to_vec()).collect();
        assert_eq!(batches, [vec![0, 2, 5], vec![1, 4], vec![3]]);
    }

    #[test]
    fn nothing_is_no_batch() {
        assert_eq!(batches(&[] as &[u8], |_, _| true).count(), 0);
    }
}
