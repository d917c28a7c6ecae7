//! A disk that reads of table files fail on, as ordered; all else is the disk in memory.
//!
//! The disk in memory can let reads fail, too, but of whatever comes next: it counts the opening of a log's segment as
//! a read, after whose failure a node rightly takes no more writes.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime::{DirectoryEntry, DirectoryLock, Disk, DiskFile, MemoryDisk, OpenMode, path_error};

/// EIO.
const INPUT_OUTPUT: i32 = 5;

/// Which reads fail. A clone is the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures(Arc<Mutex<Vec<u64>>>);

impl Failures {
    /// After so many more that go well a read fails.
    pub(super) fn order(&self, skipped: u64) {
        self.skips().push(skipped);
    }

    /// No more of them.
    pub(super) fn clear(&self) {
        self.skips().clear();
    }

    /// Does the next one fail?
    fn is_due(&self) -> bool {
        let mut skips = self.skips();
        let due = skips.iter().position(|skip| *skip == 0);
        if let Some(index) = due {
            skips.remove(index);
        }
        skips.iter_mut().for_each(|skip| *skip = skip.saturating_sub(1));
        due.is_some()
    }

    fn skips(&self) -> MutexGuard<'_, Vec<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(super) struct FlakyDisk {
    pub(super) disk: MemoryDisk,
    pub(super) failures: Failures,
}

impl Disk for FlakyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(path, mode)?;
        let is_of_table = path.extension().is_some_and(|extension| extension == "db");
        Ok(match is_of_table {
            true => Arc::new(FlakyFile { file, failures: self.failures.clone() }),
            false => file,
        })
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir_all(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.hard_link(from, to)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirectoryEntry>> {
        self.disk.list(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<DirectoryEntry>> {
        self.disk.metadata(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }

    fn lock_dir(&self, path: &Path) -> io::Result<DirectoryLock> {
        self.disk.lock_dir(path)
    }

    fn free_space(&self, path: &Path) -> io::Result<u64> {
        self.disk.free_space(path)
    }
}

/// A table's file.
#[derive(Debug)]
struct FlakyFile {
    file: Arc<dyn DiskFile>,
    failures: Failures,
}

impl DiskFile for FlakyFile {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.failures.is_due() {
            return Err(path_error("read", self.path(), io::Error::from_raw_os_error(INPUT_OUTPUT)));
        }
        self.file.read_at(buffer, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, file_bytes: u64) -> io::Result<()> {
        self.file.set_len(file_bytes)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_all(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn allocate(&self, file_bytes: u64) -> io::Result<()> {
        self.file.allocate(file_bytes)
    }
}
