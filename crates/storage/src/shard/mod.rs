//! A shard: one thread's part of the token space, and everything that belongs to it.
//!
//! One thread at a time touches what is here: the shard's own, or while that sleeps, a visiting one.
//! Other shards reach this one by a visit or by sending it work ([`crate::ShardHandle`]); flush and
//! compaction run elsewhere over immutable inputs and come back as one message.
//!
//! | a reader asks | file |
//! |---|---|
//! | how is a write taken? | `write.rs` |
//! | when does one wait for room? | `write_room.rs` |
//! | how is a page read? | `read.rs` |
//! | how is the only row of a partition read? | `read_row.rs` |
//! | where may a partition live? | `sources.rs` |
//! | who does what is long of a large row? | `large_rows.rs` |
//! | how are rows found by their keys? | `lookup.rs` |
//! | how are those shown that are in memory? | `point.rs` |
//! | how many tombstones may a read come upon? | `tombstones.rs` |
//! | how do chunks come from the disk? | `fetch.rs` |
//! | how do they come before anybody asks? | `prefetch.rs` |
//! | how does a memtable become a file? | `flush.rs` |
//! | how does a change of files become true? | `commit.rs` |
//! | how do files become fewer? | `compact.rs` |
//! | how do files come from elsewhere? | `import.rs` |
//! | what happens as time goes by? | `housekeeping.rs` |
//! | what when the disk fails? | `faults.rs` |
//! | how are files looked through and mended? | `scrub.rs` |
//! | how are files kept, as snapshots and backups? | `snapshot.rs` |
//! | how does the shard learn of a new schema? | `tables.rs` |
//! | which table is being emptied on all shards? | `truncation.rs` |
//! | what may other shards do here while this one sleeps? | `visit.rs` |
//! | what must not be cut off by a panic? | `vital.rs` |

mod commit;
mod compact;
mod faults;
mod fetch;
mod flush;
mod housekeeping;
mod import;
mod large_rows;
mod lookup;
mod point;
mod prefetch;
mod read;
mod read_memory;
mod read_row;
mod read_trace;
mod row_versions;
mod scan;
mod scrub;
mod snapshot;
mod sources;
mod tables;
mod tombstones;
mod truncation;
mod visit;
mod vital;
mod write;
mod write_room;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use cache::{AutoChunkLength, ChunkCache};
use commitlog::{CommitLog, LogPosition};
use compaction::CompactionControl;
use manifest::{Manifest, Scopes, counts};
use memtable::{Memtable, MemtableSlot};
use ring::Sharding;
use rows::PartitionKey;
use runtime::{ColdReader, Plant, Plants, Runtime};
use schema::{CompressionOptions, Schema, Table, TableId};
use sstable::{KeyHash, TableFile};
use stdx::id_map::IdMap;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::files::FileRegistry;
use crate::health::{CommitFailurePolicy, Health, is_full};
use crate::metrics::TableMetrics;
use crate::timestamps::Timestamps;
use crate::{Layout, StorageError, StorageOptions};

use fetch::Fetcher;
use flush::Frozen;
pub(crate) use flush::write_memtable;
pub(crate) use visit::VisitingWrite;

pub use point::{PointReads, PointReadsSent};
pub use prefetch::{PrefetchState, PrefetchStats};
pub use scrub::{FileVerdict, ScrubbedFile};
pub use write::{Outcomes, Unit, Wait};

/// Of what the log may take, one part in so many may be segments that are kept to be written again.
const LOG_PART_SPARE: u64 = 4;
const SPARE_SEGMENTS_MAX: u64 = 8;
const _: () = assert!(LOG_PART_SPARE > 1, "most of the log is not spare");
const _: () = assert!(SPARE_SEGMENTS_MAX >= 1, "a log that goes on has a segment to go on in");

