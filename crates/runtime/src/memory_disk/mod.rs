//! A disk in memory that remembers what a sync made durable, and can lose the rest.
//!
//! Two states are kept side by side: what a running process sees, and what the medium holds.
//! [`MemoryDisk::crash`] gives the disk as it is found after a power cut:
//!
//! - synced bytes are there;
//! - of bytes that were written and not synced, each 512-byte sector is old or new by the seed, and
//!   a file that grew may have any length in between (torn writes);
//! - of names that were created, renamed or removed and whose directory was not synced, any subset is
//!   done that keeps what depends on each other in order; one rename is done whole or not at all;
//! - after a *failed* sync the bytes stay visible and are never made durable by a later sync, as on
//!   Linux (the "fsyncgate" behaviour), unless they are written again.
//!
//! [`MemoryDisk::faults`] makes chosen operations fail or hang, and the power go off after a number of them.
//!
//! What it does not model: a medium that reorders what was synced, reads that fail silently (use
//! [`MemoryDisk::flip_bits`]), permissions, links to directories.

mod content;
mod faults;
mod names;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

pub use faults::{Fault, Faults, Hang, Operation};

use crate::disk::{DirectoryEntry, DirectoryLock, Disk, DiskFile, EntryKind, OpenMode, path_error};
use crate::pool::lock;
use crate::random::{Random, SeededRandom};
use content::FileState;
use names::{Entry, Names, missing};

/// The memory disk. A clone is the same disk.
#[derive(Clone)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

struct Shared {
    names: Mutex<Names>,
    faults: Faults,
    locked: Arc<Mutex<Vec<PathBuf>>>,
}

impl MemoryDisk {
    /// An empty disk that holds a root directory.
    pub fn new() -> MemoryDisk {
        MemoryDisk::with_names(Names::new())
    }

    fn with_names(names: Names) -> MemoryDisk {
        let shared = Shared { names: Mutex::new(names), faults: Faults::default(), locked: Arc::default() };
        MemoryDisk { shared: Arc::new(shared) }
    }

    /// The disk as found after a power cut now. This one is left as it is, so that one history can
    /// be cut by many seeds; the same history and seed give the same image.
    pub fn crash(&self, seed: u64) -> MemoryDisk {
        let random = SeededRandom::new(seed);
        MemoryDisk::with_names(self.names().crash(&random))
    }

    /// The disk as found after the process alone was killed: all that was written is there, and what
    /// was not synced can still be lost by a power cut. A copy, like that of [`MemoryDisk::crash`].
    pub fn kill(&self) -> MemoryDisk {
        MemoryDisk::with_names(self.names().kill())
    }

