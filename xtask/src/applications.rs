//! `cargo xtask applications`: Java applications that others wrote, as they are, at work against Peristyle.
//!
//! What each does, and what must hold, stands in `tests/applications/README.md`. Here they are installed
//! (under `.peers/`, from Maven's registry), compiled and run, each against a node of its own.

use std::time::Duration;

use crate::arguments::Arguments;
use crate::languages::Java;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::process::{Running, ended_well, root};
use crate::report::{Failure, Tally, complain};

const RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// Of the node.
const MEMORY: &str = "256MiB";

/// A program around an application.
struct Application {
    name: &'static str,
    java: Java,
}

impl Application {
    /// That of a folder, which has its sources beside its `pom.xml`, and of what it shares.
    const fn new(
        name: &'static str,
        pom: &'static str,
        sources: &'static [&'static str],
        class: &'static str,
    ) -> Application {
        Application { name, java: Java { pom, sources, class } }
    }
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
];

/// Runs the applications named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["install"])?;
    let names = &arguments.positional;
    if let Some(unknown) = names.iter().find(|name| APPLICATIONS.iter().all(|one| one.name != name.as_str()))
    {
        return Err(Failure::new(format!("there is no application {unknown}")));
    }
    let wanted = |one: &&Application| names.is_empty() || names.iter().any(|name| name == one.name);
    let mut tally = Tally::default();
    for application in APPLICATIONS.iter().filter(wanted) {
        println!("--- {}", application.name);
        application.java.install()?;
        if arguments.flag("install") {
            continue;
        }
        tally += match run_with_node(application) {
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
    let mut command = application.java.command();
    command.env("PERISTYLE_ADDRESS", node.address()).current_dir(root());
    match Running::start(&mut command)?.ended_within(RUN_TIMEOUT)? {
        None => Err(Failure::new("it does not end")),
        Some(status) => ended_well(status, &folder.join("data.log")).and_then(|()| node.stop()),
    }
}
