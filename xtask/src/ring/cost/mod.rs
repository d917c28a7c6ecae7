//! `cargo xtask ring-cost`: what an operation costs a ring, in CPU time of all its nodes together.
//!
//! Three nodes of one shard each, on loopback, and a client that keeps so many requests in flight for every node. Both
//! sides sync their commit logs periodically and have their memory before
//! they are measured. Server and client share the cores, so the figure is CPU time (user and system, from
//! `/proc/PID/stat`) for an operation; what is compared takes turns in every round, and medians are held against each
//! other. Before the first round both work for a while that is not counted, Cassandra longer: a JVM has to get warm.
//!
//! ```text
//!   target      nodes that are filled and driven together; what was measured of them
//!   cassandra   its ring of three
//!   beside      RF 3 at QUORUM: YCSB's load, C, A and U, ours and Cassandra's in turns
//!   agreed      the same of conditional changes and counters, by clients that ask one thing after the other
//!   alone       ours: replicas and levels on the same nodes, a ring of one, a lone node
//!   table       medians, aims, what is printed and kept
//! ```
//!
//! A missed aim is told and does not fail, since speed is no test; a failed operation of ours does.

mod agreed;
mod alone;
mod beside;
mod table;
mod target;

use std::path::Path;

use serde_json::json;

use super::Ports;
use crate::arguments::Arguments;
use crate::node::fresh_folder;
use crate::report::{Failure, Tally};

/// No other judge has them.
const PORTS: Ports = Ports { cql: 19742, storage: 17700, management: 17799 };

/// What is run, from the command line.
struct Plan {
    rounds: u64,
    seconds: u64,
    warmup: u64,
    /// For so long Cassandra works before the first round.
    jvm_seconds: u64,
    rows: u64,
    /// Requests in flight on each node.
    in_flight: u64,
    /// Of each of our nodes.
    memory: String,
    /// Of each of Cassandra's.
    heap: String,
    profile: String,
    has_cassandra: bool,
}

impl Plan {
    fn of(arguments: &Arguments) -> Result<Plan, Failure> {
        let short = arguments.flag("short");
        let pick = |long: u64, brief: u64| if short { brief } else { long };
        let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
        Ok(Plan {
            rounds: arguments.value("rounds", pick(3, 1))?,
            seconds: arguments.value("seconds", pick(10, 2))?,
            warmup: arguments.value("warmup", pick(3, 1))?,
            jvm_seconds: arguments.value("jvm-seconds", pick(180, 2))?,
            rows: arguments.value("rows", pick(100_000, 5_000))?,
            in_flight: arguments.value("in-flight", 64)?,
            memory: text("memory", "1GiB"),
            heap: text("heap", "1G"),
            profile: text("profile", "latest"),
            has_cassandra: !arguments.flag("without-cassandra"),
        })
    }

    /// What every node of ours is started with, as words of `serve`.
    fn settings(&self) -> [(&'static str, &str); 2] {
        [("commitlog-sync", "periodic"), ("memory-pretouch", "true")]
    }
}

/// Measures, prints the tables.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "short",
        "only",
        "without-cassandra",
        "rounds",
        "seconds",
        "warmup",
        "jvm-seconds",
        "rows",
        "in-flight",
        "memory",
        "heap",
        "profile",
        "out",
    ])?;
    let plan = Plan::of(arguments)?;
    fresh_folder("ring-cost")?;
    let mut lines = Vec::new();
    if arguments.picks("only", "beside") {
        lines.extend(beside::measure(&plan)?);
    }
    if arguments.picks("only", "agreed") {
        lines.extend(agreed::measure(&plan)?);
    }
    if arguments.picks("only", "alone") {
        lines.extend(alone::measure(&plan)?);
    }
    fresh_folder("ring-cost")?;
    if let Some(path) = arguments.text("out") {
        let kept: Vec<_> = lines.iter().map(table::Line::kept).collect();
        std::fs::write(Path::new(path), serde_json::to_string_pretty(&json!(kept))?)?;
    }
    println!(
        "\n{} rows of 1 KB, {} in flight on each node, {} s each, both sides periodic sync, medians of {}; µs of server \
         CPU for an operation, p50 and p99 in ms\n",
        plan.rows, plan.in_flight, plan.seconds, plan.rounds
    );
    Ok(table::report(&lines))
}
