//! `cargo xtask instructions`: what a request costs, in instructions that the server's process executes.
//!
//! A node with one shard runs under `callgrind` (valgrind), which counts. It is filled uncounted; then a client
//! keeps 16 requests in flight on each of 4 connections for some seconds, and what was counted meanwhile is divided
//! by the requests. Sixteen are done in one turn: of more, a turn that valgrind makes fifty times longer would
//! leave some over at its end, and copy them. Two runs of one binary differ by a few in a thousand, on a busy
//! machine too; so a binary can be held against another (`--against`) by the percent. What the client asks before
//! it measures (the nodes, the schema, statements to prepare) is counted with it, some hundred requests of tens of
//! thousands.
//!
//! Rows of a scan are put together of several files and the memtable: they are updated between flushes. Scans come one
//! at a time, of ten rows each, from one row's token after the other's.

use std::path::Path;
use std::process::Command;

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Pace};
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::peers::output;
use crate::report::{Failure, Tally, complain};

/// The statements that are counted, unless told: each with its workload and what it is there.
const STATEMENTS: &[(&str, &str, &str)] = &[
    ("read", "rows", "reads"),
    ("small", "small", "reads"),
    ("update", "rows", "updates"),
    ("insert", "rows", "inserts"),
    (SCAN, "rows", "scans"),
];
/// Scans merge what several files hold of a row, so that they are counted over files.
const SCAN: &str = "scan";
/// Of the rows, so many are updated between two flushes before they are scanned.
const UPDATED_SHARE: u64 = 4;
/// Updates come in so many seconds.
const UPDATING_S: u64 = 10;
/// Flushes before rows are scanned. The last updates stay in memory.
const FLUSHES: usize = 3;
const CONNECTIONS: u64 = 4;
/// Sixteen of each connection.
const IN_FLIGHT: Pace = Pace::InFlight(64);
/// More than the other binary's by this share fails the run.
const MOST_MORE: f64 = 0.01;

/// Rows of the table, unless told. Of 20,000 a memtable's tree has one level more or less, as they happen to come.
const ROWS: u64 = 12_000;

struct Plan {
    rows: u64,
    seconds: u64,
    memory: String,
}

/// Counts each statement, for one binary or two.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rows", "seconds", "memory", "statements", "against"])?;
    let plan = Plan {
        rows: arguments.value("rows", ROWS)?,
        seconds: arguments.value("seconds", 20)?,
        memory: arguments.text("memory").unwrap_or("1GiB").to_owned(),
    };
    output(Command::new("valgrind").arg("--version"))?;
    println!("{} rows, {} s a statement, instructions for each operation", plan.rows, plan.seconds);
    let binary = binary()?;
    let mut tally = Tally::default();
    for statement in STATEMENTS.iter().filter(|(name, ..)| arguments.picks("statements", name)) {
        let ours = count(&plan, &binary, statement)?;
        let against = arguments.text("against").map(|other| count(&plan, Path::new(other), statement));
        tally += judge(statement.0, ours, against.transpose()?);
    }
    Ok(tally)
}

fn judge(statement: &str, ours: f64, against: Option<f64>) -> Tally {
    let Some(other) = against else {
        println!("{statement:<8} {ours:>8.0}");
        return Tally::PASS;
    };
    let more = ours / other - 1.0;
    println!("{statement:<8} {ours:>8.0}, against {other:.0}: {:+.1}%", 100.0 * more);
    if more <= MOST_MORE {
        return Tally::PASS;
    }
    complain!("{statement}: {:.1}% more instructions", 100.0 * more);
    Tally::FAIL
}

/// Instructions for each operation of a statement.
fn count(plan: &Plan, binary: &Path, statement: &(&str, &str, &str)) -> Result<f64, Failure> {
    let (name, workload, setting) = *statement;
    let folder = fresh_folder("instructions")?;
    let counted = folder.join("callgrind.out");
    let words = ["--shards", "1", "--commitlog-sync", "periodic", "--memory", &plan.memory];
    let options = NodeOptions::new(folder.join("data"), &words);
    let node = Node::start_as(under_callgrind(binary, &counted), &options)?;
    let load = Load::new(workload, &node.address(), IN_FLIGHT).with("keyspace", "counted");
    let load = load.with("rows", plan.rows).with("warmup", 0).with("connections", CONNECTIONS);
    load.clone().fill()?;
    let load = load.has_rows();
    if name == SCAN {
        spread(plan, &node, &load)?;
    }
    let load = load.mix(&[(setting, 1)]).with("seconds", plan.seconds);
    counting(&node, "on")?;
    let measured = match name {
        SCAN => one_by_one(&load)?,
        _ => load.run()?,
    };
    counting(&node, "off")?;
    node.stop()?;
    if measured.failed() > 0 {
        return Err(Failure::new(format!("{name}: {} failed: {}", measured.failed(), measured.faults())));
    }
    let instructions = total(&std::fs::read_to_string(&counted)?)?;
    fresh_folder("instructions")?;
    Ok(instructions / measured.count())
}

/// Has rows lie in several files and in memory.
fn spread(plan: &Plan, node: &Node, load: &Load) -> Result<(), Failure> {
    let rate = (plan.rows / UPDATED_SHARE / UPDATING_S) as f64;
    let updating = load.clone().mix(&[("updates", 1)]).at(Pace::Rate(rate)).with("seconds", UPDATING_S);
    for _ in 0..FLUSHES {
        node.nodetool(&["flush"])?;
        updating.run()?;
    }
    Ok(())
}

/// How much a scan does depends on where it begins: one after the other, and always in the same order.
fn one_by_one(load: &Load) -> Result<Measured, Failure> {
    load.clone().set("choice", "sequence").with("connections", 1).at(Pace::InFlight(1)).run()
}

fn under_callgrind(binary: &Path, counted: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--instr-atstart=no", "--fair-sched=yes"]);
    command.arg(format!("--callgrind-out-file={}", counted.display())).arg(binary);
    command
}

/// Has callgrind count, or stop to count.
fn counting(node: &Node, on_or_off: &str) -> Result<(), Failure> {
    let process_id = node.process_id().to_string();
    // Its words, on both streams, would stand between the figures.
    let told = Command::new("callgrind_control").args(["-i", on_or_off, &process_id]).output()?;
    match told.status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("callgrind_control: {}", String::from_utf8_lossy(&told.stderr)))),
    }
}

/// The sum at the end of callgrind's output: `totals: 123`.
fn total(text: &str) -> Result<f64, Failure> {
    let totals = text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse().ok());
    totals.ok_or_else(|| Failure::new("callgrind's output has no totals"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_the_last_line_of_its_kind() {
        assert_eq!(total("events: Ir\nfn=a\n1 2\ntotals: 42\n").unwrap(), 42.0);
        assert!(total("events: Ir\n").is_err());
    }

    #[test]
    fn half_a_percent_more_passes_and_two_fail() {
        assert_eq!(judge("read", 100.5, Some(100.0)), Tally::PASS);
        assert_eq!(judge("read", 102.0, Some(100.0)), Tally::FAIL);
        assert_eq!(judge("read", 102.0, None), Tally::PASS);
    }
}
