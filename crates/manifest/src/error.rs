//! What can go wrong between a node's state and its disk.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::state::Misfit;

/// Why a manifest or a state file can not be read or written.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum StateError {
    #[error("{act}: {source}")]
    Disk { act: &'static str, source: io::Error },
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged { path: PathBuf, what: String },
    #[error(
        "{path} is damaged at byte {offset}: checksum {got:#010x}, expected {expected:#010x}",
        path = .path.display()
    )]
    DamagedRecord { path: PathBuf, offset: u64, expected: u32, got: u32 },
    /// It is sound, and a newer version wrote it.
    #[error("data directory {path} can not be used: {what}", path = .path.display())]
    Newer { path: PathBuf, what: String },
}

impl StateError {
    /// What a manifest says at that byte does not fit what is before it.
    pub(crate) fn unfit(path: &Path, offset: usize, misfit: Misfit) -> StateError {
        let what = format!("the edit at byte {offset} does not fit what is before it: {misfit}");
        StateError::Damaged { path: path.into(), what }
    }

    /// Is there no space?
    pub(crate) fn is_full(&self) -> bool {
        let StateError::Disk { source, .. } = self else { return false };
        matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
    }
}