    /// Where failures are ordered.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// Flips the bits of `mask` in one byte of a file, on the medium and in what is read.
    pub fn flip_bits(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let file = self.file_at("flip", path)?;
        let mut state = lock(&file);
        if !state.flip(offset, mask) {
            return Err(path_error("flip", path, io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        let names = self.names();
        let mut used = 0;
        names.for_each_file(&mut |file| used += lock(file).len());
        used
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.shared.names)
    }

    fn begin(&self, operation: Operation, act: &'static str, path: &Path) -> io::Result<()> {
        match self.shared.faults.begin(operation) {
            Ok(None) => Ok(()),
            Ok(Some(fault)) => Err(path_error(act, path, fault.error())),
            Err(error) => Err(path_error(act, path, error)),
        }
    }

    fn file_at(&self, act: &'static str, path: &Path) -> io::Result<Arc<Mutex<FileState>>> {
        match self.names().find(path) {
            Some(Entry::File(file)) => Ok(file),
            Some(Entry::Directory(_)) => Err(path_error(act, path, io::ErrorKind::IsADirectory.into())),
            None => Err(path_error(act, path, missing())),
        }
    }
}

impl Default for MemoryDisk {
    fn default() -> MemoryDisk {
        MemoryDisk::new()
    }
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDisk")
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = if mode == OpenMode::CreateNew {
            self.begin(Operation::Create, "create", path)?;
            let file = Arc::new(Mutex::new(FileState::default()));
            self.names()
                .link(path, Entry::File(Arc::clone(&file)))
                .map_err(|error| path_error("create", path, error))?;
            file
        } else {
            self.begin(Operation::Read, "open", path)?;
            self.file_at("open", path)?
        };
        let writable = mode != OpenMode::Read;
        Ok(Arc::new(MemoryFile { disk: self.clone(), state: file, path: path.to_owned(), writable }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.begin(Operation::Create, "create directory", path)?;
        self.names().create_dir_all(path).map_err(|error| path_error("create directory", path, error))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.begin(Operation::Remove, "remove", path)?;
        self.file_at("remove", path)?;
        self.names().unlink(path).map_err(|error| path_error("remove", path, error))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.begin(Operation::Remove, "remove directory", path)?;
        self.names().remove_dir_all(path).map_err(|error| path_error("remove directory", path, error))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(Operation::Rename, "rename", from)?;
        self.names().rename(from, to).map_err(|error| path_error("rename", from, error))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(Operation::Create, "link", to)?;
        let file = self.file_at("link", from)?;
        self.names().link(to, Entry::File(file)).map_err(|error| path_error("link", to, error))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.begin(Operation::Read, "list", path)?;
        let entries = self.names().list(path).map_err(|error| path_error("list", path, error))?;
        Ok(entries.into_iter().map(|(name, entry)| describe(name, &entry)).collect())
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<DirectoryEntry>> {
        self.begin(Operation::Read, "look at", path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(self.names().find(path).map(|entry| describe(name, &entry)))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.begin(Operation::Sync, "sync directory", path)?;
        self.names().sync_dir(path).map_err(|error| path_error("sync directory", path, error))
    }

    fn lock_dir(&self, path: &Path) -> io::Result<DirectoryLock> {
        self.begin(Operation::Create, "lock", path)?;
        let mut locked = lock(&self.shared.locked);
        if locked.iter().any(|other| other == path) {
            return Err(path_error("lock", path, io::ErrorKind::WouldBlock.into()));
        }
        locked.push(path.to_owned());
        Ok(DirectoryLock::new(HeldLock { locked: Arc::clone(&self.shared.locked), path: path.to_owned() }))
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.begin(Operation::Read, "look at", path)?;
        Ok(self.shared.faults.capacity_bytes().saturating_sub(self.used_bytes()))
    }
}

fn describe(name: String, entry: &Entry) -> DirectoryEntry {
    match entry {
        Entry::File(file) => DirectoryEntry { name, kind: EntryKind::File, file_bytes: lock(file).len() },
        Entry::Directory(_) => DirectoryEntry { name, kind: EntryKind::Directory, file_bytes: 0 },
    }
}

struct HeldLock {
    locked: Arc<Mutex<Vec<PathBuf>>>,
    path: PathBuf,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        lock(&self.locked).retain(|other| *other != self.path);
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    state: Arc<Mutex<FileState>>,
    path: PathBuf,
    writable: bool,
}

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryFile({})", self.path.display())
    }
}

impl MemoryFile {
    /// Refuses a read-only handle, and growth past the disk's capacity.
    fn check_growth(&self, act: &'static str, file_bytes: u64) -> io::Result<()> {
        if !self.writable {
            return Err(path_error(act, &self.path, io::ErrorKind::PermissionDenied.into()));
        }
        let capacity_bytes = self.disk.shared.faults.capacity_bytes();
        let growth = file_bytes.saturating_sub(lock(&self.state).len());
        if capacity_bytes < u64::MAX && growth > 0 && self.disk.used_bytes() + growth > capacity_bytes {
            return Err(path_error(act, &self.path, Fault::NoSpace.error()));
        }
        Ok(())
    }

    fn set_len_as(&self, act: &'static str, file_bytes: u64) -> io::Result<()> {
        self.check_growth(act, file_bytes)?;
        self.disk.begin(Operation::Write, act, &self.path)?;
        lock(&self.state).set_len(file_bytes);
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.begin(Operation::Read, "read", &self.path)?;
        Ok(lock(&self.state).read(buffer, offset))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.check_growth("write", offset + bytes.len() as u64)?;
        let failed = |error| path_error("write", &self.path, error);
        let fault = self.disk.shared.faults.begin(Operation::Write).map_err(failed)?;
        match fault {
            None => lock(&self.state).write(bytes, offset),
            Some(Fault::ShortWrite { written_bytes }) => {
                lock(&self.state).write(&bytes[..written_bytes.min(bytes.len())], offset);
            }
            Some(_) => {}
        }
        fault.map_or(Ok(()), |fault| Err(failed(fault.error())))
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.begin(Operation::Read, "look at", &self.path)?;
        Ok(lock(&self.state).len())
    }

    fn set_len(&self, file_bytes: u64) -> io::Result<()> {
        self.set_len_as("set length of", file_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        let begun = self.disk.begin(Operation::Sync, "sync", &self.path);
        let mut state = lock(&self.state);
        match begun {
            Ok(()) => state.sync(),
            Err(_) => state.fail_sync(),
        }
        begun
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn allocate(&self, file_bytes: u64) -> io::Result<()> {
        if lock(&self.state).len() >= file_bytes {
            return Ok(());
        }
        self.set_len_as("allocate", file_bytes)
    }
}

/// A coin.
fn toss(random: &SeededRandom) -> bool {
    random.next_u64() & 1 == 1
}

#[cfg(test)]
mod tests;
