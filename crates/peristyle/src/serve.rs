//! `peristyle serve`: arguments to a configuration, and a node until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

/// Every flag is also an option of the configuration file; a flag wins.
#[derive(Args, Debug, Default)]
pub(crate) struct ServeArguments {
    /// Configuration file (TOML); none is needed
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the node's files [default: ./peristyle-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Address for CQL clients [default: 127.0.0.1:9042]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) listen: Option<String>,
    /// Address of the management port [default: 127.0.0.1:7199]
    #[arg(long, value_name = "ADDR:PORT")]
    pub(crate) management: Option<String>,
    /// Memory budget, such as 512MiB or 4GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Number of shards [default: one per core]
    #[arg(long, value_name = "N")]
    pub(crate) shards: Option<u16>,
    /// When a write is acknowledged: group, periodic or batch [default: group]
    #[arg(long, value_name = "WHEN")]
    pub(crate) commitlog_sync: Option<String>,
}

/// Serves until SIGTERM or Ctrl-C. `on_ready` is called once, with the address of the CQL port, when
/// the first query can be answered.
pub(crate) fn run(
    _arguments: &ServeArguments,
    _on_ready: impl FnOnce(SocketAddr) + Send + 'static,
) -> ExitCode {
    eprintln!("peristyle: the server is not wired to this binary yet");
    ExitCode::FAILURE
}
