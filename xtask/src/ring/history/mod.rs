//! `cargo xtask ring-history`: what clients of a ring saw while nodes were hurt, judged by porcupine.
//!
//! ```text
//!   clients      one writer and some readers of each row, at QUORUM, who note what they asked and saw, and when
//!   contenders   clients that change rows by conditions, against each other: registers, locks, batches of two rows
//!   record       what they noted, as a file
//!   chain        our own judge of rows that are changed by conditions
//!   spoil        the same with a mistake in it, which the judges must find
//! ```
//!
//! Rows with one writer that gives growing timestamps are *linearizable* at `QUORUM`, and so are those that are changed
//! by conditions, read at `SERIAL` or `QUORUM`: every request of a row seems to have been done at one moment between
//! its question and its answer. The judge of all is `porcupine`, a checker by others, in a small Go program
//! (`tests/cluster/history`); `tests/cluster/README.md` says what it takes a row to be. Each has a second judge, by our
//! own reasoning: `ring-faults` checks more of what a row with one writer may show, `chain` the others.

mod chain;
mod clients;
mod contenders;
mod record;
mod spoil;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::faults::REPLICATION;
use super::faults::harm::{Harm, hurt_all};
use super::faults::work::table;
use super::{Ports, Ring};
use crate::arguments::Arguments;
use crate::languages::{go, install_go};
use crate::measure::statements;
use crate::node::fresh_folder;
use crate::report::{Failure, Tally, complain};
use clients::{Clients, Crowd, Orders};
use contenders::Game;
use record::{History, Kind};
use spoil::Spoiling;

const PORTS: Ports = Ports { cql: 19942, storage: 17900, management: 17999 };
const FOLDER: &str = "tests/cluster/history";
const PROGRAM: &str = "ring-history";
const ROWS: &str = "seen.rows";
/// What the program exits with when a history is not linearizable.
const REFUSED: i32 = 1;
/// So many of each kind of request are in a history at least, else it says nothing.
const COUNT_MIN: usize = 100;

/// How one run goes.
struct Plan {
    time: Duration,
    rest: Duration,
    crowd: Crowd,
}

/// Runs it, so many times.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    let known = ["minutes", "rest", "rows", "readers", "contended", "contenders", "seed", "runs"];
    arguments.only(&[&known[..], &["short", "install"]].concat())?;
    install_go(FOLDER, PROGRAM)?;
    if arguments.flag("install") {
        return Ok(Tally::default());
    }
    let is_short = arguments.flag("short");
    let minutes = arguments.value("minutes", if is_short { 0.0 } else { 5.0 })?;
    let plan = Plan {
        time: Duration::from_secs_f64(60.0 * minutes),
        rest: Duration::from_secs_f64(arguments.value("rest", if is_short { 0.7 } else { 3.0 })?),
        crowd: Crowd {
            row_count: arguments.value("rows", 6)?,
            reader_count: arguments.value("readers", 3)?,
            contended_count: arguments.value("contended", 1)?,
            contender_count: arguments.value("contenders", 4)?,
        },
    };
    let seed: u64 = arguments.value("seed", 1)?;
    let mut tally = Tally::default();
    for seed in seed..seed + arguments.value("runs", 1)? {
        tally += run_once(&plan, seed)?;
    }
    Ok(tally)
}

fn run_once(plan: &Plan, seed: u64) -> Result<Tally, Failure> {
    println!("--- seed {seed}");
    let folder = fresh_folder(&format!("ring-history/{seed}"))?;
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    let keyspace = format!("CREATE KEYSPACE seen WITH replication = {REPLICATION}");
    let tables = Game::ALL.map(|game| game.table().to_owned());
    statements(&hosts[0].cql, &[&[keyspace, table(ROWS)], &tables[..]].concat())?;
    let orders = Orders { hosts, table: ROWS.to_owned(), crowd: plan.crowd };
    let clients = Clients::begin(&orders, seed);
    let harms = hurt_all(&ring, &|| clients.answered_count(), plan.time, plan.rest)?;
    drop(ring);
    judge(&clients.end()?, &harms, &folder)
}

/// The history must be right, and wrong when it is spoiled.
fn judge(history: &History, harms: &[Harm], folder: &Path) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    let mut check = |holds: bool, complaint: String| match holds {
        true => tally += Tally::PASS,
        false => {
            complain!("ring-history: {complaint}");
            tally += Tally::FAIL;
        }
    };
    let counts = Kind::ALL.map(|kind| history.count(kind));
    check(
        counts.iter().all(|count| *count >= COUNT_MIN),
        format!("too little to be judged: {counts:?} of {:?}", Kind::ALL),
    );
    let file = folder.join("history");
    std::fs::write(&file, history.to_string())?;
    check(is_linearizable(&file)?, format!("{} is not linearizable", file.display()));
    let judged = chain::judge(history);
    check(judged.is_ok(), format!("{} has what can not be: {judged:?}", file.display()));
    for spoiling in Spoiling::ALL {
        let file = folder.join(format!("history.{}", spoiling.name()));
        let Some(spoiled) = spoiling.spoil(history) else {
            check(false, format!("there is nothing to be spoiled by {}", spoiling.name()));
            continue;
        };
        std::fs::write(&file, spoiled.to_string())?;
        let is_refused = !is_linearizable(&file)?;
        check(is_refused, format!("{} is taken for linearizable", file.display()));
        if spoiling.is_of_changes() {
            check(chain::judge(&spoiled).is_err(), format!("{} is a chain to us", file.display()));
        }
        if is_refused {
            // With its drawing it is five times what was seen, and of no more use.
            std::fs::remove_file(&file)?;
            std::fs::remove_file(file.with_extension(format!("{}.html", spoiling.name())))?;
        }
    }
    let [write_count, delete_count, read_count, change_count, refusal_count] = counts;
    let summary = json!({
        "part": "history",
        "rows": history.row_count(),
        "writes": write_count,
        "deletes": delete_count,
        "reads": read_count,
        "changes": change_count,
        "refusals": refusal_count,
        "outcome_unknown": history.open_count(),
        "harms": harms.len(),
        "longest_still_ms": harms.iter().map(Harm::still_ms).max(),
    });
    println!("summary {summary}");
    Ok(tally)
}

/// What the program says of a file.
fn is_linearizable(file: &Path) -> Result<bool, Failure> {
    let mut program: Command = go(PROGRAM);
    let status = program.arg(file).status()?;
    match status.code() {
        Some(0) => Ok(true),
        Some(REFUSED) => Ok(false),
        _ => Err(Failure::new(format!("{PROGRAM} {}: {status}", file.display()))),
    }
}
