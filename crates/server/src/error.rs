//! Why a server can not start, or did not end well.

use std::io;
use std::net::SocketAddr;

/// Why a server can not start, or did not end well.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum ServerError {
    #[error(transparent)]
    Node(#[from] assembly::AssemblyError),
    #[error("{address} ({what}) is in use by another process; another one is set with the option `{option}`")]
    AddressInUse { what: &'static str, option: &'static str, address: SocketAddr },
    #[error("listen on {address} ({what}, option `{option}`)")]
    Listen { what: &'static str, option: &'static str, address: SocketAddr, source: io::Error },
    #[error("start a thread")]
    Thread(#[source] io::Error),
}
