//! Are large rows, which other threads read, what small ones would be?
//!
//! Each row is written as a model says, in parts: into two files and into memory, with deletions between. A node whose
//! short disk work takes a while shows by its clock whether another thread was asked.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use read::{PartitionRows, ReadColumns, ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, ClusteringBuilder, ColumnData, DeletionTime, Liveness, MutationBuilder, RingRange,
    Row, RowBuilder,
};
use runtime::MemoryDisk;
use schema::{ColumnId, Table};
use storage::{Lookups, StorageOptions};
use tokio::time::Instant;

use crate::given::*;

/// Elements of one part of a map: of two parts, each is a large row.
const PART: u32 = 1_400;

/// How many partitions there are.
const PARTITIONS: i32 = 10;

/// What another thread takes before it begins.
const DELAY: Duration = Duration::from_millis(5);

const SECONDS: u32 = 1_704_067_200;

/// What there is of a table: maps by partition and row; `None` is the static row.
type Model = BTreeMap<(i32, Option<i32>), BTreeMap<u32, String>>;

/// A node, and what was written to one of its tables.
struct Story {
    node: Node,
    table: Arc<Table>,
    model: Model,
}

impl Story {
    /// Each partition has something else: a row in one file alone, in two, in both and in memory, below deletions.
    async fn of(name: &str) -> Story {
        let options = StorageOptions { segment_bytes: 8 << 20, ..options(1) };
        let node = Node::start_with_delay(&MemoryDisk::new(), options, DELAY).expect("starts");
        let mut story = Story { node, table: named(name), model: Model::new() };
        let rows: &[Option<i32>] = if story.is_lone() { &[Some(0)] } else { &[None, Some(0), Some(1)] };
        for (pk, at) in (0..6).flat_map(|pk| rows.iter().map(move |at| (pk, *at))) {
            story.put(pk, at, 0, 1).await;
        }
        story.flush().await;
        for at in rows {
            story.put(1, *at, PART / 2, 2).await;
            story.put(2, *at, PART / 2, 2).await;
        }
        for pk in [3, 4] {
            story.delete_partition(pk, pk.into()).await;
        }
        story.flush().await;
        for at in rows {
            story.put(2, *at, PART, 3).await;
            story.put(3, *at, PART, 4).await;
        }
        story.delete_row(1, 0, 1).await;
        story.delete_row(5, 0, 9).await;
        story.write_in_memory(rows).await;
        story
    }

    /// Partitions of which the memtable has several versions of a row.
    async fn write_in_memory(&mut self, rows: &[Option<i32>]) {
        for at in rows {
            self.put(3, *at, PART * 2, 5).await;
            for (from, timestamp) in [(0, 11), (PART / 2, 12), (PART, 13), (PART / 3, 14)] {
                self.put(6, *at, from, timestamp).await;
                self.put(7, *at, from, timestamp).await;
                self.put(8, *at, from, timestamp).await;
            }
        }
        self.delete_row(7, 0, 14).await;
        self.put(7, Some(0), 5, 15).await;
        self.delete_row(8, 0, 14).await;
        self.delete_partition(8, 14).await;
        self.put(8, Some(0), PART, 16).await;
    }

    fn is_lone(&self) -> bool {
        self.table.clustering_types().is_empty()
    }

    async fn flush(&self) {
        self.node.shard(0).flush(self.table.id()).await.expect("flushes");
    }

    fn id(&self, name: &str) -> ColumnId {
        self.table.column(name).expect("a column").id
    }

    fn place(&self, c: i32) -> Clustering {
        if self.is_lone() { ClusteringBuilder::new().finish() } else { clustering(c) }
    }

    /// Writes elements from a number on.
    async fn put(&mut self, pk: i32, at: Option<i32>, from: u32, timestamp: i64) {
        let numbers = from..from + PART;
        let new: Vec<_> = numbers.map(|number| (number, format!("{number:0100} at {timestamp}"))).collect();
        let paths: Vec<_> = new.iter().map(|(number, _)| number.to_be_bytes()).collect();
        let words = new.iter().map(|(_, word)| CellRef::live(timestamp, word.as_bytes()));
        let cells = paths.iter().zip(words).map(|(path, cell)| cell.with_path(path));
        let (place, liveness) = match at {
            None => (ClusteringBuilder::new().finish(), Liveness::NONE),
            Some(c) => (self.place(c), Liveness::at(timestamp)),
        };
        let mut row = RowBuilder::new(&place, liveness, DeletionTime::LIVE);
        row.complex(self.id(if at.is_none() { "s" } else { "m" }), DeletionTime::LIVE, cells);
        let row = row.finish();
        assert!(row.is_large());
        let mut mutation = MutationBuilder::new(self.table.id(), key(pk));
        _ = if at.is_none() { mutation.static_row(row) } else { mutation.row(row) };
        self.node.write(pk, mutation.finish()).await.expect("writes");
        self.model.entry((pk, at)).or_default().extend(new);
    }

    async fn delete_partition(&mut self, pk: i32, timestamp: i64) {
        self.node.write(pk, delete(&self.table, pk, timestamp)).await.expect("deletes");
        self.model.retain(|(of, _), _| *of != pk);
    }

    async fn delete_row(&mut self, pk: i32, c: i32, timestamp: i64) {
        let deletion = DeletionTime { timestamp, local_deletion_time: SECONDS };
        let row = RowBuilder::new(&self.place(c), Liveness::NONE, deletion).finish();
        let mut mutation = MutationBuilder::new(self.table.id(), key(pk));
        mutation.row(row);
        self.node.write(pk, mutation.finish()).await.expect("deletes");
        let is_old = format!(" at {timestamp}");
        let Some(map) = self.model.get_mut(&(pk, Some(c))) else { return };
        map.retain(|_, word| !word.ends_with(&is_old) && timestamp < 9);
        if map.is_empty() {
            self.model.remove(&(pk, Some(c)));
        }
    }

