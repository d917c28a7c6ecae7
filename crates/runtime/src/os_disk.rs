//! The operating system's file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cold::{DirectFile, DiskAccess};
use crate::disk::{DirectoryEntry, DirectoryLock, Disk, DiskFile, EntryKind, OpenMode, path_error};
use crate::handle::Handle;

/// Name of the file whose lock stands for its directory.
const LOCK_FILE_NAME: &str = "LOCK";

/// Who has a lock, as its file says: the holder's process id, unless it has not written it yet.
fn held_by(file: &mut File) -> io::Error {
    const ID_BYTES_MAX: u64 = 10;
    let mut text = String::new();
    let id = match file.take(ID_BYTES_MAX).read_to_string(&mut text) {
        Ok(_) => text.parse::<u32>().ok(),
        Err(_) => None,
    };
    let holder = id.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
    io::Error::new(io::ErrorKind::WouldBlock, format!("{holder} holds it"))
}

/// The real disk.
#[derive(Debug, Default, Clone)]
pub struct OsDisk {
    access: DiskAccess,
    /// Whether it was logged that a file system has no reads past the page cache.
    refusal_is_logged: Arc<AtomicBool>,
}

impl OsDisk {
    /// The real disk, read in the best way that the kernel allows.
    pub fn new() -> OsDisk {
        OsDisk::with_access(DiskAccess::Auto)
    }

    /// The real disk, read in a chosen way.
    pub fn with_access(access: DiskAccess) -> OsDisk {
        OsDisk { access, refusal_is_logged: Arc::default() }
    }
}

impl Disk for OsDisk {
    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::CreateNew => _ = options.write(true).create_new(true),
            OpenMode::ReadWrite => _ = options.write(true),
        }
        let act = if mode == OpenMode::CreateNew { "create" } else { "open" };
        let file = options.open(path).map_err(|error| path_error(act, path, error))?;
        let direct = OnceLock::new();
        Ok(Arc::new(OsFile { file: file.into(), path: path.to_owned(), disk: self.clone(), direct }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut missing = Vec::new();
        let mut above = Some(path);
        while let Some(directory) = above.filter(|directory| !directory.as_os_str().is_empty()) {
            if self.exists(directory)? {
                break;
            }
            missing.push(directory);
            above = directory.parent();
        }
        for directory in missing.into_iter().rev() {
            match fs::create_dir(directory) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(path_error("create directory", directory, error));
                }
                _ => self.sync_dir(parent_of(directory))?,
            }
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(|error| path_error("remove", path, error))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path).map_err(|error| path_error("remove directory", path, error))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(|error| path_error("rename", from, error))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to).map_err(|error| path_error("link", to, error))
    }

    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path).map_err(|error| path_error("look at", path, error))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>> {
        let failed = |error| path_error("list", path, error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.metadata() {
                Ok(metadata) => entries.push(describe(name, &metadata)),
                // Removed between the listing and the look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<DirectoryEntry>> {
        match fs::metadata(path) {
            Ok(metadata) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok(Some(describe(name, &metadata)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(path_error("look at", path, error)),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| path_error("sync directory", path, error))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the door the ban points to")]
    fn lock_dir(&self, path: &Path) -> io::Result<DirectoryLock> {
        let lock_path = path.join(LOCK_FILE_NAME);
        let failed = |error| path_error("lock", &lock_path, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => failed(held_by(&mut file)),
            TryLockError::Error(error) => failed(error),
        })?;
        // For whoever comes later and wonders who has it; the lock holds without.
        _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(DirectoryLock::new(file))
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        let space = rustix::fs::statvfs(path).map_err(|error| path_error("look at", path, error.into()))?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    fn access(&self) -> DiskAccess {
        self.access
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn describe(name: String, metadata: &fs::Metadata) -> DirectoryEntry {
    let kind = if metadata.is_file() {
        EntryKind::File
    } else if metadata.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Other
    };
    let file_bytes = if kind == EntryKind::File { metadata.len() } else { 0 };
    DirectoryEntry { name, kind, file_bytes }
}

#[derive(Debug)]
struct OsFile {
    file: Handle,
    path: PathBuf,
    disk: OsDisk,
    /// The same past the page cache, opened when it is first asked for.
    direct: OnceLock<Option<Arc<DirectFile>>>,
}

impl OsFile {
    fn failed(&self, act: &'static str) -> impl FnOnce(io::Error) -> io::Error + '_ {
        move |error| path_error(act, &self.path, error)
    }

    fn open_direct(&self) -> Option<Arc<DirectFile>> {
        if self.disk.access == DiskAccess::Buffered {
            return None;
        }
        match DirectFile::reopen(&self.path, &self.file) {
            Ok(direct) => Some(Arc::new(direct)),
            Err(error) => {
                if !self.disk.refusal_is_logged.swap(true, Ordering::Relaxed) {
                    let path = self.path.display();
                    tracing::warn!(%path, %error, "can not be read past the page cache: read through it");
                }
                None
            }
        }
    }
}

impl DiskFile for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other.map_err(self.failed("read")),
            }
        }
    }

    fn read_exact_cached_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let wanted = buffer.len();
        let buffers = &mut [io::IoSliceMut::new(buffer)];
        // Any failure, and a part only, means the long way round, which tells what is wrong.
        match rustix::io::preadv2(&*self.file, buffers, offset, rustix::io::ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => Ok(()),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn direct(&self) -> Option<Arc<DirectFile>> {
        self.direct.get_or_init(|| self.open_direct()).clone()
    }

    fn is_done_with(&self, offset: u64, bytes: u64) {
        let Some(bytes) = NonZeroU64::new(bytes) else { return };
        if self.disk.access != DiskAccess::Buffered {
            // It is advice: that it is refused changes nothing.
            _ = rustix::fs::fadvise(&*self.file, offset, Some(bytes), rustix::fs::Advice::DontNeed);
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset).map_err(self.failed("write"))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata().map_err(self.failed("look at"))?.len())
    }

    fn set_len(&self, file_bytes: u64) -> io::Result<()> {
        self.file.set_len(file_bytes).map_err(self.failed("set length of"))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data().map_err(self.failed("sync"))
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all().map_err(self.failed("sync"))
    }

    fn allocate(&self, file_bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        if self.len()? >= file_bytes {
            return Ok(());
        }
        match fallocate(&*self.file, FallocateFlags::empty(), 0, file_bytes) {
            Ok(()) => Ok(()),
            // Some file systems cannot reserve; a sparse tail still gives the length.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.set_len(file_bytes),
            Err(error) => Err(self.failed("allocate")(error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what another process left")]
    fn a_locked_directory_says_which_process_has_it() {
        let directory = tempfile::tempdir().expect("directory");
        let disk = OsDisk::new();
        std::fs::write(directory.path().join(LOCK_FILE_NAME), "1234567").expect("a killed process's id");
        let held = disk.lock_dir(directory.path()).expect("free");
        let refused = disk.lock_dir(directory.path()).expect_err("held");
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let says = format!("LOCK: process {} holds it", std::process::id());
        assert!(refused.to_string().ends_with(&says), "{refused}");
        drop(held);
        assert!(disk.lock_dir(directory.path()).is_ok());
    }
}
