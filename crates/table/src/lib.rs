//! A table on a shard: an object with what is its own, and all that is done with it.
//!
//! | a reader asks | file |
//! |---|---|
//! | what has it in memory? | `memtables.rs` |
//! | which files has it, and what of them counts? | `files.rs` |
//! | how does a change of its files become true? | `commit.rs` |
//! | how are rows found by their keys? | `lookup.rs` |
//! | how does a memtable become a file? | `flush.rs` |
//! | how do its files become fewer? | `compaction/` |
//! | how are its files looked through and mended? | `scrub.rs` |
//! | what when one can not be read? | `left_out.rs` |
//! | how are they kept, as snapshots and backups? | `snapshot.rs` |
//! | how do files come from elsewhere? | `import.rs` |
//! | how is it defined anew, emptied, dropped? | `define.rs` |
//! | what is known of it, and counted? | `stats.rs`, `metrics.rs` |
//! | what have the tables of a shard in common? | `shared/` |
//! | what does the node do when its disks fail? | `health.rs` |
//!
//! Pages are read from it by its shard (the crate `storage`). What it has in common with the other tables of its
//! shard is in [`Shared`]: log, cache, manifest, room for memtables.

mod commit;
mod compaction;
mod define;
mod directories;
mod error;
mod files;
mod flush;
mod health;
mod import;
mod left_out;
mod lookup;
mod memtables;
mod metrics;
mod prefetch;
mod read_bytes;
mod row_versions;
mod scrub;
mod shared;
mod snapshot;
mod stats;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use cache::AutoChunkLength;
use commitlog::LogPosition;
use manifest::Scopes;
use memtable::{Memtable, PartitionPlace};
use rows::{Mutation, Row, RowVersions};
use runtime::trace;
use schema::{CompressionOptions, Table, TableId};
use sstable::TableFile;
use uuid::Uuid;

use commit::FileChange;
use compaction::TableCompaction;

pub use define::Emptying;
pub use directories::TableDirectories;
pub use error::TableError;
pub use files::{Damaged, TableFiles};
pub use flush::write_memtable;
pub use health::{
    CommitFailurePolicy, DataDirectory, Demand, DiskFailurePolicy, FaultKind, FaultRecord, Health,
};
pub use import::ImportTarget;
pub use lookup::{Found, Probe};
pub use memtables::{Frozen, Memtables};
pub use metrics::{FileSpan, PartitionBytes, Sample, SliceStats, TableMetrics, TableStats};
pub use prefetch::{PrefetchProgress, PrefetchState, PrefetchStats};
pub use read_bytes::ReadBytes;
pub use row_versions::{VersionsStep, take_versions};
pub use scrub::{FileVerdict, QUARANTINE, ScrubbedFile};
pub use shared::{
    Compactor, Fetcher, FileRegistry, NodeTimestamps, PATIENCE_OF_PREFETCH, Share, Shared, SharedSeed,
    SnapshotOptions, Snapshots, Tables, Timestamps, Waiting, WriteRoom,
};

/// What a table is started with: the outcome of recovery.
pub struct TableSeed {
    /// What the log had of it.
    pub memtable: Memtable,
    /// Files that count.
    pub files: Vec<Arc<TableFile>>,
    /// Of which files not all partitions count, and which do.
    pub scopes: HashMap<Uuid, Scopes>,
    /// Files that can not be read.
    pub damage: Vec<Damaged>,
}

impl TableSeed {
    /// Of a table that has no files.
    pub fn new(memtable: Memtable) -> Self {
        TableSeed { memtable, files: Vec::new(), scopes: HashMap::new(), damage: Vec::new() }
    }
}

/// A table on a shard.
pub struct TableStore {
    shared: Rc<Shared>,
    table: RefCell<Arc<Table>>,
    memtables: Memtables,
    files: TableFiles,
    /// Held by the one flush or truncation that runs.
    flush_turn: tokio::sync::Mutex<()>,
    compaction: TableCompaction,
    is_dropped: Cell<bool>,
    metrics: Rc<TableMetrics>,
    chunk_length: AutoChunkLength,
    /// What a read of it works in.
    read_bytes: ReadBytes,
    prefetch: PrefetchProgress,
    /// Lookups that a read which waits goes on with.
    unfinished: lookup::Unfinished,
}

