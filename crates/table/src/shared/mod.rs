//! What the tables of a shard share: where they are, what they write to, and what they have to divide among them.
//!
//! The shard has it, and each of its tables; it has no table, only a way to all of them as long as there are any.
//!
//! | a reader asks | file |
//! |---|---|
//! | which tables are there? | `tables.rs` |
//! | when does a write wait for room? | `write_room.rs` |
//! | how much memory has the cache? | `cache_share.rs` |
//! | who reads the disk, and whose read goes first? | `fetcher.rs` |
//! | what becomes of files that come and go? | `kept_files.rs` |
//! | which shards use which file? | `registry.rs` |
//! | what have all compactions in common? | `compactor.rs` |
//! | which snapshots are there? | `snapshots.rs` |
//! | which timestamps are given? | `timestamps.rs` |
//! | what when the disk fails? | `faults.rs` |
//! | what must not be cut off by a panic? | `vital.rs` |

mod cache_share;
mod compactor;
mod faults;
mod fetcher;
mod kept_files;
mod registry;
mod snapshots;
mod tables;
mod timestamps;
mod vital;
mod write_room;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cache::{CacheStats, ChunkCache};
use commitlog::{CommitLog, LogPosition};
use manifest::Manifest;
use ring::Sharding;
use rows::PartitionKey;
use runtime::{ColdReader, Runtime};
use schema::Table;
use sstable::TableFile;
use types::Token;

use crate::health::Health;
use crate::{TableDirectories, TableError};
use cache_share::CacheShare;
use faults::LeftOut;

pub use compactor::Compactor;
pub(crate) use fetcher::PATIENCE_OF_MERGES;
pub use fetcher::{Fetcher, PATIENCE_OF_PREFETCH, Waiting};
pub use registry::FileRegistry;
pub(crate) use snapshots::is_system;
pub use snapshots::{SnapshotOptions, Snapshots};
pub use tables::Tables;
pub use timestamps::{NodeTimestamps, Timestamps};
pub(crate) use write_room::FlushUnderWay;
pub use write_room::WriteRoom;

/// The log may take one part in so many of what it takes and what is free: on a full disk nothing can be flushed any
/// more, and the log is never let go. Cassandra takes a quarter of the whole volume.
const LOG_PART_OF_ROOM: u64 = 4;

/// What the tables of a shard share.
pub struct Shared {
    /// The shard's number on the node.
    pub index: usize,
    /// Which shard owns which partition.
    pub(crate) sharding: Sharding,
    /// The outside, as the node sees it.
    pub runtime: Runtime,
    pub(crate) directories: TableDirectories,
    pub(crate) snapshot_options: SnapshotOptions,
    /// Which shards use which file.
    pub(crate) registry: Arc<FileRegistry>,
    /// How the node's disks are.
    pub(crate) health: Arc<Health>,
    /// Has what is in no file. Who appends to it, and what, is for the shard to say.
    pub log: CommitLog,
    /// What the log may take on the disk, in bytes.
    log_bytes: u64,
    /// Timestamps that the shard gives.
    pub timestamps: Timestamps,
    /// Chunks of all files.
    pub cache: Rc<ChunkCache>,
    cache_share: CacheShare,
    /// Reads what is not in the cache.
    pub fetcher: Fetcher,
    /// Held while an edit of the manifest is on its way to the disk.
    pub(crate) manifest: tokio::sync::Mutex<Manifest>,
    /// Memory for memtables.
    pub room: WriteRoom,
    /// Compactions of all tables.
    pub compactor: Compactor,
    pub(crate) left_out: LeftOut,
    tables: Weak<Tables>,
    is_stopping: Cell<bool>,
}

/// What the tables of a shard are given to share.
pub struct SharedSeed {
    /// The shard's number on the node.
    pub index: usize,
    /// Which shard owns which partition.
    pub sharding: Sharding,
    /// The outside, as the node sees it.
    pub runtime: Runtime,
    /// Where table files lie.
    pub directories: TableDirectories,
    /// What is kept of tables, and how.
    pub snapshot_options: SnapshotOptions,
    /// Which shards of the node use which file.
    pub registry: Arc<FileRegistry>,
    /// How the node's disks are.
    pub health: Arc<Health>,
    /// The shard's stream of the log.
    pub log: CommitLog,
    /// The shard's manifest.
    pub manifest: Manifest,
    /// Timestamps that the shard gives.
    pub timestamps: Timestamps,
    /// Reads of the disk that pass the kernel's cache by.
    pub reader: ColdReader,
    /// Compactions of all tables.
    pub compactor: Compactor,
    /// What there is to divide among tables.
    pub share: Share,
    /// What their memtables take already of it.
    pub taken_bytes: usize,
}

