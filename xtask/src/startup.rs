//! `cargo xtask startup`: how long until the first query after a start, and what an idle node holds.
//!
//! For each number of tables a node is started in an empty folder, the tables are made (and rows written
//! with `--gigabytes`), the node is stopped cleanly, and then started again several times. A start is timed
//! from before the program is run until the answer to a first query of a table is there. Without tables the
//! folder is empty at each start: everything that a node is made of is made. Idle memory is what is resident
//! after a rest. The page cache is warm: a disk's own latency is not in the figure.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::kernel::rss_bytes;
use crate::lab::{Load, Pace};
use crate::measure::{Aim, Ceiling, keyspace, mebibytes, median, statements};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::report::{Failure, Tally};

/// After a start, until memory is looked at.
const REST: Duration = Duration::from_secs(3);
const REST_SHORT: Duration = Duration::from_secs(1);
/// With an empty directory, the first query and idle memory.
const EMPTY_START: Aim = Aim::AtMost(50.0);
const IDLE_MEMORY: Ceiling = Ceiling { most: 200.0, aim: 50.0 };
/// With so many tables, and 10 GB if they were asked for.
const SOME_TABLES: u64 = 100;
const SOME_TABLES_START: Aim = Aim::AtMost(1000.0);
/// Kibibytes for each table.
const TABLE_COST: Ceiling = Ceiling { most: 2000.0, aim: 200.0 };
/// Fewer tell noise apart from tables.
const TABLES_TOLD_MIN: u64 = 1000;
/// Rows of 1 KB in a gigabyte.
const ROWS_PER_GIGABYTE: f64 = 1e6;

struct Plan {
    gigabytes: f64,
    turns: u64,
    rest: Duration,
    memory: String,
}

/// What one number of tables gave.
struct Found {
    tables: u64,
    made_seconds: f64,
    first_query_ms: f64,
    least_ms: f64,
    made_bytes: u64,
    idle_bytes: u64,
}

/// Runs it for each of `--tables`.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["tables", "gigabytes", "turns", "memory", "short"])?;
    let short = arguments.flag("short");
    let plan = Plan {
        gigabytes: arguments.value("gigabytes", 0.0)?,
        turns: arguments.value("turns", if short { 3 } else { 5 })?,
        rest: if short { REST_SHORT } else { REST },
        memory: arguments.text("memory").unwrap_or("1GiB").to_owned(),
    };
    let mut counts = arguments.list("tables");
    if counts.is_empty() {
        let all: &[&str] = if short { &["0", "100"] } else { &["0", "100", "10000"] };
        counts = all.iter().map(|count| (*count).to_owned()).collect();
    }
    let mut all: Vec<Found> = Vec::new();
    for count in &counts {
        let tables = count.parse().map_err(|_| Failure::new(format!("'{count}' is no number")))?;
        all.push(measure(&plan, tables)?);
        println!("{}", line(&all[all.len() - 1]));
    }
    Ok(report(&plan, &all))
}

fn measure(plan: &Plan, tables: u64) -> Result<Found, Failure> {
    let folder = fresh_folder("startup")?;
    let options = options(plan, &folder);
    let node = Node::start(&options)?;
    let begun = Instant::now();
    make_tables(&node, tables)?;
    let made_seconds = begun.elapsed().as_secs_f64();
    if tables == SOME_TABLES && plan.gigabytes > 0.0 {
        fill(plan, &node)?;
    }
    std::thread::sleep(plan.rest);
    let made_bytes = rss_bytes(node.process_id())?;
    node.stop()?;
    let (mut times, mut idle) = (Vec::new(), 0);
    for _ in 0..plan.turns.max(1) {
        if tables == 0 {
            fresh_folder("startup")?;
        }
        let begun = Instant::now();
        let node = Node::start(&options)?;
        first_query(&node, tables)?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        println!("        {tables} tables: {:.1} ms", times[times.len() - 1]);
        std::thread::sleep(plan.rest);
        idle = idle.max(rss_bytes(node.process_id())?);
        node.stop()?;
    }
    fresh_folder("startup")?;
    let least_ms = times.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Found { tables, made_seconds, first_query_ms: median(times), least_ms, made_bytes, idle_bytes: idle })
}

fn options(plan: &Plan, folder: &Path) -> NodeOptions {
    NodeOptions::new(folder.join("data"), &["--memory", &plan.memory])
}

fn make_tables(node: &Node, tables: u64) -> Result<(), Failure> {
    let mut texts = vec![keyspace("startup")];
    for index in 0..tables {
        texts.push(format!("CREATE TABLE startup.t{index} (id bigint PRIMARY KEY, a text, b int)"));
    }
    statements(&node.address(), &texts)
}

fn fill(plan: &Plan, node: &Node) -> Result<(), Failure> {
    let rows = (plan.gigabytes * ROWS_PER_GIGABYTE) as u64;
    let load = Load::new("rows", &node.address(), Pace::InFlight(1)).with("keyspace", "startup");
    let found = load.with("rows", rows).fill()?;
    println!("{} GB in {:.0} s", plan.gigabytes, found.seconds());
    node.nodetool(&["flush"])?;
    Ok(())
}

fn first_query(node: &Node, tables: u64) -> Result<(), Failure> {
    let text = match tables.checked_sub(1) {
        None => "SELECT key FROM system.local".to_owned(),
        Some(last) => format!("SELECT a, b FROM startup.t{last} WHERE id = 1"),
    };
    statements(&node.address(), &[text])
}

fn line(found: &Found) -> String {
    format!(
        "{:>7} tables: made in {:.1} s, then {:.1} MiB; first query {:.1} ms after a start (least {:.1}), \
         idle {:.1} MiB",
        found.tables,
        found.made_seconds,
        mebibytes(found.made_bytes),
        found.first_query_ms,
        found.least_ms,
        mebibytes(found.idle_bytes)
    )
}

fn report(plan: &Plan, all: &[Found]) -> Tally {
    println!("\nmedians of {} starts, {} GB beside {SOME_TABLES} tables", plan.turns, plan.gigabytes);
    let mut tally = Tally::default();
    let mut say = |what: String, (words, outcome): (String, Tally)| {
        println!("{what} ({words})");
        tally += outcome;
    };
    for found in all {
        let words = match found.tables {
            0 => EMPTY_START.words(found.first_query_ms, " ms"),
            SOME_TABLES => SOME_TABLES_START.words(found.first_query_ms, " ms"),
            _ => "no aim".to_owned(),
        };
        say(
            format!("first query with {} tables: {:.1} ms", found.tables, found.first_query_ms),
            (words, Tally::PASS),
        );
    }
    let Some(empty) = all.iter().find(|found| found.tables == 0) else { return tally };
    let idle = mebibytes(empty.idle_bytes);
    say(format!("idle memory without tables: {idle:.1} MiB"), IDLE_MEMORY.judge(idle, "MiB"));
    for found in all.iter().filter(|found| found.tables >= TABLES_TOLD_MIN) {
        for (when, bytes, base) in [
            ("just made", found.made_bytes, empty.made_bytes),
            ("after a start", found.idle_bytes, empty.idle_bytes),
        ] {
            let kilobytes = (bytes as f64 - base as f64) / 1024.0 / found.tables as f64;
            say(
                format!("a table of {}, {when}: {kilobytes:.1} KiB", found.tables),
                TABLE_COST.judge(kilobytes, "KiB"),
            );
        }
    }
    tally
}
