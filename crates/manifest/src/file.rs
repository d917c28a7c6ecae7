//! A manifest on the disk: edits behind a checkpoint, and a new file with a new checkpoint when they are many.
//!
//! What must hold, whatever fails and whenever: a start finds the last state whose write succeeded, or one whose write
//! was tried since, whole. Never less, never a part, and nothing that failed before another write succeeded.
//!
//! ```text
//!   append    edit written ──► synced: it is true ──► a synced record (the next edit's sync makes it durable)
//!   replace   whole state in a file beside ──► synced ──► renamed: it is true ──► directory synced
//! ```
//!
//! 1. *The power goes before an edit's sync is over.* Nobody was told of it. What is torn the next start cuts off; what
//!    is whole is true, since the sync may have been over.
//! 2. *The process is killed there.* The edit is in the system's cache; the next start makes it durable first.
//! 3. *Writing or syncing an edit fails.* A part of it, or all, may be in the cache or on the disk. It is cut off at
//!    once and the cut synced; the next write replaces the file.
//! 4. *The cut fails too.* Nobody knows what is there. The next write replaces the file; until then
//!    [`ManifestFile::read`] says that it can not tell, so that no file goes that the edit may name.
//! 5. *Writing the synced record fails.* The edit is true; the next write replaces the file.
//! 6. *Replacing fails before the rename.* The old file is there; the next write replaces it.
//! 7. *Replacing fails after it.* The new file is there, or after a power cut the old one; the next write replaces it.
//! 8. *Whoever waits for a write gives up.* The write goes on, to a state that nobody holds. The next one comes from
//!    another state, which its mark tells: it replaces the file.
//!
//! So nothing is ever appended behind bytes that are not known to be there, and no edit that failed stays in front of
//! one that succeeded. A sync that failed is not tried again: the system may have dropped the bytes, and a second one
//! that succeeds proves nothing about them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use runtime::{Disk, DiskFile, OpenMode};
use serde::Serialize;

use crate::StateError;
use crate::contents::Contents;
use crate::document;
use crate::format::{HEADER_BYTES, Kind, encode_header, encode_record};
use crate::state::{Change, ManifestState};

/// Edits may take as much as the checkpoint before them, and so much in any case: then the file is replaced. So its
/// length, and what a start reads, is at most twice that of the state, and an edit costs on average what two take.
const EDIT_BYTES_MIN: u64 = 16 << 10;

/// Which write a state is the outcome of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// The file of a shard's manifest. Blocks on the disk: for I/O threads and the start.
#[derive(Debug)]
pub(super) struct ManifestFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    tail: Mutex<Tail>,
}

/// The end of the file, as far as it is known.
#[derive(Debug)]
struct Tail {
    /// Of the last write, also one that failed: what comes from another one can not be appended.
    mark: Mark,
    checkpoint_end: usize,
    /// Where the next record goes.
    end: usize,
    /// An edit that failed may be there or not.
    is_doubtful: bool,
}

impl ManifestFile {
    /// One that is not there, or not known. The mark is that of no write: the first one writes all of it.
    pub(super) fn unwritten(disk: Arc<dyn Disk>, path: PathBuf) -> (ManifestFile, Mark) {
        let tail = Tail { mark: Mark(1), checkpoint_end: 0, end: 0, is_doubtful: false };
        (ManifestFile { disk, path, tail: Mutex::new(tail) }, Mark(0))
    }

