//! A node that is asked by bytes to count.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use read::{ReadCommand, ReadTarget};
use replica::{Answer, Failure, Request};
use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder, counter_value,
};
use runtime::MemoryDisk;
use schema::{ColumnId, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId};
use storage::{LocalShards, Unit};
use types::CqlType;
use uuid::Uuid;

use common::{ask, run};

const N: ColumnId = ColumnId(1);

fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("n", ColumnKind::Regular, CqlType::Counter);
    Arc::new(table.build().expect("a sound table"))
}

fn schema() -> Arc<Schema> {
    let keyspace = Keyspace {
        name: "k".into(),
        replication: Replication { class: "LocalStrategy".into(), options: BTreeMap::new() },
        durable_writes: true,
        tables: [("t".to_owned(), table())].into_iter().collect(),
        types: BTreeMap::new(),
    };
    Arc::new(Schema::new(1, [keyspace]))
}

/// A node; its id follows from the seed.
fn start(seed: u64) -> LocalShards {
    common::start(&Arc::new(MemoryDisk::new()), seed, &schema())
}

fn key() -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&1i32.to_be_bytes()))
}

/// A change of the counter's cells.
fn mutation(path: &[u8], value: &[u8]) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
    row.complex(N, DeletionTime::LIVE, [CellRef::live(1, value).with_path(path)]);
    let mut mutation = MutationBuilder::new(table().id(), key());
    mutation.row(row.finish());
    mutation.finish()
}

fn increment(more: i64) -> Mutation {
    mutation(&CellRef::increment_path(0), &more.to_be_bytes())
}

async fn value(node: &LocalShards) -> i64 {
    let handle = &node.handles()[0];
    let owner = handle.shards().owner(key().token);
    let command = ReadCommand::new(table(), ReadTarget::Keys(vec![key()]), 9);
    let page = handle.read(owner, &command).await.expect("reads");
    match page.partitions.first().and_then(|partition| partition.rows[0].column(N)) {
        Some(ColumnData::Complex(shares)) => counter_value(shares),
        _ => 0,
    }
}

#[test]
fn what_is_counted_may_be_written_again_and_elsewhere() {
    run(async {
        let (node, other) = (start(1), start(2));
        let mut last = None;
        for more in [5, -7, 40] {
            let answer = ask(&node, |out| Request::put_count(&increment(more), out)).await;
            let Answer::Counted(counted) = answer else { panic!("{answer:?}") };
            // Each time all that was counted so far.
            for node in [&node, &other] {
                let written =
                    ask(node, |out| Request::put_write(Unit::All, std::slice::from_ref(&counted), out)).await;
                assert!(matches!(written, Answer::Written(written) if written.failure.is_none()));
            }
            last = Some(counted);
        }
        assert_eq!((value(&node).await, value(&other).await), (38, 38));
        // An older share does no harm.
        let Answer::Counted(counted) = ask(&other, |out| Request::put_count(&increment(2), out)).await else {
            panic!("the other one counts, too")
        };
        let last = [last.expect("three"), counted];
        _ = ask(&node, |out| Request::put_write(Unit::Each, &last, out)).await;
        assert_eq!(value(&node).await, 40);
    });
}

#[test]
fn cells_that_a_counter_does_not_have_are_refused() {
    run(async {
        let node = start(1);
        let share = [7; 16];
        let to_count = [mutation(&share, &[0; 8]), mutation(&[0; 4], &[0; 4]), mutation(&[0; 5], &[0; 8])];
        for wrong in to_count {
            let answer = ask(&node, |out| Request::put_count(&wrong, out)).await;
            assert!(matches!(answer, Answer::Failed(Failure::Other { .. })), "{answer:?}");
        }
        let reserved = mutation(&[u8::MAX; 16], &[0; 8]);
        let to_write = [increment(1), reserved, mutation(&share, &[0; 7]), mutation(&share[1..], &[0; 8])];
        for wrong in to_write {
            let answer = ask(&node, |out| Request::put_write(Unit::All, &[wrong], out)).await;
            let Answer::Written(written) = answer else { panic!("{answer:?}") };
            assert!(written.done.is_empty() && written.failure.is_some(), "{written:?}");
        }
        assert_eq!(value(&node).await, 0);
    });
}
