//! `cargo xtask ring-drivers`: a node of three is lost and comes back while the driver of a language works.
//!
//! Each driver has a ring of its own, which it leaves with its logs. `--rest SECONDS` is for how long it works before
//! the loss, without the node, and with it again; `--install` only installs.

use std::path::Path;
use std::process::Command;

use super::places::places;
use super::{HOSTS, Ports, Ring};
use crate::arguments::Arguments;
use crate::languages::{Java, go, install_go, install_node, install_rust, node, rust};
use crate::node::fresh_folder;
use crate::peers::succeed;
use crate::report::{Failure, Tally, complain};

const PORTS: Ports = Ports { cql: 19642, storage: 17600, management: 17699 };

/// The driver of a language.
struct Driver {
    name: &'static str,
    /// Installs and builds.
    install: fn() -> Result<(), Failure>,
    /// The program, ready to run.
    program: fn() -> Command,
}

const JAVA_3: Java = Java {
    pom: "tests/drivers/java3",
    sources: &["tests/cluster/java", "tests/cluster/java3"],
    class: "Loss3",
};
const JAVA_4: Java = Java {
    pom: "tests/drivers/java4",
    sources: &["tests/cluster/java", "tests/cluster/java4"],
    class: "Loss4",
};
const PROGRAM: &str = "ring-loss";

const DRIVERS: &[Driver] = &[
    Driver { name: "java3", install: || JAVA_3.install(), program: || JAVA_3.command() },
    Driver { name: "java4", install: || JAVA_4.install(), program: || JAVA_4.command() },
    Driver { name: "go", install: || install_go("tests/cluster/go", PROGRAM), program: || go(PROGRAM) },
    Driver {
        name: "node",
        install: || install_node("tests/cluster/node"),
        program: || node("tests/cluster/node/loss.js"),
    },
    Driver { name: "rust", install: || install_rust(PROGRAM), program: || rust(PROGRAM) },
];

/// Runs the drivers named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rest", "install"])?;
    let names = &arguments.positional;
    if let Some(name) = names.iter().find(|name| DRIVERS.iter().all(|driver| driver.name != **name)) {
        return Err(Failure::new(format!("there is no driver '{name}'")));
    }
    let wanted = |driver: &&Driver| names.is_empty() || names.iter().any(|name| name == driver.name);
    let drivers: Vec<&Driver> = DRIVERS.iter().filter(wanted).collect();
    for driver in &drivers {
        println!("--- {} is installed", driver.name);
        (driver.install)()?;
    }
    let mut tally = Tally::default();
    if !arguments.flag("install") {
        let rest = arguments.text("rest").unwrap_or("1.5");
        drivers.iter().for_each(|driver| tally += judge(driver, rest));
    }
    Ok(tally)
}

fn judge(driver: &Driver, rest: &str) -> Tally {
    println!("--- {}", driver.name);
    match run_with_ring(driver, rest) {
        Ok(()) => Tally::PASS,
        Err(failure) => {
            complain!("{} on a ring: {failure}", driver.name);
            Tally::FAIL
        }
    }
}

fn run_with_ring(driver: &Driver, rest: &str) -> Result<(), Failure> {
    let folder = fresh_folder(&format!("ring-drivers/{}", driver.name))?;
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--racks", "2"])?;
    let file = folder.join("places");
    std::fs::write(&file, places(&ring)?)?;
    succeed(&mut program(driver, &ring, &file, rest))
}

fn program(driver: &Driver, ring: &Ring, places: &Path, rest: &str) -> Command {
    let mut program = (driver.program)();
    program.env("PERISTYLE_ADDRESS", ring.address(HOSTS[0])).env("PERISTYLE_CLUSTER", ring.command_line());
    program.env("PERISTYLE_PLACES", places).env("PERISTYLE_REST_SECONDS", rest);
    program
}
