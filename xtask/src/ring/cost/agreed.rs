//! Conditional changes and counters, three replicas at QUORUM: ours and Cassandra's in turns, and beside plain writes.
//!
//! Clients ask one thing after the other, each through a node that may be no replica, or not the one that decides: so
//! a client of such statements has it.

use super::Plan;
use super::beside::Rings;
use super::table::{Line, Side, announce};
use super::target::{Measured, Work, drive, fill, warm};
use crate::measure::Aim;
use crate::report::Failure;

const REPLICAS: usize = 3;
/// Partitions, where they are many.
const ROWS: u64 = 1_000;
const KEYSPACE: &str = "agreed";

/// What is asked by so many clients of so many partitions, and how many times less CPU than Cassandra ours ought to
/// need, and how many times as much as a plain write.
struct Workload {
    name: &'static str,
    statement: &'static str,
    clients: u64,
    rows: u64,
    least: Option<f64>,
    most: Option<f64>,
}

const fn workload(name: &'static str, statement: &'static str, clients: u64, rows: u64) -> Workload {
    Workload { name, statement, clients, rows, least: None, most: None }
}

/// The first is what others are held against.
const WORKLOADS: [Workload; 7] = [
    workload("plain writes", "small-insert", 64, ROWS),
    Workload { least: Some(20.0), most: Some(3.0), ..workload("IF, one partition", "if", 64, 1) },
    Workload { least: Some(20.0), most: Some(3.0), ..workload("IF, 1,000 partitions", "if", 64, ROWS) },
    workload("IF, one client", "if", 1, ROWS),
    workload("one counter", "count", 64, 1),
    workload("one counter, 256 clients", "count", 256, 1),
    workload("1,000 counters", "count", 64, ROWS),
];

/// Measures both; without Cassandra ours alone.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Line>, Failure> {
    let rings = Rings::start(plan)?;
    let all = rings.all();
    for nodes in &all {
        warm(*nodes, plan, REPLICAS)?;
        for statement in ["if", "count"] {
            fill(*nodes, plan, work(statement, ROWS), REPLICAS)?;
        }
        // Cassandra's conditions and counters get warm, too; ours is asked the same.
        for statement in ["if", "count"] {
            drive(*nodes, plan, Work { clients: Some(64), ..work(statement, ROWS) })?;
        }
    }
    let mut found: Vec<Vec<Vec<Measured>>> = vec![vec![Vec::new(); WORKLOADS.len()]; all.len()];
    for round in 1..=plan.rounds {
        announce("agreed", round, plan)?;
        for (index, Workload { statement, clients, rows, .. }) in WORKLOADS.iter().enumerate() {
            for (nodes, found) in all.iter().zip(&mut found) {
                let work = Work { clients: Some(*clients), ..work(statement, *rows) };
                found[index].push(drive(*nodes, plan, work)?);
            }
        }
    }
    Ok(lines(found))
}

fn work(statement: &str, rows: u64) -> Work<'_> {
    Work { keyspace: KEYSPACE, statement, level: "QUORUM", rows, clients: None }
}

fn lines(found: Vec<Vec<Vec<Measured>>>) -> Vec<Line> {
    let mut found = found.into_iter();
    let ours = found.next().unwrap_or_default();
    let theirs = found.next();
    let side = |name: &str, runs: &[Measured]| Side { name: name.to_owned(), runs: runs.to_vec() };
    let beside = |(index, workload): (usize, &Workload)| Line {
        table: "RF 3 at QUORUM, by clients that wait",
        name: workload.name.to_owned(),
        ours: side("ring of three", &ours[index]),
        against: theirs.as_ref().map(|theirs| side("Cassandra's", &theirs[index])),
        aim: workload.least.map(Aim::AtLeast),
    };
    let held = |(index, workload): (usize, &Workload)| {
        Some(Line {
            table: "against plain writes",
            name: workload.name.to_owned(),
            ours: side("ring of three", &ours[index]),
            against: Some(side("plain writes", &ours[0])),
            aim: Some(Aim::AtMost(workload.most?)),
        })
    };
    let all = || WORKLOADS.iter().enumerate();
    all().map(beside).chain(all().filter_map(held)).collect()
}
