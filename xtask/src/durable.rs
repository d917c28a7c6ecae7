//! `cargo xtask durable`: durable writes beside writes that are not.
//!
//! 64 connections, each with one request in flight, write rows of 1 KB: to Peristyle under `group`, where an answer
//! means that the write is on the disk, and to Cassandra under `periodic`, where a power cut takes up to ten seconds of
//! answered writes. The client is `lab/load`, which needs a tenth of a core for it, so that it limits neither. Both
//! have their turns one after the other, each with a fresh directory; the ratio is that of the medians.

use serde_json::Value;

use crate::arguments::Arguments;
use crate::measure::{Bars, Cassandra, build_load, loaded, median, number};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

const STATEMENT: &str = "statement=insert";
const CONNECTIONS: &str = "connections=64";
/// Of each connection.
const WINDOW: &str = "window=1";
/// Our writes a second over Cassandra's.
const RATIO: Bars = Bars { floor: 1.0, aim: Some(1.5) };

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
        "{:<20} {:>10} {:>9} {:>13} {:>12}",
        "system", "writes/s", "p99 ms", "server us/op", "client us/op"
    );
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.value("turns", 3u32)? {
        ours.push(peristyle(&plan)?);
        theirs.push(cassandra(&plan)?);
    }
    Ok(judge(&ours, &theirs))
}

fn peristyle(plan: &Plan) -> Result<Value, Failure> {
    let words = ["--commitlog-sync", "group", "--memory", &plan.memory];
    let data = fresh_folder("durable/peristyle")?.join("data");
    let node = Node::start(&NodeOptions::new(data, &words))?;
    let result = drive(plan, "peristyle group", node.port, node.process_id())?;
    node.stop()?;
    fresh_folder("durable/peristyle")?;
    Ok(result)
}

fn cassandra(plan: &Plan) -> Result<Value, Failure> {
    let folder = fresh_folder("durable/cassandra")?;
    let node = Cassandra::start(&folder, &plan.profile, &plan.heap)?;
    let result = drive(plan, "cassandra periodic", node.port, node.process_id)?;
    drop(node);
    fresh_folder("durable/cassandra")?;
    Ok(result)
}

/// Writes the rows once, then again and again, and prints what was measured of that.
fn drive(plan: &Plan, system: &str, port: u16, process_id: u32) -> Result<Value, Failure> {
    let (port, server) = (format!("port={port}"), format!("server={process_id}"));
    loaded(&["fill", &port, STATEMENT, &plan.rows])?;
    let (seconds, warmup) = (&plan.seconds, &plan.warmup);
    let result =
        loaded(&["drive", &port, &server, STATEMENT, &plan.rows, CONNECTIONS, WINDOW, seconds, warmup])?;
    println!(
        "{system:<20} {:>10.0} {:>9.2} {:>13.1} {:>12.1}",
        number(&result, "ops_per_s"),
        number(&result, "p99_us") / 1e3,
        1e6 * number(&result, "server_cpu_s") / number(&result, "ops"),
        1e6 * number(&result, "client_cpu_s") / number(&result, "ops"),
    );
    Ok(result)
}

fn judge(ours: &[Value], theirs: &[Value]) -> Tally {
    let failed = ["errors", "overloaded", "closed"];
    let failed = |run: &Value| failed.iter().any(|name| number(run, name) > 0.0);
    if ours.iter().any(failed) {
        complain!("some of our writes failed");
        return Tally::FAIL;
    }
    let rate = |runs: &[Value]| median(runs.iter().map(|run| number(run, "ops_per_s")));
    let ratio = rate(ours) / rate(theirs);
    let (words, tally) = RATIO.judge(ratio, "x");
    println!("durable writes: {ratio:.2}x Cassandra's periodic ones ({words})");
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn runs(rates: [f64; 3], errors: u64) -> Vec<Value> {
        rates.map(|rate| json!({"ops_per_s": rate, "errors": errors, "overloaded": 0, "closed": 0})).into()
    }

    #[test]
    fn medians_are_held_against_each_other_and_an_error_fails() {
        let theirs = runs([10.0, 20.0, 11.0], 0);
        assert_eq!(judge(&runs([17.0, 1.0, 40.0], 0), &theirs), Tally::PASS);
        assert_eq!(judge(&runs([9.0, 9.0, 40.0], 0), &theirs), Tally::FAIL);
        assert_eq!(judge(&runs([17.0, 1.0, 40.0], 1), &theirs), Tally::FAIL);
    }
}
