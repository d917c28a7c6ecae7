//! Does a shard go on with reads that others have begun in its place, from where these stand?

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use read::{PartitionRows, ReadCommand, ReadPage, ReadTarget};
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RingRange,
    RowBuilder,
};
use runtime::MemoryDisk;
use schema::Table;
use storage::{Shard, ShardHandle, StorageError, StorageOptions};

use crate::given::*;

/// The shard that is visited, by the other one.
const HOST: usize = 1;
const KEYS: usize = 40;
/// Elements of a map that is a large row.
const LARGE: u32 = 1_400;

/// Small ones of two shards.
fn two_shards() -> StorageOptions {
    StorageOptions { segment_bytes: 8 << 20, ..options(2) }
}

/// Keys of the host.
fn keys(node: &Node) -> Vec<i32> {
    let shards = node.shards.handles()[0].shards();
    (0..).filter(|pk| shards.owner(key(*pk).token) == HOST).take(KEYS).collect()
}

/// `INSERT INTO table (pk [, c], m) VALUES (pk [, 0], {…})`: of so many elements.
fn insert_map(table: &Table, pk: i32, element_count: u32) -> Mutation {
    let place = if table.clustering_types().is_empty() { Clustering::EMPTY } else { clustering(0) };
    let mut row = RowBuilder::new(&place, Liveness::at(1), DeletionTime::LIVE);
    let values: Vec<_> =
        (0..element_count).map(|number| (number.to_be_bytes(), format!("{number:0100}"))).collect();
    let cells = values.iter().map(|(path, value)| CellRef::live(1, value.as_bytes()).with_path(path));
    row.complex(table.column("m").expect("column m").id, DeletionTime::LIVE, cells);
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

/// A disk with a file of `k.t`, two of `k.lone` that have newer rows for older ones and rows of their own, and one of
/// each table of large rows, of which nothing is in memory after a start.
async fn cold_disk() -> MemoryDisk {
    let disk = MemoryDisk::new();
    let node = Node::start(&disk, two_shards()).expect("starts");
    for pk in keys(&node) {
        for c in 0..3 {
            node.write(pk, insert(&table(), pk, c, &format!("{pk}").repeat(500), 1)).await.expect("writes");
        }
    }
    for generation in 1..3 {
        for pk in keys(&node).into_iter().filter(|pk| pk % (generation + 1) != 0) {
            let value = format!("{pk} of {generation} ").repeat(500);
            node.write(pk, insert_alone(&lone(), pk, &value, generation.into())).await.expect("writes");
        }
        node.shard(HOST).flush(lone().id()).await.expect("flushes");
    }
    for pk in keys(&node).into_iter().take(3) {
        for name in ["large", "alone"] {
            node.write(pk, insert_map(&named(name), pk, LARGE)).await.expect("writes");
        }
    }
    node.shards.stop(true).await.expect("stops");
    disk
}

/// What comes of something, which comes in time.
async fn ended<T>(doing: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), doing).await.expect("it comes to an end")
}

/// Reads in the host's place, if that is found asleep.
async fn read(node: &Node, command: &ReadCommand) -> ReadPage {
    ended(node.shards.handles()[0].read(HOST, command)).await.expect("reads")
}

fn filter_checks(node: &Node) -> u64 {
    node.shard(HOST).table(table().id()).expect("there is k.t").stats().filter_checks
}

fn left_read_count(node: &Node) -> u64 {
    node.shard(HOST).visits().left_read_count
}

#[test]
fn a_read_that_a_visitor_began_is_not_begun_anew() {
    run(async {
        let node = Node::start(&cold_disk().await, two_shards()).expect("starts");
        for (before, pk) in (0..).zip(keys(&node)) {
            let page = read(&node, &command(&table(), ReadTarget::Keys(vec![key(pk)]))).await;
            assert_eq!(page.partitions.iter().map(|partition| partition.rows.len()).sum::<usize>(), 3);
            assert_eq!(filter_checks(&node), before + 1, "each file is asked once whether it has the key");
        }
        let left_count = left_read_count(&node);
        assert!((1..KEYS as u64).contains(&left_count), "some find their host asleep: {left_count}");
        assert!(node.shard(HOST).visits().count < KEYS as u64 - left_count);
    });
}

