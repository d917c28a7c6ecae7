//! How a database is opened.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assembly::{AnswerOptions, AssemblyError, NoClients, NodeOptions, PreparedOptions};
use runtime::{
    Background, Clock, Disk, Failsafe, Io, MemoryDisk, Network, OsDisk, OsRandom, Plants, Runtime,
    SystemClock,
};
use storage::{CommitFailurePolicy, DiskFailurePolicy, Layout, StorageError, StorageOptions, SyncMode};

use crate::instance::Instance;
use crate::worker::{Mailboxes, serve};
use crate::{Database, Error};

/// Memory of a database that was not told otherwise.
const MEMORY_BYTES: u64 = 256 << 20;
/// Less leaves no room for a memtable worth its name.
const MEMORY_BYTES_MIN: u64 = 8 << 20;
/// Commit log of a database in memory: what is flushed need not be there twice.
const LOG_BYTES_IN_MEMORY: u64 = 128 << 20;
/// Where a database in memory keeps its files, on a disk that nobody else sees.
const DIRECTORY_IN_MEMORY: &str = "/memory";

/// How a database is opened: made by [`Database::options`], ended by [`Options::open`] or
/// [`Options::in_memory`].
///
/// # Example
/// ```
/// use embedded::{Database, SyncMode};
///
/// let database = Database::options()
///     .memory(64 << 20)
///     .shards(2)
///     .commitlog_sync(SyncMode::Batch)
///     .in_memory()?;
/// # database.close().wait()?;
/// # Ok::<(), embedded::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    memory_bytes: u64,
    shards: Option<u16>,
    sync: SyncMode,
    clock: Option<Arc<dyn Clock>>,
    cluster_name: String,
    data_center: String,
    auto_snapshot: bool,
    disk_failure_policy: DiskFailurePolicy,
    commit_failure_policy: CommitFailurePolicy,
    compaction_bytes_per_second: u64,
    plants: Plants,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            memory_bytes: MEMORY_BYTES,
            shards: None,
            sync: SyncMode::Group { window: std::time::Duration::ZERO },
            clock: None,
            cluster_name: "Test Cluster".into(),
            data_center: "datacenter1".into(),
            auto_snapshot: false,
            disk_failure_policy: DiskFailurePolicy::default(),
            commit_failure_policy: CommitFailurePolicy::default(),
            compaction_bytes_per_second: 0,
            plants: Plants::default(),
        }
    }
}

impl Options {
    /// The memory budget in bytes: a quarter is for memtables, three eighths for the cache of table files, the
    /// rest for indexes, filters and requests. 256 MiB if not told; at least 8 MiB. The files of a
    /// database in memory come on top.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// How many shards, which is how many threads do the work. If not told: as many as the directory
    /// was last opened with, one in a new directory. Another number than last time is taken over.
    pub fn shards(mut self, count: u16) -> Self {
        self.shards = Some(count);
        self
    }

    /// When a write counts as durable. [`SyncMode::Group`] without a window if not told: a write is
    /// acknowledged once it is safe on disk, and one sync serves all that wait for it.
    pub fn commitlog_sync(mut self, sync: SyncMode) -> Self {
        self.sync = sync;
        self
    }

    /// Where timestamps and expiry times come from: the system's clock if not told. Time that is
    /// waited for (syncs, flush periods) is not the clock's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The name in `system.local`; `Test Cluster` if not told.
    pub fn cluster_name(mut self, name: impl Into<String>) -> Self {
        self.cluster_name = name.into();
        self
    }

    /// The data centre that `NetworkTopologyStrategy` replicates to; `datacenter1` if not told.
    pub fn data_center(mut self, name: impl Into<String>) -> Self {
        self.data_center = name.into();
        self
    }

    /// Is a table kept as a snapshot before it is dropped or truncated? Not if not told.
    pub fn auto_snapshot(mut self, is_on: bool) -> Self {
        self.auto_snapshot = is_on;
        self
    }

    /// What happens when table files can not be read or written; `Stop` if not told. Where a node would
    /// send its clients away or end its process, calls answer [`Error::Stopped`]: the process is yours.
    pub fn disk_failure_policy(mut self, policy: DiskFailurePolicy) -> Self {
        self.disk_failure_policy = policy;
        self
    }

    /// The same of the commit log.
    pub fn commit_failure_policy(mut self, policy: CommitFailurePolicy) -> Self {
        self.commit_failure_policy = policy;
        self
    }

    /// Bytes a second that compactions may read; 0, without limit, if not told.
    pub fn compaction_throughput(mut self, bytes_per_second: u64) -> Self {
        self.compaction_bytes_per_second = bytes_per_second;
        self
    }

    /// Faults that tests of this library plant.
    #[doc(hidden)]
    pub fn plants(mut self, plants: Plants) -> Self {
        self.plants = plants;
        self
    }

