//! Writes over two shards of which one has no room: what is said of them, and what becomes of them.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::MetadataLog;
use coordinator::{
    BatchProgress, BatchReplay, ClaimedPartition, ConditionalLevels, Consistency, Coordinator,
    CoordinatorError,
};
use futures_util::FutureExt;
use read::{ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey, RingRange,
    RowBuilder,
};
use runtime::memory_disk::{Fault, Operation};
use runtime::{ManualClock, MemoryDisk, Runtime, VirtualClock};
use schema::{ColumnKind, Keyspace, Replication, Schema, Table, TableBuilder, TableId};
use storage::{CommitFailurePolicy, Directory, DiskFailurePolicy, LocalShards, StorageOptions};
use types::CqlType;
use uuid::Uuid;

/// The shard that has no room, and the one that has.
const FULL: usize = 1;
const ROOMY: usize = 0;

/// A batch that no test writes.
const BATCH_AT_START: usize = 9_000;

/// Longer than whatever is tried again takes to be done, when it can be.
const A_WHILE: Duration = Duration::from_secs(30);

#[test]
fn a_batch_is_refused_before_it_is_recorded_or_not_at_all() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let (mut refused, mut unfinished) = (Vec::new(), Vec::new());
        for number in 0..32 {
            // Where its record goes is chance.
            match node.write_batch(number).await {
                Err(CoordinatorError::Overloaded { .. }) => refused.push(number),
                Err(CoordinatorError::Unfinished { .. }) => unfinished.push(number),
                other => panic!("batch {number}: {other:?}"),
            }
        }
        assert!(!refused.is_empty() && !unfinished.is_empty(), "{refused:?} {unfinished:?}");
        assert_eq!(node.partition_count("system", "batches").await, unfinished.len());
        node.make_room().await;
        for (numbers, parts) in [(refused, [false, false]), (unfinished, [true, true])] {
            for number in numbers {
                assert_eq!(node.parts_of(number).await, parts, "batch {number}");
            }
        }
        assert_eq!(node.partition_count("system", "batches").await, 0, "none is left");
    });
}

#[test]
fn a_write_of_which_a_part_is_taken_is_not_refused() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let in_part = node.coordinator().write(node.mutations_of(0), Consistency::One).await;
        assert!(matches!(in_part, Err(CoordinatorError::Unfinished { .. })), "{in_part:?}");
        assert_eq!(node.parts_of(0).await, [true, false]);
        node.fill(ROOMY).await;
        let refused = node.coordinator().write(node.mutations_of(1), Consistency::One).await;
        assert!(matches!(refused, Err(CoordinatorError::Overloaded { .. })), "{refused:?}");
        assert_eq!(node.parts_of(1).await, [false, false]);
    });
}

#[test]
fn a_batch_of_one_shard_is_not_recorded() {
    run(async {
        let node = Node::start().await;
        let keys: Vec<PartitionKey> = node.keys_of(ROOMY).take(2).collect();
        let mutations = keys.iter().map(|key| node.insert(key.clone(), "short")).collect();
        let progress = BatchProgress::default();
        let coordinator = node.coordinator();
        let written = coordinator.write_logged_batch(mutations, Consistency::One, progress.clone());
        written.await.expect("writes");
        assert!(!progress.is_recorded(), "it is one record of the log already");
        let command = node.command(&node.table("k", "t"), ReadTarget::Keys(keys));
        let page = coordinator.read(&command, Consistency::One).await.expect("reads");
        assert_eq!(page.partitions.len(), 2);
    });
}

#[test]
fn a_claimed_partition_is_written_under_its_claim_and_once() {
    run(async {
        let node = Node::start().await;
        let key = node.keys_of(ROOMY).next().expect("there are many");
        let levels = ConditionalLevels { agreement: Consistency::Serial, write: Consistency::One };
        let coordinator = node.coordinator();
        let table = node.table("k", "t").id();
        let mut claimed =
            ClaimedPartition::claim(&coordinator, table, &key, levels).await.expect("nobody else has it");
        claimed.settle(Some(node.insert(key.clone(), "first")), None).await.expect("it is written");
        let again = claimed.settle(Some(node.insert(key.clone(), "second")), None);
        let broken = AssertUnwindSafe(again).catch_unwind().await.expect_err("its claim has ended");
        let what = broken.downcast_ref::<&str>().copied();
        assert_eq!(what, Some("who writes has claimed the partition"));
        let command = node.command(&node.table("k", "t"), ReadTarget::Keys(vec![key]));
        let page = coordinator.read(&command, Consistency::Serial).await.expect("reads");
        assert_eq!(page.partitions.len(), 1);
    });
}