/// One shard of a node. Lives on its own thread.
pub struct Shard {
    index: usize,
    sharding: Sharding,
    runtime: Runtime,
    options: Arc<StorageOptions>,
    layout: Layout,
    registry: Arc<FileRegistry>,
    health: Arc<Health>,
    log: CommitLog,
    timestamps: Timestamps,
    cache: Rc<ChunkCache>,
    fetcher: Fetcher,
    cache_share: fetch::CacheShare,
    /// What reads that are under way work in.
    read_memory: read_memory::ReadMemory,
    /// What one merge may read ahead of all its inputs together.
    merge_bytes: usize,
    schema: RefCell<Arc<Schema>>,
    tables: RefCell<IdMap<TableId, Rc<TableStore>>>,
    /// Held while an edit of the manifest is on its way to the disk.
    manifest: tokio::sync::Mutex<Manifest>,
    /// Bytes in all memtables, active and frozen.
    memtable_bytes: Cell<usize>,
    flushing: flush::Flushing,
    left_out: faults::LeftOut,
    /// Told when a table may have another `memtable_flush_period_in_ms` than before.
    periods_changed: Rc<Notify>,
    /// The log segment of the last write.
    log_segment: Cell<u64>,
    is_stopping: Cell<bool>,
    compactions: compact::Compactions,
    visits: visit::Visits,
}

/// What a shard is started with: the outcome of recovery.
pub(crate) struct ShardSeed {
    pub(crate) manifest: Manifest,
    pub(crate) tables: HashMap<TableId, TableSeed>,
    pub(crate) last_timestamp: i64,
}

/// The part of one table in a [`ShardSeed`].
pub(crate) struct TableSeed {
    pub(crate) memtable: Memtable,
    pub(crate) files: Vec<Arc<TableFile>>,
    pub(crate) scopes: HashMap<Uuid, Scopes>,
    pub(crate) damage: Vec<Damaged>,
}

/// A table file that can not be read.
#[derive(Clone, Debug)]
pub(crate) struct Damaged {
    pub(crate) id: Uuid,
    pub(crate) reason: String,
}

impl TableSeed {
    pub(crate) fn new(memtable: Memtable) -> Self {
        TableSeed { memtable, files: Vec::new(), scopes: HashMap::new(), damage: Vec::new() }
    }
}

/// What all shards of a node are given.
#[derive(Clone)]
pub(crate) struct ShardContext {
    pub(crate) sharding: Sharding,
    pub(crate) runtime: Runtime,
    pub(crate) options: Arc<StorageOptions>,
    pub(crate) layout: Layout,
    pub(crate) registry: Arc<FileRegistry>,
    pub(crate) health: Arc<Health>,
    /// See [`Timestamps`].
    pub(crate) timestamp_floor: Arc<AtomicI64>,
    pub(crate) compaction: Arc<CompactionControl>,
}

impl ShardContext {
    /// Where a shard writes files of a table.
    ///
    /// # Errors
    /// Nowhere, any more.
    pub(crate) fn table_directory(&self, shard: usize, table: &Table) -> Result<PathBuf, StorageError> {
        Ok(Layout::table_in(self.health.write_directory(shard)?, table))
    }

    /// The part of the memtable budget that is each shard's.
    pub(crate) fn memtable_budget(&self) -> usize {
        self.options.memtable_bytes / self.sharding.shard_count()
    }
}

/// A table on a shard.
pub(crate) struct TableStore {
    table: RefCell<Arc<Table>>,
    active: RefCell<Rc<MemtableSlot>>,
    /// The memtable's age counts from here, on the node's clock.
    active_since: Cell<Duration>,
    /// Memtables on their way to disk, oldest first.
    frozen: RefCell<Vec<Frozen>>,
    /// Files that count, an immutable value swapped whole.
    files: RefCell<Rc<Vec<Arc<TableFile>>>>,
    /// Of which files not all partitions count; entries of files that are gone do no harm.
    scopes: HashMap<Uuid, Scopes>,
    /// Files of the table that can not be read, in words. While there is one, reads that might
    /// need it fail: a row in it must not silently be missing.
    damage: RefCell<Vec<Damaged>>,
    /// Are reads answered without them?
    leaves_out_damage: bool,
    /// Held by the one flush or truncation that runs.
    flush_turn: tokio::sync::Mutex<()>,
    compact_turn: compact::CompactTurn,
    compacting: compact::Compacting,
    is_dropped: Cell<bool>,
    metrics: Rc<TableMetrics>,
    chunk_length: AutoChunkLength,
    /// What a read of it works in.
    read_bytes: read_memory::ReadBytes,
    prefetch: prefetch::PrefetchProgress,
    /// Lookups that a read which waits goes on with.
    unfinished: lookup::Unfinished,
    plants: Plants,
}

