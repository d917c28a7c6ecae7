//! Why a server can not start, or did not end well.

use std::io;
use std::net::SocketAddr;

/// Why a server can not start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ServerError {
    #[error("open data directory: {0}")]
    Storage(#[from] storage::StorageError),
    #[error("open metadata log: {0}")]
    Metadata(#[from] cluster::MetadataError),
    #[error("define system tables: {0}")]
    SystemTables(String),
    #[error("listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("finish batches of an earlier run: {0}")]
    Batches(coordinator::CoordinatorError),
    #[error("start a thread: {0}")]
    Thread(io::Error),
}