#[test]
fn when_many_batches_are_unfinished_no_other_is_begun_until_they_are_whole() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let mut unfinished = Vec::new();
        let refused = loop {
            let number = unfinished.len();
            match node.write_batch(number).await {
                Err(CoordinatorError::Unfinished { .. }) => unfinished.push(number),
                Err(CoordinatorError::Overloaded { what }) if what.contains("logged batches") => break what,
                // Its record has met the shard that has no room.
                Err(CoordinatorError::Overloaded { .. }) => {}
                other => panic!("batch {number}: {other:?}"),
            }
            assert!(number < 1_000, "there is no end of them");
        };
        let count = unfinished.len();
        assert!(refused.contains(&count.to_string()), "{refused}");
        assert_eq!(node.node.unfinished_batch_count(), count);
        assert_eq!(node.partition_count("system", "batches").await, count, "each is recorded");
        node.make_room().await;
        assert_eq!(node.node.unfinished_batch_count(), 0);
        for number in unfinished {
            assert_eq!(node.parts_of(number).await, [true, true], "batch {number}");
        }
        node.write_batch(count).await.expect("others are written again");
    });
}

/// What an unfinished batch writes would else stay in memory for as long as it fails.
#[test]
fn an_unfinished_batch_is_read_from_its_record_when_it_is_written_again() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let number = node.leave_unfinished(0).await;
        node.remove_records().await;
        node.make_room().await;
        assert_eq!(node.parts_of(number).await, [true, false], "nothing is known of the other part");
        assert_eq!(node.node.unfinished_batch_count(), 0);
    });
}

/// A batch that was told to be late came whole into a table that was empty by then.
#[test]
fn a_truncation_waits_for_unfinished_batches_that_write_to_the_table() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let number = node.leave_unfinished(0).await;
        let (table, coordinator) = (node.table("k", "t").id(), node.coordinator());
        let truncated = tokio::time::timeout(A_WHILE, coordinator.truncate(table)).await;
        assert!(truncated.is_err(), "{truncated:?}");
        assert!(coordinator.is_in_batches(table));
        node.make_room().await;
        assert_eq!(node.parts_of(number).await, [true, true], "nothing was emptied after all");

        node.fill(FULL).await;
        node.leave_unfinished(0).await;
        node.disk.faults().clear();
        coordinator.truncate(table).await.expect("empties");
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(node.partition_count("k", "t").await, 0, "nothing comes back");
        assert!(!coordinator.is_in_batches(table));
    });
}

/// It came whole into the empty table when the node started again.
#[test]
fn a_batch_that_may_be_recorded_is_taken_back_before_a_truncation_ends() {
    run(async {
        let node = Node::start().await;
        node.disk.faults().fail_nth(Some(Operation::Sync), 0, Fault::InputOutput);
        let failed = node.write_batch(0).await;
        assert!(matches!(failed, Err(CoordinatorError::Table(_))), "{failed:?}");
        assert_eq!(node.partition_count("system", "batches").await, 1, "the record is there all the same");
        let table = node.table("k", "t").id();
        node.coordinator().truncate(table).await.expect("empties");
        assert_eq!(node.node.unfinished_batch_count(), 0);
        // Whatever has become of the record, the log goes on meanwhile.
        tokio::time::sleep(A_WHILE).await;
        let node = node.start_again().await;
        assert_eq!(node.coordinator().replay_batches().await.expect("replays"), 0);
        assert_eq!(node.partition_count("k", "t").await, 0, "nothing comes back");
    });
}

/// In a ring. One that could not be written stopped those behind it.
#[test]
fn batches_of_an_earlier_run_are_finished_each_by_itself() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let unfinished = [node.leave_unfinished(0).await, node.leave_unfinished(64).await];
        node.disk.faults().clear();
        node.record_damaged().await;
        let node = node.start_again().await;
        // As at the first start: each log begins a segment.
        let begun = node.coordinator().write(node.mutations_of(BATCH_AT_START), Consistency::One).await;
        begun.expect("writes");
        node.fill(FULL).await;
        let replay = BatchReplay::on(node.coordinator());
        assert_eq!(replay.find().await.expect("can be read"), 2, "the damaged one is none");
        tokio::task::spawn_local(replay.run());
        tokio::time::sleep(A_WHILE).await;
        assert_eq!(node.node.kept_batch_count(), 2, "there is no room");
        node.make_room().await;
        for number in unfinished {
            assert_eq!(node.parts_of(number).await, [true, true], "batch {number}");
        }
        assert_eq!((node.node.kept_batch_count(), node.node.replayed_batch_count()), (0, 2));
        assert_eq!(node.partition_count("system", "batches").await, 1, "the damaged one is left where it is");
    });
}

