//! Why a command on a cluster did not work.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use config::ConfigError;

use crate::nodetool::NodetoolError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("there is no cluster in {}; `peristyle cluster up` makes one", .0.display())]
    NoCluster(PathBuf),
    #[error("another `peristyle cluster` is at work in {}", .0.display())]
    Busy(PathBuf),
    #[error("a cluster is up already in {}: {running_count} of {count} nodes run (`peristyle cluster status`)", .directory.display())]
    IsUp { directory: PathBuf, running_count: usize, count: usize },
    #[error("--{flag} {given}: the cluster in {} has {known}; `peristyle cluster down --remove` ends it for good", .directory.display())]
    Differs { directory: PathBuf, flag: &'static str, given: String, known: String },
    #[error(
        "--dcs {datacenter_count} --racks {rack_count}: that takes {} nodes or more, not {node_count}",
        .datacenter_count * .rack_count
    )]
    TooFewNodes { node_count: usize, datacenter_count: usize, rack_count: usize },
    #[error("--memory {given}: {node_count} nodes need {}MiB or more", .least_bytes >> 20)]
    TooLittleMemory { given: String, node_count: usize, least_bytes: u64 },
    #[error("{} is in the way: it is no file of a cluster", .0.display())]
    InTheWay(PathBuf),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("there is no node {number}, only 1 to {count}")]
    NoNode { number: usize, count: usize },
    #[error("node {0} does not run")]
    NotRunning(usize),
    #[error("node {0} runs")]
    Running(usize),
    #[error("node {0} is paused; `peristyle cluster resume {0}` has it go on")]
    Paused(usize),
    #[error("a node can not be cut off from itself")]
    CutFromItself,
    #[error("node {0} can not be cut off: it knows no such request")]
    CanNotBeCut(usize),
    #[error("{0} is taken by another program")]
    PortTaken(SocketAddr),
    #[error(
        "{0} is no address of this machine; on macOS each but 127.0.0.1 must be made first: \
         sudo ifconfig lo0 alias {0}"
    )]
    NoAddress(Ipv4Addr),
    #[error("listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("start node {number}")]
    Start { number: usize, source: io::Error },
    #[error("node {number} ended while it started; the end of {}:\n{end}", .log.display())]
    Ended { number: usize, log: PathBuf, end: String },
    #[error("node {number} does not serve after {seconds} s; see {}", .log.display())]
    NotServing { number: usize, seconds: u64, log: PathBuf },
    #[error("node {number} does not end; `peristyle cluster kill {number}` ends it at once")]
    NotEnding { number: usize },
    #[error("send a signal to node {number}")]
    Signal { number: usize, source: io::Error },
    #[error("become a process of its own")]
    Detach(#[source] io::Error),
    #[error("ask node {number}")]
    Management { number: usize, source: NodetoolError },
    #[error("{act} {}", .path.display())]
    File { act: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not understood", .path.display())]
    Description { path: PathBuf, source: serde_json::Error },
    #[error("write the output")]
    Output(#[from] io::Error),
}

impl ClusterError {
    pub(super) fn file(act: &'static str, path: &Path, source: io::Error) -> ClusterError {
        ClusterError::File { act, path: path.to_owned(), source }
    }
}
