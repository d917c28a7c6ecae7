//! What was run and on what: enough to run it again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::disturbance::Disturbance;
use crate::error::LabError;
use crate::target::level_of;
use crate::workload::{script, workload_of, ycsb};

/// Version of manifests and results.
pub(crate) const VERSION: u32 = 1;

/// As the Java driver 3 has it, on which YCSB and cassandra-stress stand.
pub const DEFAULT_TIMEOUT_S: f64 = 12.0;

/// Of manifests from before there was one.
fn default_timeout_s() -> f64 {
    DEFAULT_TIMEOUT_S
}

/// A run's manifest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this format.
    pub version: u32,
    /// What was asked for.
    pub plan: Plan,
    /// When the run began, in seconds since 1970.
    pub began_at_s: u64,
    /// The version of the lab.
    pub lab: String,
    /// The client's machine.
    pub machine: Machine,
    /// What the servers say of themselves.
    pub target: Target,
}

impl Manifest {
    /// Is it one that this lab can read?
    ///
    /// # Errors
    /// It was written by a later one.
    pub fn check_version(&self) -> Result<(), LabError> {
        check_version(self.version)
    }
}

/// Is it this lab's?
pub(crate) fn check_version(version: u32) -> Result<(), LabError> {
    match version == VERSION {
        true => Ok(()),
        false => Err(LabError::Plan(format!("a manifest of version {version} is none of ours"))),
    }
}

/// What a user asks for; all that a run depends on besides the machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The workload's name; before the plan is completed also the path of a script, which ends in `.toml`.
    pub workload: String,
    /// Its settings, by name.
    pub settings: BTreeMap<String, String>,
    /// Addresses of the nodes, with ports.
    pub nodes: Vec<String>,
    /// The keyspace, and how it is replicated.
    pub keyspace: String,
    /// What stands behind `WITH replication =`.
    pub replication: String,
    /// `ONE`, `QUORUM`, ...
    pub consistency: String,
    /// Rows that are there when it begins; before the plan is completed also 0, for as many as the workload says.
    pub row_count: u64,
    /// How operations are begun.
    pub pace: Pace,
    /// Connections over all nodes.
    pub connection_count: usize,
    /// The client's threads.
    pub thread_count: usize,
    /// Seconds before each repetition that are not counted.
    pub warmup_s: f64,
    /// Seconds that are counted.
    pub measured_s: f64,
    /// How often it is measured.
    pub repetition_count: usize,
    /// How many of the first are dropped.
    pub dropped_count: usize,
    /// All that is chosen by chance follows from this.
    pub seed: u64,
    /// More than this part of failed operations ends the run, from 0 to 1.
    pub error_part_max: f64,
    /// What is done to the servers meanwhile, in each repetition.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbance>,
    /// Seconds after which an operation without an answer has failed; a late answer does not count.
    #[serde(default = "default_timeout_s")]
    pub timeout_s: f64,
    /// The text of the workload, if it is a script: a run can be repeated without the file, and by a later version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}

impl Plan {
    /// The plan with all that a run depends on: the text of its script, under the script's own name, and how many rows
    /// there are. Of a plan that has them, the same.
    ///
    /// # Errors
    /// The script can not be read, or is none; there is no such workload, setting or consistency level.
    pub fn completed(mut self) -> Result<Plan, LabError> {
        if self.script.is_none()
            && let Some((name, text)) = script::found(&self.workload)?
        {
            (self.workload, self.script) = (name, Some(text));
        }
        if self.row_count == 0 {
            self.row_count = match &self.script {
                Some(text) => script::default_row_count(&self, text)?,
                None => ycsb::DEFAULT_ROW_COUNT,
            };
        }
        // Nothing is begun that can not be done.
        workload_of(&self)?;
        level_of(&self)?;
        Ok(self)
    }
}

/// How operations are begun.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// So many each second, evenly, whether others are answered or not.
    Open {
        /// Operations each second.
        rate: f64,
    },
    /// Always so many under way.
    Closed {
        /// Over all connections.
        in_flight: usize,
    },
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Of its processor.
    pub processor: String,
    /// Logical ones.
    pub core_count: usize,
    /// Of memory.
    pub memory_bytes: u64,
    /// Operating system and its version.
    pub system: String,
}

/// What servers say of themselves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// `release_version` of each node.
    pub releases: Vec<String>,
    /// Addresses of the nodes that did not answer when the run began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreachable: Vec<String>,
    /// How the keyspace is replicated, which may have been there before.
    #[serde(default)]
    pub replication: String,
    /// The cluster's name.
    pub cluster: String,
    /// Columns of `system.local` that tell what it is, as `peristyle_version`, if there are any.
    pub facts: BTreeMap<String, String>,
    /// Their processes, if they run on this machine and were named.
    pub process_ids: Vec<u32>,
}
