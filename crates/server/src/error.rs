//! Why a server can not start, or did not end well.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

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
    #[error(
        "{address} (management port, option `management`) can be reached from other machines, which could stop this node: \
         set `management_token_file`, or an address of loopback"
    )]
    ManagementOpen { address: SocketAddr },
    #[error("read {what} {path}", path = .path.display())]
    TokenFile { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{what} {path}: {problem}", path = .path.display())]
    Token { what: &'static str, path: PathBuf, problem: &'static str },
    #[error("start a thread")]
    Thread(#[source] io::Error),
}
