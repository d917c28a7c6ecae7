//! Nodes as real processes, hurt while stock drivers work (`tests/cluster/README.md` says what is judged), and what
//! they cost (`docs/internals/measuring.md`).
//!
//! ```text
//!   harm        cargo xtask ring: every kind of harm to every node, under one driver
//!   loss        cargo xtask ring-drivers: a node is lost, under the driver of each language
//!   faults      cargo xtask ring-faults: clients who know what they were promised, while nodes are hurt
//!   history     cargo xtask ring-history: is what clients saw linearizable, row by row?
//!   answers     cargo xtask ring-cql: what a ring answers of which nodes are lost, against Cassandra's answers
//!   counters    cargo xtask ring-counters: exact whatever happens to nodes and their files
//!   operations  cargo xtask ring-operations: requests with ids are done once, while nodes are killed
//!   ddl         cargo xtask ring-ddl: how long a table takes, and many changes of the schema from all nodes at once
//!   pulse       cargo xtask ring-pulse: plots of what clients feel when a node is killed, or hangs
//!   places      where we say that tokens and rows are, for drivers to hold theirs against
//!   cost        cargo xtask ring-cost: server CPU for an operation, beside Cassandra's ring and beside a lone node
//! ```

pub(crate) mod answers;
mod cassandra;
pub(crate) mod cost;
pub(crate) mod counters;
pub(crate) mod ddl;
pub(crate) mod faults;
pub(crate) mod harm;
pub(crate) mod history;
pub(crate) mod loss;
pub(crate) mod operations;
mod places;
pub(crate) mod pulse;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::binary;
use crate::peers::{output, succeed};
use crate::report::{Failure, complain};

/// The addresses that `peristyle cluster` gives to three nodes.
pub(crate) const HOSTS: [&str; 3] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];

/// All nodes have the same ones, each on its address; no other judge has them.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) cql: u16,
    pub(crate) storage: u16,
    pub(crate) management: u16,
}

/// One of a ring's nodes.
#[derive(Clone, Debug)]
struct Host {
    /// From 1, as `peristyle cluster` counts them.
    number: usize,
    /// Where it answers CQL.
    cql: String,
}

/// A ring that is stopped when it is dropped.
pub(crate) struct Ring {
    binary: PathBuf,
    data: PathBuf,
    ports: Ports,
    node_count: usize,
}

impl Ring {
    /// Starts one of three nodes; `words` are further ones for `cluster up`.
    pub(crate) fn start(data: &Path, ports: Ports, words: &[&str]) -> Result<Ring, Failure> {
        Ring::of(HOSTS.len(), data, ports, words)
    }

    /// Starts one of so many nodes.
    pub(crate) fn of(node_count: usize, data: &Path, ports: Ports, words: &[&str]) -> Result<Ring, Failure> {
        let ring = Ring { binary: binary()?, data: data.to_owned(), ports, node_count };
        let mut up = ring.command();
        up.args(["up", "--nodes", &node_count.to_string()]).args(words);
        let Ports { cql, storage, management } = ports;
        for (option, port) in
            [("--port", cql), ("--storage-port", storage), ("--management-port", management)]
        {
            up.arg(option).arg(port.to_string());
        }
        // What it says of itself is for people.
        output(&mut up)?;
        Ok(ring)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(["cluster", "--data-dir"]).arg(&self.data);
        command
    }

    /// What a shell would be given to hurt it.
    fn command_line(&self) -> String {
        format!("'{}' cluster --data-dir '{}'", self.binary.display(), self.data.display())
    }

    /// Does something to it: `peristyle cluster WORDS…`, which says what it did to nobody.
    pub(crate) fn order(&self, words: &[&str]) -> Result<(), Failure> {
        output(self.command().args(words)).map(|_| ())
    }

    /// Where a node keeps its data; `peristyle cluster` names it so.
    fn directory(&self, number: usize) -> PathBuf {
        self.data.join(format!("node-{number}"))
    }

    /// `peristyle ring WORDS…` on the directory of a node that is stopped.
    fn on_stopped(&self, number: usize, words: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        let (word, others) = words.split_first().expect("what to do");
        command.args(["ring", word, "--data-dir"]).arg(self.directory(number)).args(others);
        command
    }

    /// All nodes.
    fn hosts(&self) -> Vec<Host> {
        let host = |number: usize| Host { number, cql: self.address(&format!("127.0.0.{number}")) };
        (1..=self.node_count).map(host).collect()
    }

    /// The nodes' processes, of which none has ended.
    pub(crate) fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        let table = output(self.command().arg("status"))?;
        let process_id = |line: &str| {
            let word = line.split_whitespace().nth(2).unwrap_or_default();
            word.parse().map_err(|_| Failure::new(format!("a node without a process: {line}")))
        };
        table.lines().skip(1).map(process_id).collect()
    }

    /// Where a node answers CQL.
    pub(crate) fn address(&self, host: &str) -> String {
        format!("{host}:{}", self.ports.cql)
    }

    /// `peristyle nodetool WORDS…` against a node.
    fn nodetool(&self, host: &str, words: &[&str]) -> Result<String, Failure> {
        let management = format!("{host}:{}", self.ports.management);
        output(Command::new(&self.binary).args(["nodetool", "--management", &management]).args(words))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Err(error) = succeed(self.command().arg("down")) {
            complain!("ring: {error}");
        }
    }
}
