//! `cargo xtask ring-operations`: requests with ids, from four languages, while nodes are killed one after the other.
//!
//! Each program (`tests/cluster/*/operations.*`) adds to one counter and counts up rows by conditions; what fails it
//! asks again under its id. In the end the counter must be exact, and each row must have been reached step by step. The
//! programs are the examples of `docs/operation-ids.md`.

use std::process::Command;
use std::time::Duration;

use super::{HOSTS, Ports, Ring};
use crate::arguments::Arguments;
use crate::languages::{Java, go, install_go, install_node, node};
use crate::node::fresh_folder;
use crate::peers::{home, install_python};
use crate::process::{Running, root};
use crate::report::{Failure, Tally, complain};

const PORTS: Ports = Ports { cql: 20042, storage: 18000, management: 18099 };
/// A killed node is away for so long.
const AWAY: Duration = Duration::from_millis(700);

/// A program in some language.
struct Program {
    name: &'static str,
    /// Installs and builds.
    install: fn() -> Result<(), Failure>,
    /// Ready to run.
    command: fn() -> Command,
}

const JAVA: Java = Java {
    pom: "tests/drivers/java4",
    sources: &["tests/cluster/java", "tests/cluster/java4"],
    class: "Operations",
};
const GO: &str = "ring-operations";

const PROGRAMS: &[Program] = &[
    Program { name: "python", install: install_python, command: python },
    Program { name: "java4", install: || JAVA.install(), command: || JAVA.command() },
    Program { name: "go", install: || install_go("tests/cluster/go/operations", GO), command: || go(GO) },
    Program {
        name: "node",
        install: || install_node("tests/cluster/node"),
        command: || node("tests/cluster/node/operations.js"),
    },
];

fn python() -> Command {
    let mut command = Command::new(home().join("python/bin/python"));
    command.arg(root().join("tests/cluster/python/operations.py"));
    command
}

/// How long is asked, and how often a node is killed.
#[derive(Clone, Copy)]
struct Amount {
    seconds: f64,
    every: Duration,
}

/// Runs the programs named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["seconds", "every", "short", "install"])?;
    let is_short = arguments.flag("short");
    let seconds = arguments.value("seconds", if is_short { 6.0 } else { 60.0 })?;
    let every = Duration::from_secs_f64(arguments.value("every", if is_short { 1.0 } else { 5.0 })?);
    let names = &arguments.positional;
    if let Some(name) = names.iter().find(|name| PROGRAMS.iter().all(|program| program.name != **name)) {
        return Err(Failure::new(format!("there is no program '{name}'")));
    }
    let mut tally = Tally::default();
    for program in PROGRAMS {
        if !names.is_empty() && !names.iter().any(|name| name == program.name) {
            continue;
        }
        (program.install)()?;
        if arguments.flag("install") {
            continue;
        }
        println!("--- {}", program.name);
        tally += match run_with_ring(program, Amount { seconds, every }) {
            Ok(kill_count) => {
                println!("{kill_count} nodes were killed meanwhile");
                Tally::PASS
            }
            Err(failure) => {
                complain!("{}: {failure}", program.name);
                Tally::FAIL
            }
        };
    }
    Ok(tally)
}

/// Lets a program work while nodes are killed; so many were.
fn run_with_ring(program: &Program, Amount { seconds, every }: Amount) -> Result<u64, Failure> {
    let folder = fresh_folder(&format!("ring-operations/{}", program.name))?;
    let ring = Ring::start(&folder.join("cluster"), PORTS, &[])?;
    let mut command = (program.command)();
    command.env("PERISTYLE_ADDRESS", ring.address(HOSTS[0]));
    command.env("PERISTYLE_SECONDS", seconds.to_string());
    let mut program = Running::start_ready(&mut command)?;
    let mut kill_count = 0;
    let status = loop {
        if let Some(status) = program.ended_within(every)? {
            break status;
        }
        let number = (1 + kill_count % HOSTS.len() as u64).to_string();
        ring.order(&["kill", &number])?;
        kill_count += 1;
        program.ended_within(AWAY)?;
        ring.order(&["start", &number])?;
    };
    match status.success() {
        true if kill_count < 2 => Err(Failure::new("it was over before anything was hurt")),
        true => Ok(kill_count),
        false => Err(Failure::new("what was asked is not what was done")),
    }
}
