//! How a shard reads what is not in memory.
//!
//! | [`DiskAccess`] | reads | where |
//! |---|---|---|
//! | `IoUring` | past the page cache, through a ring of the shard's own | the common case |
//! | `Pread` | past the page cache, on the threads of [`Io`] | io_uring is refused: seccomp, old kernels |
//! | `Buffered` | through the page cache, on the threads of [`Io`] | to compare, and to share memory with others |
//! | `Auto` | as `IoUring` if the kernel lets us, else as `Pread` | the default |
//!
//! A file system that refuses reads past the page cache is read through it, file by file. A disk that
//! is not the system's (the simulator's) is read by plain calls on [`Io`].

mod buffer;
mod direct;
mod ring;

use std::cell::Cell;
use std::fmt;
use std::io;
use std::sync::Arc;

pub use buffer::ColdBytes;
pub use direct::DirectFile;
use ring::Ring;

use crate::{Disk, DiskFile, Io, path_error};

/// Longer reads are not made; whoever asks for one follows damaged lengths.
const READ_BYTES_MAX: usize = 1 << 30;

/// How files are read that are not in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DiskAccess {
    /// The best that the kernel allows.
    #[default]
    Auto,
    /// Through io_uring, past the page cache.
    IoUring,
    /// By threads, past the page cache.
    Pread,
    /// By threads, through the page cache.
    Buffered,
}

/// Reads for one shard. Stays on its thread.
pub struct ColdReader {
    ring: Option<Ring>,
    io: Io,
    access: DiskAccess,
    read_count: Cell<u64>,
    read_bytes: Cell<u64>,
}

/// What was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColdStats {
    /// Reads of the disk, or of the kernel's page cache.
    pub read_count: u64,
    /// Bytes that were asked for.
    pub read_bytes: u64,
}

impl ColdReader {
    /// Chooses how to read from that disk. Called on the shard's thread, in its `LocalSet`.
    ///
    /// # Errors
    /// io_uring is asked for by name and refused.
    pub fn start(disk: &dyn Disk, io: &Io) -> io::Result<ColdReader> {
        let asked = disk.access();
        let (ring, access) = match asked {
            DiskAccess::Buffered | DiskAccess::Pread => (None, asked),
            DiskAccess::IoUring => (Some(Ring::start()?), DiskAccess::IoUring),
            DiskAccess::Auto => match Ring::start() {
                Ok(ring) => (Some(ring), DiskAccess::IoUring),
                Err(error) => {
                    tracing::info!(%error, "io_uring is refused: cold reads go through threads");
                    (None, DiskAccess::Pread)
                }
            },
        };
        Ok(ColdReader { ring, io: io.clone(), access, read_count: Cell::new(0), read_bytes: Cell::new(0) })
    }

    /// What was chosen: never `Auto`.
    pub fn access(&self) -> DiskAccess {
        self.access
    }

    /// What was read so far.
    pub fn stats(&self) -> ColdStats {
        ColdStats { read_count: self.read_count.get(), read_bytes: self.read_bytes.get() }
    }

    /// Reads so many bytes from an offset on.
    ///
    /// # Errors
    /// The disk fails, or the file ends before.
    ///
    /// # Cancel safety
    /// Dropped, the read may go on; its bytes are thrown away.
    pub async fn read(&self, file: &Arc<dyn DiskFile>, offset: u64, length: usize) -> io::Result<ColdBytes> {
        if length > READ_BYTES_MAX {
            return Err(path_error("read", file.path(), io::ErrorKind::InvalidInput.into()));
        }
        self.read_count.set(self.read_count.get() + 1);
        self.read_bytes.set(self.read_bytes.get() + length as u64);
        if let Some(direct) = file.direct() {
            let outcome = match &self.ring {
                Some(ring) => ring.read(&direct, offset, length).await,
                None => self.io.run(move || direct.read(offset, length)).await,
            };
            match outcome {
                // Refused now, though it was not when the file was opened.
                Err(error) if is_refusal(&error) => {}
                other => return other.map_err(|error| path_error("read", file.path(), error)),
            }
        }
        self.read_plain(file, offset, length).await
    }

    async fn read_plain(
        &self,
        file: &Arc<dyn DiskFile>,
        offset: u64,
        length: usize,
    ) -> io::Result<ColdBytes> {
        let mut bytes = vec![0; length];
        // What the kernel has in memory is not worth another thread.
        if file.read_exact_cached_at(&mut bytes, offset).is_ok() {
            return Ok(ColdBytes::plain(bytes));
        }
        let file = Arc::clone(file);
        let read = move || file.read_exact_at(&mut bytes, offset).map(|()| ColdBytes::plain(bytes));
        self.io.run(read).await
    }
}

impl fmt::Debug for ColdReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColdReader({:?})", self.access)
    }
}

/// Does the kernel refuse this way of reading, rather than fail at it?
fn is_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let refusals = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS, Errno::PERM];
    error.raw_os_error().is_some_and(|number| refusals.iter().any(|errno| errno.raw_os_error() == number))
        || error.kind() == io::ErrorKind::WouldBlock
}

#[cfg(test)]
mod tests;
