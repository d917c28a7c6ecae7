//! `cluster.json`: what the cluster of a directory consists of, and which processes are its nodes.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ClusterError;
use super::node::Node;
use super::setting::Settings;

const FILE: &str = "cluster.json";
/// What is written beside it and renamed, so that it is whole at any time.
const NEW_FILE: &str = "cluster.json.new";

/// What stays as it is from one `up` to the next, and what runs now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Description {
    pub(super) ports: Ports,
    /// Budget of all nodes together, as it was asked for.
    pub(super) memory_bytes: u64,
    /// Options that every node is given.
    #[serde(default)]
    pub(super) settings: Settings,
    /// The first of them has the number 1.
    pub(super) nodes: Vec<Node>,
}

/// The same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ports {
    pub(super) cql: u16,
    pub(super) storage: u16,
    pub(super) management: u16,
}

impl Description {
    /// A node by its number.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn node(&self, number: usize) -> Result<&Node, ClusterError> {
        let node = number.checked_sub(1).and_then(|index| self.nodes.get(index));
        node.ok_or(ClusterError::NoNode { number, count: self.nodes.len() })
    }

    /// The same, to be changed.
    pub(super) fn node_mut(&mut self, number: usize) -> Result<&mut Node, ClusterError> {
        let count = self.nodes.len();
        let node = number.checked_sub(1).and_then(|index| self.nodes.get_mut(index));
        node.ok_or(ClusterError::NoNode { number, count })
    }

    /// Numbers of the nodes whose process is there.
    pub(super) fn running(&self) -> Vec<usize> {
        (1..).zip(&self.nodes).filter(|(_, node)| node.runs()).map(|(number, _)| number).collect()
    }
}

/// Reads the description without a claim to change it.
///
/// # Errors
/// There is no cluster, or its file can not be read.
pub(super) fn look(directory: &Path) -> Result<Description, ClusterError> {
    read(directory)?.ok_or_else(|| ClusterError::NoCluster(directory.to_owned()))
}

/// A directory that no other `peristyle cluster` changes meanwhile.
#[derive(Debug)]
pub(super) struct Claim {
    directory: PathBuf,
    /// The directory itself, locked; what is in it comes and goes.
    _lock: File,
}

impl Claim {
    /// Makes the directory if it is missing.
    ///
    /// # Errors
    /// Another command has it, or it can not be had.
    pub(super) fn make(directory: &Path) -> Result<Claim, ClusterError> {
        fs::create_dir_all(directory).map_err(|source| ClusterError::file("make", directory, source))?;
        Claim::take(directory)
    }

    /// The directory of a cluster that is there, with its description.
    ///
    /// # Errors
    /// There is none, or another command has it.
    pub(super) fn with_cluster(directory: &Path) -> Result<(Claim, Description), ClusterError> {
        look(directory)?;
        let claim = Claim::take(directory)?;
        let description = look(directory)?;
        Ok((claim, description))
    }

    fn take(directory: &Path) -> Result<Claim, ClusterError> {
        let lock = File::open(directory).map_err(|source| ClusterError::file("open", directory, source))?;
        match lock.try_lock() {
            Ok(()) => Ok(Claim { directory: directory.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(ClusterError::Busy(directory.to_owned())),
            Err(TryLockError::Error(source)) => Err(ClusterError::file("lock", directory, source)),
        }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is known of the cluster, if there is one.
    ///
    /// # Errors
    /// Its file can not be read.
    pub(super) fn description(&self) -> Result<Option<Description>, ClusterError> {
        read(&self.directory)
    }

    /// Puts a description in the place of the one before, as a whole.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn save(&self, description: &Description) -> Result<(), ClusterError> {
        let path = self.directory.join(FILE);
        let new_path = self.directory.join(NEW_FILE);
        let write = || -> io::Result<()> {
            let mut file = File::create(&new_path)?;
            file.write_all(&serde_json::to_vec_pretty(description)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&new_path, &path)
        };
        write().map_err(|source| ClusterError::file("write", &path, source))
    }

    /// Forgets the cluster; the directory goes, too, if nothing else is in it.
    ///
    /// # Errors
    /// The disk refuses.
    pub(super) fn forget(self) -> Result<(), ClusterError> {
        let path = self.directory.join(FILE);
        fs::remove_file(&path).map_err(|source| ClusterError::file("delete", &path, source))?;
        match fs::remove_dir(&self.directory) {
            Err(source) if source.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(ClusterError::file("delete", &self.directory, source))
            }
            _ => Ok(()),
        }
    }
}

fn read(directory: &Path) -> Result<Option<Description>, ClusterError> {
    let path = directory.join(FILE);
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| ClusterError::Description { path, source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ClusterError::file("read", &path, source)),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::cluster::process::ProcessId;

    fn description() -> Description {
        let node = |last: u8, process| Node {
            address: Ipv4Addr::new(127, 0, 0, last),
            datacenter: "dc1".to_owned(),
            rack: format!("rack{last}"),
            shards: 2,
            memory_bytes: 64 << 20,
            process,
            is_killed: last == 2,
            replaces_itself: last == 2,
        };
        Description {
            ports: Ports { cql: 9042, storage: 7000, management: 7199 },
            memory_bytes: 128 << 20,
            settings: Settings::from([("commitlog_sync".to_owned(), "batch".to_owned())]),
            nodes: vec![node(1, ProcessId::of(std::process::id())), node(2, None)],
        }
    }

    #[test]
    fn what_is_saved_is_what_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster");
        assert!(matches!(look(&path), Err(ClusterError::NoCluster(_))));
        let claim = Claim::make(&path).unwrap();
        assert_eq!(claim.description().unwrap(), None);
        claim.save(&description()).unwrap();
        assert_eq!(look(&path).unwrap(), description());
        assert_eq!(look(&path).unwrap().running(), [1]);
        claim.save(&Description { nodes: Vec::new(), ..description() }).unwrap();
        assert_eq!(look(&path).unwrap().nodes, []);
        claim.forget().unwrap();
        assert!(!path.exists(), "nothing else was in it");
    }

    #[test]
    fn one_command_at_a_time_changes_a_cluster() {
        let directory = tempfile::tempdir().unwrap();
        let claim = Claim::make(directory.path()).unwrap();
        claim.save(&description()).unwrap();
        assert!(matches!(Claim::with_cluster(directory.path()), Err(ClusterError::Busy(_))));
        drop(claim);
        assert_eq!(Claim::with_cluster(directory.path()).unwrap().1, description());
    }

    #[test]
    fn a_file_that_makes_no_sense_is_told_by_its_path() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), "{\"nodes\": 3}").unwrap();
        let error = look(directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("cluster.json is not understood"), "{error}");
    }

    #[test]
    fn nodes_are_numbered_from_one() {
        let mut cluster = description();
        assert_eq!(cluster.node(1).unwrap().rack, "rack1");
        assert_eq!(cluster.node_mut(2).unwrap().rack, "rack2");
        for number in [0, 3] {
            assert_eq!(
                cluster.node(number).unwrap_err().to_string(),
                format!("there is no node {number}, only 1 to 2")
            );
        }
    }
}
