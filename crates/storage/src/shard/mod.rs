//! A shard: one thread's part of the token space, and everything that belongs to it.
//!
//! One thread at a time touches what is here: the shard's own, or while that sleeps, a visiting one.
//! Other shards reach this one by a visit or by sending it work ([`crate::ShardHandle`]); flush and
//! compaction run elsewhere over immutable inputs and come back as one message.
//!
//! A shard has its tables and what they share ([`Shared`]): log, cache, budgets. What is done with one table is done by
//! the table (the crate `table`).
//!
//! | a reader asks | file |
//! |---|---|
//! | how does the shard learn of a new schema? | `definitions.rs` |
//! | how is a write taken? | `write.rs` |
//! | when do those end that are under way? | `writes_under_way.rs` |
//! | how do changes with a condition come one after the other? | `claims.rs` |
//! | what was accepted of them that is not written yet? | `unsettled.rs` |
//! | how is what is added to counters counted? | `counting.rs` |
//! | how is a page read? | `read.rs` |
//! | how is the only row of a partition read? | `read_row.rs` |
//! | how are all rows of partitions? | `read_partitions.rs` |
//! | how are those of a range, where partitions have one row? | `scan.rs` |
//! | what part of the node's memory and disk is each shard's? | `share.rs` |
//! | how much memory may reads work in? what does one of them tell? | `read_memory.rs`, `read_trace.rs` |
//! | where may a partition live? | `sources.rs` |
//! | who does what is long of a large row? | `large_rows.rs` |
//! | how are rows looked up by their keys, and shown if they are in memory? | `lookups.rs` |
//! | how do chunks come from the disk? | `fetch.rs` |
//! | how do they come before anybody asks? | `prefetch.rs` |
//! | what happens as time goes by? | `housekeeping.rs` |
//! | what is set aside? | `quarantined.rs` |
//! | how do files come from elsewhere? | `imports.rs` |
//! | which table is being emptied on all shards? | `truncation.rs` |
//! | how is what was logged read again, for other nodes? | `logged.rs` |
//! | what may other shards do here while this one sleeps? | `visit.rs` |
//! | what becomes of reads that they began? | `left_reads.rs` |

pub(crate) mod claims;
pub(crate) mod counting;
mod definitions;
mod fetch;
mod housekeeping;
pub(crate) mod imports;
mod large_rows;
mod left_reads;
mod logged;
mod lookups;
mod prefetch;
mod quarantined;
mod read;
mod read_memory;
mod read_partitions;
mod read_row;
mod read_trace;
mod scan;
mod share;
mod sources;
mod truncation;
mod unsettled;
mod visit;
mod write;
mod writes_under_way;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use ::read::TombstoneThresholds;
use cache::CacheStats;
use commitlog::{CommitLog, LogPosition};
use compaction::{CompactionControl, CompactionRequest};
use manifest::Manifest;
use ring::Sharding;
use rows::CounterId;
use runtime::{ColdReader, Runtime};
use schema::{Schema, Table, TableId};
use table::{
    CommitFailurePolicy, Compactor, FileRegistry, Health, NodeTimestamps, Shared, SharedSeed,
    SnapshotOptions, Snapshots, TableError, TableSeed, TableStore, Tables, Timestamps,
};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::{Layout, StorageError, StorageOptions};

use prefetch::Prefetcher;
pub(crate) use visit::{VisitingRead, VisitingWrite};

pub use claims::Claim;
pub use logged::{HeldLog, Logged, LoggedMutations};
pub use lookups::{HashedRow, Lookups, LookupsSent};
pub use quarantined::quarantined;
pub use truncation::TruncationNote;
pub use unsettled::{Replaced, Settles, Unsettled, unsettled};
pub use visit::VisitStats;
pub(crate) use write::write_units;
pub use write::{Outcomes, Unit, Wait, outdated};
pub use writes_under_way::{WriteUnderWay, Writes};

/// One shard of a node. Lives on its own thread.
pub struct Shard {
    shared: Rc<Shared>,
    tables: Rc<Tables>,
    options: Arc<StorageOptions>,
    layout: Layout,
    /// Of other shards' threads.
    visits: visit::Visits,
    schema: RefCell<Arc<Schema>>,
    writes: writes_under_way::WritesUnderWay,
    claims: claims::Claims,
    unsettled: Unsettled,
    /// Whose shares of counters it gives.
    counter_id: CounterId,
    /// What reads that are under way work in.
    read_memory: read_memory::ReadMemory,
    /// Told when a table may have another `memtable_flush_period_in_ms` than before.
    periods_changed: Rc<Notify>,
    /// The log segment of the last write.
    log_segment: Cell<u64>,
}

/// What a shard is started with: the outcome of recovery.
pub(crate) struct ShardSeed {
    pub(crate) manifest: Manifest,
    pub(crate) tables: HashMap<TableId, TableSeed>,
    pub(crate) last_timestamp: i64,
}

