//! Counters that several nodes count, while what they have counted comes to the others in any order, again and again.

use std::sync::Arc;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use rows::{
    CellRef, Clustering, ColumnData, CounterId, DeletionTime, Increments, Liveness, Mutation,
    MutationBuilder, PartitionKey, Row, RowBuilder, added_up, context, counted, counter_value, merge_rows,
    only_adds,
};
use schema::{ColumnId, ColumnKind, Table, TableBuilder, TableId};
use types::CqlType;

const N: ColumnId = ColumnId(1);
const NODE_COUNT: usize = 3;

fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(uuid::Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("n", ColumnKind::Regular, CqlType::Counter);
    Arc::new(table.build().expect("a valid table"))
}

/// What happens to a counter.
#[derive(Clone, Debug)]
enum Step {
    /// A node counts these, as one mutation.
    Count(usize, Vec<i64>),
    /// What one node has comes to another.
    Send(usize, usize),
    /// A node writes it to a table file and reads it again.
    Keep(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODE_COUNT;
    prop_oneof![
        (node(), vec(any::<i64>(), 1..3)).prop_map(|(node, more)| Step::Count(node, more)),
        (node(), node()).prop_map(|(from, to)| Step::Send(from, to)),
        node().prop_map(Step::Keep),
    ]
}

/// A mutation of a row for each number that is added, or which deletes the row.
fn mutation(rows: Vec<Row>) -> Mutation {
    let mut builder =
        MutationBuilder::new(table().id(), PartitionKey::new(Bytes::from_static(&[0, 0, 0, 1])));
    rows.into_iter().for_each(|row| _ = builder.row(row));
    builder.finish()
}

fn increments(more: &[i64]) -> Vec<Row> {
    let row = |(number, more): (u32, &i64)| {
        let (path, more) = (CellRef::increment_path(number), more.to_be_bytes());
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        row.complex(N, DeletionTime::LIVE, [CellRef::live(0, &more).with_path(&path)]);
        row.finish()
    };
    (0..).zip(more).map(row).collect()
}

/// What a node has.
#[derive(Clone, Debug, Default)]
struct Held(Option<Row>);

impl Held {
    fn take(&mut self, row: &Row) {
        let rows: Vec<&Row> = self.0.iter().chain([row]).collect();
        self.0 = merge_rows(&rows, DeletionTime::LIVE, &table());
    }

    fn count(&mut self, mutation: &Mutation, node: usize, timestamp: i64) {
        let place = (CounterId([node as u8; 16]), timestamp);
        let counted = counted(mutation, &table(), place, |_| self.0.as_ref());
        counted.rows.iter().for_each(|row| self.take(row));
    }

    fn keep(&mut self) {
        let Some(row) = &self.0 else { return };
        let Some(ColumnData::Complex(shares)) = row.column(N) else { return };
        let mut memory = Vec::new();
        let cell = context::write(shares, &mut memory).expect("few shares");
        let mut again = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, row.deletion());
        match cell.is_tombstone() {
            true => again.complex(N, shares.deletion, []),
            false => {
                let (deletion, shares) = context::read(cell.value).expect("as it was written");
                again.complex(N, deletion, shares)
            }
        };
        self.0 = Some(again.finish());
    }

    fn value(&self) -> i64 {
        match self.0.as_ref().and_then(|row| row.column(N)) {
            Some(ColumnData::Complex(shares)) => counter_value(shares),
            _ => 0,
        }
    }
}