impl TableStore {
    fn new(table: Arc<Table>, seed: Option<TableSeed>, health: &Health, runtime: &Runtime) -> Rc<Self> {
        let seed = seed.unwrap_or_else(|| TableSeed::new(Memtable::new(Arc::clone(&table))));
        let TableSeed { memtable, files, scopes, damage } = seed;
        Rc::new(TableStore {
            table: RefCell::new(table),
            chunk_length: AutoChunkLength::of_files(&files),
            read_bytes: read_memory::ReadBytes::default(),
            prefetch: prefetch::PrefetchProgress::default(),
            unfinished: lookup::Unfinished::default(),
            active: RefCell::new(MemtableSlot::active(memtable)),
            active_since: Cell::new(runtime.clock.elapsed()),
            frozen: RefCell::new(Vec::new()),
            files: RefCell::new(Rc::new(files)),
            scopes,
            damage: RefCell::new(damage),
            leaves_out_damage: health.answers_from_the_rest(),
            flush_turn: tokio::sync::Mutex::new(()),
            compact_turn: compact::CompactTurn::default(),
            compacting: compact::Compacting::default(),
            is_dropped: Cell::new(false),
            metrics: Rc::default(),
            plants: runtime.plants.clone(),
        })
    }

    /// How a file of the table that is written now is compressed.
    fn compression(&self) -> CompressionOptions {
        self.chunk_length.settle(&self.table.borrow().options().compression)
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.borrow())
    }

    fn files(&self) -> Rc<Vec<Arc<TableFile>>> {
        Rc::clone(&self.files.borrow())
    }

    /// All memtables, the newest last.
    fn memtables(&self) -> Vec<Rc<MemtableSlot>> {
        if self.plants.has(Plant::FrozenMemtablePassedOver) {
            return vec![Rc::clone(&self.active.borrow())];
        }
        let mut slots: Vec<_> = self.frozen.borrow().iter().map(|frozen| Rc::clone(&frozen.slot)).collect();
        slots.push(Rc::clone(&self.active.borrow()));
        slots
    }

    /// What narrows a file.
    fn scopes_of(&self, file: &TableFile) -> Option<Scopes> {
        self.scopes.get(&file.descriptor().id).cloned()
    }

    /// May a file hold anything of a partition that counts?
    fn may_show(&self, file: &TableFile, key: &PartitionKey, hash: KeyHash) -> bool {
        let scopes = self.scopes.get(&file.descriptor().id);
        let is_passed_over =
            |files: &[Arc<TableFile>]| files.len() > 1 && files[0].descriptor().id == file.descriptor().id;
        if self.plants.has(Plant::FilePassedOver) && is_passed_over(&self.files()) {
            return false;
        }
        scopes.is_none_or(|scopes| counts(scopes, key.token)) && file.may_contain(key, hash)
    }

    /// Bytes in all memtables.
    fn memory_bytes(&self) -> usize {
        self.memtables().iter().map(|slot| slot.with(Memtable::memory_bytes)).sum()
    }

    /// The log position of the oldest write that no file has.
    fn first_position(&self) -> Option<LogPosition> {
        self.memtables().iter().filter_map(|slot| slot.with(Memtable::first_position)).min()
    }

    /// Logs that background work on the table failed, unless that is the stop of the node, or the end of one that is
    /// broken: that was told when it was found.
    fn log_failure(&self, act: &str, done: Result<(), StorageError>) {
        let Err(error) = done else { return };
        if !matches!(error, StorageError::ShuttingDown | StorageError::Broken(_)) {
            let table = self.table();
            tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "{act} failed");
        }
    }

    fn check_readable(&self) -> Result<(), StorageError> {
        match self.damage.borrow().first() {
            None => Ok(()),
            Some(_) if self.leaves_out_damage => Ok(()),
            Some(Damaged { reason, .. }) => {
                let table = self.table.borrow();
                let table = format!("{}.{}", table.keyspace(), table.name());
                Err(StorageError::Quarantined { table, reason: reason.clone() })
            }
        }
    }
}

/// How many segments of its log a shard keeps to write them again.
fn spare_segments_max(options: &StorageOptions, sharding: Sharding) -> usize {
    let share = options.log_bytes / sharding.shard_count() as u64 / LOG_PART_SPARE;
    (share / u64::from(options.segment_bytes)).clamp(1, SPARE_SEGMENTS_MAX) as usize
}

