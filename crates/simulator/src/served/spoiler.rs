//! A disk that now and then fails to read, or gives other bytes than were written.
//!
//! A read may be refused then. It never shows anything wrong, and afterwards all is there.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use runtime::{Disk, EntryKind, MemoryDisk};

use super::plan::DIRECTORY;
use super::tenant::Tenant;
use crate::dice::Dice;
use crate::ways::Way;

/// How files are named in which a byte is changed: those that are read piece by piece.
const SPOILED: [&str; 3] = ["Data.db", "Partitions.db", "Rows.db"];
/// Failures that are ordered together, at the most.
const FAILURE_COUNT_MAX: u64 = 4;
/// Reads that go well before one fails, at the most.
const SKIPPED_MAX: u64 = 5;
/// Times in a round.
const TIMES_MAX: u64 = 6;

/// Bytes that are not what was written.
#[derive(Default)]
pub(super) struct Spoiled(RefCell<Vec<Change>>);

struct Change {
    path: PathBuf,
    offset: u64,
    mask: u8,
}

impl Spoiled {
    /// Changes a bit somewhere. False if there is no file.
    fn spoil(&self, disk: &MemoryDisk, dice: &Dice) -> bool {
        let mut files = Vec::new();
        find_files(disk, Path::new(DIRECTORY), &mut files);
        files.sort();
        if files.is_empty() {
            return false;
        }
        let (path, file_bytes) = dice.pick(&files).clone();
        let (offset, mask) = (dice.between(0, file_bytes - 1), 1 << dice.below(8));
        if disk.flip_bits(&path, offset, mask).is_err() {
            return false;
        }
        self.0.borrow_mut().push(Change { path, offset, mask });
        true
    }

    /// Makes all bytes what they were. Files may be gone meanwhile.
    pub(super) fn mend(&self, disk: &MemoryDisk) {
        for Change { path, offset, mask } in self.0.take() {
            _ = disk.flip_bits(&path, offset, mask);
        }
    }
}

impl Tenant {
    /// Spoils reads for a round. After it the disk is to be well.
    pub(super) async fn spoil(&self, dice: &Dice) {
        let disk = self.world.hosts.disk(self.node);
        for _ in 0..dice.between(1, TIMES_MAX) {
            tokio::time::sleep(Duration::from_millis(dice.between(1, 1_000))).await;
            if !self.world.hosts.is_alive(self.node) {
                return;
            }
            if dice.one_in(2) {
                for _ in 0..dice.between(1, FAILURE_COUNT_MAX) {
                    self.failures.order(dice.between(0, SKIPPED_MAX));
                }
            } else if self.spoiled.spoil(&disk, dice) {
                self.world.ways.add(Way::SpoiledFile, 1);
                tokio::time::sleep(Duration::from_millis(dice.between(1, 2_000))).await;
                self.spoiled.mend(&disk);
            }
        }
    }
}

/// Files of tables below a directory, and how large they are.
fn find_files(disk: &MemoryDisk, directory: &Path, found: &mut Vec<(PathBuf, u64)>) {
    // Without power there is nothing to find.
    for entry in disk.list(directory).unwrap_or_default() {
        let path = directory.join(&entry.name);
        match entry.kind {
            EntryKind::Directory => find_files(disk, &path, found),
            EntryKind::File if entry.file_bytes > 0 && is_spoiled(&entry.name) => {
                found.push((path, entry.file_bytes));
            }
            _ => {}
        }
    }
}

fn is_spoiled(name: &str) -> bool {
    SPOILED.iter().any(|end| name.ends_with(end))
}
