//! Parts of the ring, in tables: where other nodes have missed something.

use std::collections::BTreeMap;

use ring::Grid;
use schema::TableId;
use serde::{Deserialize, Serialize};
use types::Token;

/// The slots that are told apart, whatever the grid of the ring.
const GRID: Grid = Grid::COARSEST;
const WORDS: usize = 1 << (Grid::SLOT_BITS_MIN - 6);

/// Some slots of the grid: 512 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Slots(Vec<u64>);

impl Default for Slots {
    fn default() -> Slots {
        Slots(vec![0; WORDS])
    }
}

impl Slots {
    /// Adds one; was it new?
    pub(super) fn insert(&mut self, slot: usize) -> bool {
        let (word, bit) = (&mut self.0[slot / 64], 1 << (slot % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Takes one out; was it there?
    fn remove(&mut self, slot: usize) -> bool {
        let is_there = self.contains(slot);
        self.0[slot / 64] &= !(1 << (slot % 64));
        is_there
    }

    fn contains(&self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }

    fn add_all(&mut self, others: &Slots) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, others)| *word |= others);
    }

    /// In their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..64 * WORDS).filter(|slot| self.contains(*slot))
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// As they were read from a file: are they of this grid?
    pub(super) fn are_whole(&self) -> bool {
        self.0.len() == WORDS
    }
}

/// The slot of a token.
pub(super) fn slot_of(token: Token) -> usize {
    GRID.slot_of(token)
}

/// The first and the last token of a slot.
pub(super) fn tokens_of(slot: usize) -> (Token, Token) {
    let first =
        slot.checked_sub(1).map_or(Token(i64::MIN + 1), |before| Token(GRID.last_token(before).0 + 1));
    (first, GRID.last_token(slot))
}

/// Slots of tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(BTreeMap<TableId, Slots>);

impl Places {
    /// Adds one; was it new?
    pub(super) fn insert(&mut self, table: TableId, slot: usize) -> bool {
        self.0.entry(table).or_default().insert(slot)
    }

    /// Takes one out; was it there?
    pub(super) fn remove(&mut self, table: TableId, slot: usize) -> bool {
        let Some(slots) = self.0.get_mut(&table) else { return false };
        let is_there = slots.remove(slot);
        if slots.is_empty() {
            self.0.remove(&table);
        }
        is_there
    }

    pub(super) fn add_all(&mut self, others: &Places) {
        for (table, slots) in &others.0 {
            self.0.entry(*table).or_default().add_all(slots);
        }
    }

    /// Leaves those that others have, too.
    pub(super) fn retain_all(&mut self, others: &Places) {
        self.0.retain(|table, slots| {
            others.0.get(table).is_some_and(|others| {
                slots.0.iter_mut().zip(&others.0).for_each(|(word, others)| *word &= others);
                !slots.is_empty()
            })
        });
    }

    pub(super) fn contains(&self, table: TableId, token: Token) -> bool {
        self.0.get(&table).is_some_and(|slots| slots.contains(slot_of(token)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes those of some tables out.
    pub(super) fn take_tables(&mut self, is_taken: impl Fn(TableId) -> bool) -> Places {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(table, _)| is_taken(*table));
        self.0 = left;
        Places(taken)
    }

    /// Takes a table out, with its slots.
    pub(super) fn pop(&mut self) -> Option<(TableId, Slots)> {
        self.0.pop_first()
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = (&TableId, &Slots)> {
        self.0.iter()
    }

    /// How many slots there are, over all tables.
    pub(super) fn count(&self) -> usize {
        self.0.values().map(Slots::count).sum()
    }
}
