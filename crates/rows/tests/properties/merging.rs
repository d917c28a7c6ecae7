//! Merging rows is commutative, associative and idempotent; purging changes nothing that shows.

use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rows::{
    CellMerge, CellRef, DeletionTime, LiveRows, Liveness, Row, RowBuilder, ValuesInPlace, merge_rows,
    merge_to_keep, purge_row,
};
use schema::ColumnId;

use crate::given;

fn merge(rows: &[Row]) -> Option<Row> {
    merge_rows(rows, DeletionTime::LIVE, &given::table())
}

fn rows_of_one_place(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Row>> {
    vec(given::row_at((1, 1), given::any_timestamp()), count)
}

/// A row of single cells, as most are. Some are deleted, and some cells end.
fn row_of_single_cells() -> impl Strategy<Value = Row> {
    let times = given::any_timestamp;
    let cells = btree_map(10..14u16, given::cell(times()), 0..5);
    (given::liveness(times()), given::deletion(times()), cells).prop_map(|(liveness, deletion, cells)| {
        let mut builder = RowBuilder::new(&given::clustering((1, 1)), liveness, deletion);
        for (id, cell) in &cells {
            builder.cell(ColumnId(*id), cell.as_ref());
        }
        builder.finish()
    })
}

fn merged_in_place(rows: &[Row]) -> CellMerge<'_> {
    let mut merge = CellMerge::default();
    rows.iter().for_each(|row| merge.add_encoded(row).expect("single cells"));
    merge
}

fn values_in_place(rows: &[Row]) -> Option<ValuesInPlace<'_>> {
    let mut merge = CellMerge::of_values();
    rows.iter().try_for_each(|row| merge.add_encoded(row))?;
    merge.values()
}

/// Timestamps that no timestamp of the other half equals.
fn half(odd: bool) -> BoxedStrategy<i64> {
    (0..4i64).prop_map(move |timestamp| timestamp * 2 + i64::from(odd)).boxed()
}

/// The oldest timestamp of anything in a row.
fn oldest(row: &Row) -> i64 {
    let mut oldest = i64::MAX;
    let mut see = |timestamp: i64| oldest = oldest.min(timestamp);
    if !row.liveness().is_none() {
        see(row.liveness().timestamp);
    }
    if !row.deletion().is_live() {
        see(row.deletion().timestamp);
    }
    for column in row.columns() {
        match column.data {
            rows::ColumnData::Simple(cell) => see(cell.timestamp),
            rows::ColumnData::Complex(complex) => {
                if !complex.deletion.is_live() {
                    see(complex.deletion.timestamp);
                }
                complex.cells().for_each(|cell| see(cell.timestamp));
            }
        }
    }
    oldest
}

/// What an INSERT or UPDATE without a time to live sets: values by column, all at its timestamp. Ids other
/// than those of [`given::table`] stand for columns of one value.
#[derive(Clone, Debug)]
struct Write {
    timestamp: i64,
    is_insert: bool,
    values: BTreeMap<u16, u8>,
}

impl Write {
    fn row(&self) -> Row {
        let liveness = if self.is_insert { Liveness::at(self.timestamp) } else { Liveness::NONE };
        let mut builder = RowBuilder::new(&given::clustering((1, 1)), liveness, DeletionTime::LIVE);
        for (id, value) in &self.values {
            builder.cell(ColumnId(*id), CellRef::live(self.timestamp, &[*value]));
        }
        builder.finish()
    }
}

fn write() -> impl Strategy<Value = Write> {
    (0..4i64, any::<bool>(), btree_map(10..14u16, any::<u8>(), 0..5))
        .prop_map(|(timestamp, is_insert, values)| Write { timestamp, is_insert, values })
}

/// Cell by cell, the later one wins, and of two of one time the greater.
fn naive_merge(writes: &[Write]) -> Option<Row> {
    let inserted = writes.iter().filter(|write| write.is_insert).map(|write| write.timestamp).max();
    let mut cells: BTreeMap<u16, (i64, u8)> = BTreeMap::new();
    for write in writes {
        for (id, value) in &write.values {
            let cell = cells.entry(*id).or_insert((i64::MIN, 0));
            *cell = (*cell).max((write.timestamp, *value));
        }
    }
    let liveness = inserted.map_or(Liveness::NONE, Liveness::at);
    let mut builder = RowBuilder::new(&given::clustering((1, 1)), liveness, DeletionTime::LIVE);
    for (id, (timestamp, value)) in cells {
        builder.cell(ColumnId(id), CellRef::live(timestamp, &[value]));
    }
    Some(builder.finish()).filter(|row| !row.is_empty())
}