/// Pages of a read, each in the host's place if that is found asleep.
async fn pages_of_visits(node: &Node, mut command: ReadCommand) -> Vec<PartitionRows> {
    let mut partitions = Vec::new();
    loop {
        let page = read(node, &command).await;
        partitions.extend(page.partitions);
        let Some(next) = page.next else { return partitions };
        command.resume = Some(next);
    }
}

/// Reads of each kind: of one key and several, of a range, by pages that end within partitions, of large rows.
fn reads(keys: &[i32]) -> Vec<ReadCommand> {
    let of_keys = |table: &Arc<Table>, keys: &[i32]| {
        let keys: Vec<PartitionKey> = keys.iter().map(|pk| key(*pk)).collect();
        command(table, ReadTarget::Keys(keys))
    };
    let mut reads = Vec::new();
    for table in [table(), lone(), named("large"), named("alone")] {
        reads.extend([of_keys(&table, &keys[..1]), of_keys(&table, &keys[..20])]);
        reads.push(command(&table, ReadTarget::Range(RingRange::ALL)));
    }
    let by_pages = reads.clone().into_iter().map(|mut read| {
        read.limits.row_count = 2;
        read
    });
    reads.extend(by_pages.collect::<Vec<_>>());
    reads
}

#[test]
fn what_visitors_begin_comes_out_as_if_the_shard_had_read_it() {
    run(async {
        let disk = cold_disk().await;
        // Of each its own copy, since none of them stops.
        let start = || Node::start(&disk.crash(0), two_shards()).expect("starts");
        let (mut left_count, read_count) = (0, reads(&keys(&start())).len());
        for index in 0..read_count {
            let read = |node: &Node| reads(&keys(node)).swap_remove(index);
            let warm = start();
            let expected = pages(warm.shard(HOST), read(&warm)).await;
            for _ in 0..3 {
                let node = start();
                let command = read(&node);
                let is_paged = command.limits.row_count == 2;
                let found = pages_of_visits(&node, command).await;
                assert_eq!(flat_pages(&found), flat_pages(&expected), "read {index}, by pages: {is_paged}");
                left_count += left_read_count(&node);
            }
        }
        assert!(left_count > read_count as u64, "{left_count}");
    });
}

/// Rows as they are encoded, each with its key: partitions that a page cuts in two are one.
fn flat_pages(partitions: &[PartitionRows]) -> Vec<(PartitionKey, Vec<u8>)> {
    let rows = |partition: &PartitionRows| {
        let rows = partition.rows.iter().map(|row| (partition.key.clone(), row.as_encoded().to_vec()));
        rows.collect::<Vec<_>>()
    };
    partitions.iter().flat_map(rows).collect()
}