    /// Opens the database in a directory, which is made if it is not there. Blocks while what was not
    /// flushed last time is replayed.
    ///
    /// # Errors
    /// [`Error::InUse`] when this or another process has it open, [`Error::Open`] when it is damaged or
    /// the disk fails.
    pub fn open(self, directory: impl AsRef<Path>) -> Result<Database, Error> {
        let io = Io::pool(2).map_err(Error::Threads)?;
        self.open_with(Arc::new(OsDisk::new()), io, directory.as_ref().to_owned(), None)
    }

    /// Opens a database whose files lie in memory and are gone with it.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn in_memory(self) -> Result<Database, Error> {
        let directory = PathBuf::from(DIRECTORY_IN_MEMORY);
        self.open_with(Arc::new(MemoryDisk::new()), Io::inline(), directory, Some(LOG_BYTES_IN_MEMORY))
    }

    /// As [`Options::open`], on a disk of the caller's: a [`MemoryDisk`](runtime::MemoryDisk) that is
    /// kept can be opened again, and made to fail.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_on(self, disk: Arc<dyn Disk>, directory: impl AsRef<Path>) -> Result<Database, Error> {
        let io = Io::pool(2).map_err(Error::Threads)?;
        self.open_with(disk, io, directory.as_ref().to_owned(), None)
    }

    fn open_with(
        self,
        disk: Arc<dyn Disk>,
        io: Io,
        directory: PathBuf,
        log_bytes: Option<u64>,
    ) -> Result<Database, Error> {
        let runtime = Runtime {
            disk,
            network: Network::None,
            clock: self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock::new())),
            random: Arc::new(OsRandom::new().map_err(Error::Threads)?),
            background: Background::pool(2).map_err(Error::Threads)?,
            io,
            // The process is its owner's: it does not end.
            failsafe: Failsafe::default(),
            plants: self.plants.clone(),
        };
        let options = self.node_options(&runtime, &directory, log_bytes)?;
        let mailboxes = Arc::new(Mailboxes::new(usize::from(options.storage.shard_count)));
        let senders = mailboxes.senders.clone();
        let body = move |seat: assembly::Seat| {
            let mailbox = mailboxes.take(seat.index);
            async move {
                if let Some(mailbox) = mailbox {
                    serve(seat, mailbox).await;
                }
            }
        };
        match assembly::start(&runtime, options, Arc::new(NoClients), body) {
            Ok(node) => Ok(Database::new(Arc::new(Instance::new(node, runtime.failsafe, senders)))),
            Err(source) => {
                runtime.stop();
                Err(refusal(&*runtime.disk, source, directory))
            }
        }
    }

    fn node_options(
        self,
        runtime: &Runtime,
        directory: &Path,
        log_bytes: Option<u64>,
    ) -> Result<NodeOptions, Error> {
        if self.memory_bytes < MEMORY_BYTES_MIN {
            let what = format!("{} bytes are less than {MEMORY_BYTES_MIN}", self.memory_bytes);
            return Err(Error::Option { name: "memory", what });
        }
        if self.shards == Some(0) {
            return Err(Error::Option { name: "shards", what: "at least one is needed".into() });
        }
        let shard_count = match self.shards {
            Some(count) => count,
            None => shards_of(&*runtime.disk, directory)
                .map_err(|source| refusal(&*runtime.disk, source.into(), directory.to_owned()))?,
        };
        let memory_bytes = usize::try_from(self.memory_bytes).unwrap_or(usize::MAX);
        let storage = StorageOptions::new(directory, shard_count, memory_bytes);
        Ok(NodeOptions {
            storage: StorageOptions {
                sync: self.sync,
                log_bytes: log_bytes.unwrap_or(storage.log_bytes),
                auto_snapshot: self.auto_snapshot,
                disk_failure_policy: self.disk_failure_policy,
                commit_failure_policy: self.commit_failure_policy,
                spell_table: Some(query::table_to_cql),
                compaction_bytes_per_second: self.compaction_bytes_per_second,
                ..storage
            },
            // Nobody listens.
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            cql_broadcast: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            memory_bytes: self.memory_bytes,
            request_bytes: 0,
            answers: AnswerOptions::of_memory(self.memory_bytes),
            prepared: PreparedOptions::of_memory(self.memory_bytes),
            timeouts: Arc::default(),
            cluster_name: self.cluster_name,
            data_center: self.data_center,
            rack: "rack1".into(),
            ring: None,
            settings: Vec::new(),
        })
    }
}

/// How many shards a directory was last opened with; one when it is new.
fn shards_of(disk: &dyn Disk, directory: &Path) -> Result<u16, StorageError> {
    let facts = Layout::new(directory).read_facts(disk)?;
    Ok(facts.map_or(1, |facts| u16::try_from(facts.sharding.shard_count()).unwrap_or(u16::MAX)))
}

fn refusal(disk: &dyn Disk, source: AssemblyError, directory: PathBuf) -> Error {
    match disk.lock_dir(&directory) {
        // Whoever has it is the cause of what went wrong.
        Err(refused) if refused.kind() == std::io::ErrorKind::WouldBlock => Error::InUse { directory },
        _ => Error::Open { directory, source },
    }
}
