//! What can go wrong while table files are merged.

use std::io;

use sstable::SstableError;

/// Why a merge could not be carried out.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum MergeError {
    #[error("table file: {0}")]
    TableFile(#[from] SstableError),
    #[error("{act}: {source}")]
    Disk { act: &'static str, source: io::Error },
}
