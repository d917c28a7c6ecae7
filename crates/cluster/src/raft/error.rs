//! What can go wrong, in our own names.

use std::io;
use std::path::PathBuf;

/// Why a node's part of an agreement can not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Bytes that were durable are other ones now, or gone.
    #[error("{path} is damaged at byte {offset}: {what}", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The disk failed.
    #[error("{act}: {source}")]
    Disk {
        /// What was tried.
        act: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// What was read does not make sense together.
    #[error("begin to agree: {0}")]
    Begin(String),
}
