//! The one door to the world: disk, network, time, randomness and threads.
//!
//! Nothing above this crate opens a file or a socket, reads a clock, starts a thread or rolls a die by itself
//! (`clippy.toml` bans the back doors). A node gets one [`Runtime`] and hands its parts down as
//! arguments. That is what lets a whole node run in one thread under a seeded simulator, with a disk
//! that forgets what was not synced.
//!
//! | part | real | in tests and in the simulator |
//! |---|---|---|
//! | [`Disk`] | [`OsDisk`] | [`MemoryDisk`], with power cuts and faults |
//! | [`Network`] | [`Network::System`] | [`MemoryNetwork`], with latency, cuts and resets; or none |
//! | [`Clock`] | [`SystemClock`] | [`VirtualClock`] (tokio's paused time), [`ManualClock`] |
//! | [`Random`] | [`OsRandom`] | [`SeededRandom`] |
//! | [`Background`] flush and compaction jobs | a pool of named threads | at once, or as tasks |
//! | [`ColdReader`] a shard's reads of what is not in memory | io_uring, or threads | through [`Io`] |
//! | [`Io`] short disk work off a shard's thread | a pool of named threads | at once, with a virtual delay |
//! | [`ShardThreads`] | one thread per shard | not used: shards are tasks of one `LocalSet` |
//! | [`Residence`] a shard's state, visited while its thread sleeps | the same | not used |
//! | [`spawn_local`] tasks of a shard | their turns measured | not measured |
//! | [`trace`] | what a traced request did | the same |
//! | [`Failsafe`] a node that broke a promise stops | the process ends | further calls are refused |
//! | [`Plants`] faults to be found | none | what a test plants |

mod alarm;
mod background;
mod block_on;
mod clock;
mod cold;
mod delay;
mod disk;
mod failsafe;
mod gate;
mod handle;
mod io;
mod latest;
mod mailbox;
pub mod memory_disk;
pub mod network;
mod os_disk;
mod panicked;
mod plants;
mod pool;
mod process;
mod random;
mod residence;
mod shard_threads;
pub mod trace;
mod turns;

use std::sync::Arc;

pub use alarm::{Alarm, Late};
pub use background::{Background, JobError, Stopped};
pub use block_on::block_on;
pub use clock::{Clock, ManualClock, SystemClock, VirtualClock};
pub use cold::{ColdBytes, ColdReader, ColdStats, DirectFile, DiskAccess};
pub use disk::{DirectoryEntry, DirectoryLock, Disk, DiskFile, EntryKind, OpenMode, PathError, path_error};
pub use failsafe::{BrokenInvariant, Failsafe};
pub use gate::{Gate, GateClosed, GateEntry};
pub use io::Io;
pub use latest::{Latest, LatestReader, NeverChanges};
pub use mailbox::{MailboxReceiver, MailboxSender, SendError, mailbox};
pub use memory_disk::MemoryDisk;
pub use network::{BoundListener, ByteStream, DetachedStream, Listener, MemoryNetwork, Network};
pub use os_disk::OsDisk;
pub use panicked::{Panicked, caught, caught_in};
pub use plants::{Plant, Plants};
pub use process::{
    expect_descriptors, memory_limit_bytes, refuse_huge_pages, resident_bytes, resident_file_bytes,
    start_service,
};
pub use random::{OsRandom, Random, SeededRandom};
pub use residence::{Door, Residence};
pub use shard_threads::{ShardOptions, ShardThreads};
pub use turns::{Piece, TURN_MAX, TurnFigures, labelled, labelled_future, measured, spawn_local};

/// Everything of the outside that a node may touch. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The file system.
    pub disk: Arc<dyn Disk>,
    /// Clients and other nodes.
    pub network: Network,
    /// Wall and monotonic time.
    pub clock: Arc<dyn Clock>,
    /// Random numbers and unique ids.
    pub random: Arc<dyn Random>,
    /// Long jobs nobody waits for on the hot path: flush, compaction.
    pub background: Background,
    /// Short blocking disk work done on behalf of a shard.
    pub io: Io,
    /// Stops the node when its own code breaks a promise.
    pub failsafe: Failsafe,
    /// Faults that a test has planted.
    pub plants: Plants,
}

/// How many threads the real runtime starts beside the shards.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeOptions {
    /// Threads for flush and compaction.
    pub background_thread_count: usize,
    /// Threads for short disk work.
    pub io_thread_count: usize,
    /// How files are read that are not in memory.
    pub disk_access: DiskAccess,
}

impl Default for RuntimeOptions {
    fn default() -> RuntimeOptions {
        RuntimeOptions { background_thread_count: 2, io_thread_count: 4, disk_access: DiskAccess::Auto }
    }
}

impl Runtime {
    /// The operating system's disk, network, clocks, entropy and threads.
    pub fn real(options: RuntimeOptions) -> std::io::Result<Runtime> {
        Ok(Runtime {
            disk: Arc::new(OsDisk::with_access(options.disk_access)),
            network: Network::System,
            clock: Arc::new(SystemClock::new()),
            random: Arc::new(OsRandom::new()?),
            background: Background::pool(options.background_thread_count)?,
            io: Io::pool(options.io_thread_count)?,
            failsafe: Failsafe::default(),
            plants: Plants::default(),
        })
    }

    /// A memory disk, no network, a clock that moves only when told, a fixed seed, and no threads at all.
    pub fn in_memory_for_tests() -> Runtime {
        Runtime::in_memory(Arc::new(MemoryDisk::new()), 1)
    }

    /// As [`Runtime::in_memory_for_tests`], over the disk and the seed that the test chose.
    pub fn in_memory(disk: Arc<dyn Disk>, seed: u64) -> Runtime {
        Runtime {
            disk,
            network: Network::None,
            clock: Arc::new(ManualClock::default()),
            random: Arc::new(SeededRandom::new(seed)),
            background: Background::inline(),
            io: Io::inline(),
            failsafe: Failsafe::default(),
            plants: Plants::default(),
        }
    }

    /// Stops the background and disk threads and waits for the work they have begun.
    pub fn stop(&self) {
        self.background.stop();
        self.io.stop();
    }
}
