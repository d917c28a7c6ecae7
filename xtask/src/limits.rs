//! `cargo xtask limits`: how far the server is from what loopback itself allows.
//!
//! The same client sends the same prepared reads to two servers in turns: ours, and the *floor*, a proxy (`lab/floor`)
//! that learnt one answer from ours and replays it, whatever is asked. Operations per second of server CPU are
//! compared. Pipelined means many requests in flight on few connections, so that frames share system calls; with one
//! in flight on each of many connections each request pays for its own. Rows of 1 KB are asked for without their keys,
//! so that an answer does not show whose it is.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Pace};
use crate::measure::{Aim, median};
use crate::node::{Node, NodeOptions, free_port, fresh_folder};
use crate::peers::succeed;
use crate::process::{cargo, root};
use crate::report::{Failure, Tally, complain};

const START_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);
pub(crate) const MANIFEST: &str = "lab/floor/Cargo.toml";
pub(crate) const TARGET: &str = "target/lab";

/// How requests are in flight.
struct Pattern {
    name: &'static str,
    connections: u64,
    in_flight: u64,
    /// The share of the floor's rate that ours ought to reach.
    aim: Aim,
}

const PATTERNS: &[Pattern] = &[
    Pattern { name: "pipelined", connections: 4, in_flight: 256, aim: Aim::AtLeast(0.25) },
    Pattern { name: "one each", connections: 64, in_flight: 64, aim: Aim::AtLeast(0.70) },
];

/// What is read: a row of 16 bytes, and one of 1 KB; with its workload and what it is there.
const STATEMENTS: &[(&str, &str, &str)] = &[("small", "small", "reads"), ("read", "rows", "blind")];

struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    rounds: u64,
    threads: u64,
    memory: String,
}

/// The proxy of `lab/floor`; killed when dropped.
pub(crate) struct Floor {
    child: Child,
    port: u16,
}

impl Floor {
    /// Builds it, which is no member of the workspace.
    pub(crate) fn build() -> Result<(), Failure> {
        let mut build = cargo();
        build.args(["build", "--release", "--quiet", "--manifest-path"]).arg(root().join(MANIFEST));
        succeed(build.arg("--target-dir").arg(root().join(TARGET)))
    }

    /// In front of a server, on a port of its own.
    pub(crate) fn start(upstream: u16) -> Result<Floor, Failure> {
        let port = free_port()?;
        let mut command = Command::new(root().join(TARGET).join("release/floor"));
        command.args([port.to_string(), upstream.to_string()]);
        let floor = Floor { child: command.stdin(Stdio::null()).spawn()?, port };
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if started.elapsed() > START_TIMEOUT {
                return Err(Failure::new("the floor does not answer"));
            }
            std::thread::sleep(POLL);
        }
        Ok(floor)
    }

    /// `127.0.0.1:PORT`, as a client wants it.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    Floor::build()?;
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory];
    let data = fresh_folder("limits")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    println!(
        "{} rows, {} s a run, medians of {}, operations per second of server CPU",
        plan.rows, plan.seconds, plan.rounds
    );
    println!(
        "{:<9} {:<10} {:>11} {:>11} {:>8} {:>12}  ours/floor",
        "statement", "in flight", "ours", "floor", "p99 ms", "client us/op"
    );
    let mut tally = Tally::default();
    for (name, workload, setting) in
        STATEMENTS.iter().filter(|(name, ..)| arguments.picks("statements", name))
    {
        let load = load(&plan, &node, workload, setting);
        load.clone().fill()?;
        for pattern in PATTERNS {
            tally += measure(&plan, &node, name, &load, pattern)?;
        }
    }
    node.stop()?;
    fresh_folder("limits")?;
    Ok(tally)
}

fn load(plan: &Plan, node: &Node, workload: &str, setting: &str) -> Load {
    let load = Load::new(workload, &node.address(), Pace::InFlight(1)).mix(&[(setting, 1)]);
    let load = load.with("rows", plan.rows).with("threads", plan.threads);
    load.with("seconds", plan.seconds).with("warmup", plan.warmup)
}

fn measure(plan: &Plan, node: &Node, name: &str, load: &Load, pattern: &Pattern) -> Result<Tally, Failure> {
    let load = load.clone().has_rows().with("connections", pattern.connections);
    let load = load.at(Pace::InFlight(pattern.in_flight));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..plan.rounds {
        ours.push(load.clone().served_by(&[node.process_id()]).run()?);
        let limit = Floor::start(node.port)?;
        floor.push(load.clone().on(&limit.address()).served_by(&[limit.child.id()]).run()?);
    }
    let middle = |runs: &[Measured], figure: &dyn Fn(&Measured) -> f64| median(runs.iter().map(figure));
    let rates = [&ours, &floor].map(|runs| middle(runs, &|run| 1e6 / run.server_cpu_us()));
    let share = rates[0] / rates[1];
    println!(
        "{name:<9} {:<10} {:>11.0} {:>11.0} {:>8.2} {:>12.2}  {share:.2} ({})",
        pattern.name,
        rates[0],
        rates[1],
        middle(&ours, &|run| run.response_ms("p99_us")),
        middle(&ours, &Measured::client_cpu_us),
        pattern.aim.words(share, ""),
    );
    match ours.iter().chain(&floor).find(|run| run.failed() > 0) {
        Some(run) => {
            complain!("{} requests failed: {}", run.failed(), run.faults());
            Ok(Tally::FAIL)
        }
        None => Ok(Tally::PASS),
    }
}