impl Shard {
    /// Starts a shard from what recovery found. Must be called on the shard's own thread.
    pub(crate) fn start(
        index: usize,
        context: ShardContext,
        seed: ShardSeed,
        schema: Arc<Schema>,
    ) -> Result<Rc<Shard>, StorageError> {
        let ShardContext {
            sharding,
            runtime,
            options,
            layout,
            registry,
            health,
            timestamp_floor,
            compaction,
        } = context;
        let log_options = commitlog::CommitLogOptions {
            segment_bytes: options.segment_bytes,
            sync: options.sync,
            segment_above: seed.manifest.segment_max(),
            goes_on_after_failure: options.commit_failure_policy == CommitFailurePolicy::Ignore,
            spare_segments_max: spare_segments_max(&options, sharding),
        };
        let stream = u32::try_from(index).unwrap_or(u32::MAX);
        let log = CommitLog::open(&runtime, &layout.commitlog(), stream, log_options)?;
        let mut manifest = seed.manifest;
        if !manifest.state().keeps_roster && log.has_roster() {
            match manifest.with_roster().write().map_err(StorageError::from) {
                Ok(next) => manifest = next,
                // The next start has time for it too.
                Err(error) if is_full(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let mut seeds = seed.tables;
        let mut tables = IdMap::default();
        let mut memtable_bytes = 0;
        for table in schema.keyspaces().values().flat_map(|keyspace| keyspace.tables.values()) {
            let store = TableStore::new(Arc::clone(table), seeds.remove(&table.id()), &health, &runtime);
            memtable_bytes += store.active.borrow().with(Memtable::memory_bytes);
            tables.insert(table.id(), store);
        }
        let shard_count = sharding.shard_count();
        let reader = ColdReader::start(&*runtime.disk, &runtime.io)
            .map_err(|source| StorageError::Disk { act: "set up io_uring", source })?;
        let history = compact::read_history(&runtime, &layout, index);
        let shard = Rc::new(Shard {
            index,
            sharding,
            cache: Rc::new(ChunkCache::new(options.cache_bytes / shard_count)),
            fetcher: Fetcher::new(reader),
            cache_share: fetch::CacheShare::default(),
            read_memory: read_memory::ReadMemory::new(options.read_bytes / shard_count),
            merge_bytes: options.merge_bytes / options.concurrent_compactors.max(1),
            timestamps: Timestamps::new(
                Arc::clone(&runtime.clock),
                index,
                shard_count,
                seed.last_timestamp,
                timestamp_floor,
            ),
            runtime,
            options,
            layout,
            registry,
            health,
            log,
            schema: RefCell::new(schema),
            tables: RefCell::new(tables),
            manifest: tokio::sync::Mutex::new(manifest),
            memtable_bytes: Cell::new(memtable_bytes),
            flushing: flush::Flushing::default(),
            left_out: faults::LeftOut::default(),
            periods_changed: Rc::default(),
            log_segment: Cell::new(0),
            is_stopping: Cell::new(false),
            compactions: compact::Compactions::new(compaction, history),
            visits: visit::Visits::default(),
        });
        shard.account_files();
        shard.watch_log();
        shard.watch_left_out();
        shard.flush_replayed();
        shard.keep_house();
        Ok(shard)
    }

    /// Its number on the node, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The outside, as this node sees it.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
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

    /// A timestamp for a write, in µs: unique on the node, later than all before.
    pub fn next_timestamp(&self) -> i64 {
        self.timestamps.next()
    }

    /// Bytes in memtables.
    pub fn memtable_bytes(&self) -> usize {
        self.memtable_bytes.get()
    }

    /// A table here: the way to all that is done with it.
    ///
    /// # Errors
    /// There is none, or a promise was broken and nothing is done any more.
    fn store(&self, table: TableId) -> Result<Rc<TableStore>, StorageError> {
        self.runtime.failsafe.check()?;
        self.tables.borrow().get(&table).cloned().ok_or(StorageError::NoTable { table })
    }

    /// All tables here.
    fn stores(&self) -> Vec<Rc<TableStore>> {
        let mut stores: Vec<_> =
            self.tables.borrow().iter().map(|(id, store)| (*id, Rc::clone(store))).collect();
        stores.sort_by_key(|(id, _)| *id);
        stores.into_iter().map(|(_, store)| store).collect()
    }

    /// The part of the memtable budget that is this shard's.
    fn memtable_budget(&self) -> usize {
        self.options.memtable_bytes / self.sharding.shard_count()
    }

    /// The part of the commit log's budget that is this shard's; a few segments always are.
    fn log_budget(&self) -> u64 {
        let share = self.options.log_bytes / self.sharding.shard_count() as u64;
        share.max(4 * u64::from(self.options.segment_bytes))
    }
}
