//! ORDER BY over several partitions: rows that came partition by partition are brought in one order.
//!
//! An answer without pages may have a million rows, and to sort them at once would keep the shard for seconds. So they
//! are sorted in short runs, and the runs merged two by two, and between any two pieces of that others may go first:
//!
//! ```text
//!   rows    4 7 1 │ 9 2 8 │ 3 6 5         runs of RUN_LENGTH, each sorted
//!           1 4 7 │ 2 8 9 │ 3 5 6
//!           1 2 4 7 8 9   │ 3 5 6         two and two become one, until there is one
//!           1 2 3 4 5 6 7 8 9
//! ```

use std::cmp::Ordering;

use read::{PartitionRows, RowList};
use rows::Row;
use runtime::Piece;

use super::plan::SelectPlan;
use super::rows::{Source, StoredRows};

/// Rows that are sorted, or merged, without a look at the time.
const RUN_LENGTH: usize = 1024;

/// A row and the partition it is in, by their numbers; the row of a partition that has none is its static row alone.
type Place = (usize, Option<usize>);

/// The rows of several keys in the order asked for, cut to the limit.
pub(super) async fn sort(plan: &SelectPlan, rows: StoredRows, limit: u32) -> StoredRows {
    let mut piece = Piece::of_turn();
    let places: Vec<Place> = places(&rows).collect();
    piece.give_way().await;
    let keys: Vec<Option<&[u8]>> = places.iter().flat_map(|place| key(plan, &rows, *place)).collect();
    piece.give_way().await;
    let columns: Vec<_> = sort_columns(plan).collect();
    let compare = |a: usize, b: usize| {
        let key = |at: usize| &keys[at * columns.len()..][..columns.len()];
        let orders = columns.iter().zip(key(a)).zip(key(b)).map(|(((_, of, is_backwards), a), b)| {
            let order = of.compare_nullable(*a, *b);
            if *is_backwards { order.reverse() } else { order }
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    let order = in_order(places.len(), compare, &mut piece).await;
    let mut partitions = Vec::with_capacity(order.len().min(limit as usize));
    for at in order.into_iter().take(limit as usize) {
        partitions.push(alone(&rows, places[at]));
        piece.give_way().await;
    }
    StoredRows { partitions }
}

fn places(rows: &StoredRows) -> impl Iterator<Item = Place> {
    rows.partitions.iter().enumerate().flat_map(|(partition, held)| {
        let rows = (0..held.rows.len()).map(move |row| (partition, Some(row)));
        rows.chain(held.rows.is_empty().then_some((partition, None)))
    })
}

/// The clustering columns that rows are sorted by: which, their types, and whether backwards.
fn sort_columns(plan: &SelectPlan) -> impl Iterator<Item = (usize, &types::CqlType, bool)> {
    plan.sort.iter().filter_map(|(source, of, is_backwards)| match source {
        Source::Clustering(index) => Some((*index, of, *is_backwards)),
        _ => None,
    })
}

/// What a row is sorted by.
fn key<'a>(plan: &SelectPlan, rows: &'a StoredRows, (partition, row): Place) -> Vec<Option<&'a [u8]>> {
    let row = row.map(|row| &rows.partitions[partition].rows[row]);
    let component = |index| row.and_then(|row: &'a Row| row.clustering_components().nth(index).flatten());
    sort_columns(plan).map(|(index, _, _)| component(index)).collect()
}

/// A partition that holds this row and no other.
fn alone(rows: &StoredRows, (partition, row): Place) -> PartitionRows {
    let held = &rows.partitions[partition];
    PartitionRows {
        key: held.key.clone(),
        static_row: held.static_row.clone(),
        rows: row.map_or_else(RowList::new, |row| RowList::from_elem(held.rows[row].clone(), 1)),
    }
}

/// The numbers below `count` in the order of what they stand for; those that are equal as they come.
async fn in_order(count: usize, compare: impl Fn(usize, usize) -> Ordering, piece: &mut Piece) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for run in order.chunks_mut(RUN_LENGTH) {
        run.sort_by(|a, b| compare(*a, *b));
        piece.give_way().await;
    }
    let mut run_length = RUN_LENGTH;
    while run_length < count {
        let mut merged = Vec::with_capacity(count);
        for pair in order.chunks(2 * run_length) {
            let (mut left, mut right) = pair.split_at(run_length.min(pair.len()));
            while merge_some(&mut left, &mut right, &compare, &mut merged) {
                piece.give_way().await;
            }
        }
        order = merged;
        run_length *= 2;
    }
    order
}

/// Merges the next of two runs; false when they are at their end.
fn merge_some<'a>(
    left: &mut &'a [usize],
    right: &mut &'a [usize],
    compare: impl Fn(usize, usize) -> Ordering,
    merged: &mut Vec<usize>,
) -> bool {
    for _ in 0..RUN_LENGTH {
        let is_right = match (left.first(), right.first()) {
            (Some(a), Some(b)) => compare(*a, *b).is_gt(),
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (None, None) => return false,
        };
        let run = if is_right { &mut *right } else { &mut *left };
        merged.extend(run.split_off_first());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_to_one_and_what_is_equal_stays_in_its_order() {
        for count in [0, 1, RUN_LENGTH - 1, RUN_LENGTH, RUN_LENGTH + 1, 5 * RUN_LENGTH + 7, 8 * RUN_LENGTH] {
            // A few values, each many times, in no order.
            let value = |at: usize| at.wrapping_mul(2_654_435_761) >> 7 & 0xff;
            let mut expected: Vec<usize> = (0..count).collect();
            expected.sort_by_key(|at| value(*at));
            let compare = |a: usize, b: usize| value(a).cmp(&value(b));
            let order = runtime::block_on(in_order(count, compare, &mut Piece::of_turn()));
            assert_eq!(order, expected, "{count}");
        }
    }
}