impl TableStore {
    /// As it was left; without a seed it is new. When was it emptied last? ([`schema::Schema::truncated_at`])
    pub fn new(
        table: Arc<Table>,
        seed: Option<TableSeed>,
        truncated_at: u64,
        shared: &Rc<Shared>,
    ) -> Rc<Self> {
        let seed = seed.unwrap_or_else(|| TableSeed::new(Memtable::new(Arc::clone(&table))));
        let TableSeed { memtable, files, scopes, damage } = seed;
        let plants = || shared.runtime.plants.clone();
        Rc::new(TableStore {
            table: RefCell::new(table),
            chunk_length: AutoChunkLength::of_files(&files),
            read_bytes: ReadBytes::default(),
            prefetch: PrefetchProgress::default(),
            unfinished: lookup::Unfinished::default(),
            memtables: Memtables::new(memtable, truncated_at, shared.runtime.clock.elapsed(), plants()),
            files: TableFiles::new(files, scopes, damage, shared.health.answers_from_the_rest(), plants()),
            flush_turn: tokio::sync::Mutex::new(()),
            compaction: TableCompaction::default(),
            is_dropped: Cell::new(false),
            metrics: Rc::default(),
            shared: Rc::clone(shared),
        })
    }

    /// What it shares with the others of its shard.
    pub(crate) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Its definition.
    #[inline]
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.borrow())
    }

    /// The row that versions make by its definition of now, which knows all columns that they can have: a statement may
    /// have seen it before.
    #[inline]
    pub fn merge(&self, versions: RowVersions) -> Option<Row> {
        self.with_table(|table| versions.merge(table))
    }

    /// Looks at its definition where it is.
    #[inline]
    pub fn with_table<T>(&self, look: impl FnOnce(&Table) -> T) -> T {
        look(&self.table.borrow())
    }

    /// Which table it is.
    #[inline]
    pub fn id(&self) -> TableId {
        self.table.borrow().id()
    }

    /// Is it a table no more?
    #[inline]
    pub fn is_dropped(&self) -> bool {
        self.is_dropped.get()
    }

    /// What it has in memory.
    #[inline]
    pub fn memtables(&self) -> &Memtables {
        &self.memtables
    }

    /// Its files.
    #[inline]
    pub fn files(&self) -> &TableFiles {
        &self.files
    }

    /// What it has done.
    #[inline]
    pub fn metrics(&self) -> &Rc<TableMetrics> {
        &self.metrics
    }

    /// The chunk length that suits its reads.
    #[inline]
    pub fn chunk_length(&self) -> &AutoChunkLength {
        &self.chunk_length
    }

    /// What a read of it works in.
    #[inline]
    pub fn read_bytes(&self) -> &ReadBytes {
        &self.read_bytes
    }

    /// What of it came into memory before anybody asked.
    #[inline]
    pub fn prefetch(&self) -> &PrefetchProgress {
        &self.prefetch
    }

    /// How a file of the table that is written now is compressed.
    pub(crate) fn compression(&self) -> CompressionOptions {
        self.chunk_length.settle(&self.table.borrow().options().compression)
    }

    /// May reads be answered?
    ///
    /// # Errors
    /// Not while a file of it can not be read.
    #[inline]
    pub fn check_readable(&self) -> Result<(), TableError> {
        self.files.check_readable(&self.table.borrow())
    }

    /// Merges a mutation into the memtable; `position` is where the log has it.
    #[inline]
    pub fn apply(&self, mutation: &Mutation, position: Option<LogPosition>, place: Option<PartitionPlace>) {
        assert!(self.shared.owns(mutation.key.token), "a write goes to the shard that owns its partition");
        trace::note(|| format!("Adding to {} memtable", self.table().name()));
        self.shared.room.take(self.memtables.apply(mutation, position, place));
    }

    /// Logs that background work on the table failed, unless that is the stop of the node, or the end of one that is
    /// broken: that was told when it was found.
    pub(crate) fn log_failure(&self, act: &str, done: Result<(), TableError>) {
        let Err(error) = done else { return };
        if !matches!(error, TableError::ShuttingDown | TableError::Broken(_)) {
            let table = self.table();
            tracing::error!(keyspace = table.keyspace(), table = table.name(), %error, "{act} failed");
        }
    }
}