    async fn read(&self, target: ReadTarget, change: impl Fn(&mut ReadCommand)) -> Vec<PartitionRows> {
        let mut command = command(&self.table, target);
        change(&mut command);
        pages(self.node.shard(0), command).await
    }

    /// What partitions have, and in which order their rows come.
    fn told(&self, partitions: &[PartitionRows]) -> (Model, Vec<(i32, i32)>) {
        let (mut model, mut order) = (Model::new(), Vec::new());
        for partition in partitions {
            let pk = number(&partition.key.bytes);
            if let Some(row) = &partition.static_row {
                model.insert((pk, None), self.map(row, "s"));
            }
            for row in &partition.rows {
                let c = row.clustering_components().next().flatten().map_or(0, number);
                order.push((pk, c));
                model.insert((pk, Some(c)), self.map(row, "m"));
            }
        }
        (model, order)
    }

    fn map(&self, row: &Row, name: &str) -> BTreeMap<u32, String> {
        let Some(ColumnData::Complex(complex)) = row.column(self.id(name)) else { return BTreeMap::new() };
        let word = |value| String::from_utf8_lossy(value).into_owned();
        complex.cells().map(|cell| (number(cell.path) as u32, word(cell.value))).collect()
    }

    async fn reads_as_written(&self) {
        let all = ReadTarget::Range(RingRange::ALL);
        let whole = self.read(all.clone(), |_| ()).await;
        let (told, order) = self.told(&whole);
        assert_eq!(told, self.model, "a scan");
        let by_two = self.read(all, |command| command.limits.row_count = 2).await;
        assert_eq!(self.told(&by_two), (told.clone(), order), "page by page");
        let keys: Vec<_> = (0..PARTITIONS).map(key).collect();
        let (told, forwards) = self.told(&self.read(ReadTarget::Keys(keys.clone()), |_| ()).await);
        assert_eq!(told, self.model, "keys");
        for pk in 0..PARTITIONS {
            let (told, mut order) = self.told(&self.read(ReadTarget::Keys(vec![key(pk)]), |_| ()).await);
            assert_eq!(told, self.model.clone().into_iter().filter(|((of, _), _)| *of == pk).collect());
            let backwards = |command: &mut ReadCommand| command.reversed = true;
            let reversed = self.told(&self.read(ReadTarget::Keys(vec![key(pk)]), backwards).await);
            order.reverse();
            assert_eq!(reversed, (told, order), "backwards");
        }
        let nothing = |command: &mut ReadCommand| command.columns = ReadColumns::Some([].into());
        let bare = self.read(ReadTarget::Keys(keys), nothing).await;
        assert!(bare.iter().flat_map(|partition| &partition.rows).all(|row| row.columns().next().is_none()));
        assert_eq!(self.told(&bare).1, forwards);
    }
}

/// The short way of reads by key leaves rows that it would have to put together to the way above.
#[test]
fn large_rows_are_not_put_together_at_once() {
    run(async {
        let mut story = Story::of("alone").await;
        let read_at_once = |story: &Story, pk| {
            let lookups = Lookups { table: &story.table, keys: &[&key(pk)], now: SECONDS };
            let mut shown_count = 0;
            story.node.shards.handles()[0].look_up(0, lookups, |_, _| {
                shown_count += 1;
                ControlFlow::Continue(())
            });
            shown_count
        };
        story.reads_as_written().await;
        for pk in [0, 1, 2] {
            assert_eq!(read_at_once(&story, pk), 0, "{pk} is in files");
        }
        story.put(9, Some(0), 0, 1).await;
        assert_eq!(read_at_once(&story, 9), 1, "it is whole in memory");
        let deletion = delete(&story.table, 9, 0);
        story.node.write(9, deletion).await.expect("deletes");
        assert_eq!(read_at_once(&story, 9), 0, "something of it may be deleted");
    });
}

fn large_rows_read_as_written(name: &str) {
    run(async {
        let mut story = Story::of(name).await;
        story.reads_as_written().await;
        let begun = Instant::now();
        story.read(ReadTarget::Keys(vec![key(0)]), |_| ()).await;
        assert!(begun.elapsed() >= DELAY, "another thread was asked, although all is in memory");
        story.flush().await;
        story.reads_as_written().await;
        story.node.shard(0).compact(story.table.id()).await.expect("compacts");
        story.reads_as_written().await;
        story.put(0, Some(0), 7, 5).await;
        story.reads_as_written().await;
    });
}

#[test]
fn large_rows_of_partitions_read_as_written() {
    large_rows_read_as_written("large");
}

#[test]
fn large_rows_that_are_alone_read_as_written() {
    large_rows_read_as_written("alone");
}

/// What is told by the clock above is not told of small rows.
#[test]
fn small_rows_are_read_by_the_shard() {
    run(async {
        let node = Node::start_with_delay(&MemoryDisk::new(), options(1), DELAY).expect("starts");
        node.write(1, insert(&table(), 1, 1, "v", 1)).await.expect("writes");
        node.shard(0).flush(table().id()).await.expect("flushes");
        node.all(&table(), 10).await;
        let begun = Instant::now();
        assert_eq!(node.all(&table(), 10).await, [(1, 1, "v".to_owned())]);
        assert_eq!(begun.elapsed(), Duration::ZERO);
    });
}
