//! A replica that is asked by bytes to promise, to accept, and to write what was chosen.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use read::{ReadCommand, ReadTarget};
use replica::{
    Answer, Ballot, Committed, CommittedIn, PaxosAnswer, PaxosRequest, Phase, Promise, Proposal, Proposing,
    Request, Wanted, recall_accepted,
};
use rows::{
    CellRef, Clustering, ColumnData, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RowBuilder, Unfiltered,
};
use runtime::MemoryDisk;
use schema::{
    ClusteringOrder, ColumnId, ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId,
};
use storage::{Emptying, LocalShards};
use types::CqlType;
use uuid::Uuid;

use common::{ask, run};

const PROPOSER: Uuid = Uuid::from_u128(5);

fn id(number: u128) -> TableId {
    TableId(Uuid::from_u128(number))
}

fn table() -> Arc<Table> {
    let table = TableBuilder::new(id(7), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Int);
    Arc::new(table.build().expect("a sound table"))
}

/// As much of the system's tables as a replica needs.
fn system() -> [Table; 2] {
    let paxos = TableBuilder::new(id(8), "system", "paxos")
        .column("row_key", ColumnKind::PartitionKey(0), CqlType::Blob)
        .column("cf_id", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Uuid)
        .column("in_progress_ballot", ColumnKind::Regular, CqlType::Timeuuid)
        .column("most_recent_commit", ColumnKind::Regular, CqlType::Blob)
        .column("most_recent_commit_at", ColumnKind::Regular, CqlType::Timeuuid)
        .column("proposal", ColumnKind::Regular, CqlType::Blob)
        .column("proposal_ballot", ColumnKind::Regular, CqlType::Timeuuid);
    let operations = TableBuilder::new(id(9), "system", "operations")
        .column("row_key", ColumnKind::PartitionKey(0), CqlType::Blob)
        .column("cf_id", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Uuid)
        .column("id", ColumnKind::Clustering(1, ClusteringOrder::Asc), CqlType::Timeuuid)
        .column("origin", ColumnKind::Regular, CqlType::Timeuuid)
        .column("outcome", ColumnKind::Regular, CqlType::Blob);
    [paxos, operations].map(|table| table.build().expect("a sound table"))
}

fn schema() -> Arc<Schema> {
    let keyspace = |name: &str, tables: Vec<Arc<Table>>| Keyspace {
        name: name.into(),
        replication: Replication { class: "LocalStrategy".into(), options: BTreeMap::new() },
        durable_writes: true,
        tables: tables.into_iter().map(|table| (table.name().to_owned(), table)).collect(),
        types: BTreeMap::new(),
    };
    let system = keyspace("system", system().map(Arc::new).to_vec());
    Arc::new(Schema::new(1, [keyspace("k", vec![table()]), system]))
}

async fn start(disk: &Arc<MemoryDisk>) -> LocalShards {
    let node = common::start(disk, 1, &schema());
    for handle in node.handles() {
        recall_accepted(handle.local()).await.expect("what was accepted can be read");
    }
    node
}

fn key() -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&1i32.to_be_bytes()))
}

fn ballot(micros: i64) -> Ballot {
    Ballot::new(micros, PROPOSER)
}

/// The value becomes that number.
fn change(number: i32) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::NONE, DeletionTime::LIVE);
    row.cell(ColumnId(1), CellRef::live(number.into(), &number.to_be_bytes()));
    let mut mutation = MutationBuilder::new(table().id(), key());
    mutation.row(row.finish());
    mutation.finish()
}

/// That at the time of that number.
fn proposal(number: i32) -> Box<Proposal> {
    let ballot = ballot(number.into());
    let (timestamp, mutations) = (number.into(), vec![change(number)]);
    Box::new(Proposal { ballot, origin: ballot, planned_on: 7, timestamp, mutations })
}

fn propose(number: i32, known: Option<Box<Proposal>>) -> Phase {
    let (proposal, next, seen) = (proposal(number), ballot(number.into()).next(), Vec::new());
    Phase::Propose(Proposing { proposal, next, known, seen })
}

async fn say(node: &LocalShards, phase: Phase) -> PaxosAnswer {
    let request = PaxosRequest { table: table().id(), key: key(), phase };
    match ask(node, |out| Request::put_paxos(&request, out)).await {
        Answer::Paxos(answer) => answer,
        other => panic!("{other:?}"),
    }
}

async fn promise(node: &LocalShards, micros: i64) -> Promise {
    match say(node, Phase::Prepare(ballot(micros))).await {
        PaxosAnswer::Promised(promise) => promise,
        other => panic!("{other:?}"),
    }
}

async fn commit(node: &LocalShards, number: i32) {
    let committed = Committed::from(&*proposal(number));
    let told = [CommittedIn { table: table().id(), key: key(), committed }];
    let answer = ask(node, |out| Request::put_committed(&told, out)).await;
    assert!(matches!(&answer, Answer::Written(written) if written.done.contains(0)), "{answer:?}");
}

