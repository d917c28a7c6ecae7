//! Walks through a memtable with its memory asked for in advance.
//!
//! What is written one after the other in key order lies all over the arena, and each row would be waited for. A
//! second walk runs some steps ahead, looks at where the rows are and has the processor fetch them.

use stdx::prefetch::prefetch;

/// Steps between the two: with rows of 1 KB about as much as a processor fetches at a time.
const STEPS: usize = 4;

/// An iterator and another one over the same things, some steps ahead.
pub(super) struct Ahead<I, L> {
    items: I,
    ahead: I,
    look: L,
}

impl<'a, I: Iterator + Clone, L: Fn(I::Item) -> Option<&'a [u8]>> Ahead<I, L> {
    /// `look` tells which bytes of an item will be read.
    pub(super) fn new(items: I, look: L) -> Self {
        let mut this = Ahead { ahead: items.clone(), items, look };
        (0..STEPS).for_each(|_| this.fetch());
        this
    }

    fn fetch(&mut self) {
        if let Some(bytes) = self.ahead.next().and_then(&self.look) {
            prefetch(bytes);
        }
    }
}

impl<'a, I: Iterator + Clone, L: Fn(I::Item) -> Option<&'a [u8]>> Iterator for Ahead<I, L> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.fetch();
        self.items.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_items_come_in_their_order() {
        for count in [0, 1, STEPS - 1, STEPS, 100] {
            let things: Vec<Vec<u8>> = (0..count).map(|index| vec![index as u8; index]).collect();
            let walked: Vec<&Vec<u8>> =
                Ahead::new(things.iter(), |thing: &Vec<u8>| (!thing.is_empty()).then_some(&thing[..]))
                    .collect();
            assert_eq!(walked, things.iter().collect::<Vec<_>>());
        }
    }
}
