//! `cargo xtask drivers`: stock drivers, each in its own language, at work against Peristyle.
//!
//! What each does stands in `tests/drivers/README.md`. Here they are installed (under `.peers/`, from
//! their registries), built and run, each against a node of its own. A program asks for a restart of
//! the server through a shell command that makes a file and waits until it is gone; we watch for it:
//!
//! ```text
//!   program:  sh -c "$PERISTYLE_RESTART"  -- touch MARKER, wait ...                  ... goes on
//!   xtask:                                      sees it: SIGTERM, start again, rm MARKER
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::languages::{Java, go, install_go, install_rust, rust};
use crate::measure::{high_water_within, mebibytes};
use crate::node::{Node, NodeOptions, fresh_folder, metric};
use crate::peers::{home, install_python, oracle_address, succeed};
use crate::process::{Running, ended_well, root};
use crate::report::{Failure, Tally, complain};

const POLL: Duration = Duration::from_millis(50);
const RUN_TIMEOUT: Duration = Duration::from_secs(600);
/// What `prepared` prepares, unless told: more than there is room for.
const STATEMENTS: &str = "10000";

/// A language's driver.
struct Driver {
    name: &'static str,
    /// Installs and builds.
    install: fn() -> Result<(), Failure>,
    /// The program, ready to run against an address.
    program: fn(&str, &Path) -> Command,
    /// That of the node.
    memory: &'static str,
    /// What must be true of the node when the program has ended.
    judge: fn(&Node) -> Result<(), Failure>,
}

impl Driver {
    /// One that does the round of work, with less memory than a page of large rows would take: it must end by bytes.
    const fn round(
        name: &'static str,
        install: fn() -> Result<(), Failure>,
        program: fn(&str, &Path) -> Command,
    ) -> Driver {
        Driver { name, install, program, memory: "256MiB", judge: |_| Ok(()) }
    }
}

const JAVA_3: Java = Java { pom: "tests/drivers/java3", sources: &["tests/drivers/java3"], class: "Round" };
const JAVA_4: Java = Java { pom: "tests/drivers/java4", sources: &["tests/drivers/java4"], class: "Round" };
const RUST_PROGRAM: &str = "driver-round";
const GO_PROGRAM: &str = "driver-cas";

const DRIVERS: &[Driver] = &[
    Driver::round("python", install_python, |_, _| python("round.py")),
    Driver::round("java3", || JAVA_3.install(), |_, _| JAVA_3.command()),
    Driver::round("java4", || JAVA_4.install(), |_, _| JAVA_4.command()),
    Driver::round("rust", || install_rust(RUST_PROGRAM), |_, _| rust(RUST_PROGRAM)),
    Driver::round("cqlsh", install_python, cqlsh),
    Driver::round("mapper", install_python, |_, _| python("mapper.py")),
    Driver::round("go", || install_go("tests/drivers/go", GO_PROGRAM), |_, _| go(GO_PROGRAM)),
    Driver {
        name: "prepared",
        install: install_python,
        program: |_, _| python("prepared.py"),
        memory: "64MiB",
        judge: has_evicted,
    },
];

/// Runs the drivers named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["address", "cassandra", "install", "statements"])?;
    let wanted = |driver: &&Driver| {
        let names = &arguments.positional;
        names.is_empty() || names.iter().any(|name| name == driver.name)
    };
    let address = match arguments.text("address") {
        Some(address) => Some(address.to_owned()),
        None if arguments.flag("cassandra") => Some(oracle_address()?),
        None => None,
    };
    let statements = arguments.text("statements").unwrap_or(STATEMENTS);
    let mut tally = Tally::default();
    for driver in DRIVERS.iter().filter(wanted) {
        println!("--- {}", driver.name);
        (driver.install)()?;
        if arguments.flag("install") {
            continue;
        }
        let passed = match &address {
            Some(address) => succeed(&mut command(driver, address, statements)?),
            None => run_with_node(driver, statements),
        };
        tally += match passed {
            Ok(()) => Tally::PASS,
            Err(failure) => {
                complain!("{}: {failure}", driver.name);
                Tally::FAIL
            }
        };
    }
    Ok(tally)
}

fn command(driver: &Driver, address: &str, statements: &str) -> Result<Command, Failure> {
    let mut command = (driver.program)(address, &fresh_folder(&format!("drivers/{}-work", driver.name))?);
    command.env("PERISTYLE_ADDRESS", address).env("PERISTYLE_STATEMENTS", statements).current_dir(root());
    Ok(command)
}

fn run_with_node(driver: &Driver, statements: &str) -> Result<(), Failure> {
    let folder = fresh_folder(&format!("drivers/{}", driver.name))?;
    let words = vec!["--memory".to_owned(), driver.memory.to_owned()];
    let mut node = Node::start(&NodeOptions { data: folder.join("data"), port: 0, words: words.clone() })?;
    let again = NodeOptions { data: folder.join("data"), port: node.port, words };
    let marker = folder.join("restart");
    let asked = format!("touch '{0}' && while [ -e '{0}' ]; do sleep 0.05; done", marker.display());
    let mut command = command(driver, &node.address(), statements)?;
    let mut program = Running::start(command.env("PERISTYLE_RESTART", asked))?;
    let started = Instant::now();
    loop {
        if let Some(status) = program.ended_within(POLL)? {
            return ended_well(status, &folder.join("data.log")).and_then(|()| judge(driver, node));
        }
        if marker.exists() {
            node.stop()?;
            node = Node::start(&again)?;
            std::fs::remove_file(&marker)?;
        }
        if started.elapsed() > RUN_TIMEOUT {
            return Err(Failure::new("it does not end"));
        }
    }
}

/// Judges a node whose program has ended well, and stops it.
fn judge(driver: &Driver, node: Node) -> Result<(), Failure> {
    let resident_bytes = high_water_within(node.process_id(), driver.memory)?;
    println!("    {:.0} MiB resident at most, of {}", mebibytes(resident_bytes), driver.memory);
    (driver.judge)(&node)?;
    node.stop()
}

fn tests(name: &str) -> PathBuf {
    root().join("tests/drivers").join(name)
}

fn python(program: &str) -> Command {
    let mut command = Command::new(home().join("python/bin/python"));
    command.arg(tests("python").join(program));
    command
}

/// Had the node no room for some prepared statements?
fn has_evicted(node: &Node) -> Result<(), Failure> {
    let evicted = metric(&node.metrics()?, "peristyle_prepared_statements_evicted_total").unwrap_or_default();
    println!("    {evicted} evictions");
    match evicted > 0.0 {
        true => Ok(()),
        false => Err(Failure::new("there was room for all statements")),
    }
}

fn cqlsh(address: &str, work: &Path) -> Command {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "9042"));
    let mut command = Command::new(tests("cqlsh/round.sh"));
    command.arg(home().join("python/bin/cqlsh")).args([host, port]).arg(work);
    command
}
