//! `cargo xtask ring-faults`: rings of real processes that are hurt, under clients who know what they were promised.
//!
//! ```text
//!   ycsb          YCSB A at QUORUM on three replicas, while nodes are killed, paused and cut off in turn
//!   datacenters   two data centres of two racks: each goes on at LOCAL_QUORUM while the other is cut off
//!   disk          a node's disk is full: the others go on, and it has what it missed once there is room
//!   away          a node is away while others are written to, and is sent what it missed from their logs
//!   replace       a node loses its disk under writes, and an empty one takes its place
//!   recover       two of three voters are lost for good, and the ring goes on by force
//!   client        a request goes to one node; which one lost it is known
//!   work          writers who know what each of their rows may hold
//!   harm          what was done to which node when, and which lost requests that excuses
//!   contents      what each node has by itself, row by row
//! ```
//!
//! A verdict for each part, and its figures as one line of JSON (`--out FILE` keeps them).

mod away;
pub(super) mod client;
mod contents;
mod datacenters;
mod disk;
pub(super) mod harm;
mod recover;
mod replace;
pub(super) mod work;
mod ycsb;

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Ports;
use crate::arguments::Arguments;
use crate::node::fresh_folder;
use crate::report::{Failure, Tally, complain};

/// No other judge has them.
const PORTS: Ports = Ports { cql: 19842, storage: 17800, management: 17899 };
pub(super) const QUORUM: u16 = 4;
pub(super) const REPLICATION: &str = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}";
/// How long replicas may take to become equal by themselves.
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// What a harm takes besides its rests: a process that ends and starts.
const HARM_SECONDS: u64 = 1;
/// So many examples are told.
const EXAMPLES: usize = 3;

/// What is run, from the command line.
struct Plan {
    time: Duration,
    rest: Duration,
    ycsb_rows: u64,
    seed: u64,
}

impl Plan {
    fn of(arguments: &Arguments) -> Result<Plan, Failure> {
        let short = arguments.flag("short");
        let seconds = |minutes: f64| Duration::from_secs_f64(60.0 * minutes);
        Ok(Plan {
            time: seconds(arguments.value("minutes", if short { 0.0 } else { 10.0 })?),
            rest: Duration::from_secs_f64(arguments.value("rest", if short { 1.5 } else { 5.0 })?),
            ycsb_rows: arguments.value("rows", if short { 2_000 } else { 20_000 })?,
            seed: arguments.value("seed", 1)?,
        })
    }

    /// How long data centres stay apart, at least.
    fn apart(&self) -> Duration {
        3 * self.rest
    }

    /// How long a node is away, at least.
    fn away(&self) -> Duration {
        (self.time / 10).max(3 * self.rest)
    }

    /// How long the harms of [`harm::hurt_all`] last at most.
    fn harm_time(&self) -> Duration {
        let turn = 9 * (2 * self.rest + Duration::from_secs(HARM_SECONDS));
        self.time + turn
    }
}

/// What was checked in a part, and its figures.
#[derive(Default)]
struct Verdict {
    tally: Tally,
    complaints: Vec<String>,
    summary: Value,
}

impl Verdict {
    fn check(&mut self, holds: bool, complaint: impl FnOnce() -> String) {
        if holds {
            self.tally += Tally::PASS;
        } else {
            self.tally += Tally::FAIL;
            self.complaints.push(complaint());
        }
    }
}

/// `17 rows of node 2, such as …`.
fn such(what: &str, all: &[impl Debug]) -> String {
    format!("{} {what}, such as {:?}", all.len(), &all[..all.len().min(EXAMPLES)])
}

struct Part {
    name: &'static str,
    run: fn(&Plan, &Path) -> Result<Verdict, Failure>,
}

const PARTS: &[Part] = &[
    Part { name: "ycsb", run: ycsb::run },
    Part { name: "datacenters", run: datacenters::run },
    Part { name: "disk", run: disk::run },
    Part { name: "away", run: away::run },
    Part { name: "replace", run: replace::run },
    Part { name: "recover", run: recover::run },
];

/// Runs the parts named, or all.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["minutes", "rest", "rows", "seed", "short", "out"])?;
    let names = &arguments.positional;
    if let Some(name) = names.iter().find(|name| PARTS.iter().all(|part| part.name != **name)) {
        return Err(Failure::new(format!("there is no part '{name}'")));
    }
    let plan = Plan::of(arguments)?;
    let mut tally = Tally::default();
    let mut summaries = Vec::new();
    for part in PARTS.iter().filter(|part| names.is_empty() || names.iter().any(|name| name == part.name)) {
        println!("--- {}", part.name);
        let folder = fresh_folder(&format!("ring-faults/{}", part.name))?;
        match (part.run)(&plan, &folder) {
            Ok(verdict) => {
                verdict.complaints.iter().for_each(|complaint| complain!("{}: {complaint}", part.name));
                tally += verdict.tally;
                println!("summary {}", verdict.summary);
                summaries.push(verdict.summary);
            }
            Err(failure) => {
                complain!("{}: {failure}", part.name);
                tally += Tally::FAIL;
            }
        }
    }
    if let Some(path) = arguments.text("out") {
        std::fs::write(path, serde_json::to_string_pretty(&json!(summaries))?)?;
    }
    Ok(tally)
}
