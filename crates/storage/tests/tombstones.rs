//! A partition of which nearly all is deleted, read page by page: what does that hold, and whom does it keep waiting?

#![expect(clippy::expect_used, reason = "a test ends at the first thing that does not go well")]
#![allow(unsafe_code, reason = "it counts what is allocated")]

#[path = "node/given.rs"]
#[allow(dead_code, reason = "other tests need more of it")]
mod given;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use read::{ReadCommand, ReadPage, ReadTarget, TombstoneThresholds};
use rows::{Bound, BoundKind, DeletionTime, Liveness, MutationBuilder, RangeTombstone, RowBuilder, Slice};
use runtime::MemoryDisk;
use schema::{ColumnKind, Table, TableBuilder};
use storage::{StorageError, StorageOptions};
use types::CqlType;

use given::*;

struct Counting;

thread_local! {
    /// Bytes that the thread holds, and how many it has held at most.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: all is done by the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size().cast_signed());
        MOST.set(MOST.get().max(HELD.get()));
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size().cast_signed());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is read ahead of each file at most.
const READ_AHEAD_BYTES: isize = 256 << 10;
/// What a page of a hundred rows may hold beside the cache, however long its partition is: of two files what was read
/// ahead, what is read next, and that as it lies on the disk; and a quarter of a megabyte for the rest.
const HELD_BYTES_MAX: isize = 2 * 3 * READ_AHEAD_BYTES + (256 << 10);
const CACHE_BYTES: usize = 256 << 10;
const PAGE_ROWS: u32 = 100;
const ROWS_PER_WRITE: i32 = 100;
const DELETION: DeletionTime =
    DeletionTime { timestamp: 1_704_067_200_000_000, local_deletion_time: 1_704_067_200 };

/// What lies in the partition.
#[derive(Clone, Copy, Debug)]
struct Partition {
    row_count: i32,
    /// One row in so many lives.
    live_every: i32,
    /// Is each deleted row a range of its own?
    by_ranges: bool,
}

impl Partition {
    fn is_live(&self, c: i32) -> bool {
        c % self.live_every == self.live_every - 1
    }

    fn write(&self, table: &Table, places: std::ops::Range<i32>) -> rows::Mutation {
        let mut mutation = MutationBuilder::new(table.id(), key(1));
        for c in places {
            if self.is_live(c) {
                mutation.row(RowBuilder::new(&clustering(c), Liveness::at(1), DeletionTime::LIVE).finish());
            } else if self.by_ranges {
                let bound = |kind| Bound { kind, prefix: clustering(c) };
                let (start, end) = (bound(BoundKind::InclusiveStart), bound(BoundKind::InclusiveEnd));
                mutation.range(RangeTombstone { slice: Slice { start, end }, deletion: DELETION });
            } else {
                mutation.row(RowBuilder::new(&clustering(c), Liveness::NONE, DELETION).finish());
            }
        }
        mutation.finish()
    }

    /// A node with the partition: a half in two files, a half in memory.
    async fn written(&self, tombstones: TombstoneThresholds) -> Node {
        let options = StorageOptions {
            memtable_bytes: 256 << 20,
            cache_bytes: CACHE_BYTES,
            cache_borrows: false,
            segment_bytes: 1 << 20,
            tombstones,
            ..options(1)
        };
        let (node, table) = (Node::start(&MemoryDisk::new(), options).expect("starts"), table());
        for c in (0..self.row_count).step_by(ROWS_PER_WRITE as usize) {
            let mutation = self.write(&table, c..c + ROWS_PER_WRITE);
            node.write(1, mutation).await.expect("writes");
            if c == self.row_count / 4 / ROWS_PER_WRITE * ROWS_PER_WRITE || c == self.row_count / 2 {
                node.shard(0).flush(table.id()).await.expect("flushes");
            }
        }
        assert_eq!(node.shard(0).table(table.id()).expect("the table").stats().sstable_count, 2);
        node
    }
}

fn page_of(table: &Arc<Table>) -> ReadCommand {
    let mut command = command(table, ReadTarget::Keys(vec![key(1)]));
    command.limits.row_count = PAGE_ROWS;
    command
}

/// Reads a page; with it what was held for it at most.
async fn read(node: &Node, command: &ReadCommand) -> (Result<ReadPage, StorageError>, isize) {
    let before = HELD.get();
    MOST.set(before);
    let page = node.shard(0).read(command).await;
    (page, MOST.get() - before)
}

