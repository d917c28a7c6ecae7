//! Cassandra's ring of three, by `lab/peers/cassandra`.

use std::path::{Path, PathBuf};

use super::super::HOSTS;
use super::Plan;
use super::target::Nodes;
use crate::peers::{install_cassandra, script, succeed};
use crate::report::{Failure, complain};

const PORT: u16 = 19752;
const STORAGE_PORT: &str = "17720";
/// The first of three.
const JMX_PORT: &str = "17819";

/// Stopped when it is dropped.
pub(super) struct CassandraRing(PathBuf);

impl CassandraRing {
    /// Starts three nodes with `periodic` sync, one after the other.
    pub(super) fn start(plan: &Plan, folder: &Path) -> Result<CassandraRing, Failure> {
        install_cassandra()?;
        // Before the start: of a ring that comes up in part nothing is left.
        let ring = CassandraRing(folder.to_owned());
        let mut start = script("cassandra");
        start.args(["ring", "--nodes", &HOSTS.len().to_string(), "--heap", &plan.heap, "--sync", "periodic"]);
        start.args(["--profile", &plan.profile, "--port", &PORT.to_string(), "--storage-port", STORAGE_PORT]);
        succeed(start.args(["--jmx-port", JMX_PORT, "--dir"]).arg(folder))?;
        Ok(ring)
    }
}

impl Nodes for CassandraRing {
    fn name(&self) -> &'static str {
        "cassandra"
    }

    fn port(&self) -> u16 {
        PORT
    }

    fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        let process_id = |number: usize| {
            let text = std::fs::read_to_string(self.0.join(number.to_string()).join("pid"))?;
            Ok(text.trim().parse()?)
        };
        (1..=HOSTS.len()).map(process_id).collect()
    }

    fn is_ours(&self) -> bool {
        false
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
