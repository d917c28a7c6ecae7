//! `cargo xtask ring`: three nodes as real processes, hurt while a stock driver works.
//!
//! `--rounds N` hurts each node so often, `--rest SECONDS` waits so long in between.

use std::process::Command;

use super::{Ports, Ring};
use crate::arguments::Arguments;
use crate::node::fresh_folder;
use crate::peers::{home, install_python, succeed};
use crate::process::root;
use crate::report::{Failure, Tally, complain};

const PORTS: Ports = Ports { cql: 19542, storage: 17500, management: 17599 };

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rounds", "rest"])?;
    install_python()?;
    let ring = Ring::start(&fresh_folder("ring")?.join("cluster"), PORTS, &[])?;
    println!("--- a ring that is hurt");
    let mut harm = Command::new(home().join("python/bin/python"));
    harm.arg(root().join("tests/cluster/python/harm.py")).env("PERISTYLE_PORT", PORTS.cql.to_string());
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
