//! What other replicas have missed of what this shard wrote: no rows, but where they are.
//!
//! A write that a replica did not acknowledge marks the slot of its partition, for that node and table. When the node
//! is there again, rows of the marked slots are compared and made equal (`healing.rs`). So however long a node is away,
//! and however much is written meanwhile, this is a few bits for each of 4,096 slots. What is missing is not kept but
//! found: slow, but right. Sending it from the logs (decision 0026) will come before it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use ring::Grid;
use schema::TableId;
use serde::{Deserialize, Serialize};
use types::Token;
use uuid::Uuid;

/// The slots that are told apart, whatever the grid of the ring.
pub(super) const GRID: Grid = Grid::COARSEST;
const WORDS: usize = 1 << (Grid::SLOT_BITS_MIN - 6);

/// Marks, by node and table.
#[derive(Debug, Default)]
pub struct Marks {
    of_nodes: RefCell<BTreeMap<Uuid, BTreeMap<TableId, Slots>>>,
    /// Those that were taken to be healed, until that is over: they are kept with the others.
    in_healing: RefCell<BTreeMap<Uuid, BTreeMap<TableId, Slots>>>,
    /// Have they changed since they were kept?
    is_changed: Cell<bool>,
}

/// Some slots of the grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Slots(Vec<u64>);

impl Default for Slots {
    fn default() -> Slots {
        Slots(vec![0; WORDS])
    }
}

impl Slots {
    /// Adds one; was it new?
    fn insert(&mut self, slot: usize) -> bool {
        let (word, bit) = (&mut self.0[slot / 64], 1 << (slot % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn add_all(&mut self, others: &Slots) {
        self.0.iter_mut().zip(&others.0).for_each(|(word, others)| *word |= others);
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        (0..64 * WORDS).filter(|slot| self.0[slot / 64] >> (slot % 64) & 1 == 1)
    }
}

/// Marks as they are kept: a state file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept(Vec<(Uuid, Uuid, Slots)>);

impl Marks {
    /// As they were kept. What is not of this grid is left out: nobody wrote it.
    pub(super) fn restored(kept: Kept) -> Marks {
        let marks = Marks::default();
        for (node, table, slots) in kept.0 {
            if slots.0.len() == WORDS {
                // A table may have marks twice: those in healing, and others.
                slots.iter().for_each(|slot| marks.add_slot(node, TableId(table), slot));
            }
        }
        marks
    }

    /// To be kept, if they have changed since they were last.
    pub(super) fn take_changed(&self) -> Option<Kept> {
        self.is_changed.take().then(|| {
            let (of_nodes, in_healing) = (self.of_nodes.borrow(), self.in_healing.borrow());
            let marks = of_nodes.iter().chain(in_healing.iter()).flat_map(|(node, tables)| {
                tables.iter().map(|(table, slots)| (*node, table.0, slots.clone()))
            });
            Kept(marks.collect())
        })
    }

    /// Takes others in, too.
    pub(super) fn take_over(&self, others: &Marks) {
        for (node, tables) in others.of_nodes.borrow().iter() {
            for (table, slots) in tables {
                slots.iter().for_each(|slot| self.add_slot(*node, *table, slot));
            }
        }
    }

    /// They are not kept as they are.
    pub(super) fn note_change(&self) {
        self.is_changed.set(true);
    }

    /// A node has not acknowledged a write to the table at that token.
    pub(super) fn add(&self, node: Uuid, table: TableId, token: Token) {
        self.add_slot(node, table, GRID.slot_of(token));
    }

    pub(super) fn add_slot(&self, node: Uuid, table: TableId, slot: usize) {
        if self.of_nodes.borrow_mut().entry(node).or_default().entry(table).or_default().insert(slot) {
            self.is_changed.set(true);
        }
    }

    /// Nodes that have missed something.
    pub(super) fn nodes(&self) -> Vec<Uuid> {
        self.of_nodes.borrow().keys().copied().collect()
    }

    /// Takes the marks of a node: a table, and its slots in their order. Who can not make them equal adds them again,
    /// and says in the end that healing is over.
    pub(super) fn take(&self, node: Uuid) -> Option<(TableId, Vec<usize>)> {
        let of_nodes = &mut *self.of_nodes.borrow_mut();
        let Some((table, slots)) = of_nodes.get_mut(&node)?.pop_first() else {
            of_nodes.remove(&node);
            return None;
        };
        if of_nodes[&node].is_empty() {
            of_nodes.remove(&node);
        }
        let taken = slots.iter().collect();
        // It may have been taken before, and marked again since.
        let in_healing = &mut *self.in_healing.borrow_mut();
        in_healing.entry(node).or_default().entry(table).or_default().add_all(&slots);
        Some((table, taken))
    }

    /// What was taken of a node is equal, or was added again.
    pub(super) fn healing_is_over(&self, node: Uuid) {
        if self.in_healing.borrow_mut().remove(&node).is_some() {
            self.is_changed.set(true);
        }
    }

    /// How many slots are marked for a node, over all tables.
    pub fn slot_count(&self, node: Uuid) -> usize {
        let of_nodes = self.of_nodes.borrow();
        of_nodes.get(&node).map_or(0, |tables| tables.values().map(|slots| slots.iter().count()).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_slot_of_a_table_and_survives_as_bytes() {
        let (node, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (table, second) = (TableId(Uuid::from_u128(7)), TableId(Uuid::from_u128(8)));
        let marks = Marks::default();
        assert!(marks.take_changed().is_none());
        for token in [0, 1, i64::MAX] {
            marks.add(node, table, Token(token));
        }
        marks.add(other, second, Token(-5));
        let kept = serde_json::to_string(&marks.take_changed().expect("they have changed")).expect("text");
        marks.add(node, table, Token(2));
        assert!(marks.take_changed().is_none(), "it was marked before");
        let marks = Marks::restored(serde_json::from_str(&kept).expect("marks"));
        assert_eq!((marks.nodes(), marks.slot_count(node)), (vec![node, other], 2));
        let slots = [Token(0), Token::MAX].map(|token| GRID.slot_of(token)).to_vec();
        assert_eq!(marks.take(node), Some((table, slots)));
        assert_eq!((marks.take(node), marks.nodes()), (None, vec![other]));
    }

    #[test]
    fn marks_in_healing_are_kept_until_it_is_over() {
        let (node, table) = (Uuid::from_u128(1), TableId(Uuid::from_u128(7)));
        let marks = Marks::default();
        for token in [0, i64::MAX] {
            marks.add(node, table, Token(token));
            assert!(marks.take(node).is_some(), "it is marked");
        }
        let kept = || Marks::restored(marks.take_changed().expect("they have changed")).slot_count(node);
        assert_eq!((marks.slot_count(node), kept()), (0, 2), "they were taken one after the other");
        marks.healing_is_over(node);
        assert_eq!(kept(), 0);
    }

    #[test]
    fn marks_of_another_grid_are_left_out() {
        let kept = Kept(vec![(Uuid::from_u128(1), Uuid::from_u128(7), Slots(vec![1]))]);
        assert!(Marks::restored(kept).nodes().is_empty());
    }
}