/// Of those that fail, one more is tried in ten seconds for each: at first after one.
#[test]
fn what_fails_again_and_again_is_tried_less_often() {
    run(async {
        let node = Node::start().await;
        node.fill(FULL).await;
        let number = node.leave_unfinished(0).await;
        tokio::time::sleep(Duration::from_millis(16_500)).await;
        // Tried after 1, 3, 7 and 15 seconds, and next after 25.
        node.disk.faults().clear();
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!(node.parts_of(number).await, [true, false], "it is not tried yet");
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(node.parts_of(number).await, [true, true]);
    });
}

/// Runs a story on one thread, with time that stands still unless all wait.
fn run(story: impl Future<Output = ()>) {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    tokio::task::LocalSet::new().block_on(&tokio, story);
}

/// `system.batches`, and `k.t (pk int PRIMARY KEY, v text)`.
fn schema() -> Schema {
    let list = CqlType::List { element: Arc::new(CqlType::Blob), frozen: false };
    let batches = TableBuilder::new(TableId(Uuid::from_u128(1)), "system", "batches")
        .column("id", ColumnKind::PartitionKey(0), CqlType::Timeuuid)
        .column("mutations", ColumnKind::Regular, list)
        .column("version", ColumnKind::Regular, CqlType::Int);
    let table = TableBuilder::new(TableId(Uuid::from_u128(2)), "k", "t")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    Schema::new(0, [keyspace("system", batches), keyspace("k", table)])
}

fn keyspace(name: &str, table: TableBuilder) -> Keyspace {
    let table = Arc::new(table.build().expect("a sound table"));
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    Keyspace {
        name: name.into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: [(table.name().to_owned(), table)].into_iter().collect(),
        types: BTreeMap::new(),
    }
}

/// A node of two shards.
struct Node {
    disk: MemoryDisk,
    shards: LocalShards,
    node: coordinator::Node,
}

impl Node {
    async fn start() -> Node {
        let node = Node::start_on(MemoryDisk::new());
        // Each log begins its first segment, which is long enough for all that is to come.
        node.write_batch(BATCH_AT_START).await.expect("writes");
        node
    }

    /// Writes everything out, and begins with what is on the disk.
    async fn start_again(self) -> Node {
        self.shards.stop(true).await.expect("stops");
        Node::start_on(self.disk)
    }

    fn start_on(disk: MemoryDisk) -> Node {
        let clock = Arc::new(VirtualClock::new(ManualClock::DEFAULT_START_MICROS));
        let runtime = Runtime { clock, ..Runtime::in_memory(Arc::new(disk.clone()), 1) };
        let options = StorageOptions {
            memtable_bytes: 2 << 20,
            segment_bytes: 16 << 20,
            disk_failure_policy: DiskFailurePolicy::Ignore,
            commit_failure_policy: CommitFailurePolicy::Ignore,
            ..StorageOptions::new("/node", 2, 64 << 20)
        };
        let directory = Directory::open(&runtime, options).expect("opens");
        let log = directory.layout().schema_log();
        let metadata = MetadataLog::open(&runtime.disk, &log, schema()).expect("opens");
        let schema = Arc::clone(metadata.schema());
        let shards = directory.recover(&schema).expect("recovers").start_local(&schema).expect("starts");
        Node { disk, shards, node: coordinator::Node::new(metadata) }
    }

    fn coordinator(&self) -> Coordinator {
        Coordinator::new(self.node.clone(), self.shards.handles()[ROOMY].clone())
    }

    /// Writes to a shard until it has no room for more, and can not make any.
    async fn fill(&self, shard: usize) {
        self.disk.faults().fail_all(Some(Operation::Create), Fault::InputOutput);
        let long = "x".repeat(10_000);
        for key in self.keys_of(shard).skip(10_000).take(1_000) {
            match self.coordinator().write(vec![self.insert(key, &long)], Consistency::One).await {
                Ok(()) => {}
                Err(CoordinatorError::Overloaded { .. }) => return,
                Err(other) => panic!("{other:?}"),
            }
        }
        panic!("it always has room");
    }

    /// Has it make room again, and what is unfinished be finished.
    async fn make_room(&self) {
        self.disk.faults().clear();
        tokio::time::sleep(A_WHILE).await;
    }

