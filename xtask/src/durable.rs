//! `cargo xtask durable`: durable writes beside writes that are not.
//!
//! 64 connections, each with one request in flight, write rows of 1 KB: to Peristyle under `group`, where an answer
//! means that the write is on the disk, and to Cassandra under `periodic`, where a power cut takes up to ten seconds of
//! answered writes. The client is `lab/load`, which needs a tenth of a core for it, so that it limits neither. Both
//! have their turns one after the other, each with a fresh directory; the ratio is that of the medians.
//!
//! Then they change rows by a condition (`IF EXISTS`), small ones, which on both is on the disk before it is told: the
//! CPU of one is held against that of a durable write of a small row, and the waits against Cassandra's.

use serde_json::Value;

use crate::arguments::Arguments;
use crate::measure::{Bars, Cassandra, build_load, loaded, median, number};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

/// Rows of 1 KB.
const INSERT: &str = "insert";
/// Small rows, written as they are, and by a condition.
const SMALL: &str = "small-insert";
const CONDITIONAL: &str = "if";
const CONNECTIONS: &str = "connections=64";
/// Of each connection.
const WINDOW: &str = "window=1";
/// Our writes a second over Cassandra's.
const RATIO: Bars = Bars { floor: 1.0, aim: Some(1.5) };
/// The CPU of a conditional change over that of a durable write, at most.
const CONDITION_RATIO_MAX: f64 = 3.0;
const PERCENTILES: [&str; 4] = ["p50_us", "p90_us", "p99_us", "p999_us"];

/// What was measured of a system in its turn.
struct Turn {
    plain: Value,
    small: Value,
    conditional: Value,
}

struct Plan {
    rows: String,
    seconds: String,
    warmup: String,
    profile: String,
    memory: String,
    heap: String,
}

/// Measures both in turns.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rows", "seconds", "warmup", "turns", "profile", "memory", "heap"])?;
    let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
    let plan = Plan {
        rows: format!("rows={}", arguments.value("rows", 100_000u64)?),
        seconds: format!("seconds={}", arguments.value("seconds", 20u64)?),
        warmup: format!("warmup={}", arguments.value("warmup", 10u64)?),
        profile: text("profile", "latest"),
        memory: text("memory", "2GiB"),
        heap: text("heap", "2G"),
    };
    build_load()?;
    install_cassandra()?;
    println!(
        "{:<20} {:<13} {:>10} {:>8} {:>9} {:>13} {:>12}",
        "system", "statement", "writes/s", "p50 ms", "p99 ms", "server us/op", "client us/op"
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.value("turns", 3u32)? {
        ours.push(peristyle(&plan)?);
        theirs.push(cassandra(&plan)?);
    }
    Ok(judge(&ours, &theirs))
}

fn peristyle(plan: &Plan) -> Result<Turn, Failure> {
    let words = ["--commitlog-sync", "group", "--memory", &plan.memory];
    let data = fresh_folder("durable/peristyle")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    let result = turn(plan, "peristyle group", node.port, node.process_id())?;
    node.stop()?;
    fresh_folder("durable/peristyle")?;
    Ok(result)
}

fn cassandra(plan: &Plan) -> Result<Turn, Failure> {
    let folder = fresh_folder("durable/cassandra")?;
    let node = Cassandra::start(&folder, &plan.profile, &plan.heap)?;
    let result = turn(plan, "cassandra periodic", node.port, node.process_id)?;
    drop(node);
    fresh_folder("durable/cassandra")?;
    Ok(result)
}

fn turn(plan: &Plan, system: &str, port: u16, process_id: u32) -> Result<Turn, Failure> {
    let drive = |statement| drive(plan, (system, statement), port, process_id);
    Ok(Turn { plain: drive(INSERT)?, small: drive(SMALL)?, conditional: drive(CONDITIONAL)? })
}

