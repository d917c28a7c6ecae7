//! What goes wrong with certificates and the talks that they protect.

use std::io;
use std::path::PathBuf;

use crate::files::FILE_BYTES_MAX;
use crate::reasons;

/// Why there are no credentials, or no talk.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can not be read.
    #[error("read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// As the system says.
        source: io::Error,
    },
    /// A file is longer than any of its kind.
    #[error("{path} has {file_bytes} bytes; {FILE_BYTES_MAX} are the most")]
    TooLong {
        /// Which.
        path: PathBuf,
        /// Its length.
        file_bytes: u64,
    },
    /// What is looked for in a file is not there.
    #[error("{path} holds no {what} in PEM: {problem}")]
    Pem {
        /// Which.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
        /// What is wrong, without a word of the file.
        problem: &'static str,
    },
    /// Certificate, key and CAs do not belong together, or can not be used now.
    #[error("{path}: {problem}")]
    Unfit {
        /// The file that it is told of.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The two ends do not come to talk, or do so no more.
    #[error("TLS: {}", reasons::in_words(_0))]
    Talk(#[from] rustls::Error),
    /// The stream under it broke.
    #[error(transparent)]
    Stream(#[from] io::Error),
    /// The other end closed the stream in the midst of the handshake.
    #[error("TLS: the other side closed the connection during the handshake")]
    Closed,
}