fn is_pending(reading: Pin<&mut impl Future>) -> bool {
    reading.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[test]
fn a_read_that_nobody_waits_for_is_dropped_by_the_shard() {
    run(async {
        let node = Node::start(&cold_disk().await, two_shards()).expect("starts");
        // Nobody finds a shard asleep that has not begun.
        tokio::task::yield_now().await;
        let keys = keys(&node);
        for pk in &keys {
            let command = command(&table(), ReadTarget::Keys(vec![key(*pk)]));
            let mut reading = Box::pin(node.shards.handles()[0].read(HOST, &command));
            assert!(is_pending(reading.as_mut()), "a chunk is lacking, or the host is awake");
        }
        assert!(filter_checks(&node) > 0, "some were begun in the host's place");
        let all = ended(pages(node.shard(HOST), command(&table(), ReadTarget::Range(RingRange::ALL)))).await;
        assert_eq!(all.len(), KEYS, "there is room to read");
        assert_eq!(left_read_count(&node), 0, "whoever asked has gone before the host went on");
        let page = read(&node, &command(&table(), ReadTarget::Keys(vec![key(keys[0])]))).await;
        assert_eq!(page.partitions.len(), 1);
    });
}

#[test]
fn a_shard_that_ends_answers_those_who_wait() {
    run(async {
        let node = Node::start(&cold_disk().await, two_shards()).expect("starts");
        let [visitor, host] = [0, HOST].map(|shard| node.shards.handles()[shard].clone());
        let begin = |pk: i32| {
            let (visitor, command) = (visitor.clone(), command(&table(), ReadTarget::Keys(vec![key(pk)])));
            tokio::task::spawn_local(async move { visitor.read(HOST, &command).await })
        };
        let keys = keys(&node);
        // Before the host has a turn, and as it ends.
        let mut reads: Vec<_> = keys.iter().map(|pk| begin(*pk)).collect();
        let stopping = tokio::task::spawn_local(node.shards.stop(true));
        for pk in keys.iter().cycle().take_while(|_| !stopping.is_finished()) {
            reads.push(begin(*pk));
            tokio::task::yield_now().await;
        }
        assert!(host.local().visits().left_read_count > 0, "some were left before it ended");
        // Each came to its end before the shard did, or is told that it did not.
        for reading in reads {
            _ = ended(reading).await;
        }
    });
}

thread_local! {
    /// Who comes in the midst of the host's turn, where none but a shard itself is at hand.
    static VISITOR: RefCell<Option<ShardHandle>> = const { RefCell::new(None) };
}

/// Between what a shard takes up last and its end a visitor leaves a read. Shards that are tasks of a test are not
/// interrupted there: so a message of that turn has the visitor come.
#[test]
fn who_leaves_a_read_in_a_shards_last_turn_is_told_that_it_has_ended() {
    run(async {
        // Room to read for all of them, so that none is refused a visit.
        let options = StorageOptions { read_bytes: 1 << 30, ..two_shards() };
        let node = Node::start(&MemoryDisk::new(), options).expect("starts");
        let pk = keys(&node)[0];
        // A visitor always leaves a large row, in memory or not.
        node.write(pk, insert_map(&named("alone"), pk, LARGE)).await.expect("writes");
        VISITOR.set(Some(node.shards.handles()[0].clone()));
        let visit = move |_: Rc<Shard>| async move {
            let begin = |_| {
                let visitor = VISITOR.with_borrow(Clone::clone).expect("the visitor is there");
                let command = command(&named("alone"), ReadTarget::Keys(vec![key(pk)]));
                let mut reading = Box::pin(async move { visitor.read(HOST, &command).await });
                assert!(is_pending(reading.as_mut()), "it is left, or the host is awake");
                tokio::task::spawn_local(reading)
            };
            (0..16).map(begin).collect::<Vec<_>>()
        };
        let (shards, host) = (node.shards.shards().clone(), Rc::clone(node.shard(HOST)));
        let (mut visits, mut stopping) = (Vec::new(), pin!(node.shards.stop(false)));
        // Whenever the last message is sent, a visit stands before it.
        loop {
            let mut visit = Box::pin(shards.on(HOST, visit));
            assert!(is_pending(visit.as_mut()), "the host has not had a turn");
            visits.push(visit);
            if !is_pending(stopping.as_mut()) {
                break;
            }
            tokio::task::yield_now().await;
        }
        let mut last = Ok(());
        for visit in visits {
            for reading in ended(visit).await.expect("each visit is before the end") {
                last = ended(reading).await.expect("no panic").map(|_| ());
            }
        }
        assert!(matches!(last, Err(StorageError::ShardGone { .. })), "{last:?}");
        assert!(host.visits().left_read_count > 0, "some were left before");
        VISITOR.take();
    });
}
