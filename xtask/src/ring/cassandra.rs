//! Cassandra's ring of three, by `lab/peers/cassandra`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::HOSTS;
use crate::peers::{install_cassandra, output, script, succeed};
use crate::report::{Failure, complain};

const STORAGE_PORT: &str = "17720";
/// The first of three.
const JMX_PORT: &str = "17819";

/// Stopped when it is dropped.
pub(super) struct CassandraRing(PathBuf);

impl CassandraRing {
    /// Of CQL, on all of its nodes.
    pub(super) const PORT: u16 = 19752;

    /// Starts three nodes of that profile, with a heap each and `periodic` sync, one after the other.
    pub(super) fn start(profile: &str, heap: &str, folder: &Path) -> Result<CassandraRing, Failure> {
        install_cassandra()?;
        // Before the start: of a ring that comes up in part nothing is left.
        let ring = CassandraRing(folder.to_owned());
        let mut start = script("cassandra");
        start.args(["ring", "--nodes", &HOSTS.len().to_string(), "--heap", heap, "--sync", "periodic"]);
        start.args(["--profile", profile, "--port", &Self::PORT.to_string(), "--storage-port", STORAGE_PORT]);
        succeed(start.args(["--jmx-port", JMX_PORT, "--dir"]).arg(folder))?;
        Ok(ring)
    }

    /// One for each node.
    pub(super) fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        let process_id = |number: usize| {
            let text = std::fs::read_to_string(self.0.join(number.to_string()).join("pid"))?;
            Ok(text.trim().parse()?)
        };
        (1..=HOSTS.len()).map(process_id).collect()
    }

    /// `nodetool WORDS…` against the first node.
    pub(super) fn nodetool(words: &[&str]) -> Result<String, Failure> {
        let mut command: Command = script("cassandra");
        output(command.args(["nodetool", "--jmx-port", JMX_PORT]).args(words))
    }
}

impl Drop for CassandraRing {
    fn drop(&mut self) {
        let stopped = succeed(script("cassandra").args(["ring-stop", "--dir"]).arg(&self.0));
        if let Err(failure) = stopped {
            complain!("Cassandra's ring in {} was not stopped: {failure}", self.0.display());
        }
    }
}
