//! What the tables of a shard share: where they are, what they write to, and what they have to divide among them.
//!
//! The shard has it, and each of its tables; it has no table, only a way to all of them as long as there are any.

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use cache::ChunkCache;
use commitlog::CommitLog;
use manifest::Manifest;
use ring::Sharding;
use runtime::Runtime;
use schema::Table;
use sstable::TableFile;

use super::cache_share::CacheShare;
use super::compactor::Compactor;
use super::faults::LeftOut;
use super::fetch::Fetcher;
use super::tables::Tables;
use super::visit::Visits;
use super::write_room::WriteRoom;
use crate::files::FileRegistry;
use crate::health::Health;
use crate::timestamps::Timestamps;
use crate::{Layout, StorageError, StorageOptions};

/// What the tables of a shard share.
pub(crate) struct Shared {
    /// The shard's number on the node.
    pub(crate) index: usize,
    pub(crate) sharding: Sharding,
    pub(crate) runtime: Runtime,
    pub(crate) options: Arc<StorageOptions>,
    pub(crate) layout: Layout,
    pub(crate) registry: Arc<FileRegistry>,
    pub(crate) health: Arc<Health>,
    pub(crate) log: CommitLog,
    pub(crate) timestamps: Timestamps,
    pub(crate) cache: Rc<ChunkCache>,
    pub(crate) cache_share: CacheShare,
    pub(crate) fetcher: Fetcher,
    /// Held while an edit of the manifest is on its way to the disk.
    pub(crate) manifest: tokio::sync::Mutex<Manifest>,
    pub(crate) room: WriteRoom,
    pub(crate) compactor: Compactor,
    pub(crate) left_out: LeftOut,
    pub(crate) visits: Visits,
    pub(super) tables: Weak<Tables>,
    pub(super) is_stopping: Cell<bool>,
}

impl Shared {
    /// All tables; `None` when the shard is no more.
    pub(crate) fn tables(&self) -> Option<Rc<Tables>> {
        self.tables.upgrade()
    }

    /// Is nothing to be written any more, since the node stops?
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.get()
    }

    /// Takes no writes from here on.
    pub(super) fn begin_stop(&self) {
        self.is_stopping.set(true);
        self.room.tell_writers();
    }

    /// May anything be written?
    ///
    /// # Errors
    /// The node is stopping, or broken.
    pub(crate) fn check_open(&self) -> Result<(), StorageError> {
        self.runtime.failsafe.check()?;
        if self.is_stopping() { Err(StorageError::ShuttingDown) } else { Ok(()) }
    }

    /// Seconds since 1970.
    pub(crate) fn now_seconds(&self) -> u32 {
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
    pub(crate) fn table_directory(&self, table: &Table) -> Result<PathBuf, StorageError> {
        Ok(Layout::table_in(self.health.write_directory(self.index)?, table))
    }

    /// Takes in that an act of this shard failed.
    pub(crate) fn note_fault(&self, act: &'static str, error: &StorageError) {
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
    pub(crate) fn call_back_cache(&self, bytes: usize) {
        self.cache_share.call_back(bytes, &self.cache, self.room.taken_bytes());
    }

    /// Gives the cache what memtables do not use, or takes it back. To be called when their size has
    /// changed.
    pub(crate) fn lend(&self) {
        self.cache_share.lend(&self.cache, self.room.taken_bytes());
    }

    /// Takes it that so many bytes of memtables are free again.
    pub(crate) fn give_back_memory(&self, bytes: usize) {
        self.room.give_back(bytes);
        if let Some(tables) = self.tables() {
            let taken_bytes = tables.memtable_bytes();
            assert_eq!(
                self.room.taken_bytes(),
                taken_bytes,
                "the memory of all memtables is the sum of theirs"
            );
        }
        self.lend();
        self.room.tell_writers();
    }

    /// Starts flushes of the tables that hold back the oldest log segments, when the log is longer
    /// than it may be. Without it a table that is hardly written to would keep the whole log.
    pub(super) fn shorten_log(&self, tables: &Tables) {
        let log = self.log.statistics();
        if log.retained_bytes <= self.log_budget() || self.room.is_flushing() {
            return;
        }
        if let Some(oldest) = tables.first_position() {
            tables.flush_up_to(oldest.segment + log.segment_count / 4);
        }
    }

    /// The part of the commit log's budget that is this shard's; a few segments always are.
    fn log_budget(&self) -> u64 {
        let share = self.options.log_bytes / self.sharding.shard_count() as u64;
        share.max(4 * u64::from(self.options.segment_bytes))
    }

    /// Gives up log segments whose writes are all in files. Those that stay cost space and a longer start; the next
    /// flush tries again.
    pub(crate) async fn discard_flushed_log(&self) {
        if let Err(error) = self.discard_log().await {
            tracing::warn!(%error, "log segments that are not needed were not deleted");
        }
    }

    async fn discard_log(&self) -> Result<(), StorageError> {
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
