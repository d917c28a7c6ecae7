//! What can go wrong with table files that come, go or are mended.

use std::io;
use std::path::PathBuf;

use sstable::SstableError;

/// Why work on whole table files could not be done.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum UpkeepError {
    #[error("table file: {0}")]
    TableFile(#[from] SstableError),
    #[error("{act}: {source}")]
    Disk { act: &'static str, source: io::Error },
    #[error("{path} is damaged: {what}", path = .path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("data directory {path} can not be used: {what}", path = .path.display())]
    Directory { path: PathBuf, what: String },
}
