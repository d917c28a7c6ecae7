//! What can be wrong with a table file.

use std::io;
use std::path::PathBuf;

/// Why a table file can not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum SstableError {
    /// The disk failed; the error names the act and the path.
    #[error("{0}")]
    Disk(#[from] io::Error),
    /// Bytes that do not say what the format says there.
    #[error("{path} is damaged at byte {offset}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in the file; in the uncompressed bytes for Data.
        offset: u64,
        /// What was being read, or what rule is broken.
        what: &'static str,
    },
    /// Bytes that changed since they were written.
    #[error("{path} is damaged at byte {offset}: checksum {got:#010x}, expected {expected:#010x}", path = .path.display())]
    Checksum {
        /// The file.
        path: PathBuf,
        /// Where the checked bytes begin.
        offset: u64,
        /// The checksum kept with them.
        expected: u32,
        /// The checksum they have.
        got: u32,
    },
    /// A file that is well but that we can not read or write.
    #[error("{path} can not be used: {what}", path = .path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it asks for.
        what: String,
    },
    /// A file name that is not one of a table file.
    #[error("{name} is not the name of a table file")]
    FileName {
        /// The name.
        name: String,
    },
    /// Partitions or rows given to the writer in the wrong order, or calls out of turn.
    #[error("write {path}: {what}", path = .path.display())]
    Misuse {
        /// The file.
        path: PathBuf,
        /// The rule that was broken.
        what: &'static str,
    },
}

impl SstableError {
    /// Is it the bytes on the disk that are wrong (and not the disk itself, or the caller)?
    pub fn is_damage(&self) -> bool {
        matches!(self, SstableError::Damaged { .. } | SstableError::Checksum { .. })
    }
}
