//! `cargo xtask ring-history`: what clients of a ring saw while nodes were hurt, judged by porcupine.
//!
//! ```text
//!   clients   one writer and some readers of each row, at QUORUM, who note what they asked and saw, and when
//!   record    what they noted, as a file
//!   spoil     the same with a mistake in it, which the judge must find
//! ```
//!
//! Rows with one writer that gives growing timestamps are *linearizable* at `QUORUM`, and so is each row of the
//! history: every request seems to have been done at one moment between its question and its answer. The judge is
//! `porcupine`, a checker by others, in a small Go program (`tests/cluster/history`); `tests/cluster/README.md` says
//! what it takes a row to be. `ring-faults` checks more of what a row may show, and does so by our own reasoning: so
//! each is a check of the other.

mod clients;
mod record;
mod spoil;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::faults::harm::{Harm, hurt_all};
use super::faults::work::table;
use super::faults::{QUORUM, REPLICATION};
use super::{Ports, Ring};
use crate::arguments::Arguments;
use crate::languages::{go, install_go};
use crate::measure::statements;
use crate::node::fresh_folder;
use crate::report::{Failure, Tally, complain};
use clients::{Clients, Orders};
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

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["minutes", "rest", "rows", "readers", "seed", "short", "install"])?;
    install_go(FOLDER, PROGRAM)?;
    if arguments.flag("install") {
        return Ok(Tally::default());
    }
    let is_short = arguments.flag("short");
    let time = Duration::from_secs_f64(60.0 * arguments.value("minutes", if is_short { 0.0 } else { 5.0 })?);
    let rest = Duration::from_secs_f64(arguments.value("rest", if is_short { 0.7 } else { 3.0 })?);
    let folder = fresh_folder("ring-history")?;
    let ring = Ring::start(&folder.join("cluster"), PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    let keyspace = format!("CREATE KEYSPACE seen WITH replication = {REPLICATION}");
    statements(&hosts[0].cql, &[keyspace, table(ROWS)])?;
    let orders = Orders {
        hosts,
        table: ROWS.to_owned(),
        consistency: QUORUM,
        row_count: arguments.value("rows", 6)?,
        reader_count: arguments.value("readers", 3)?,
    };
    let clients = Clients::begin(&orders, arguments.value("seed", 1)?);
    let harms = hurt_all(&ring, &|| clients.answered_count(), time, rest)?;
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
    for spoiling in Spoiling::ALL {
        let file = folder.join(format!("history.{}", spoiling.name()));
        let Some(spoiled) = spoiling.spoil(history) else {
            check(false, format!("there is nothing to be spoiled by {}", spoiling.name()));
            continue;
        };
        std::fs::write(&file, spoiled.to_string())?;
        check(!is_linearizable(&file)?, format!("{} is taken for linearizable", file.display()));
    }
    let [write_count, delete_count, read_count] = counts;
    let summary = json!({
        "part": "history",
        "rows": history.row_count(),
        "writes": write_count,
        "deletes": delete_count,
        "reads": read_count,
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