/// Reads all pages. Each holds no more than it may, and they give the live rows and nothing else.
fn check(partition: Partition) {
    run(async move {
        let node = partition.written(TombstoneThresholds::NONE).await;
        let mut command = page_of(&table());
        // Indexes and the cache fill themselves.
        read(&node, &command).await.0.expect("reads");
        let (mut found, mut tombstone_count, mut page_count) = (Vec::new(), 0, 0);
        loop {
            let (page, held) = read(&node, &command).await;
            let page = page.expect("reads");
            assert!(held < HELD_BYTES_MAX, "{partition:?}: page {page_count} held {held} bytes");
            found.extend(page.partitions.iter().flat_map(flat).map(|(_, c, _)| c));
            tombstone_count += page.tombstone_count();
            page_count += 1;
            let Some(next) = page.next else { break };
            let place = found.last().map(|c| clustering(*c));
            assert_eq!(next.clustering, place, "it goes on behind the last row that it gave");
            assert!(command.resume.is_none_or(|before| before.row_count < next.row_count), "it goes on");
            command.resume = Some(next);
        }
        let live: Vec<i32> = (0..partition.row_count).filter(|c| partition.is_live(*c)).collect();
        assert_eq!(found, live, "{partition:?}");
        assert_eq!(page_count, live.len() / PAGE_ROWS as usize + 1);
        let dead_count = partition.row_count as u64 - live.len() as u64;
        let edges = if partition.by_ranges { 2 } else { 1 };
        assert_eq!(tombstone_count, edges * dead_count, "{partition:?}");
    });
}

#[test]
fn a_page_holds_no_more_of_a_long_deleted_partition_than_of_a_short_one() {
    for row_count in [40_000, 200_000] {
        check(Partition { row_count, live_every: 1_000, by_ranges: false });
    }
}

#[test]
fn a_page_among_many_deleted_ranges_holds_no_more() {
    for row_count in [4_000, 60_000] {
        check(Partition { row_count, live_every: 500, by_ranges: true });
    }
}

/// A read that comes upon nothing but tombstones goes over all of them, as Cassandra's: a page that is empty would
/// say that it is over. Meanwhile others have their turns.
#[test]
fn a_page_that_comes_upon_nothing_but_tombstones_lets_others_go_first() {
    run(async {
        let dead = Partition { row_count: 200_000, live_every: i32::MAX, by_ranges: false };
        let node = dead.written(TombstoneThresholds::NONE).await;
        let (is_over, turn_count) = (Cell::new(false), Cell::new(0));
        let read = async {
            let found = read(&node, &page_of(&table())).await;
            is_over.set(true);
            found
        };
        let others = async {
            while !is_over.get() {
                turn_count.set(turn_count.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        let ((page, held), ()) = tokio::join!(read, others);
        let page = page.expect("reads");
        assert!(page.partitions.is_empty() && page.next.is_none(), "there is nothing");
        assert_eq!(page.tombstone_count(), 200_000);
        // The cache fills itself on the way.
        assert!(held < HELD_BYTES_MAX + CACHE_BYTES as isize, "it held {held} bytes");
        assert!(turn_count.get() >= 190, "others had {} turns", turn_count.get());
    });
}

#[test]
fn above_the_threshold_a_read_ends_where_it_is() {
    run(async {
        let dead = Partition { row_count: 4_000, live_every: 1_000, by_ranges: false };
        let thresholds = TombstoneThresholds { warn: 10, failure: 2_500 };
        let node = dead.written(thresholds).await;
        let (failed, _) = read(&node, &page_of(&table())).await;
        let Err(StorageError::TooManyTombstones(found)) = failed else { panic!("it went on: {failed:?}") };
        // Two rows live before, and are no tombstones.
        assert_eq!((found.tombstone_count, found.live_count), (2_501, 2));
        assert_eq!((found.key, found.clustering), (key(1), Some(clustering(2_502))));
        let mut two = page_of(&table());
        two.limits.row_count = 2;
        let (page, _) = read(&node, &two).await;
        assert_eq!(page.expect("it is enough with two").tombstone_count(), 1_998);
    });
}

#[test]
fn what_the_node_keeps_for_itself_is_read_whatever_was_deleted_of_it() {
    run(async {
        let node = Node::start(&MemoryDisk::new(), options(1)).expect("starts");
        let of_keyspace = |keyspace: &str| {
            let table = TableBuilder::new(table().id(), keyspace, "t").column(
                "pk",
                ColumnKind::PartitionKey(0),
                CqlType::Int,
            );
            node.shard(0).tombstone_thresholds(&table.build().expect("a sound table"))
        };
        assert_eq!(of_keyspace("k"), TombstoneThresholds { warn: 1_000, failure: 100_000 });
        assert_eq!(of_keyspace("system"), TombstoneThresholds::NONE);
        assert_eq!(of_keyspace("system_schema"), TombstoneThresholds::NONE);
    });
}