/// As a memtable takes rows, one after the other: over the one that is there, or merged with it. A reader may
/// hold the one that is there.
fn take_in(rows: &[Row], is_read: bool) -> Option<Row> {
    let (table, mut scratch) = (given::table(), Vec::new());
    let (first, rest) = rows.split_first()?;
    let mut kept = Row::from_encoded(bytes::Bytes::copy_from_slice(first.as_encoded())).expect("a row");
    for row in rest {
        let reader = is_read.then(|| (kept.clone(), kept.as_encoded().to_vec()));
        if !kept.write_over(row) {
            kept = merge_to_keep(&kept, (row, row.as_encoded().len()), &table, &mut scratch).unwrap_or(kept);
        }
        assert!(reader.is_none_or(|(seen, before)| seen.as_encoded() == &before), "what is read changes");
    }
    // A write of nothing but its key is a row for the one that takes it in.
    Some(kept).filter(|row| !row.is_empty())
}

#[test]
fn an_update_is_written_over_the_one_before() {
    let update = |timestamp, values: &[(u16, u8)]| {
        Write { timestamp, is_insert: false, values: values.iter().copied().collect() }.row()
    };
    let mut row = update(1, &[(10, 1), (12, 2), (13, 3)]);
    let mut exact = Row::from_encoded(bytes::Bytes::copy_from_slice(row.as_encoded())).expect("a row");
    let reader = row.clone();
    let later = update(2, &[(10, 7), (13, 8)]);
    assert!(!row.write_over(&later), "somebody reads it");
    assert_eq!(row, reader);
    let place = exact.as_encoded().as_ptr();
    assert!(exact.write_over(&later));
    assert_eq!(exact.as_encoded().as_ptr(), place);
    assert_eq!(Some(exact.clone()), merge(&[reader, later]));
    assert!(!exact.write_over(&update(1, &[(10, 9)])), "older");
    assert!(!exact.write_over(&update(3, &[(11, 9)])), "another column");
}

#[test]
fn an_insert_is_written_over_one_of_the_same_length_that_it_leaves_nothing_of() {
    let insert = |timestamp, values: &[(u16, u8)]| {
        Write { timestamp, is_insert: true, values: values.iter().copied().collect() }.row()
    };
    let mut row = insert(2, &[(10, 1), (12, 2)]);
    let (first, later) = (row.clone(), insert(3, &[(10, 7), (12, 8)]));
    assert!(!row.write_over(&later), "somebody reads it");
    drop(first);
    let place = row.as_encoded().as_ptr();
    for other in [
        insert(2, &[(10, 7), (12, 8)]),
        insert(1, &[(10, 7), (12, 8)]),
        insert(3, &[(10, 7)]),
        insert(3, &[(10, 7), (13, 8)]),
    ] {
        let before = row.as_encoded().to_vec();
        assert!(!row.write_over(&other), "{other:?}");
        assert_eq!(row.as_encoded(), &before);
    }
    assert!(row.write_over(&later));
    assert_eq!((row.as_encoded().as_ptr(), &row), (place, &later));
}

