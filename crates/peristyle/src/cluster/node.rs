//! One node: the words it is started with, its process, whether it serves.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use client::{ClientError, ConnectOptions, Connection};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::description::{Description, Ports};
use super::error::ClusterError;
use super::process::{ProcessId, ProcessState};
use crate::nodetool::{Management, NodetoolError};

/// Another name than a node has by default, so that neither is taken for the other.
const CLUSTER_NAME: &str = "Peristyle Cluster";
/// How long a node may take to answer that serves.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// So much of a log is looked at for its last lines.
const LOG_BYTES_MAX: u64 = 1 << 20;

/// A node, as the description of its cluster has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) address: Ipv4Addr,
    pub(super) datacenter: String,
    pub(super) rack: String,
    pub(super) shards: u16,
    pub(super) memory_bytes: u64,
    /// What was started last, unless it was seen to end.
    pub(super) process: Option<ProcessId>,
    /// It ended by `kill` and was not started since.
    pub(super) is_killed: bool,
    /// It has lost its disk before, and takes its own place when it starts. Once it has that, this makes no difference.
    #[serde(default)]
    pub(super) replaces_itself: bool,
}

impl Node {
    pub(super) fn state(&self) -> ProcessState {
        self.process.as_ref().map_or(ProcessState::Ended, ProcessId::state)
    }

    pub(super) fn runs(&self) -> bool {
        self.state() != ProcessState::Ended
    }

    pub(super) fn cql_address(&self, ports: Ports) -> SocketAddr {
        SocketAddr::from((self.address, ports.cql))
    }

    pub(super) fn management(&self, ports: Ports) -> Management {
        Management::new(format!("{}:{}", self.address, ports.management), None)
    }

    /// Does it answer clients, and who looks after it?
    pub(super) fn serves(&self, ports: Ports) -> bool {
        self.answers_cql(ports).is_ok() && self.answers_management(ports).is_ok()
    }

    fn answers_cql(&self, ports: Ports) -> Result<(), ClientError> {
        let options = ConnectOptions {
            connect_timeout: ANSWER_MAX,
            answer_timeout: Some(ANSWER_MAX),
            ..ConnectOptions::default()
        };
        let mut connection = Connection::open(self.cql_address(ports), &options)?;
        connection.query("SELECT cluster_name FROM system.local")?.rows().map(|_| ())
    }

    fn answers_management(&self, ports: Ports) -> Result<(), NodetoolError> {
        self.management(ports).get::<Value>("/v1/version", &[]).map(|_| ())
    }

    /// Sees whether the node could listen where it is to.
    ///
    /// # Errors
    /// Another program does, or the machine has no such address.
    pub(super) fn check_ports(&self, ports: Ports) -> Result<(), ClusterError> {
        for port in [ports.cql, ports.storage, ports.management] {
            let address = SocketAddr::from((self.address, port));
            TcpListener::bind(address).map_err(|source| match source.kind() {
                ErrorKind::AddrInUse => ClusterError::PortTaken(address),
                ErrorKind::AddrNotAvailable => ClusterError::NoAddress(self.address),
                _ => ClusterError::Listen { address, source },
            })?;
        }
        Ok(())
    }
}

/// Files of a node with this number: its directory, its log.
pub(super) fn files(directory: &Path, number: usize) -> (PathBuf, PathBuf) {
    (directory.join(format!("node-{number}")), directory.join(format!("node-{number}.log")))
}

/// What a node of a cluster is started with.
fn words(directory: &Path, cluster: &Description, number: usize) -> Result<Vec<String>, ClusterError> {
    let node = cluster.node(number)?;
    let address = node.address;
    let (data, _) = files(directory, number);
    let Ports { storage, management, .. } = cluster.ports;
    let options = [
        ("--data-dir", data.display().to_string()),
        ("--listen", node.cql_address(cluster.ports).to_string()),
        ("--management", format!("{address}:{management}")),
        ("--listen-address", address.to_string()),
        ("--storage-port", storage.to_string()),
        ("--seeds", seeds(cluster, node)),
        ("--cluster-name", CLUSTER_NAME.to_owned()),
        ("--datacenter", node.datacenter.clone()),
        ("--rack", node.rack.clone()),
        ("--shards", node.shards.to_string()),
        ("--memory", format!("{}MiB", node.memory_bytes >> 20)),
    ];
    let replaces = node.replaces_itself.then(|| ("--replace-address", address.to_string()));
    let options = options.into_iter().chain(replaces);
    let options = options.flat_map(|(name, value)| [name.to_owned(), value]);
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    let settings = cluster.settings.iter().flat_map(|(name, value)| [flag(name), value.clone()]);
    Ok(std::iter::once("serve".to_owned()).chain(options).chain(settings).collect())
}