    /// Keys that the shard owns.
    fn keys_of(&self, shard: usize) -> impl Iterator<Item = PartitionKey> + '_ {
        let key = |number: i32| PartitionKey::new(Bytes::copy_from_slice(&number.to_be_bytes()));
        (0..).map(key).filter(move |key| self.shards.shards().owner(key.token) == shard)
    }

    /// The keys of a batch: one of each shard.
    fn keys_of_batch(&self, number: usize) -> [PartitionKey; 2] {
        [ROOMY, FULL].map(|shard| self.keys_of(shard).nth(number).expect("each shard owns keys"))
    }

    fn mutations_of(&self, number: usize) -> Vec<Mutation> {
        self.keys_of_batch(number).into_iter().map(|key| self.insert(key, "short")).collect()
    }

    /// Writes batches from that number on until one is recorded and can not be finished; gives its number.
    async fn leave_unfinished(&self, first: usize) -> usize {
        for number in first..first + 64 {
            if let Err(CoordinatorError::Unfinished { .. }) = self.write_batch(number).await {
                return number;
            }
        }
        panic!("each record met the shard that has no room");
    }

    /// Writes a row to `system.batches` whose mutation is none, before all others in the ring's order.
    async fn record_damaged(&self) {
        let (table, timestamp) = (self.table("system", "batches"), self.coordinator().next_timestamp());
        let ids = (0..1_000).map(Uuid::from_u128);
        let keys = ids.map(|id| PartitionKey::new(Bytes::copy_from_slice(id.as_bytes())));
        let first = keys.min_by_key(|key| key.token).expect("a thousand");
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
        let path = Uuid::from_u128(1).into_bytes();
        let cell = CellRef::live(timestamp, b"no mutation").with_path(&path);
        row.complex(table.column("mutations").expect("mutations").id, DeletionTime::LIVE, [cell]);
        let mut record = MutationBuilder::new(table.id(), first);
        record.row(row.finish());
        self.coordinator().write(vec![record.finish()], Consistency::One).await.expect("writes");
    }

    /// Deletes all rows of `system.batches`.
    async fn remove_records(&self) {
        let table = self.table("system", "batches");
        let all = self.command(&table, ReadTarget::Range(RingRange::ALL));
        for record in self.coordinator().read(&all, Consistency::One).await.expect("reads").partitions {
            let mut removal = MutationBuilder::new(table.id(), record.key);
            let timestamp = self.coordinator().next_timestamp();
            removal.partition_deletion(DeletionTime { timestamp, local_deletion_time: all.now });
            self.coordinator().write(vec![removal.finish()], Consistency::One).await.expect("deletes");
        }
    }

    async fn write_batch(&self, number: usize) -> Result<(), CoordinatorError> {
        let (mutations, progress) = (self.mutations_of(number), BatchProgress::default());
        let written =
            self.coordinator().write_logged_batch(mutations, Consistency::One, progress.clone()).await;
        let will_be_whole = matches!(written, Ok(()) | Err(CoordinatorError::Unfinished { .. }));
        assert_eq!(progress.is_recorded(), will_be_whole, "{written:?}");
        written
    }

    /// Is there the part of a batch that belongs to the shard that has room, and the other?
    async fn parts_of(&self, number: usize) -> [bool; 2] {
        let keys = self.keys_of_batch(number);
        let command = self.command(&self.table("k", "t"), ReadTarget::Keys(keys.to_vec()));
        let page = self.coordinator().read(&command, Consistency::One).await.expect("reads");
        keys.map(|key| page.partitions.iter().any(|partition| partition.key == key))
    }

    async fn partition_count(&self, keyspace: &str, table: &str) -> usize {
        let command = self.command(&self.table(keyspace, table), ReadTarget::Range(RingRange::ALL));
        self.coordinator().read(&command, Consistency::One).await.expect("reads").partitions.len()
    }

    fn command(&self, table: &Arc<Table>, target: ReadTarget) -> ReadCommand {
        ReadCommand::new(Arc::clone(table), target, self.coordinator().now_seconds())
    }

    fn table(&self, keyspace: &str, name: &str) -> Arc<Table> {
        Arc::clone(self.coordinator().schema().table(keyspace, name).expect("there is such a table"))
    }

    /// `INSERT INTO k.t (pk, v) VALUES (…)`
    fn insert(&self, key: PartitionKey, value: &str) -> Mutation {
        let (table, timestamp) = (self.table("k", "t"), self.coordinator().next_timestamp());
        let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
        row.cell(table.column("v").expect("column v").id, CellRef::live(timestamp, value.as_bytes()));
        let mut mutation = MutationBuilder::new(table.id(), key);
        mutation.row(row.finish());
        mutation.finish()
    }
}
