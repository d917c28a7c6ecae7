//! `cargo xtask limits`: how far the server is from what loopback itself allows.
//!
//! The same client (`lab/load`, an event loop on a thread) sends the same prepared reads to three servers in
//! turns: ours; an *echo* server that has no database and answers each request with as many bytes as ours
//! did; and a *replayer* that learnt one answer from ours and replays it. Operations per second of server
//! CPU are compared. Pipelined means many requests in flight on few connections, so that frames share
//! system calls; with one in flight on each of many connections each request pays for its own.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::arguments::Arguments;
use crate::measure::{Aim, build_load, load, loaded, median, number};
use crate::node::{Node, NodeOptions, free_port, fresh_folder};
use crate::report::{Failure, Tally, complain};

const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// How requests are in flight.
struct Pattern {
    name: &'static str,
    connections: u64,
    window: u64,
    /// The share of the echo server's rate that ours ought to reach.
    echo_aim: Aim,
}

const PATTERNS: &[Pattern] = &[
    Pattern { name: "pipelined", connections: 4, window: 64, echo_aim: Aim::AtLeast(0.50) },
    Pattern { name: "one each", connections: 64, window: 1, echo_aim: Aim::AtLeast(0.70) },
];
/// The share of the replayer's rate that ours ought to reach.
const REPLAY_AIM: Aim = Aim::AtLeast(0.25);

/// What is read: a row of 16 bytes, and YCSB C's row of 1 KB.
const STATEMENTS: &[&str] = &["small", "read"];

struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    rounds: u64,
    threads: u64,
    memory: String,
}

/// A server of `lab/load`; killed when dropped.
pub(crate) struct Limit {
    child: Child,
    pub(crate) port: u16,
}

impl Limit {
    /// An `echo` or a `replay`, on a port of its own.
    pub(crate) fn start(kind: &str, words: &[String]) -> Result<Limit, Failure> {
        let port = free_port()?;
        let mut command = load(&[kind, &format!("port={port}")]);
        let child = command.args(words).stdin(Stdio::null()).spawn()?;
        let limit = Limit { child, port };
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > START_TIMEOUT {
                return Err(Failure::new(format!("the {kind} server does not answer")));
            }
            std::thread::sleep(POLL);
        }
        Ok(limit)
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the client found of one server, round by round.
#[derive(Default)]
struct Found {
    results: Vec<Value>,
}

impl Found {
    fn middle(&self, name: &str) -> f64 {
        median(self.results.iter().map(|result| number(result, name)))
    }

    fn failed(&self) -> f64 {
        let all = |name| self.results.iter().map(move |result| number(result, name));
        all("errors").chain(all("overloaded")).chain(all("closed")).sum()
    }
}

/// Runs all patterns with all statements.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rows", "seconds", "warmup", "rounds", "threads", "memory", "statements", "short"])?;
    let short = arguments.flag("short");
    let pick = |long: u64, brief: u64| if short { brief } else { long };
    let plan = Plan {
        rows: arguments.value("rows", pick(100_000, 10_000))?,
        seconds: arguments.value("seconds", pick(10, 2))?,
        warmup: arguments.value("warmup", pick(3, 1))?,
        rounds: arguments.value("rounds", pick(3, 1))?,
        threads: arguments.value("threads", 1)?,
        memory: arguments.text("memory").unwrap_or("1GiB").to_owned(),
    };
    build_load()?;
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory];
    let data = fresh_folder("limits")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    println!(
        "{} rows, {} s a run, medians of {}, operations per second of server CPU",
        plan.rows, plan.seconds, plan.rounds
    );
    println!(
        "{:<9} {:<10} {:>11} {:>11} {:>11} {:>7} {:>8}  ours/echo, ours/replay",
        "statement", "in flight", "ours", "echo", "replay", "bytes", "p99 us"
    );
    let mut tally = Tally::default();
    for statement in STATEMENTS.iter().filter(|statement| arguments.picks("statements", statement)) {
        fill(&plan, &node, statement)?;
        for pattern in PATTERNS {
            tally += measure(&plan, &node, statement, pattern)?;
        }
    }
    node.stop()?;
    fresh_folder("limits")?;
    Ok(tally)
}

fn fill(plan: &Plan, node: &Node, statement: &str) -> Result<(), Failure> {
    let (port, rows) = (format!("port={}", node.port), format!("rows={}", plan.rows));
    loaded(&["fill", &port, &format!("statement={statement}"), &rows]).map(|_| ())
}

fn measure(plan: &Plan, node: &Node, statement: &str, pattern: &Pattern) -> Result<Tally, Failure> {
    let (mut ours, mut echo, mut replay) = (Found::default(), Found::default(), Found::default());
    for _ in 0..plan.rounds {
        ours.results.push(drive(plan, statement, pattern, node.port, node.process_id())?);
        let bytes = ours.middle("answer_bytes");
        let limit = Limit::start("echo", &[format!("answer_bytes={bytes:.0}")])?;
        echo.results.push(drive(plan, statement, pattern, limit.port, limit.child.id())?);
        let limit = Limit::start("replay", &[format!("upstream={}", node.port)])?;
        replay.results.push(drive(plan, statement, pattern, limit.port, limit.child.id())?);
    }
    let rates = [&ours, &echo, &replay].map(|found| found.middle("ops_per_core_s"));
    let (of_echo, of_replay) = (rates[0] / rates[1], rates[0] / rates[2]);
    println!(
        "{statement:<9} {:<10} {:>11.0} {:>11.0} {:>11.0} {:>7.0} {:>8.0}  {of_echo:.2} ({}), {of_replay:.2} ({})",
        pattern.name,
        rates[0],
        rates[1],
        rates[2],
        ours.middle("answer_bytes"),
        ours.middle("p99_us"),
        pattern.echo_aim.words(of_echo, ""),
        REPLAY_AIM.words(of_replay, ""),
    );
    let failed = ours.failed() + echo.failed() + replay.failed();
    if failed > 0.0 {
        complain!("{failed} requests failed");
        return Ok(Tally::FAIL);
    }
    Ok(Tally::PASS)
}

fn drive(
    plan: &Plan,
    statement: &str,
    pattern: &Pattern,
    port: u16,
    process_id: u32,
) -> Result<Value, Failure> {
    let words = [
        "drive".to_owned(),
        format!("port={port}"),
        format!("server={process_id}"),
        format!("statement={statement}"),
        format!("rows={}", plan.rows),
        format!("connections={}", pattern.connections),
        format!("window={}", pattern.window),
        format!("threads={}", plan.threads),
        format!("seconds={}", plan.seconds),
        format!("warmup={}", plan.warmup),
    ];
    loaded(&words.iter().map(String::as_str).collect::<Vec<_>>())
}