/// The shard's part of the node's memory and disk, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// What memtables may take.
    pub memtable_bytes: usize,
    /// What cached chunks may take.
    pub cache_bytes: usize,
    /// Does the cache also use what memtables leave of theirs?
    pub cache_borrows: bool,
    /// What the log may take on the disk.
    pub log_bytes: u64,
}

impl Shared {
    /// For these tables, which are still to come.
    pub fn new(seed: SharedSeed, tables: &Rc<Tables>) -> Rc<Self> {
        let Share { memtable_bytes, cache_bytes, cache_borrows, log_bytes } = seed.share;
        Rc::new(Shared {
            index: seed.index,
            sharding: seed.sharding,
            runtime: seed.runtime,
            directories: seed.directories,
            snapshot_options: seed.snapshot_options,
            registry: seed.registry,
            health: seed.health,
            log: seed.log,
            log_bytes,
            timestamps: seed.timestamps,
            cache: Rc::new(ChunkCache::new(cache_bytes)),
            cache_share: CacheShare::new(cache_bytes, cache_borrows.then_some(memtable_bytes)),
            fetcher: Fetcher::new(seed.reader),
            manifest: tokio::sync::Mutex::new(seed.manifest),
            room: WriteRoom::new(memtable_bytes, seed.taken_bytes),
            compactor: seed.compactor,
            left_out: LeftOut::default(),
            tables: Rc::downgrade(tables),
            is_stopping: Cell::new(false),
        })
    }

    /// Begins what is done for all tables by itself. To be called once, when these are there.
    pub fn begin(self: &Rc<Self>) {
        self.account_files();
        self.watch_log();
        self.watch_left_out();
    }

    /// All tables; `None` when the shard is no more.
    pub(crate) fn tables(&self) -> Option<Rc<Tables>> {
        self.tables.upgrade()
    }

    /// Is nothing to be written any more, since the node stops?
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Takes no writes from here on.
    pub fn begin_stop(&self) {
        self.is_stopping.set(true);
        // The next start would read it all.
        self.log.hold_from(LogPosition::END);
        self.room.tell_writers();
    }

    /// May anything be written?
    ///
    /// # Errors
    /// The node is stopping, or broken.
    #[inline]
    pub fn check_open(&self) -> Result<(), TableError> {
        self.runtime.failsafe.check()?;
        if self.is_stopping() { Err(TableError::ShuttingDown) } else { Ok(()) }
    }

    /// Seconds since 1970.
    #[inline]
    pub fn now_seconds(&self) -> u32 {
        u32::try_from(self.runtime.clock.now_seconds().max(0)).unwrap_or(u32::MAX - 1)
    }

    /// Tombstones of a table of before this second may go.
    pub(crate) fn gc_before(&self, table: &Table) -> u32 {
        self.now_seconds().saturating_sub(table.options().gc_grace_seconds)
    }

    /// Is a file this shard's alone, and as we write it?
    pub(crate) fn owns_all(&self, file: &TableFile) -> bool {
        // Shards interleave: only a lone shard owns a whole run of the ring. A file of the format big is
        // never as we would write it.
        !file.descriptor().version.is_big()
            && (self.sharding.shard_count() == 1
                || file.summary().partition_count == 0
                || !self.registry.is_shared(file.descriptor().id))
    }

    /// Bytes that are free where files are written now; `None` where the disk does not tell.
    pub(crate) async fn free_bytes(&self) -> Option<u64> {
        let directory = self.health.write_directory(self.index).ok()?.to_path_buf();
        let disk = Arc::clone(&self.runtime.disk);
        self.runtime.io.run(move || disk.free_space(&directory)).await.ok()
    }

    /// Where this shard writes files of a table.
    ///
    /// # Errors
    /// Nowhere, any more.
    pub(crate) fn table_directory(&self, table: &Table) -> Result<PathBuf, TableError> {
        self.health.table_directory(self.index, table)
    }

    /// Takes in that an act of this shard failed.
    pub fn note_fault(&self, act: &'static str, error: &TableError) {
        self.health.note(act, error);
    }