/// Writes the rows once, then again and again, and prints what was measured of that.
fn drive(plan: &Plan, (system, name): (&str, &str), port: u16, process_id: u32) -> Result<Value, Failure> {
    let (port, server) = (format!("port={port}"), format!("server={process_id}"));
    let statement = format!("statement={name}");
    loaded(&["fill", &port, &statement, &plan.rows])?;
    let (seconds, warmup) = (&plan.seconds, &plan.warmup);
    let result =
        loaded(&["drive", &port, &server, &statement, &plan.rows, CONNECTIONS, WINDOW, seconds, warmup])?;
    println!(
        "{system:<20} {name:<13} {:>10.0} {:>8.2} {:>9.2} {:>13.1} {:>12.1}",
        number(&result, "ops_per_s"),
        number(&result, "p50_us") / 1e3,
        number(&result, "p99_us") / 1e3,
        server_us(&result),
        1e6 * number(&result, "client_cpu_s") / number(&result, "ops"),
    );
    Ok(result)
}

fn server_us(run: &Value) -> f64 {
    1e6 * number(run, "server_cpu_s") / number(run, "ops")
}

fn judge(ours: &[Turn], theirs: &[Turn]) -> Tally {
    let failed = ["errors", "overloaded", "closed"];
    let failed = |run: &Value| failed.iter().any(|name| number(run, name) > 0.0);
    if ours
        .iter()
        .any(|Turn { plain, small, conditional }| [plain, small, conditional].into_iter().any(failed))
    {
        complain!("some of our writes failed");
        return Tally::FAIL;
    }
    let rate = |turns: &[Turn]| median(turns.iter().map(|turn| number(&turn.plain, "ops_per_s")));
    let ratio = rate(ours) / rate(theirs);
    let (words, mut tally) = RATIO.judge(ratio, "x");
    println!("durable writes: {ratio:.2}x Cassandra's periodic ones ({words})");
    let cost = median(ours.iter().map(|turn| server_us(&turn.conditional) / server_us(&turn.small)));
    println!(
        "a conditional change: {cost:.2}x the CPU of a durable write of its size (at most {CONDITION_RATIO_MAX})"
    );
    tally += if cost <= CONDITION_RATIO_MAX { Tally::PASS } else { Tally::FAIL };
    for name in PERCENTILES {
        let wait = |turns: &[Turn]| median(turns.iter().map(|turn| number(&turn.conditional, name)));
        let (wait, bar) = (wait(ours), wait(theirs));
        println!("a conditional change: {name} {wait:.0}, Cassandra's {bar:.0}");
        tally += if wait <= bar { Tally::PASS } else { Tally::FAIL };
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn turns(rates: [f64; 3], errors: u64, wait_us: u64) -> Vec<Turn> {
        let turn = |rate: f64| {
            let run = |cpu_s: f64| {
                json!({
                    "ops_per_s": rate, "errors": errors, "overloaded": 0, "closed": 0, "ops": 1e6, "server_cpu_s": cpu_s,
                    "p50_us": wait_us, "p90_us": wait_us, "p99_us": wait_us, "p999_us": wait_us,
                })
            };
            Turn { plain: run(1.0), small: run(1.0), conditional: run(2.5) }
        };
        rates.map(turn).into()
    }

    #[test]
    fn medians_are_held_against_each_other_and_an_error_fails() {
        let theirs = turns([10.0, 20.0, 11.0], 0, 500);
        let tally = |passed, failed| Tally { passed, failed };
        assert_eq!(judge(&turns([17.0, 1.0, 40.0], 0, 500), &theirs), tally(6, 0));
        assert_eq!(judge(&turns([9.0, 9.0, 40.0], 0, 500), &theirs), tally(5, 1));
        assert_eq!(judge(&turns([17.0, 1.0, 40.0], 0, 501), &theirs), tally(2, 4));
        assert_eq!(judge(&turns([17.0, 1.0, 40.0], 1, 500), &theirs), Tally::FAIL);
    }
}
