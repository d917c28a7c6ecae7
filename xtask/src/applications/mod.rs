//! `cargo xtask applications`: Java applications that others wrote, as they are, at work against Peristyle.
//!
//! What each does, and what must hold, stands in `tests/applications/README.md`. Here they are installed
//! (under `.peers/`, from Maven's registry), compiled and run, each against a node of its own, or a ring of three.

mod stress;

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::languages::Java;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::process::{Running, ended_well, root};
use crate::report::{Failure, Tally, complain};
use crate::ring::{HOSTS, Ports, Ring};

const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Of the ring.
const PORTS: Ports = Ports { cql: 20342, storage: 18300, management: 18399 };
/// Of the node.
const MEMORY: &str = "256MiB";

/// An application, and how it is run.
struct Application {
    name: &'static str,
    program: Program,
}

enum Program {
    /// A program of ours around it.
    Around(Java),
    /// It is a program itself.
    Stress,
}

impl Application {
    /// That of a folder, which has its sources beside its `pom.xml`, and of what it shares.
    const fn new(
        name: &'static str,
        pom: &'static str,
        sources: &'static [&'static str],
        class: &'static str,
    ) -> Application {
        Application { name, program: Program::Around(Java { pom, sources, class }) }
    }

    fn install(&self) -> Result<(), Failure> {
        match &self.program {
            Program::Around(java) => java.install(),
            Program::Stress => stress::install(),
        }
    }

    fn run(&self, server: &Server) -> Result<(), Failure> {
        let Program::Around(java) = &self.program else { return stress::run(server) };
        let mut command = java.command();
        command.env("PERISTYLE_ADDRESS", &server.address);
        command.env("PERISTYLE_REPLICAS", server.replica_count.to_string()).current_dir(root());
        match Running::start(&mut command)?.ended_within(RUN_TIMEOUT)? {
            None => Err(Failure::new("it does not end")),
            Some(status) => ended_well(status, &server.log),
        }
    }
}

/// What an application works against.
struct Server {
    address: String,
    /// Of each row.
    replica_count: usize,
    log: PathBuf,
}

/// What the programs share.
const COMMON: &str = "tests/applications/common";

const APPLICATIONS: &[Application] = &[
    Application::new("mapper", "tests/applications/mapper", &[COMMON, "tests/applications/mapper"], "Mapper"),
    Application::new(
        "liquibase",
        "tests/applications/liquibase",
        &[COMMON, "tests/applications/liquibase"],
        "Liquibase",
    ),
    Application::new("spring", "tests/applications/spring", &[COMMON, "tests/applications/spring"], "Spring"),
    Application::new(
        "migration",
        "tests/applications/migration",
        &[COMMON, "tests/applications/migration"],
        "Migration",
    ),
    Application { name: "stress", program: Program::Stress },
];

/// Runs the applications named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["install", "ring"])?;
    let names = &arguments.positional;
    if let Some(unknown) = names.iter().find(|name| APPLICATIONS.iter().all(|one| one.name != name.as_str()))
    {
        return Err(Failure::new(format!("there is no application {unknown}")));
    }
    let wanted = |one: &&Application| names.is_empty() || names.iter().any(|name| name == one.name);
    let mut tally = Tally::default();
    for application in APPLICATIONS.iter().filter(wanted) {
        println!("--- {}", application.name);
        application.install()?;
        if arguments.flag("install") {
            continue;
        }
        let ran = match arguments.flag("ring") {
            true => run_with_ring(application),
            false => run_with_node(application),
        };
        tally += match ran {
            Ok(()) => Tally::PASS,
            Err(failure) => {
                complain!("{}: {failure}", application.name);
                Tally::FAIL
            }
        };
    }
    Ok(tally)
}

fn run_with_node(application: &Application) -> Result<(), Failure> {
    let folder = fresh_folder(&format!("applications/{}", application.name))?;
    let node = Node::start(&NodeOptions::new(folder.join("data"), &["--memory", MEMORY]))?;
    let server = Server { address: node.address(), replica_count: 1, log: folder.join("data.log") };
    application.run(&server)?;
    node.stop()
}

fn run_with_ring(application: &Application) -> Result<(), Failure> {
    let folder = fresh_folder(&format!("applications/{}", application.name))?;
    let cluster = folder.join("cluster");
    let ring = Ring::start(&cluster, PORTS, &[])?;
    let log = cluster.join("node-1.log");
    application.run(&Server { address: ring.address(HOSTS[0]), replica_count: HOSTS.len(), log })
}
