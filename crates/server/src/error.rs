//! Why a server can not start, or did not end well.

use std::io;
use std::net::SocketAddr;

/// Why a server can not start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ServerError {
    #[error(transparent)]
    Node(#[from] assembly::AssemblyError),
    #[error("listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("start a thread: {0}")]
    Thread(io::Error),
}
