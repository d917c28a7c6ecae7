//! Reads a manifest's bytes and judges what does not fit.
//!
//! An edit is written and synced before the next one is written. So a power cut can tear the last one alone, and
//! nobody was told that it is durable: it is dropped. What a later record calls synced was durable: there, a record
//! that is not sound is damage.
//!
//! What this can not tell: a file that was cut off behind a sound record, and bytes of the last edit that change
//! before the record that calls it synced has reached the disk (by then it is in the system's cache: a process that is
//! killed leaves it there).

use std::path::Path;

use serde::de::DeserializeOwned;

use crate::StateError;
use crate::format::{Found, HEADER_BYTES, Header, Kind, VERSION, check_header, find_record, is_known_synced};
use crate::state::{Change, ManifestState};

/// What a manifest's bytes say.
#[derive(Debug)]
pub(super) struct Contents {
    pub(super) state: ManifestState,
    /// Where the checkpoint ends.
    pub(super) checkpoint_end: usize,
    /// Everything below was durable before. Invariant: `checkpoint_end <= settled_end <= end`.
    pub(super) settled_end: usize,
    /// Where the sound records end; what is behind was torn.
    pub(super) end: usize,
}

impl Contents {
    /// # Errors
    /// It is damaged, or a newer version wrote it.
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Contents, StateError> {
        let reader = Reader { bytes, path };
        reader.check_header()?;
        let (state, end) = reader.checkpoint()?;
        let mut contents = Contents { state, checkpoint_end: end, settled_end: end, end };
        while let Some(record) = reader.next(contents.end)? {
            match record.kind {
                Kind::Edit => reader.apply(&mut contents.state, record.payload, contents.end)?,
                Kind::Synced => contents.settled_end = record.end,
                Kind::Checkpoint => return Err(reader.misplaced("a second checkpoint", contents.end)),
            }
            contents.end = record.end;
        }
        Ok(contents)
    }
}

/// A sound record of a kind that we know.
struct Record<'a> {
    kind: Kind,
    payload: &'a [u8],
    end: usize,
}

struct Reader<'a> {
    bytes: &'a [u8],
    path: &'a Path,
}

impl<'a> Reader<'a> {
    fn check_header(&self) -> Result<(), StateError> {
        match check_header(self.bytes) {
            Header::Sound => Ok(()),
            Header::Bad { expected, got } => Err(self.damaged(0, expected, got)),
            Header::Newer { version } => Err(self.newer(format!(
                "it is of version {version}, this program reads version {VERSION}: a newer one wrote it"
            ))),
        }
    }

    /// The state that the file begins with, and where it ends. It was durable before the file got its name.
    fn checkpoint(&self) -> Result<(ManifestState, usize), StateError> {
        match find_record(self.bytes, HEADER_BYTES) {
            Found::Record { kind, payload, end } if self.kind(kind, HEADER_BYTES)? == Kind::Checkpoint => {
                let state: ManifestState = self.parse(payload, HEADER_BYTES)?;
                state.check_whole().map_err(|misfit| StateError::unfit(self.path, HEADER_BYTES, misfit))?;
                Ok((state, end))
            }
            Found::Record { .. } => Err(self.misplaced("no checkpoint", HEADER_BYTES)),
            Found::Bad { expected, got } => Err(self.damaged(HEADER_BYTES, expected, got)),
            Found::Nothing => Err(self.damaged(HEADER_BYTES, 0, 0)),
        }
    }

    /// The next record; `None` where they end.
    fn next(&self, offset: usize) -> Result<Option<Record<'a>>, StateError> {
        match find_record(self.bytes, offset) {
            Found::Nothing => Ok(None),
            Found::Record { kind, payload, end } => {
                Ok(Some(Record { kind: self.kind(kind, offset)?, payload, end }))
            }
            Found::Bad { expected, got } if is_known_synced(self.bytes, offset) => {
                Err(self.damaged(offset, expected, got))
            }
            Found::Bad { .. } => Ok(None),
        }
    }

    /// Every kind of record changes what counts, so none that is unknown can be passed over.
    fn kind(&self, kind: u32, offset: usize) -> Result<Kind, StateError> {
        let known =
            [Kind::Checkpoint, Kind::Edit, Kind::Synced].into_iter().find(|known| *known as u32 == kind);
        known.ok_or_else(|| {
            self.newer(format!(
                "the record at byte {offset} is of kind {kind}, which this program does not know: a newer one wrote it"
            ))
        })
    }

    fn apply(&self, state: &mut ManifestState, payload: &[u8], offset: usize) -> Result<(), StateError> {
        for change in self.parse::<Vec<Change>>(payload, offset)? {
            state.check(&change).map_err(|misfit| StateError::unfit(self.path, offset, misfit))?;
            state.apply(&change);
        }
        Ok(())
    }

    fn parse<T: DeserializeOwned>(&self, payload: &[u8], offset: usize) -> Result<T, StateError> {
        serde_json::from_slice(payload).map_err(|error| StateError::Damaged {
            path: self.path.into(),
            what: format!("the record at byte {offset} can not be read: {error}"),
        })
    }

    fn damaged(&self, offset: usize, expected: u32, got: u32) -> StateError {
        StateError::DamagedRecord { path: self.path.into(), offset: offset as u64, expected, got }
    }

    fn misplaced(&self, what: &str, offset: usize) -> StateError {
        let what = format!("there is {what} at byte {offset}");
        StateError::Damaged { path: self.path.into(), what }
    }

    fn newer(&self, what: String) -> StateError {
        StateError::Newer { path: self.path.into(), what }
    }
}
