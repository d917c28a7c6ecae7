//! The file system as the storage crates see it: blocking calls, explicit durability.
//!
//! What is promised, and what is not:
//! - written bytes are durable only after [`DiskFile::sync_data`] of that file;
//! - a created, renamed, linked or removed *name* is durable only after [`Disk::sync_dir`] of its
//!   directory; both renamed ends must be synced when the directories differ;
//! - [`Disk::create_dir_all`] alone is durable by itself, so that nobody has to walk up a path;
//! - a rename is atomic: after a power cut the old name or the new one is there, never neither.
//!
//! The calls block. A shard calls them through [`Io::run`](crate::Io::run); background jobs directly.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cold::{DirectFile, DiskAccess};

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
    /// An existing file, for reading and writing.
    ReadWrite,
}

/// What a name in a directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// Anything else: a link, a socket.
    Other,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The last part of the path. Names that are not UTF-8 are shown lossily; none of ours are.
    pub name: String,
    /// File or directory.
    pub kind: EntryKind,
    /// Length in bytes of a file, 0 of a directory.
    pub file_bytes: u64,
}

/// Held while one process owns a directory; dropping it lets go.
pub struct DirectoryLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl DirectoryLock {
    /// Wraps whatever the disk has to keep alive.
    pub fn new(held: impl Any + Send + Sync) -> DirectoryLock {
        DirectoryLock { _held: Box::new(held) }
    }
}

impl fmt::Debug for DirectoryLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DirectoryLock")
    }
}

/// A file system. Errors carry the act and the path (see [`PathError`]).
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a directory and what is missing above it, durably.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes a directory with all that it holds.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Gives a file or directory a new name, replacing a file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name; fails if that is taken.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// What a directory holds, sorted by name.
    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>>;
    /// What the path stands for; `None` if there is nothing.
    fn metadata(&self, path: &Path) -> io::Result<Option<DirectoryEntry>>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the directory for this process, through a file `LOCK` in it; an error of kind
    /// `WouldBlock` if somebody else has it.
    fn lock_dir(&self, path: &Path) -> io::Result<DirectoryLock>;
    /// Bytes an unprivileged process may still write to the file system of `path`.
    fn free_space(&self, path: &Path) -> io::Result<u64>;

    /// How files are to be read that are not in memory.
    fn access(&self) -> DiskAccess {
        DiskAccess::Buffered
    }

    /// One path for all that lead to the same place, which must be there: whole, without links.
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        Ok(path.to_owned())
    }

    /// Whether there is anything at the path.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.metadata(path)?.is_some())
    }

    /// Length of the file at the path.
    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        match self.metadata(path)? {
            Some(entry) => Ok(entry.file_bytes),
            None => Err(path_error("look at", path, io::ErrorKind::NotFound.into())),
        }
    }

    /// Reads a whole file. Meant for small ones: the caller vouches for the size.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let file_bytes = usize::try_from(file.len()?)
            .map_err(|_| path_error("read", path, io::ErrorKind::OutOfMemory.into()))?;
        let mut content = vec![0; file_bytes];
        file.read_exact_at(&mut content, 0)?;
        Ok(content)
    }

    /// Puts `content` at `path` so that after a power cut either the old or the new file is there
    /// whole. Writes `<path>.tmp`, syncs, renames, syncs the directory.
    fn write_atomically(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let temporary = PathBuf::from(temporary);
        if self.exists(&temporary)? {
            self.remove_file(&temporary)?;
        }
        let file = self.open(&temporary, OpenMode::CreateNew)?;
        let written = file.write_all_at(content, 0).and_then(|()| file.sync_all());
        if let Err(error) = written.and_then(|()| self.rename(&temporary, path)) {
            // On a full disk it would only take space. What stays is removed by the next write.
            _ = self.remove_file(&temporary);
            return Err(error);
        }
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }
}

/// An open file. All positions are given by the caller; there is no cursor to share.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Where the file was opened.
    fn path(&self) -> &Path;
    /// Reads what there is, up to the buffer's length; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`, making the file longer if need be. After an error any part of them
    /// may have been written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts the file or extends it with zeros.
    fn set_len(&self, file_bytes: u64) -> io::Result<()>;
    /// Makes the bytes and the length durable. After an error nothing may be assumed about what
    /// was written since the last success, and a later success proves nothing about it.
    fn sync_data(&self) -> io::Result<()>;
    /// As [`DiskFile::sync_data`], with times and permissions.
    fn sync_all(&self) -> io::Result<()>;
    /// Reserves space and makes the file at least so long; what was not written reads as zeros.
    fn allocate(&self, file_bytes: u64) -> io::Result<()>;

    /// Whether the file holds no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The file past the kernel's page cache; `None` when it is to be read through it, or the disk
    /// knows no such thing.
    fn direct(&self) -> Option<Arc<DirectFile>> {
        None
    }

    /// Says that a part of the file will not be read soon through the page cache, so that it need not
    /// stay there; only what is synced goes. Nothing but speed depends on it.
    fn is_done_with(&self, _offset: u64, _bytes: u64) {}

    /// Fills the buffer if that can be done without waiting for the disk; else fails with
    /// `WouldBlock`, and the caller goes the long way. A disk that can not tell always does.
    fn read_exact_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Fills the buffer, or fails with `UnexpectedEof`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = self.read_at(&mut buffer[filled..], offset + filled as u64)?;
            if read == 0 {
                return Err(path_error("read", self.path(), io::ErrorKind::UnexpectedEof.into()));
            }
            filled += read;
        }
        Ok(())
    }
}

/// The act and the path, put inside an [`io::Error`] whose kind stays that of its cause.
#[derive(Debug)]
pub struct PathError {
    /// What was tried: `open`, `rename`.
    pub act: &'static str,
    /// On what.
    pub path: PathBuf,
    /// What the system said.
    pub source: io::Error,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.act, self.path.display(), self.source)
    }
}

impl std::error::Error for PathError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Adds what was tried, and where, to an error of the system.
pub fn path_error(act: &'static str, path: &Path, source: io::Error) -> io::Error {
    io::Error::new(source.kind(), PathError { act, path: path.to_owned(), source })
}
