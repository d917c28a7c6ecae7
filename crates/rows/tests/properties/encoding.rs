//! Rows and mutations survive encoding; hostile bytes do no harm.

use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rows::{
    CellRef, ColumnData, DeletionTime, GATHERED_ROW_BYTES_MAX, LiveRows, Liveness, Mutation, MutationBuilder,
    PartitionKey, Row, RowBuilder, merge_rows, purge_row,
};

use crate::given;

/// Everything of a row, read by its views and written anew.
fn rebuilt(row: &Row) -> Row {
    let mut builder = RowBuilder::new(&row.clustering(), row.liveness(), row.deletion());
    for column in row.columns() {
        match column.data {
            ColumnData::Simple(cell) => _ = builder.cell(column.id, cell),
            ColumnData::Complex(complex) => _ = builder.complex(column.id, complex.deletion, complex.cells()),
        }
    }
    builder.finish()
}

/// Looks at all of a row: none of it may panic, whatever the bytes were.
fn walk(row: &Row) {
    let table = given::table();
    _ = (row.is_plain(), row.is_empty(), row.liveness(), row.deletion());
    _ = row.clustering_components().count();
    for column in row.columns() {
        assert!(row.column(column.id).is_some());
    }
    _ = merge_rows(
        &[row.clone(), row.clone()],
        DeletionTime { timestamp: 2, local_deletion_time: 2 },
        &table,
    );
    _ = LiveRows { now: given::NOW, gc_before: 0 }.filter(row.clone(), &mut 0);
    _ = purge_row(row, given::NOW, 45, |_| true);
}

/// A row whose one value has so many bytes.
fn row_of(value_bytes: usize) -> Row {
    let mut builder = RowBuilder::new(&given::clustering((1, 1)), Liveness::at(7), DeletionTime::LIVE);
    builder.cell(given::TEXT, CellRef::live(7, &vec![b'x'; value_bytes]));
    builder.finish()
}

/// The address of each row's first byte.
fn addresses(rows: &[Row]) -> Vec<usize> {
    rows.iter().map(|row| row.as_encoded().as_ptr() as usize).collect()
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let timestamps = given::any_timestamp();
    (
        vec(any::<u8>(), 0..6),
        given::deletion(given::any_timestamp()),
        option::of(given::static_row(timestamps.clone())),
        vec(given::row(timestamps.clone()), 0..4),
        vec(given::range(timestamps), 0..3),
    )
        .prop_map(|(key, deletion, static_row, rows, ranges)| {
            let mut builder = MutationBuilder::new(given::table().id(), PartitionKey::new(key.into()));
            builder.partition_deletion(deletion);
            if let Some(row) = static_row {
                builder.static_row(row);
            }
            for row in rows {
                builder.row(row);
            }
            for range in ranges {
                builder.range(range);
            }
            builder.finish()
        })
}

fn changed(bytes: &Bytes, changes: &[(prop::sample::Index, u8)], cut: Option<prop::sample::Index>) -> Bytes {
    let mut bytes = bytes.to_vec();
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len() + 1));
    }
    for (place, value) in changes {
        if !bytes.is_empty() {
            let index = place.index(bytes.len());
            bytes[index] = *value;
        }
    }
    bytes.into()
}

proptest! {
    /// Whoever keeps a row of several that were taken together keeps little beside it.
    #[test]
    fn gathered_rows_are_equal_and_only_small_ones_are_copied(
        value_bytes in vec(prop_oneof![0..100usize, 900..1_100usize, Just(100_000)], 1..20),
    ) {
        let rows: Vec<Row> = value_bytes.into_iter().map(row_of).collect();
        let gathered = Row::gather(&rows.iter().collect::<Vec<_>>());
        prop_assert_eq!(&gathered, &rows);
        for ((row, before), after) in rows.iter().zip(addresses(&rows)).zip(addresses(&gathered)) {
            prop_assert_eq!(row.as_encoded().len() > GATHERED_ROW_BYTES_MAX, before == after);
        }
    }

    #[test]
    fn a_row_reads_back_as_written(row in given::row(given::any_timestamp())) {
        let read = Row::from_encoded(row.as_encoded().clone());
        prop_assert_eq!(read.as_ref(), Ok(&row));
        prop_assert_eq!(rebuilt(&row), row.clone());
        walk(&row);
    }

    /// Merging copies columns as they are encoded where it can.
    #[test]
    fn a_merged_row_is_encoded_as_one_written_at_once(
        left in given::row_at((1, 1), given::any_timestamp()),
        right in given::row_at((1, 1), given::any_timestamp()),
    ) {
        if let Some(merged) = merge_rows(&[left, right], DeletionTime::LIVE, &given::table()) {
            prop_assert_eq!(rebuilt(&merged), merged);
        }
    }

    #[test]
    fn any_bytes_are_a_row_or_refused(bytes in vec(prop_oneof![Just(0u8), 0..32u8, any::<u8>()], 0..80)) {
        if let Ok(row) = Row::from_encoded(bytes.into()) {
            walk(&row);
        }
    }

    #[test]
    fn a_changed_row_is_a_row_or_refused(
        row in given::row(given::any_timestamp()),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        if let Ok(row) = Row::from_encoded(changed(row.as_encoded(), &changes, cut)) {
            walk(&row);
        }
    }

    #[test]
    fn a_mutation_reads_back_as_written(mutation in mutation()) {
        prop_assert_eq!(Mutation::from_encoded(mutation.as_encoded().clone()), Ok(mutation));
    }

    #[test]
    fn a_changed_mutation_is_a_mutation_or_refused(
        mutation in mutation(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        if let Ok(mutation) = Mutation::from_encoded(changed(mutation.as_encoded(), &changes, cut)) {
            for row in mutation.rows.iter().chain(&mutation.static_row) {
                walk(row);
            }
        }
    }
}

#[test]
fn a_row_that_calls_itself_plain_and_is_not_is_refused() {
    let dead = DeletionTime { timestamp: 1, local_deletion_time: 1 };
    let row = RowBuilder::new(&given::clustering((0, 0)), rows::Liveness::at(1), dead).finish();
    let mut bytes = row.as_encoded().to_vec();
    let flags = 4 + row.encoded_clustering().len();
    bytes[flags] |= 8;
    assert!(Row::from_encoded(bytes.into()).is_err());
}