#[test]
fn a_small_row_is_kept_in_memory_of_its_own_and_a_large_one_in_that_it_came_with_unless_there_is_more() {
    let (table, mut scratch) = (given::table(), Vec::new());
    for (length, held_bytes, is_own) in [(10, 40, true), (300, 350, false), (300, 400, true)] {
        let insert = |timestamp| {
            let mut row = RowBuilder::with_encoded(b"", Liveness::at(timestamp), DeletionTime::LIVE);
            row.cell(ColumnId(10), CellRef::live(timestamp, &vec![1; length]));
            row.finish()
        };
        let (old, new) = (insert(1), insert(2));
        let kept = merge_to_keep(&old, (&new, held_bytes), &table, &mut scratch).expect("another row");
        assert_eq!(kept, new);
        assert_eq!(kept.as_encoded().as_ptr() != new.as_encoded().as_ptr(), is_own);
        assert_eq!(merge_to_keep(&new, (&old, held_bytes), &table, &mut scratch), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn writes_are_taken_in_as_the_naive_model(writes in vec(write(), 1..8), is_read in any::<bool>()) {
        let rows: Vec<Row> = writes.iter().map(Write::row).collect();
        prop_assert_eq!(take_in(&rows, is_read), naive_merge(&writes));
    }

    #[test]
    fn rows_are_taken_in_as_they_are_merged(rows in rows_of_one_place(2..5), is_read in any::<bool>()) {
        prop_assert_eq!(take_in(&rows, is_read), merge(&rows));
    }

    #[test]
    fn the_order_of_rows_does_not_matter(rows in rows_of_one_place(1..5).prop_shuffle()) {
        let mut turned = rows.clone();
        turned.reverse();
        prop_assert_eq!(merge(&rows), merge(&turned));
    }

    #[test]
    fn writes_of_single_cells_merge_as_the_naive_model(writes in vec(write(), 1..5)) {
        let rows: Vec<Row> = writes.iter().map(Write::row).collect();
        prop_assert_eq!(merge(&rows), naive_merge(&writes));
    }

    #[test]
    fn single_cells_merge_where_they_lie_as_rows_merge_two_by_two(
        rows in vec(row_of_single_cells(), 1..6),
        active in given::deletion(given::any_timestamp()),
    ) {
        let two_by_two = rows.iter().fold(None, |merged: Option<Row>, row| {
            let both: Vec<Row> = merged.into_iter().chain([row.clone()]).collect();
            merge(&both)
        });
        let expected = two_by_two.and_then(|row| merge_rows(&[row], active, &given::table()));
        let clustering = given::clustering((1, 1));
        let mut in_place = merged_in_place(&rows);
        in_place.add_active(active);
        let built = in_place.build(clustering.as_encoded(), Vec::new()).finish();
        prop_assert_eq!(Some(&built).filter(|row| !row.is_empty()), expected.as_ref());
        prop_assert_eq!(merge_rows(&rows, active, &given::table()), expected);
    }

    #[test]
    fn values_shown_where_they_lie_are_all_that_is_to_be_said_of_a_row(rows in vec(row_of_single_cells(), 1..5)) {
        let merged = merge(&rows);
        let Some(values) = values_in_place(&rows) else {
            // An empty row, or one of a version of which more is to be said.
            prop_assert!(merged.is_none() || rows.iter().any(|row| !row.is_plain()));
            return Ok(());
        };
        let row = merged.expect("a row");
        prop_assert!(row.is_plain());
        let of_row: Vec<_> = row.columns().map(|column| match column.data {
            rows::ColumnData::Simple(cell) => (column.id, cell.value.to_vec()),
            other => panic!("{other:?}"),
        }).collect();
        let shown: Vec<_> = values.iter().map(|(id, value)| (*id, value.to_vec())).collect();
        prop_assert_eq!(of_row, shown);
    }

    #[test]
    fn rows_may_be_merged_in_groups(rows in rows_of_one_place(3..6), split in 1..3usize) {
        let (left, right) = rows.split_at(split);
        let grouped: Vec<Row> = merge(left).into_iter().chain(merge(right)).collect();
        prop_assert_eq!(merge(&rows), merge(&grouped));
    }

    #[test]
    fn merging_again_changes_nothing(rows in rows_of_one_place(1..4)) {
        let doubled: Vec<Row> = rows.iter().chain(&rows).cloned().collect();
        prop_assert_eq!(merge(&rows), merge(&doubled));
        if let Some(merged) = merge(&rows) {
            prop_assert_eq!(merge(&[merged.clone(), merged.clone()]), Some(merged.clone()));
            prop_assert_eq!(merge(std::slice::from_ref(&merged)), Some(merged));
        }
    }

    #[test]
    fn an_active_deletion_is_as_if_it_were_merged_in_first(
        rows in rows_of_one_place(1..4),
        active in given::deletion(given::any_timestamp()),
    ) {
        let table = given::table();
        let at_once = merge_rows(&rows, active, &table);
        let each: Vec<Row> =
            rows.iter().filter_map(|row| merge_rows(std::slice::from_ref(row), active, &table)).collect();
        prop_assert_eq!(at_once, merge_rows(&each, active, &table));
    }

    /// Some rows are compacted at one moment, others are not; whoever looks later sees the same.
    /// Timestamps of the two do not tie: as in Cassandra, an expired cell that became a tombstone
    /// wins a tie that it would have lost.
    #[test]
    fn purging_does_not_change_what_shows_later(
        compacted in vec(given::row_at((1, 1), half(false)), 1..4),
        others in vec(given::row_at((1, 1), half(true)), 0..3),
        (now, later) in (46..54u32, 0..6u32),
        gc_before in 38..54u32,
    ) {
        let live = LiveRows { now: now + later, gc_before: 0 };
        let timestamp_min = others.iter().map(oldest).min().unwrap_or(i64::MAX);
        let all: Vec<Row> = compacted.iter().chain(&others).cloned().collect();
        let expected = merge(&all).and_then(|row| live.filter(row, &mut 0));
        let kept = merge(&compacted)
            .and_then(|row| purge_row(&row, now, gc_before.min(now), |timestamp| timestamp < timestamp_min));
        let left: Vec<Row> = kept.into_iter().chain(others).collect();
        prop_assert_eq!(merge(&left).and_then(|row| live.filter(row, &mut 0)), expected);
    }

    #[test]
    fn purging_again_at_the_same_moment_changes_nothing(
        row in given::row(given::any_timestamp()),
        gc_before in 38..50u32,
    ) {
        let purge = |row: &Row| purge_row(row, given::NOW, gc_before, |_| true);
        if let Some(once) = purge(&row) {
            prop_assert_eq!(purge(&once), Some(once));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    /// What one lacks of a merged row is no more than it lacks, and merges with what it has to that row.
    #[test]
    fn who_gets_what_it_lacks_has_the_merged_row(
        held in rows_of_one_place(0..3),
        others in rows_of_one_place(0..3),
    ) {
        let all: Vec<Row> = held.iter().chain(&others).cloned().collect();
        let (held, whole) = (merge(&held), merge(&all));
        prop_assert!(whole.is_some() || held.is_none(), "nothing is lost by merging");
        if let Some(whole) = whole {
            let missing = whole.missing_from(held.as_ref());
            prop_assert_eq!(missing.is_none(), held.as_ref() == Some(&whole));
            let has: Vec<Row> = held.iter().cloned().chain(missing.clone()).collect();
            let again = merge(&has);
            prop_assert_eq!(again.as_ref(), Some(&whole));
            if let Some(missing) = missing {
                let again = missing.missing_from(held.as_ref());
                prop_assert_eq!(again.as_ref(), Some(&missing), "all of it is missing");
            }
        }
    }
}

proptest! {
    /// What replaces another row is all that shows of both.
    #[test]
    fn a_row_that_replaces_another_leaves_nothing_of_it(rows in rows_of_one_place(2..3)) {
        if rows[0].replaces(&rows[1]) {
            prop_assert_eq!(merge(&rows), merge(&rows[..1]));
        }
    }

    /// An INSERT of what another wrote, later, replaces it; an earlier one does not.
    #[test]
    fn a_later_insert_of_the_same_columns_replaces(row in given::row_at((1, 1), half(false)), later in 1..9i64) {
        let timestamp = 10 + later;
        let mut insert = RowBuilder::new(&row.clustering(), Liveness::at(timestamp), DeletionTime::LIVE);
        for column in row.columns() {
            match column.data {
                rows::ColumnData::Simple(_) => _ = insert.cell(column.id, CellRef::live(timestamp, b"x")),
                rows::ColumnData::Complex(_) => {
                    let before = DeletionTime { timestamp: timestamp - 1, local_deletion_time: 1 };
                    insert.complex(column.id, before, []);
                }
            }
        }
        let insert = insert.finish();
        let is_above = row.deletion().is_live();
        prop_assert_eq!(insert.replaces(&row), is_above);
        prop_assert!(row.is_empty() || !row.replaces(&insert));
    }
}
