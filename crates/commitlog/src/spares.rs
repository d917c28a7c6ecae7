//! Segments that nobody needs any more, kept to be written again.
//!
//! What has been written once need not be found, reserved and noted by the file system when it is written again:
//! a sync then has only the bytes to bring to the disk. A spare is under a name of its own and takes its next name
//! when its new header is durable, so that a segment's name never stands for what another has left. What is left
//! behind the header is told from frames of the new segment by their checks, which cover its id.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use runtime::{Disk, DiskFile, EntryKind, OpenMode};

use crate::format::{BLANK, HEADER_BYTES, SegmentName, encode_header};

/// The spare segments of a stream. Blocks on the disk: for I/O threads and the start.
#[derive(Debug)]
pub(crate) struct Spares {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    stream: u32,
    segment_bytes: u32,
    count_max: usize,
    known: Mutex<Known>,
}

/// What the segments were.
#[derive(Debug, Default)]
struct Known {
    ids: Vec<u64>,
    /// Renamed, and the names not known to be durable: a name that came back after a power cut must not stand for
    /// another segment's bytes.
    unsynced: Vec<u64>,
}

impl Spares {
    /// Finds those that an earlier life has left, and deletes what is of no use now.
    pub(crate) fn find(
        disk: Arc<dyn Disk>,
        directory: &Path,
        stream: u32,
        segment_bytes: u32,
        count_max: usize,
    ) -> io::Result<Spares> {
        let spares = Spares {
            disk,
            directory: directory.to_owned(),
            stream,
            segment_bytes,
            count_max,
            known: Mutex::default(),
        };
        for entry in spares.disk.list(directory)? {
            let name = SegmentName::parse_spare(&entry.name);
            let Some(name) = name.filter(|name| entry.kind == EntryKind::File && name.stream == stream)
            else {
                continue;
            };
            if entry.file_bytes > u64::from(segment_bytes) || spares.count() >= count_max {
                spares.disk.remove_file(&spares.path(name.id))?;
            } else {
                spares.with(|known| known.ids.push(name.id));
            }
        }
        Ok(spares)
    }

    pub(crate) fn count(&self) -> usize {
        self.with(|known| known.ids.len() + known.unsynced.len())
    }

    /// Takes segments that are needed no more out of the log: makes spares of them, or deletes them.
    ///
    /// # Errors
    /// The disk failed; what is left can be tried again.
    pub(crate) fn retire(&self, ids: impl IntoIterator<Item = u64>) -> io::Result<()> {
        for id in ids {
            let segment = self.name(id).path(&self.directory);
            let gone = if self.count() < self.count_max {
                let renamed = self.disk.rename(&segment, &self.path(id));
                renamed.map(|()| self.with(|known| known.unsynced.push(id)))
            } else {
                self.disk.remove_file(&segment)
            };
            gone.or_else(only_if_there)?;
        }
        // Others may rename more while this goes on.
        let renamed = self.with(|known| known.unsynced.clone());
        self.disk.sync_dir(&self.directory)?;
        self.with(|known| {
            let is_synced = |id: &mut u64| renamed.contains(id);
            let synced: Vec<u64> = known.unsynced.extract_if(.., is_synced).collect();
            known.ids.extend(synced);
        });
        Ok(())
    }

    /// Makes a segment of a spare, its header durable; `None` when there is no spare.
    ///
    /// # Errors
    /// The disk failed, or has no room ([`io::ErrorKind::StorageFull`]; then the spare is still one).
    pub(crate) fn use_again(&self, id: u64) -> io::Result<Option<Arc<dyn DiskFile>>> {
        let Some(spare) = self.with(|known| known.ids.pop()) else { return Ok(None) };
        let file = match self.begin(spare, id) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                self.with(|known| known.ids.push(spare));
                return Err(error);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            begun => begun?,
        };
        self.disk.rename(&self.path(spare), &self.name(id).path(&self.directory))?;
        self.disk.sync_dir(&self.directory)?;
        Ok(Some(file))
    }

    /// Deletes all of them.
    pub(crate) fn give_up(&self) -> io::Result<()> {
        while let Some(id) = self.with(|known| known.ids.pop().or_else(|| known.unsynced.pop())) {
            self.disk.remove_file(&self.path(id)).or_else(only_if_there)?;
        }
        self.disk.sync_dir(&self.directory)
    }

    /// Makes a spare ready to be the segment of an id, under its old name.
    fn begin(&self, spare: u64, id: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(&self.path(spare), OpenMode::ReadWrite)?;
        // What was cut off behind its end.
        file.allocate(u64::from(self.segment_bytes))?;
        let mut head = [0; HEADER_BYTES + BLANK.len()];
        head[..HEADER_BYTES].copy_from_slice(&encode_header(self.name(id), self.segment_bytes));
        file.write_all_at(&head, 0)?;
        file.sync_all()?;
        Ok(file)
    }

    fn name(&self, id: u64) -> SegmentName {
        SegmentName { stream: self.stream, id }
    }

    fn path(&self, id: u64) -> PathBuf {
        self.directory.join(self.name(id).spare_file_name())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn only_if_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