/// Whom a node asks. One that lost its disk may be the first, and asks the others.
fn seeds(cluster: &Description, node: &Node) -> String {
    let nodes = cluster.nodes.iter();
    let seeds: Vec<String> = match node.replaces_itself {
        true => nodes
            .filter(|other| other.address != node.address)
            .map(|other| other.address.to_string())
            .collect(),
        false => nodes.take(1).map(|first| first.address.to_string()).collect(),
    };
    seeds.join(",")
}

/// Starts a node that is to outlive us.
///
/// # Errors
/// There is no such node, or its process can not be started.
pub(super) fn start(
    directory: &Path,
    cluster: &Description,
    number: usize,
) -> Result<ProcessId, ClusterError> {
    let words = words(directory, cluster, number)?;
    let (_, log) = files(directory, number);
    let spawn = || -> io::Result<ProcessId> {
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["cluster", "detached", "--"]).args(words);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn()?;
        // It is there at least until somebody waits for it, which nobody does.
        ProcessId::of(child.id()).ok_or_else(|| io::Error::other("the system tells nothing of its processes"))
    };
    spawn().map_err(|source| ClusterError::Start { number, source })
}

/// The last lines of a node's log.
///
/// # Errors
/// It can not be read.
pub(super) fn log_end(directory: &Path, number: usize, line_count: usize) -> Result<String, ClusterError> {
    let (_, path) = files(directory, number);
    let read = || -> io::Result<Vec<u8>> {
        let mut file = fs::File::open(&path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| ClusterError::file("read", &path, source))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(line_count)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::layout::{Machine, Wanted};

    fn cluster(wanted: &Wanted) -> Description {
        wanted.lay_out(Machine { core_count: 6, memory_bytes: Some(8 << 30) }).unwrap()
    }

    #[test]
    fn a_node_is_started_with_its_place_its_share_and_whom_to_ask() {
        let settings = vec!["commitlog_sync=batch".parse().unwrap()];
        let wanted = Wanted { dcs: Some(2), port: Some(9142), settings, ..Wanted::default() };
        let words = words(Path::new("/c"), &cluster(&wanted), 2).unwrap();
        let expected = [
            "serve --data-dir /c/node-2 --listen 127.0.0.2:9142 --management 127.0.0.2:7199",
            "--listen-address 127.0.0.2 --storage-port 7000 --seeds 127.0.0.1 --cluster-name Peristyle Cluster",
            "--datacenter dc2 --rack rack1 --shards 2 --memory 682MiB",
            "--commitlog-sync batch",
        ];
        assert_eq!(words.join(" "), expected.join(" "));
        assert!(words.contains(&CLUSTER_NAME.to_owned()), "one word");
    }

    #[test]
    fn a_node_that_lost_its_disk_asks_the_others_for_its_place() {
        let mut cluster = cluster(&Wanted::default());
        cluster.nodes[0].replaces_itself = true;
        let words = words(Path::new("/c"), &cluster, 1).unwrap().join(" ");
        assert!(words.contains("--seeds 127.0.0.2,127.0.0.3 "), "{words}");
        assert!(words.ends_with(" --replace-address 127.0.0.1"), "{words}");
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let cluster = cluster(&Wanted::default());
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let ports = Ports { cql: address.port(), storage: address.port(), management: address.port() };
        let error = cluster.nodes[0].check_ports(ports).unwrap_err();
        assert_eq!(error.to_string(), format!("{address} is taken by another program"));
        drop(taken);
        // Somebody else on this machine may take it in between, but not again and again.
        let is_free = (0..20).any(|_| {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let ports = Ports { cql: free, storage: free, management: free };
            cluster.nodes[0].check_ports(ports).is_ok()
        });
        assert!(is_free, "a port that nobody has is free");
    }

    #[test]
    fn an_address_that_the_machine_lacks_is_told_with_how_to_make_it() {
        let node =
            Node { address: Ipv4Addr::new(192, 0, 2, 7), ..cluster(&Wanted::default()).nodes[0].clone() };
        let error =
            node.check_ports(Ports { cql: 9042, storage: 7000, management: 7199 }).unwrap_err().to_string();
        assert!(error.starts_with("192.0.2.7 is no address of this machine"), "{error}");
        assert!(error.ends_with("sudo ifconfig lo0 alias 192.0.2.7"), "{error}");
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        assert!(log_end(directory.path(), 1, 2).is_err());
        fs::write(directory.path().join("node-1.log"), "a\nb\nc\n").unwrap();
        let end = |line_count| log_end(directory.path(), 1, line_count).unwrap();
        assert_eq!((end(2), end(0), end(9)), ("b\nc".to_owned(), String::new(), "a\nb\nc".to_owned()));
        let long = "x".repeat(2 << 20) + "\nlast\n";
        fs::write(directory.path().join("node-1.log"), long).unwrap();
        assert_eq!(end(1), "last");
    }
}
