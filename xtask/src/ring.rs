//! `cargo xtask ring`: three nodes as real processes, hurt while a stock driver works.
//!
//! What is judged stands in `tests/cluster/README.md`. `--rounds N` hurts each node so often, `--rest SECONDS` waits so
//! long in between.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::Arguments;
use crate::node::{binary, fresh_folder};
use crate::peers::{home, install_python, succeed};
use crate::process::root;
use crate::report::{Failure, Tally, complain};

/// Ports that no other judge uses: all nodes have the same ones, each on its address.
const PORT: &str = "19542";
const STORAGE_PORT: &str = "17500";
const MANAGEMENT_PORT: &str = "17599";

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rounds", "rest"])?;
    install_python()?;
    let ring = Ring::start(&fresh_folder("ring")?.join("cluster"))?;
    println!("--- a ring that is hurt");
    let mut harm = Command::new(home().join("python/bin/python"));
    harm.arg(root().join("tests/cluster/python/harm.py")).env("PERISTYLE_PORT", PORT);
    harm.env("PERISTYLE_CLUSTER", ring.command_line()).env("PYTHONUNBUFFERED", "1");
    harm.env("PERISTYLE_ROUNDS", arguments.text("rounds").unwrap_or("1"));
    harm.env("PERISTYLE_REST_SECONDS", arguments.text("rest").unwrap_or("2"));
    Ok(match succeed(&mut harm) {
        Ok(()) => Tally::PASS,
        Err(failure) => {
            complain!("ring: {failure}");
            Tally::FAIL
        }
    })
}

/// A ring that is stopped when it is dropped.
struct Ring {
    binary: PathBuf,
    data: PathBuf,
}

impl Ring {
    fn start(data: &Path) -> Result<Ring, Failure> {
        let ring = Ring { binary: binary()?, data: data.to_owned() };
        let mut up = ring.command();
        up.args(["up", "--nodes", "3", "--port", PORT, "--storage-port", STORAGE_PORT]);
        succeed(up.args(["--management-port", MANAGEMENT_PORT]))?;
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
