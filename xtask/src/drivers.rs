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
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::{home, install_python, oracle_address, succeed};
use crate::process::root;
use crate::report::{Failure, Tally, complain};

const POLL: Duration = Duration::from_millis(50);
const RUN_TIMEOUT: Duration = Duration::from_secs(600);

/// A language's driver.
struct Driver {
    name: &'static str,
    /// Installs and builds.
    install: fn() -> Result<(), Failure>,
    /// The program, ready to run against an address.
    program: fn(&str, &Path) -> Command,
}

/// Less than a page of large rows would take: it must end by bytes.
const MEMORY: &str = "256MiB";

const DRIVERS: &[Driver] = &[
    Driver { name: "python", install: install_python, program: python },
    Driver { name: "java3", install: || install_java("java3"), program: |_, _| java("java3") },
    Driver { name: "java4", install: || install_java("java4"), program: |_, _| java("java4") },
    Driver { name: "rust", install: install_rust, program: rust },
    Driver { name: "cqlsh", install: install_python, program: cqlsh },
];

/// Runs the drivers named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["address", "cassandra", "install"])?;
    let wanted = |driver: &&Driver| {
        let names = &arguments.positional;
        names.is_empty() || names.iter().any(|name| name == driver.name)
    };
    let address = match arguments.text("address") {
        Some(address) => Some(address.to_owned()),
        None if arguments.flag("cassandra") => Some(oracle_address()?),
        None => None,
    };
    let mut tally = Tally::default();
    for driver in DRIVERS.iter().filter(wanted) {
        println!("--- {}", driver.name);
        (driver.install)()?;
        if arguments.flag("install") {
            continue;
        }
        let passed = match &address {
            Some(address) => run_at(driver, address),
            None => run_with_node(driver),
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

fn command(driver: &Driver, address: &str) -> Result<Command, Failure> {
    let mut command = (driver.program)(address, &fresh_folder(&format!("drivers/{}-work", driver.name))?);
    command.env("PERISTYLE_ADDRESS", address).current_dir(root());
    Ok(command)
}

fn run_at(driver: &Driver, address: &str) -> Result<(), Failure> {
    succeed(&mut command(driver, address)?)
}

fn run_with_node(driver: &Driver) -> Result<(), Failure> {
    let folder = fresh_folder(&format!("drivers/{}", driver.name))?;
    let words = vec!["--memory".to_owned(), MEMORY.to_owned()];
    let mut node = Node::start(&NodeOptions { data: folder.join("data"), port: 0, words: words.clone() })?;
    let again = NodeOptions { data: folder.join("data"), port: node.port, words };
    let marker = folder.join("restart");
    let asked = format!("touch '{0}' && while [ -e '{0}' ]; do sleep 0.05; done", marker.display());
    let mut program = Program(command(driver, &node.address())?.env("PERISTYLE_RESTART", asked).spawn()?);
    let started = Instant::now();
    loop {
        if let Some(status) = program.0.try_wait()? {
            return match status.success() {
                true => node.stop(),
                false => Err(Failure::new(format!(
                    "{status}; the server's log: {}",
                    folder.join("data.log").display()
                ))),
            };
        }
        if marker.exists() {
            node.stop()?;
            node = Node::start(&again)?;
            std::fs::remove_file(&marker)?;
        }
        if started.elapsed() > RUN_TIMEOUT {
            return Err(Failure::new("it does not end"));
        }
        std::thread::sleep(POLL);
    }
}

/// A driver's process, ended with us.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It has mostly ended by itself; then there is nothing to do.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn tests(name: &str) -> PathBuf {
    root().join("tests/drivers").join(name)
}

fn python(_: &str, _: &Path) -> Command {
    let mut command = Command::new(home().join("python/bin/python"));
    command.arg(tests("python/round.py"));
    command
}

fn cqlsh(address: &str, work: &Path) -> Command {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "9042"));
    let mut command = Command::new(tests("cqlsh/round.sh"));
    command.arg(home().join("python/bin/cqlsh")).args([host, port]).arg(work);
    command
}

fn install_java(name: &str) -> Result<(), Failure> {
    let folder = home().join(name);
    let (library, classes) = (folder.join("lib"), folder.join("classes"));
    std::fs::create_dir_all(&classes)?;
    if !library.exists() {
        println!("    jars of {name} through mvn");
        let output = format!("-DoutputDirectory={}", library.display());
        let goal = ["-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"];
        succeed(Command::new("mvn").args(goal).arg(output).current_dir(tests(name)))?;
    }
    let path = format!("{}/*", library.display());
    succeed(
        Command::new("javac")
            .args(["-nowarn", "-cp", &path, "-d"])
            .arg(&classes)
            .arg(tests(name).join("Round.java")),
    )
}

fn java(name: &str) -> Command {
    let folder = home().join(name);
    let path = format!("{0}/classes:{0}/lib/*", folder.display());
    let mut command = Command::new("java");
    command.args(["-Xmx512m", "-cp", &path, "Round"]);
    command
}

fn install_rust() -> Result<(), Failure> {
    let mut cargo = crate::process::cargo();
    cargo.args(["build", "--quiet", "--manifest-path"]).arg(tests("rust/Cargo.toml"));
    succeed(cargo.env("CARGO_TARGET_DIR", root().join("target/drivers")))
}

fn rust(_: &str, _: &Path) -> Command {
    Command::new(root().join("target/drivers/debug/driver-round"))
}