proptest! {
    #[test]
    fn the_value_is_the_sum_of_what_was_added(steps in vec(step(), 1..40)) {
        let (mut nodes, mut sum) = (vec![Held::default(); NODE_COUNT], 0i64);
        for (timestamp, step) in (1..).zip(&steps) {
            match step {
                Step::Count(node, more) => {
                    nodes[*node].count(&mutation(increments(more)), *node, timestamp);
                    sum = more.iter().fold(sum, |sum, more| sum.wrapping_add(*more));
                }
                Step::Send(from, to) => {
                    let sent = nodes[*from].0.clone();
                    sent.iter().for_each(|row| nodes[*to].take(row));
                }
                Step::Keep(node) => nodes[*node].keep(),
            }
        }
        let mut all = Held::default();
        nodes.iter().filter_map(|node| node.0.as_ref()).for_each(|row| all.take(row));
        prop_assert_eq!(all.value(), sum);
    }

    #[test]
    fn what_is_added_up_counts_as_one_after_the_other(
        more in vec(vec(any::<i64>(), 1..4), 1..5), is_wide in any::<bool>(),
    ) {
        let of_place = |(place, more): (usize, &Vec<i64>)| {
            let mut mutation = mutation(increments(more));
            if is_wide && place % 2 == 1 {
                mutation.static_row = mutation.rows.pop();
            }
            mutation
        };
        let mutations: Vec<Mutation> = more.iter().enumerate().map(of_place).collect();
        prop_assert!(mutations.iter().all(only_adds));
        let sum = added_up(&mutations, &table());
        prop_assert!(only_adds(&sum));
        let values = |mutations: &[Mutation]| {
            let (mut held, mut of_static) = (Held::default(), Held::default());
            for (timestamp, mutation) in (1..).zip(mutations) {
                held.count(mutation, 1, timestamp);
                let place = (CounterId([1; 16]), timestamp);
                let counted = counted(mutation, &table(), place, |_| of_static.0.as_ref());
                counted.static_row.iter().for_each(|row| of_static.take(row));
            }
            (held.value(), of_static.value())
        };
        prop_assert_eq!(values(&[sum]), values(&mutations));
    }

    #[test]
    fn what_is_counted_after_a_deletion_counts_from_zero(
        before in vec(any::<i64>(), 1..3), after in vec(any::<i64>(), 0..3), is_of_row in any::<bool>(),
    ) {
        let mut held = Held::default();
        held.count(&mutation(increments(&before)), 1, 5);
        let deletion = DeletionTime { timestamp: 1, local_deletion_time: 9 };
        let of_row = if is_of_row { deletion } else { DeletionTime::LIVE };
        let mut deleted = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, of_row);
        if !is_of_row {
            deleted.complex(N, deletion, []);
        }
        // Its own timestamp says nothing: it was deleted when the node says so.
        let older = held.clone();
        held.count(&mutation(vec![deleted.finish()]), 1, 6);
        prop_assert_eq!(held.value(), 0);
        held.keep();
        after.iter().for_each(|more| held.count(&mutation(increments(&[*more])), 1, held.now()));
        held.keep();
        older.0.iter().for_each(|row| held.take(row));
        prop_assert_eq!(held.value(), after.iter().fold(0i64, |sum, more| sum.wrapping_add(*more)));
    }

    #[test]
    fn bytes_that_are_no_context_are_told(bytes in vec(any::<u8>(), 0..80)) {
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
        if let Some((deletion, shares)) = context::read(&bytes) {
            prop_assert!(shares.clone().all(|share| share.is_share()));
            row.complex(N, deletion, shares);
        }
    }
}

impl Held {
    /// Later than all that it has.
    fn now(&self) -> i64 {
        let shares = self.0.as_ref().and_then(|row| row.column(N));
        let Some(ColumnData::Complex(shares)) = shares else { return 7 };
        shares.cells().map(|share| share.timestamp + 1).fold(7, i64::max)
    }
}

#[test]
fn increments_are_found_where_they_are() {
    let statics = increments(&[1]);
    let mut builder =
        MutationBuilder::new(table().id(), PartitionKey::new(Bytes::from_static(&[0, 0, 0, 1])));
    builder.static_row(statics[0].clone());
    let found = Increments::of(&builder.finish());
    assert_eq!((found.is_static, found.columns, found.rows), (true, vec![N], vec![]));
    let found = Increments::of(&mutation(increments(&[1, 2])));
    assert_eq!((found.is_static, found.columns, found.rows), (false, vec![N], vec![Clustering::EMPTY]));
    let found = Increments::of(&mutation(vec![]));
    assert!(found.is_empty());
}

#[test]
fn a_deletion_of_the_same_mutation_hides_what_is_added() {
    let deletion = DeletionTime { timestamp: 0, local_deletion_time: 9 };
    let mut rows = increments(&[5]);
    rows.push(RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, deletion).finish());
    let mut held = Held::default();
    held.count(&mutation(rows), 1, 3);
    assert_eq!(held.value(), 0);
}