/// What all shards of a node are given.
#[derive(Clone)]
pub(crate) struct ShardContext {
    pub(crate) sharding: Sharding,
    pub(crate) runtime: Runtime,
    pub(crate) options: Arc<StorageOptions>,
    pub(crate) layout: Layout,
    pub(crate) counter_id: CounterId,
    pub(crate) registry: Arc<FileRegistry>,
    pub(crate) health: Arc<Health>,
    /// What shards tell each other of timestamps.
    pub(crate) node_timestamps: Arc<NodeTimestamps>,
    pub(crate) compaction: Arc<CompactionControl>,
}

/// What of a shard's memory grows with its data.
#[derive(Clone, Copy, Debug)]
pub struct ShardMemory {
    /// Bytes in memtables.
    pub memtable_bytes: usize,
    /// What the chunk cache did so far, and the disk for it.
    pub cache: CacheStats,
}

impl Shard {
    /// Starts a shard from what recovery found. Must be called on the shard's own thread.
    pub(crate) fn start(
        index: usize,
        context: ShardContext,
        seed: ShardSeed,
        schema: Arc<Schema>,
    ) -> Result<Rc<Shard>, StorageError> {
        let share = context.share();
        let ShardContext {
            sharding,
            runtime,
            options,
            layout,
            counter_id,
            registry,
            health,
            node_timestamps,
            compaction,
        } = context;
        let log_options = commitlog::CommitLogOptions {
            segment_bytes: options.segment_bytes,
            sync: options.sync,
            segment_above: seed.manifest.segment_max(),
            goes_on_after_failure: options.commit_failure_policy == CommitFailurePolicy::Ignore,
            spare_segments_max: share::spare_segments_max(&share, options.segment_bytes),
            pending_bytes_max: share::pending_log_bytes_max(&share),
        };
        let stream = u32::try_from(index).unwrap_or(u32::MAX);
        let log = CommitLog::open(&runtime, &layout.commitlog(), stream, log_options)?;
        if options.is_log_kept {
            log.keep_from(LogPosition::START);
        }
        // The next replay would take what is written from here on for what is in files. No test can break it without
        // another log.
        let is_above = log.end().segment > seed.manifest.segment_max();
        assert!(is_above, "a log begins behind all that the manifest says is in files");
        let mut manifest = seed.manifest;
        if !manifest.state().keeps_roster && log.has_roster() {
            match manifest.with_roster().write().map_err(TableError::from) {
                Ok(next) => manifest = next,
                // The next start has time for it too.
                Err(error) if error.is_full() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let shard_count = sharding.shard_count();
        let reader = ColdReader::start(&*runtime.disk, &runtime.io)
            .map_err(|source| TableError::Disk { act: "set up io_uring", source })?;
        let is_known = |(id, _): &(&TableId, &TableSeed)| schema.table_by_id(**id).is_some();
        let known = seed.tables.iter().filter(is_known);
        let taken_bytes = known.map(|(_, seed)| seed.memtable.memory_bytes()).sum();
        let tables = Rc::new(Tables::default());
        let shared = SharedSeed {
            index,
            sharding,
            timestamps: Timestamps::new(
                Arc::clone(&runtime.clock),
                index,
                shard_count,
                seed.last_timestamp,
                node_timestamps,
            ),
            compactor: Compactor::new(
                compaction,
                &runtime,
                layout.compaction_history(index),
                options.merge_bytes / options.concurrent_compactors.max(1),
            ),
            share,
            taken_bytes,
            snapshot_options: SnapshotOptions {
                is_automatic: options.auto_snapshot,
                spell_table: options.spell_table,
            },
            directories: layout.tables().clone(),
            runtime,
            registry,
            health,
            log,
            manifest,
            reader,
        };
        let shared = Shared::new(shared, &tables);
        let mut seeds = seed.tables;
        for table in schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values()) {
            let (seed, truncated_at) = (seeds.remove(&table.id()), schema.truncated_at(table.id()));
            let store = TableStore::new(Arc::clone(table), seed, truncated_at, &shared);
            tables.add(table.id(), store);
        }
        shared.hold_to_sum(&tables);
        let shard = Rc::new(Shard {
            read_memory: read_memory::ReadMemory::new(options.read_bytes / shard_count),
            options,
            layout,
            visits: visit::Visits::default(),
            writes: writes_under_way::WritesUnderWay::default(),
            claims: claims::Claims::default(),
            unsettled: Unsettled::default(),
            counter_id,
            schema: RefCell::new(schema),
            periods_changed: Rc::default(),
            log_segment: Cell::new(0),
            shared,
            tables,
        });
        begin(&shard);
        Ok(shard)
    }

    /// Its number on the node, from 0.
    pub fn index(&self) -> usize {
        self.shared.index
    }

    /// The outside, as this node sees it.
    pub fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// Where the node's files are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The schema in force here.
    pub fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema.borrow())
    }

    /// Looks at the schema in force here. The handle that [`Shard::schema`] gives is counted on memory
    /// that all shards share, so requests look through this.
    pub fn with_schema<T>(&self, look: impl FnOnce(&Schema) -> T) -> T {
        look(&self.schema.borrow())
    }

    /// Gives timestamps for writes.
    pub fn timestamps(&self) -> &Timestamps {
        &self.shared.timestamps
    }

    /// Seconds since 1970.
    pub fn now_seconds(&self) -> u32 {
        self.shared.now_seconds()
    }

    /// How many tombstones a read of the table may come upon.
    pub fn tombstone_thresholds(&self, table: &Table) -> TombstoneThresholds {
        self.options.tombstones.of_table(table)
    }

    /// What memtables take, and what the chunk cache has and did.
    pub fn memory(&self) -> ShardMemory {
        ShardMemory { memtable_bytes: self.shared.room.taken_bytes(), cache: self.shared.cache_stats() }
    }

    /// What tables share.
    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Compactions of all tables.
    pub fn compactor(&self) -> &Compactor {
        &self.shared.compactor
    }

    /// Snapshots and backups of all tables of the node.
    pub fn snapshots(&self) -> Snapshots<'_> {
        Snapshots::of(&self.shared)
    }

    /// The note that a table is being emptied on all shards.
    pub fn truncation_note(&self) -> TruncationNote<'_> {
        TruncationNote(self)
    }

    /// A table here: the way to all that is done with it.
    ///
    /// # Errors
    /// There is none, or a promise was broken and nothing is done any more.
    pub fn table(&self, table: TableId) -> Result<Rc<TableStore>, StorageError> {
        self.shared.runtime.failsafe.check()?;
        self.tables.get(table).ok_or_else(|| TableError::NoTable { table }.into())
    }

    /// Which tables have which of the files here.
    pub fn tables_of_files(&self, files: &[Uuid]) -> BTreeMap<TableId, Vec<Uuid>> {
        let mut tables: BTreeMap<TableId, Vec<Uuid>> = BTreeMap::new();
        for store in self.tables.all() {
            let of_table = store.files().all();
            let ids = of_table.iter().map(|file| file.descriptor().id).filter(|id| files.contains(id));
            let ids: Vec<Uuid> = ids.collect();
            if !ids.is_empty() {
                tables.insert(store.id(), ids);
            }
        }
        tables
    }

    /// Writes a table's memtable out and waits for it.
    ///
    /// # Errors
    /// The disk failed; nothing is lost, the log keeps what is not in a file.
    pub async fn flush(&self, table: TableId) -> Result<(), StorageError> {
        Ok(self.table(table)?.flush().await?)
    }

    /// Writes all memtables out and waits for it.
    ///
    /// # Errors
    /// As [`Shard::flush`]; tables after the failed one are not tried.
    pub async fn flush_all(&self) -> Result<(), StorageError> {
        let mut written = Ok(());
        for store in self.tables.all() {
            written = store.write_out().await.map(|_| ());
            if written.is_err() {
                break;
            }
        }
        self.shared.discard_flushed_log().await;
        Ok(written?)
    }

    /// Merges all files of a table and waits for it (`nodetool compact`).
    ///
    /// # Errors
    /// A file is damaged or the disk failed; the inputs stay.
    pub async fn compact(&self, table: TableId) -> Result<(), StorageError> {
        Ok(self.table(table)?.compact(&CompactionRequest::default()).await?)
    }

    /// Refuses writes from now on, then writes everything out. Reads go on.
    ///
    /// # Errors
    /// The disk failed; the log has what is not in files.
    pub async fn drain(&self) -> Result<(), StorageError> {
        self.shared.begin_stop();
        self.flush_all().await?;
        Prefetcher::of(self).note_hot().await;
        Ok(self.shared.close_log().await?)
    }

    /// Writes everything out and takes nothing more: the way to a clean stop.
    ///
    /// # Errors
    /// The disk failed; the log has what is not in files.
    pub async fn stop(&self, flush_first: bool) -> Result<(), StorageError> {
        let flushed = if flush_first { self.flush_all().await } else { Ok(()) };
        self.shared.begin_stop();
        // What was held in the log.
        self.shared.discard_flushed_log().await;
        Prefetcher::of(self).note_hot().await;
        let closed = self.shared.close_log().await;
        flushed.and(closed.map_err(StorageError::from))
    }
}

/// Begins what a shard does by itself.
fn begin(shard: &Shard) {
    let (shared, tables) = (&shard.shared, &shard.tables);
    shared.begin();
    // What recovery replayed, so that the old log segments can go.
    tables.flush_written();
    if !shared.room.is_flushing() {
        // Nothing is left in memory: the replay may have written all of it out on the way.
        let shared = Rc::clone(shared);
        runtime::spawn_local("flush", async move { shared.discard_flushed_log().await });
    }
    housekeeping::Housekeeper::new(tables, &shard.periods_changed).start(shared);
}