/// The value of the row, or that there is none; `None` when the read would have to wait.
async fn value(node: &LocalShards, wanted: Wanted) -> Option<Option<i32>> {
    let command = ReadCommand::new(table(), ReadTarget::Keys(vec![key()]), 9);
    let mut read = Box::pin(ask(node, |out| Request::put_read(wanted, &command, out)));
    // So long as an errand to the other shard takes, and not as long as somebody waits for what is accepted.
    for _ in 0..100 {
        if let Some(answer) = read.as_mut().now_or_never() {
            let Answer::Rows(page) = answer else { panic!("{answer:?}") };
            let items = page.partitions.iter().flat_map(|partition| &partition.items);
            let mut rows = items.filter_map(|item| match item {
                Unfiltered::Row(row) => row.column(ColumnId(1)),
                _ => None,
            });
            return Some(rows.next().map(|column| match column {
                ColumnData::Simple(cell) => i32::from_be_bytes(cell.value.try_into().expect("an int")),
                other => panic!("{other:?}"),
            }));
        }
        tokio::task::yield_now().await;
    }
    None
}

#[test]
fn what_is_accepted_is_waited_for_by_reads_that_want_what_is_written() {
    run(async {
        let node = start(&Arc::new(MemoryDisk::new())).await;
        assert_eq!(say(&node, propose(10, None)).await, PaxosAnswer::Done);
        assert_eq!(value(&node, Wanted::Rows).await, Some(None), "it is not written");
        assert_eq!(value(&node, Wanted::WrittenRows).await, None);
        assert_eq!(say(&node, Phase::Write(proposal(10))).await, PaxosAnswer::Done);
        assert_eq!(value(&node, Wanted::WrittenRows).await, Some(Some(10)));
        assert_eq!(promise(&node, 20).await.accepted, Some(proposal(10)), "others may not have it");
        commit(&node, 10).await;
        let promise = promise(&node, 30).await;
        assert_eq!((promise.accepted, promise.committed), (None, ballot(10)));
    });
}

#[test]
fn what_is_known_to_be_chosen_is_written_with_what_is_accepted_next() {
    run(async {
        let node = start(&Arc::new(MemoryDisk::new())).await;
        assert_eq!(say(&node, propose(10, None)).await, PaxosAnswer::Done);
        assert_eq!(say(&node, propose(11, Some(proposal(10)))).await, PaxosAnswer::Done);
        assert_eq!(value(&node, Wanted::Rows).await, Some(Some(10)));
        assert_eq!(value(&node, Wanted::WrittenRows).await, None, "the next one is not written");
        // Who has written that one is told no more than that it was chosen.
        assert_eq!(say(&node, Phase::Write(proposal(11))).await, PaxosAnswer::Done);
        let next = propose(12, Some(proposal(11))).without_known_changes();
        assert_eq!(say(&node, next).await, PaxosAnswer::Done);
        assert_eq!(promise(&node, 20).await.committed, ballot(11));
    });
}

/// Who proposes what comes next may know more of what was chosen before than that the table was emptied since.
#[test]
fn what_was_chosen_before_the_table_was_emptied_is_not_written_behind_that() {
    run(async {
        let node = start(&Arc::new(MemoryDisk::new())).await;
        let before = Box::new(Proposal { planned_on: 5, ..*proposal(10) });
        let (next, seen) = (before.ballot.next(), Vec::new());
        let proposing_before = Proposing { proposal: before.clone(), next, known: None, seen };
        assert_eq!(say(&node, Phase::Propose(proposing_before)).await, PaxosAnswer::Done);
        for handle in node.handles() {
            let store = handle.local().table(table().id()).expect("it is there");
            store.truncate(Emptying::Agreed { epoch: 6 }).await.expect("empties");
        }
        assert_eq!(say(&node, Phase::Write(before.clone())).await, PaxosAnswer::Done);
        assert_eq!(value(&node, Wanted::WrittenRows).await, Some(None), "nothing is waited for");
        assert_eq!(say(&node, propose(11, Some(before))).await, PaxosAnswer::Done);
        assert_eq!(value(&node, Wanted::Rows).await, Some(None));
        assert_eq!(promise(&node, 20).await.committed, ballot(10), "it was chosen all the same");
    });
}

#[test]
fn what_was_accepted_before_a_start_is_waited_for() {
    run(async {
        let disk = Arc::new(MemoryDisk::new());
        let node = start(&disk).await;
        assert_eq!(say(&node, propose(10, None)).await, PaxosAnswer::Done);
        node.stop(false).await.expect("stops");
        let node = start(&disk).await;
        assert_eq!(value(&node, Wanted::WrittenRows).await, None);
        assert_eq!(say(&node, Phase::Write(proposal(10))).await, PaxosAnswer::Done);
        commit(&node, 10).await;
        assert_eq!(value(&node, Wanted::WrittenRows).await, Some(Some(10)));
        node.stop(false).await.expect("stops");
        let node = start(&disk).await;
        assert_eq!(value(&node, Wanted::WrittenRows).await, Some(Some(10)), "nothing is left");
    });
}

#[test]
fn what_was_accepted_later_is_not_forgotten_for_what_is_committed() {
    run(async {
        let node = start(&Arc::new(MemoryDisk::new())).await;
        assert_eq!(say(&node, propose(10, None)).await, PaxosAnswer::Done);
        assert_eq!(say(&node, propose(11, Some(proposal(10)))).await, PaxosAnswer::Done);
        commit(&node, 10).await;
        let promise = promise(&node, 20).await;
        assert_eq!((promise.accepted, promise.committed), (Some(proposal(11)), ballot(10)));
    });
}
