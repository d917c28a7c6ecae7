//! What a replica lacks of what all have together.
//!
//! ```text
//!   answers ──► merge_answers ──► whole ──┬── missing(whole, first answer) ──► to the first replica
//!                                         └── missing(whole, second answer) ─► to the second
//! ```
//!
//! An answer that is cut off earlier than another hides nothing: what is merged ends at the least of their positions,
//! and so is known of every replica.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::{
    ClusteringComparator, DeletionTime, Marker, Mutation, MutationBuilder, PartitionKey, RangeTombstone, Row,
    Slice, Unfiltered,
};

use crate::{ReadCommand, ReadTarget, UnfilteredPage, UnfilteredPartition};

/// What is to be written to the replica that gave `held`, so that it has what `whole` says. `whole` is what its answer
/// and others to the same command merge to.
pub fn missing(command: &ReadCommand, whole: &UnfilteredPage, held: &UnfilteredPage) -> Vec<Mutation> {
    let comparator = ClusteringComparator::new(Arc::clone(command.table.clustering_types()));
    let is_reversed = command.reversed && matches!(command.target, ReadTarget::Keys(_));
    let repair = Repair { command, comparator, is_reversed };
    let held_of = |key: &PartitionKey| held.partitions.iter().find(|held| held.header.key == *key);
    // Partitions are in the same order, as a rule at the same place.
    let mut place = 0;
    let mutations = whole.partitions.iter().filter_map(|partition| {
        let key = &partition.header.key;
        let next = held.partitions.get(place).filter(|held| held.header.key == *key);
        place += usize::from(next.is_some());
        repair.partition(partition, next.or_else(|| held_of(key)))
    });
    mutations.collect()
}

struct Repair<'a> {
    command: &'a ReadCommand,
    comparator: ClusteringComparator,
    is_reversed: bool,
}

impl Repair<'_> {
    fn partition(&self, whole: &UnfilteredPartition, held: Option<&UnfilteredPartition>) -> Option<Mutation> {
        let header = &whole.header;
        let mut mutation = MutationBuilder::new(self.command.table.id(), header.key.clone());
        let mut is_empty = true;
        if held.map_or(DeletionTime::LIVE, |held| held.header.deletion) != header.deletion {
            mutation.partition_deletion(header.deletion);
            is_empty = false;
        }
        let held_static = held.and_then(|held| held.header.static_row.as_ref());
        if let Some(row) = header.static_row.as_ref().and_then(|row| row.missing_from(held_static)) {
            mutation.static_row(row);
            is_empty = false;
        }
        let held_items = held.map_or(&[][..], |held| &held.items);
        for row in self.missing_rows(&whole.items, held_items) {
            mutation.row(row);
            is_empty = false;
        }
        for range in self.missing_ranges(&whole.items, held_items) {
            mutation.range(range);
            is_empty = false;
        }
        (!is_empty).then(|| mutation.finish())
    }

    fn missing_rows(&self, whole: &[Unfiltered], held: &[Unfiltered]) -> Vec<Row> {
        let mut held = rows_of(held).peekable();
        let missing = rows_of(whole).filter_map(|row| {
            while held.next_if(|held| self.order(held, row).is_lt()).is_some() {}
            let same = held.next_if(|held| self.order(held, row).is_eq());
            row.missing_from(same)
        });
        missing.collect()
    }

    /// In reading direction.
    fn order(&self, one: &Row, other: &Row) -> Ordering {
        let order = self.comparator.compare_encoded(one.encoded_clustering(), other.encoded_clustering());
        if self.is_reversed { order.reverse() } else { order }
    }

    /// Ranges that none of the others covers with the same deletion. A held one may go on where the whole was cut off.
    fn missing_ranges(&self, whole: &[Unfiltered], held: &[Unfiltered]) -> Vec<RangeTombstone> {
        let (mut ranges, held) = (self.ranges(whole), self.ranges(held));
        let covers = |held: &RangeTombstone, range: &RangeTombstone| {
            held.deletion == range.deletion
                && self.comparator.compare_bounds(&held.slice.start, &range.slice.start).is_le()
                && self.comparator.compare_bounds(&held.slice.end, &range.slice.end).is_ge()
        };
        ranges.retain(|range| !held.iter().any(|held| covers(held, range)));
        ranges
    }

    /// The ranges between edges, in clustering order.
    fn ranges(&self, items: &[Unfiltered]) -> Vec<RangeTombstone> {
        let mut markers: Vec<&Marker> = items.iter().filter_map(marker_of).collect();
        if self.is_reversed {
            markers.reverse();
        }
        let pairs = markers.windows(2).filter(|pair| !pair[0].right.is_live());
        let range = |pair: &[&Marker]| RangeTombstone {
            slice: Slice { start: pair[0].start_bound(), end: pair[1].end_bound() },
            deletion: pair[0].right,
        };
        pairs.map(range).collect()
    }
}

fn rows_of(items: &[Unfiltered]) -> impl Iterator<Item = &Row> {
    items.iter().filter_map(|item| match item {
        Unfiltered::Row(row) => Some(row),
        Unfiltered::Marker(_) => None,
    })
}

fn marker_of(item: &Unfiltered) -> Option<&Marker> {
    match item {
        Unfiltered::Row(_) => None,
        Unfiltered::Marker(marker) => Some(marker),
    }
}
