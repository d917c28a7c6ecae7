//! A node, a table, writes and reads in few words.

use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use read::{PartitionRows, ReadCommand, ReadTarget};
use rows::{
    CellRef, Clustering, ClusteringBuilder, DeletionTime, Liveness, Mutation, MutationBuilder, PartitionKey,
    RingRange, RowBuilder,
};
use runtime::memory_disk::{Fault, Operation};
use runtime::{Io, ManualClock, MemoryDisk, Runtime};
use schema::{
    ChunkLength, ClusteringOrder, ColumnKind, Keyspace, Prefetch, Replication, Schema, Table, TableBuilder,
    TableId, TableOptions,
};
use storage::{Directory, LocalShards, Shard, StorageError, StorageOptions};
use types::CqlType;

/// `k.t (pk int, c int, v text, PRIMARY KEY (pk, c))` and others of its kind: `k.other`, `k.auto` with chunks
/// of whatever length, `k.warm` and `k.hot` that come into memory by themselves; and `k.lone (pk int PRIMARY
/// KEY, v text)`, whose tombstones compaction need not keep; and `k.large (pk int, c int, s map<int, text> static,
/// m map<int, text>, PRIMARY KEY (pk, c))` and `k.alone (pk int PRIMARY KEY, m map<int, text>)`; and `k.rich (pk int,
/// a int, b decimal, s text static, v text, m map<int, text>, PRIMARY KEY (pk, a, b))`.
pub(crate) fn schema() -> Arc<Schema> {
    let table = |name: &str, id: u128, set: fn(&mut TableOptions)| {
        let mut table = TableBuilder::new(TableId(uuid::Uuid::from_u128(id)), "k", name)
            .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
            .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
            .column("v", ColumnKind::Regular, CqlType::Text);
        table.options.compression.chunk_length = ChunkLength::Fixed(4096);
        set(&mut table.options);
        (name.to_owned(), Arc::new(table.build().expect("a sound table")))
    };
    let mut lone = TableBuilder::new(TableId(uuid::Uuid::from_u128(13)), "k", "lone")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("v", ColumnKind::Regular, CqlType::Text);
    lone.options.gc_grace_seconds = 0;
    let lone = ("lone".to_owned(), Arc::new(lone.build().expect("a sound table")));
    let auto = table("auto", 14, |options| options.compression.chunk_length = ChunkLength::Auto);
    let warm = table("warm", 15, |options| options.caching.prefetch = Prefetch::All);
    let hot = table("hot", 16, |options| options.caching.prefetch = Prefetch::Hot);
    let map = CqlType::Map { key: Arc::new(CqlType::Int), value: Arc::new(CqlType::Text), frozen: false };
    let large = TableBuilder::new(TableId(uuid::Uuid::from_u128(17)), "k", "large")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("c", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("s", ColumnKind::Static, map.clone())
        .column("m", ColumnKind::Regular, map.clone());
    let alone = TableBuilder::new(TableId(uuid::Uuid::from_u128(18)), "k", "alone")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("m", ColumnKind::Regular, map.clone());
    let rich = TableBuilder::new(TableId(uuid::Uuid::from_u128(19)), "k", "rich")
        .column("pk", ColumnKind::PartitionKey(0), CqlType::Int)
        .column("a", ColumnKind::Clustering(0, ClusteringOrder::Asc), CqlType::Int)
        .column("b", ColumnKind::Clustering(1, ClusteringOrder::Asc), CqlType::Decimal)
        .column("s", ColumnKind::Static, CqlType::Text)
        .column("v", ColumnKind::Regular, CqlType::Text)
        .column("m", ColumnKind::Regular, map);
    let of_maps =
        |table: TableBuilder, name: &str| (name.to_owned(), Arc::new(table.build().expect("a sound table")));
    let (large, alone) = (of_maps(large, "large"), of_maps(alone, "alone"));
    let rich = of_maps(rich, "rich");
    let plain = |_: &mut TableOptions| {};
    let class = "org.apache.cassandra.locator.SimpleStrategy".into();
    let options = BTreeMap::from([("replication_factor".into(), "1".into())]);
    let keyspace = Keyspace {
        name: "k".into(),
        replication: Replication { class, options },
        durable_writes: true,
        tables: [table("t", 11, plain), table("other", 12, plain), auto, warm, hot, lone, large, alone, rich]
            .into_iter()
            .collect(),
        types: BTreeMap::new(),
    };
    Arc::new(Schema::new(1, [keyspace]))
}

/// The schema, with other options of `k.t`.
pub(crate) fn altered(epoch: u64, change: impl Fn(&mut TableOptions)) -> Arc<Schema> {
    let base = schema();
    let mut keyspaces: Vec<_> = base.keyspaces().values().map(|keyspace| (**keyspace).clone()).collect();
    for keyspace in &mut keyspaces {
        let table = keyspace.tables.get_mut("t").expect("k.t");
        let mut builder = table.to_builder();
        change(&mut builder.options);
        *table = Arc::new(builder.build().expect("a sound table"));
    }
    Arc::new(Schema::new(epoch, keyspaces))
}

/// The table most tests use.
pub(crate) fn table() -> Arc<Table> {
    Arc::clone(schema().table("k", "t").expect("there is k.t"))
}

/// The other one.
pub(crate) fn other() -> Arc<Table> {
    Arc::clone(schema().table("k", "other").expect("there is k.other"))
}

/// The one whose chunks are as long as its reads ask for.
pub(crate) fn auto() -> Arc<Table> {
    Arc::clone(schema().table("k", "auto").expect("there is k.auto"))
}

/// One of those that come into memory by themselves.
pub(crate) fn named(name: &str) -> Arc<Table> {
    Arc::clone(schema().table("k", name).expect("there is such a table"))
}

/// The table without clustering columns.
pub(crate) fn lone() -> Arc<Table> {
    Arc::clone(schema().table("k", "lone").expect("there is k.lone"))
}

pub(crate) fn options(shard_count: u16) -> StorageOptions {
    StorageOptions {
        segment_bytes: 64 << 10,
        log_bytes: 0,
        ..StorageOptions::new("/node", shard_count, 32 << 20)
    }
}

/// Runs a test's story on one thread, with time that stands still unless all wait.
pub(crate) fn run<T>(story: impl Future<Output = T>) -> T {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O");
    tokio::task::LocalSet::new().block_on(&tokio, story)
}

/// Which of its syncs, from 0, makes a change of table files true: that of the manifest, the last one without which it
/// fails. `fails` tells whether a change does whose sync of that number fails.
pub(crate) fn sync_of_the_manifest(fails: impl Fn(u64) -> bool) -> u64 {
    (0..).take_while(|nth| fails(*nth)).last().expect("it needs a sync")
}

/// The same of a flush of one row.
pub(crate) fn sync_of_the_manifest_in_a_flush() -> u64 {
    sync_of_the_manifest(|nth| {
        let disk = MemoryDisk::new();
        run(async {
            let node = Node::start(&disk, options(1)).expect("starts");
            node.write(1, insert(&table(), 1, 0, "v", 1)).await.expect("writes");
            tokio::time::sleep(Duration::from_secs(1)).await;
            disk.faults().fail_nth(Some(Operation::Sync), nth, Fault::InputOutput);
            node.shard(0).flush(table().id()).await.is_err()
        })
    })
}

/// A node on a disk, and the clock it sees.
pub(crate) struct Node {
    pub(crate) shards: LocalShards,
    pub(crate) clock: Arc<ManualClock>,
}

impl Node {
    pub(crate) fn start(disk: &MemoryDisk, options: StorageOptions) -> Result<Node, StorageError> {
        Node::start_with_delay(disk, options, Duration::ZERO)
    }

    /// A node whose short disk work takes a while.
    pub(crate) fn start_with_delay(
        disk: &MemoryDisk,
        options: StorageOptions,
        delay: Duration,
    ) -> Result<Node, StorageError> {
        Node::start_with(disk, options, |runtime| runtime.io = Io::delayed(delay))
    }

    /// A node whose outside is like that.
    pub(crate) fn start_with(
        disk: &MemoryDisk,
        options: StorageOptions,
        set: impl FnOnce(&mut Runtime),
    ) -> Result<Node, StorageError> {
        let clock = Arc::new(ManualClock::default());
        // Lives of a node must not draw the same file ids.
        static LIFE: AtomicU64 = AtomicU64::new(1);
        let seed = LIFE.fetch_add(1, Ordering::Relaxed);
        let mut runtime = Runtime::in_memory(Arc::new(disk.clone()), seed);
        set(&mut runtime);
        runtime.clock = Arc::<ManualClock>::clone(&clock);
        let shards = Directory::open(&runtime, options)?.recover(&schema())?.start_local(&schema())?;
        Ok(Node { shards, clock })
    }

    pub(crate) fn shard(&self, index: usize) -> &Rc<Shard> {
        self.shards.handles()[index].local()
    }

    pub(crate) fn owner(&self, pk: i32) -> &Rc<Shard> {
        self.shard(self.shards.handles()[0].shards().owner(key(pk).token))
    }

    pub(crate) async fn write(&self, pk: i32, mutation: Mutation) -> Result<(), StorageError> {
        self.owner(pk).write(&[mutation]).await
    }

    /// Rows of all partitions as `(pk, c, v)`, page after page.
    pub(crate) async fn all(&self, table: &Arc<Table>, row_count: u32) -> Vec<(i32, i32, String)> {
        let mut all = Vec::new();
        for handle in self.shards.handles() {
            let mut command = command(table, ReadTarget::Range(RingRange::ALL));
            command.limits.row_count = row_count;
            all.extend(pages(handle.local(), command).await.iter().flat_map(flat));
        }
        all.sort();
        all
    }
}

pub(crate) fn command(table: &Arc<Table>, target: ReadTarget) -> ReadCommand {
    ReadCommand::new(Arc::clone(table), target, 1_704_067_300)
}

/// All pages of a read on one shard.
pub(crate) async fn pages(shard: &Rc<Shard>, mut command: ReadCommand) -> Vec<PartitionRows> {
    let mut partitions = Vec::new();
    loop {
        let page = shard.read(&command).await.expect("reads");
        let row_count: usize = page.partitions.iter().map(|partition| partition.rows.len()).sum();
        assert!(row_count <= command.limits.row_count as usize);
        partitions.extend(page.partitions);
        match page.next {
            Some(next) => command.resume = Some(next),
            None => return partitions,
        }
    }
}

pub(crate) fn flat(partition: &PartitionRows) -> Vec<(i32, i32, String)> {
    let pk = number(&partition.key.bytes);
    let v = table().column("v").expect("column v").id;
    let row = |row: &rows::Row| {
        let c = row.clustering_components().next().flatten().map(number).expect("a clustering");
        let value = match row.column(v) {
            Some(rows::ColumnData::Simple(cell)) => String::from_utf8_lossy(cell.value).into_owned(),
            _ => String::new(),
        };
        (pk, c, value)
    };
    partition.rows.iter().map(row).collect()
}

pub(crate) fn number(bytes: impl AsRef<[u8]>) -> i32 {
    i32::from_be_bytes(bytes.as_ref().try_into().expect("four bytes"))
}

pub(crate) fn key(pk: i32) -> PartitionKey {
    PartitionKey::new(Bytes::copy_from_slice(&pk.to_be_bytes()))
}

pub(crate) fn clustering(c: i32) -> Clustering {
    let mut clustering = ClusteringBuilder::new();
    clustering.push(Some(&c.to_be_bytes()));
    clustering.finish()
}

/// `INSERT INTO table (pk, c, v) VALUES (…) USING TIMESTAMP timestamp`
pub(crate) fn insert(table: &Table, pk: i32, c: i32, v: &str, timestamp: i64) -> Mutation {
    let mut row = RowBuilder::new(&clustering(c), Liveness::at(timestamp), DeletionTime::LIVE);
    row.cell(table.column("v").expect("column v").id, CellRef::live(timestamp, v.as_bytes()));
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

/// `INSERT INTO table (pk, v) VALUES (…) USING TIMESTAMP timestamp`
pub(crate) fn insert_alone(table: &Table, pk: i32, v: &str, timestamp: i64) -> Mutation {
    let mut row = RowBuilder::new(&Clustering::EMPTY, Liveness::at(timestamp), DeletionTime::LIVE);
    row.cell(table.column("v").expect("column v").id, CellRef::live(timestamp, v.as_bytes()));
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.row(row.finish());
    mutation.finish()
}

/// `DELETE FROM table USING TIMESTAMP timestamp WHERE pk = …`
pub(crate) fn delete(table: &Table, pk: i32, timestamp: i64) -> Mutation {
    let mut mutation = MutationBuilder::new(table.id(), key(pk));
    mutation.partition_deletion(DeletionTime { timestamp, local_deletion_time: 1_704_067_200 });
    mutation.finish()
}
