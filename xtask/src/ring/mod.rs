//! Three nodes as real processes, hurt while a stock driver works. What is judged stands in `tests/cluster/README.md`.
//!
//! ```text
//!   harm      cargo xtask ring: every kind of harm to every node, under one driver
//! ```

pub(crate) mod harm;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::node::binary;
use crate::peers::{output, succeed};
use crate::report::{Failure, complain};

/// All nodes have the same ones, each on its address; no other judge has them.
#[derive(Clone, Copy)]
struct Ports {
    cql: u16,
    storage: u16,
    management: u16,
}

/// A ring that is stopped when it is dropped.
struct Ring {
    binary: PathBuf,
    data: PathBuf,
}

impl Ring {
    /// Starts one of three nodes.
    fn start(data: &Path, ports: Ports) -> Result<Ring, Failure> {
        let ring = Ring { binary: binary()?, data: data.to_owned() };
        let mut up = ring.command();
        up.args(["up", "--nodes", "3"]);
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
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Err(error) = succeed(self.command().arg("down")) {
            complain!("ring: {error}");
        }
    }
}