    /// Reads the file, and makes durable what it says.
    ///
    /// # Errors
    /// It is missing or damaged, a newer version wrote it, or the disk fails.
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        path: PathBuf,
    ) -> Result<(ManifestFile, ManifestState, Mark), StateError> {
        let (file, _) = ManifestFile::unwritten(disk, path);
        let bytes = file.read_bytes()?;
        let contents = Contents::read(&bytes, &file.path)?;
        let mut tail = file.lock();
        (tail.checkpoint_end, tail.end) = (contents.checkpoint_end, contents.end);
        let mark = tail.mark;
        file.settle(&mut tail, &bytes, &contents).map_err(failed("settle manifest"))?;
        drop(tail);
        Ok((file, contents.state, mark))
    }

    /// What the disk has of it now.
    ///
    /// # Errors
    /// As [`ManifestFile::open`]; or it can not be told.
    pub(super) fn read(&self) -> Result<ManifestState, StateError> {
        // Held to the end: an edit that is on its way is whole then.
        let tail = self.lock();
        if tail.is_doubtful {
            let what = "an edit failed, and is on the disk or not".into();
            return Err(StateError::Damaged { path: self.path.clone(), what });
        }
        if let Some(state) = document::read(&*self.disk, &self.path)? {
            return Ok(state);
        }
        Ok(Contents::read(&self.read_bytes()?, &self.path)?.state)
    }

    /// Makes a state durable that came from that of `from` by these changes. Gives the mark of this write.
    ///
    /// # Errors
    /// The disk fails; after a power cut the state may be there or not.
    pub(super) fn write(
        &self,
        from: Mark,
        state: &ManifestState,
        changes: &[Change],
    ) -> Result<Mark, StateError> {
        let mut tail = self.lock();
        let is_appended = tail.mark == from && !tail.is_long();
        // Before anything is tried: after a failure, or a panic, no mark fits.
        let mark = tail.advance();
        if is_appended {
            self.append(&mut tail, changes)?;
        } else {
            self.replace(&mut tail, state)?;
        }
        Ok(mark)
    }

    fn append(&self, tail: &mut Tail, changes: &[Change]) -> Result<(), StateError> {
        assert!(!tail.is_doubtful, "nothing is appended behind bytes that may not be there");
        assert!((1..=tail.end).contains(&tail.checkpoint_end), "an edit lies behind a checkpoint");
        let record = encode_record(tail.end, Kind::Edit, &self.encode(changes)?);
        let file = self.disk.open(&self.path, OpenMode::ReadWrite).map_err(failed("open manifest"))?;
        let appended = file.write_all_at(&record, tail.end as u64).and_then(|()| file.sync_data());
        if let Err(source) = appended {
            let taken_back = file.set_len(tail.end as u64).and_then(|()| file.sync_all());
            tail.is_doubtful = taken_back.is_err();
            return Err(failed("append to manifest")(source));
        }
        tail.end += record.len();
        tail.note_synced(&*file);
        Ok(())
    }

    fn replace(&self, tail: &mut Tail, state: &ManifestState) -> Result<(), StateError> {
        let mut bytes = encode_header().to_vec();
        bytes.extend(encode_record(HEADER_BYTES, Kind::Checkpoint, &self.encode(state)?));
        self.disk.write_atomically(&self.path, &bytes).map_err(failed("write manifest"))?;
        document::remove(&*self.disk, &self.path)?;
        let end = bytes.len();
        *tail = Tail { mark: tail.mark, checkpoint_end: end, end, is_doubtful: false };
        Ok(())
    }

    /// Cuts off what was torn, and makes the rest durable: of a killed process, it may be in the system's cache alone,
    /// and marked clean there after a sync that failed, so that only writing it again helps.
    fn settle(&self, tail: &mut Tail, bytes: &[u8], contents: &Contents) -> io::Result<()> {
        let Contents { checkpoint_end, settled_end, end, .. } = *contents;
        assert!(checkpoint_end <= settled_end && settled_end <= end, "what is durable comes first");
        assert!(end <= bytes.len(), "records end within the file");
        if settled_end == bytes.len() {
            return Ok(());
        }
        let file = self.disk.open(&self.path, OpenMode::ReadWrite)?;
        if end < bytes.len() {
            let (path, torn_bytes) = (self.path.display(), bytes.len() - end);
            tracing::info!(%path, offset = end, bytes = torn_bytes, "an edit of a manifest that was never acknowledged is dropped");
            file.set_len(end as u64)?;
        }
        file.write_all_at(&bytes[settled_end..end], settled_end as u64)?;
        file.sync_all()?;
        tail.note_synced(&*file);
        Ok(())
    }

    fn read_bytes(&self) -> Result<Vec<u8>, StateError> {
        if !self.disk.exists(&self.path).map_err(failed("look for manifest"))? {
            let what = "the file is missing".into();
            return Err(StateError::Damaged { path: self.path.clone(), what });
        }
        self.disk.read(&self.path).map_err(failed("read manifest"))
    }

    fn encode<T: Serialize + ?Sized>(&self, value: &T) -> Result<Vec<u8>, StateError> {
        serde_json::to_vec(value)
            .map_err(|error| StateError::Damaged { path: self.path.clone(), what: error.to_string() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn advance(&mut self) -> Mark {
        self.mark.0 += 1;
        self.mark
    }

    fn is_long(&self) -> bool {
        let checkpoint_bytes = self.checkpoint_end as u64;
        (self.end - self.checkpoint_end) as u64 > checkpoint_bytes.max(EDIT_BYTES_MIN)
    }

    /// Says in the file that all before is durable, so that a changed byte of it is damage from now on. Failing that,
    /// the next write replaces the file.
    fn note_synced(&mut self, file: &dyn DiskFile) {
        let record = encode_record(self.end, Kind::Synced, &[]);
        match file.write_all_at(&record, self.end as u64) {
            Ok(()) => self.end += record.len(),
            Err(error) => {
                tracing::debug!(path = %file.path().display(), %error, "a manifest is to be written anew");
                self.advance();
            }
        }
    }
}

fn failed(act: &'static str) -> impl FnOnce(io::Error) -> StateError {
    move |source| StateError::Disk { act, source }
}

#[cfg(test)]
mod tests {
    use runtime::MemoryDisk;

    use super::*;

    /// Where a file ends, as far as it is known.
    const SOUND: Tail = Tail { mark: Mark(1), checkpoint_end: 40, end: 50, is_doubtful: false };

    fn file() -> ManifestFile {
        ManifestFile::unwritten(Arc::new(MemoryDisk::new()), "/m/shard-0.log".into()).0
    }

    #[test]
    #[should_panic(expected = "nothing is appended behind bytes that may not be there")]
    fn nothing_is_appended_behind_a_doubtful_edit() {
        _ = file().append(&mut Tail { is_doubtful: true, ..SOUND }, &[]);
    }

    #[test]
    #[should_panic(expected = "an edit lies behind a checkpoint")]
    fn nothing_is_appended_to_no_checkpoint() {
        _ = file().append(&mut Tail { checkpoint_end: 0, end: 0, ..SOUND }, &[]);
    }

    /// Settles a file of 60 bytes by what its contents seem to be.
    fn settle(checkpoint_end: usize, settled_end: usize, end: usize) {
        let state = ManifestState::default();
        let contents = Contents { state, checkpoint_end, settled_end, end };
        _ = file().settle(&mut Tail { ..SOUND }, &[0; 60], &contents);
    }

    #[test]
    #[should_panic(expected = "what is durable comes first")]
    fn what_is_durable_is_not_behind_what_may_not_be() {
        settle(40, 55, 50);
    }

    #[test]
    #[should_panic(expected = "records end within the file")]
    fn records_do_not_end_behind_the_file() {
        settle(40, 50, 61);
    }
}
