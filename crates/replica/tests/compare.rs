//! Rows that are compared by their hashes: equal exactly where they are the same, and told only of plain ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use replica::{Answer, Asked, Failure, PlannedOn, Request, Told, carry_out};
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RowBuilder,
};
use runtime::{ManualClock, MemoryDisk, Runtime};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId};
use storage::{Directory, LocalShards, LookupsSent, StorageOptions, Unit};
use types::CqlType;
use uuid::Uuid;

/// `k.t (pk int PRIMARY KEY, v text, w text)`
fn table() -> Arc<Table> {
    let table = TableBuilder::new(TableId(Uuid::from_u128(7)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text)
        .column("w", ColumnKind::Regular, CqlType::Text);
    Arc::new(table.build().expect("a sound table"))
}

fn start(shard_count: u16) -> LocalShards {
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "k".into(),
        replication: Replication { class: "org.apache.cassandra.locator.SimpleStrategy".into(), options },
        durable_writes: true,
        tables: [("t".to_owned(), table())].into_iter().collect(),
        types: BTreeMap::new(),
    };
    let schema = Arc::new(Schema::new(1, [keyspace]));
    let mut runtime = Runtime::in_memory(Arc::new(MemoryDisk::new()), 1);
    runtime.clock = Arc::new(ManualClock::default());
    let options =
        StorageOptions { segment_bytes: 64 << 10, ..StorageOptions::new("/node", shard_count, 32 << 20) };
    let directory = Directory::open(&runtime, options).expect("opens");
    directory.recover(&schema).expect("recovers").start_local(&schema).expect("starts")
}

fn run(story: impl Future<Output = ()>) {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&tokio.expect("a runtime"), story);
}

fn key(pk: i32) -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&pk.to_be_bytes()))
}

/// Some columns of the row of a key, all written at that time.
fn row(pk: i32, timestamp: i64, cells: &[(&str, &str)]) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
    for (column, value) in cells {
        let id = table().column(column).expect("a column").id;
        row.cell(id, CellRef::live(timestamp, value.as_bytes()));
    }
    let mut mutation = MutationBuilder::new(table().id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

fn deletion(pk: i32, timestamp: i64) -> Mutation {
    let mut mutation = MutationBuilder::new(table().id(), key(pk));
    mutation.partition_deletion(DeletionTime { timestamp, local_deletion_time: 1_704_067_300 });
    mutation.finish()
}

async fn ask(node: &LocalShards, put: impl FnOnce(&mut BytesMut)) -> Answer {
    let mut body = BytesMut::new();
    Asked::begin(PlannedOn::default(), &mut body);
    put(&mut body);
    carry_out(&node.handles()[0], Asked::read(body.freeze()).expect("it makes sense")).await
}

/// A node of so many shards to which this was written, in this order.
async fn node_with(shard_count: u16, mutations: &[Mutation]) -> LocalShards {
    let node = start(shard_count);
    for mutation in mutations {
        let written =
            ask(&node, |out| Request::put_write(Unit::Each, std::slice::from_ref(mutation), out)).await;
        assert!(matches!(written, Answer::Written(written) if written.done.len() == 1));
    }
    node
}

/// What a node says of rows with these keys and hashes.
async fn compare(node: &LocalShards, rows: &[(i32, u128)]) -> Vec<Told> {
    let rows: Vec<(PartitionKey, u128)> = rows.iter().map(|(pk, hash)| (key(*pk), *hash)).collect();
    let rows: Vec<(&PartitionKey, u128)> = rows.iter().map(|(key, hash)| (key, *hash)).collect();
    match ask(node, |out| Request::put_compare(table().id(), &rows, out)).await {
        Answer::Compared(told) => told,
        other => panic!("{other:?}"),
    }
}

/// The hashes of rows of a node, as it compares them.
async fn hashes(node: &LocalShards, pks: &[i32]) -> Vec<Option<u128>> {
    let mut hashes = Vec::new();
    for pk in pks {
        let owner = node.handles()[0].shards().owner(key(*pk).token);
        let lookups = Arc::new(LookupsSent { table: table(), keys: vec![key(*pk)], now: 0 });
        let rows = node.handles()[0].send_hashed_lookups(owner, lookups).await.expect("it looks");
        hashes.push(rows[0].as_ref().map(|row| row.hash));
    }
    hashes
}

#[test]
fn rows_are_equal_however_they_came_about() {
    run(async {
        let whole = node_with(1, &[row(1, 5, &[("v", "a"), ("w", "b")]), row(2, 5, &[("v", "c")])]).await;
        let parts = [row(2, 5, &[("v", "c")]), row(1, 5, &[("w", "b")]), row(1, 5, &[("v", "a")])];
        let in_parts = node_with(3, &parts).await;
        let told = hashes(&whole, &[1, 2, 3]).await;
        assert_eq!(told, hashes(&in_parts, &[1, 2, 3]).await);
        let [Some(first), Some(second), Some(0)] = told[..] else { panic!("{told:?}") };
        assert_ne!(first, second);
        let compared = compare(&in_parts, &[(1, first), (2, second), (3, 0)]).await;
        assert_eq!(compared, [Told::Equal, Told::Equal, Told::Equal]);
    });
}

#[test]
fn rows_that_differ_in_a_value_or_in_a_time_are_told() {
    run(async {
        let mut seen = Vec::new();
        for cells in
            [row(1, 5, &[("v", "a")]), row(1, 6, &[("v", "a")]), row(1, 5, &[("v", "b")]), row(1, 5, &[])]
        {
            let node = node_with(1, std::slice::from_ref(&cells)).await;
            let hash = hashes(&node, &[1]).await[0].expect("a plain row");
            for other in &seen {
                let told = compare(&node, &[(1, *other)]).await;
                assert_eq!(told, [Told::Other(cells.rows[0].clone())]);
            }
            seen.push(hash);
        }
    });
}

#[test]
fn of_a_row_that_was_deleted_or_is_not_there_nothing_is_told() {
    run(async {
        let node = node_with(1, &[row(1, 5, &[("v", "a")]), deletion(1, 9), deletion(2, 9)]).await;
        assert_eq!(hashes(&node, &[1, 2]).await, [None, None]);
        let compared = compare(&node, &[(1, 7), (2, 0), (3, 7)]).await;
        assert_eq!(compared, [Told::Unknown, Told::Unknown, Told::Unknown]);
    });
}

#[test]
fn a_table_that_is_not_known_or_has_many_rows_of_a_key_is_told() {
    run(async {
        let node = start(1);
        let other = TableId(Uuid::from_u128(8));
        let answer = ask(&node, |out| Request::put_compare(other, &[(&key(1), 0)], out)).await;
        assert_eq!(answer, Answer::Failed(Failure::NoTable { table: other }));
    });
}

#[test]
fn no_rows_and_too_many_are_no_request() {
    run(async {
        let mut body = BytesMut::new();
        Asked::begin(PlannedOn::default(), &mut body);
        Request::put_compare(table().id(), &[(&key(1), 0)], &mut body);
        assert!(Asked::read(body.clone().freeze()).is_ok());
        // The count behind the epochs, the kind and the table's id.
        for count in [0u8, 17] {
            let mut spoiled = body.clone();
            spoiled[33] = count;
            spoiled.extend_from_slice(&body[37..].repeat(usize::from(count.saturating_sub(1))));
            let body = if count == 0 { spoiled.freeze().slice(..37) } else { spoiled.freeze() };
            assert!(Asked::read(body).is_err());
        }
    });
}