    /// Counts what the table files hold in memory for good against the cache's memory. To be called
    /// when files have come or gone.
    pub(crate) fn account_files(&self) {
        if let Some(tables) = self.tables() {
            self.cache_share.pin(tables.pinned_bytes(), &self.cache, self.room.taken_bytes());
        }
    }

    /// Has the cache do without so many bytes, borrowed ones first.
    pub fn call_back_cache(&self, bytes: usize) {
        self.cache_share.call_back(bytes, &self.cache, self.room.taken_bytes());
    }

    /// What the cache did so far, and the disk for it.
    pub fn cache_stats(&self) -> CacheStats {
        let reads = self.fetcher.stats();
        CacheStats {
            pinned_bytes: self.cache_share.pinned_bytes() as u64,
            disk_read_count: reads.read_count,
            disk_read_bytes: reads.read_bytes,
            ..self.cache.stats()
        }
    }

    /// Gives the cache what memtables do not use, or takes it back. To be called when their size has
    /// changed.
    #[inline]
    pub fn lend(&self) {
        self.cache_share.lend(&self.cache, self.room.taken_bytes());
    }

    /// Is a partition of that token this shard's?
    #[inline]
    pub fn owns(&self, token: Token) -> bool {
        self.sharding.shard_of(token) == self.index
    }

    /// Asserts that this shard owns a partition that is read by its key. Another shard would find nothing, and say so.
    #[inline]
    pub fn hold_to_owned(&self, key: &PartitionKey) {
        assert!(self.owns(key.token), "a read goes to the shard that owns its partition");
    }

    /// Asserts that what memtables are known to take is the sum of theirs: the budget is asked of one figure.
    pub fn hold_to_sum(&self, tables: &Tables) {
        let taken_bytes = tables.memtable_bytes();
        assert_eq!(self.room.taken_bytes(), taken_bytes, "the memory of all memtables is the sum of theirs");
    }

    /// Takes it that so many bytes of memtables are free again.
    pub(crate) fn give_back_memory(&self, bytes: usize) {
        self.room.give_back(bytes);
        if let Some(tables) = self.tables() {
            self.hold_to_sum(&tables);
        }
        self.lend();
        self.room.tell_writers();
    }

    /// Starts flushes of the tables that hold back the oldest log segments, when the log is longer
    /// than it may be. Without it a table that is hardly written to would keep the whole log.
    pub fn shorten_log(self: &Rc<Self>) {
        let shared = Rc::clone(self);
        runtime::spawn_local("a look at the length of the log", async move {
            let free_bytes = shared.log.free_bytes().await.unwrap_or(u64::MAX);
            if let Some(tables) = shared.tables() {
                shared.flush_what_holds_log(&tables, free_bytes);
            }
        });
    }

    fn flush_what_holds_log(&self, tables: &Tables, free_bytes: u64) {
        let log = self.log.statistics();
        // What is held for other nodes goes by no flush.
        let needed_bytes = log.retained_bytes - log.held_bytes;
        let own_free_bytes = free_bytes / self.sharding.shard_count() as u64;
        let room_bytes = needed_bytes.saturating_add(own_free_bytes) / LOG_PART_OF_ROOM;
        if needed_bytes <= self.log_bytes.min(room_bytes) || self.room.is_flushing() {
            return;
        }
        if let Some(oldest) = tables.first_position() {
            tables.flush_up_to(oldest.segment + (log.segment_count - log.held_count) / 4);
        }
    }

    /// Gives up log segments whose writes are all in files. Those that stay cost space and a longer start; the next
    /// flush tries again.
    pub async fn discard_flushed_log(&self) {
        if let Err(error) = self.discard_log().await {
            tracing::warn!(%error, "log segments that are not needed were not deleted");
        }
    }

    async fn discard_log(&self) -> Result<(), TableError> {
        // Without tables nobody knows what is needed of it.
        let Some(tables) = self.tables() else { return Ok(()) };
        let is_hasty = self.runtime.plants.has(runtime::Plant::SegmentDiscardedEarly);
        let needed = tables.first_position().filter(|_| !is_hasty).unwrap_or_else(|| self.log.end());
        self.log.discard_below(needed).await?;
        let is_kept = tables.first_position().is_none_or(|first| first >= needed);
        assert!(is_kept, "the log keeps what is in no file");
        Ok(())
    }
}
