//! `cargo xtask durable`: durable writes beside writes that are not.
//!
//! 64 connections, each with one request in flight, write rows of 1 KB: to Peristyle under `group`, where an answer
//! means that the write is on the disk, and to Cassandra under `periodic`, where a power cut takes up to ten seconds of
//! answered writes. The client needs a tenth of a core for it, so that it limits neither. Both
//! have their turns one after the other, each with a fresh directory; the ratio is that of the medians.
//!
//! Then they change rows by a condition (`IF EXISTS`), small ones, which on both is on the disk before it is told: the
//! CPU of one is held against that of a durable write of a small row, and the waits against Cassandra's.

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Pace};
use crate::measure::{Bars, Cassandra, median};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

/// A request in flight on each connection.
const CONNECTIONS: u64 = 64;
/// What is asked, by the setting of its workload: rows of 1 KB, then small rows as they are, and by a condition.
const INSERT: (&str, &str) = ("rows", "inserts");
const SMALL: (&str, &str) = ("small", "writes");
const CONDITIONAL: (&str, &str) = ("small", "conditions");
/// Our writes a second over Cassandra's.
const RATIO: Bars = Bars { floor: 1.0, aim: Some(1.5) };
/// The CPU of a conditional change over that of a durable write, at most.
const CONDITION_RATIO_MAX: f64 = 3.0;
const PERCENTILES: [&str; 4] = ["p50_us", "p90_us", "p99_us", "p99_9_us"];

/// What was measured of a system in its turn.
struct Turn {
    plain: Measured,
    small: Measured,
    conditional: Measured,
}

struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    profile: String,
    memory: String,
    heap: String,
}

/// Measures both in turns.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["rows", "seconds", "warmup", "turns", "profile", "memory", "heap"])?;
    let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
    let plan = Plan {
        rows: arguments.value("rows", 100_000)?,
        seconds: arguments.value("seconds", 20)?,
        warmup: arguments.value("warmup", 10)?,
        profile: text("profile", "latest"),
        memory: text("memory", "2GiB"),
        heap: text("heap", "2G"),
    };
    install_cassandra()?;
    println!(
        "{:<20} {:<11} {:>10} {:>8} {:>9} {:>13} {:>12}",
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
fn drive(
    plan: &Plan,
    (system, (workload, setting)): (&str, (&str, &str)),
    port: u16,
    process_id: u32,
) -> Result<Measured, Failure> {
    let load = Load::new(workload, &format!("127.0.0.1:{port}"), Pace::InFlight(CONNECTIONS));
    let load = load.mix(&[(setting, 1)]).served_by(&[process_id]).with("rows", plan.rows);
    let load =
        load.with("connections", CONNECTIONS).with("warmup", plan.warmup).with("seconds", plan.seconds);
    let measured = load.run()?;
    println!(
        "{system:<20} {setting:<11} {:>10.0} {:>8.2} {:>9.2} {:>13.1} {:>12.1}",
        measured.rate(),
        measured.response_ms("p50_us"),
        measured.response_ms("p99_us"),
        measured.server_cpu_us(),
        measured.client_cpu_us(),
    );
    Ok(measured)
}

fn judge(ours: &[Turn], theirs: &[Turn]) -> Tally {
    let runs = ours.iter().flat_map(|Turn { plain, small, conditional }| [plain, small, conditional]);
    if let Some(run) = runs.into_iter().find(|run| run.failed() > 0) {
        complain!("some of our writes failed: {}", run.faults());
        return Tally::FAIL;
    }
    let rate = |turns: &[Turn]| median(turns.iter().map(|turn| turn.plain.rate()));
    let ratio = rate(ours) / rate(theirs);
    let (words, mut tally) = RATIO.judge(ratio, "x");
    println!("durable writes: {ratio:.2}x Cassandra's periodic ones ({words})");
    let cost = median(ours.iter().map(|turn| turn.conditional.server_cpu_us() / turn.small.server_cpu_us()));
    println!(
        "a conditional change: {cost:.2}x the CPU of a durable write of its size (at most {CONDITION_RATIO_MAX})"
    );
    tally += if cost <= CONDITION_RATIO_MAX { Tally::PASS } else { Tally::FAIL };
    for name in PERCENTILES {
        let wait = |turns: &[Turn]| median(turns.iter().map(|turn| turn.conditional.response_ms(name)));
        let (wait, bar) = (wait(ours), wait(theirs));
        println!("a conditional change: {name} {wait:.2} ms, Cassandra's {bar:.2}");
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
            let response =
                json!({"p50_us": wait_us, "p90_us": wait_us, "p99_us": wait_us, "p99_9_us": wait_us});
            let run = |cpu_s: f64| {
                Measured::of(json!({
                    "rate": rate, "error_count": errors, "count": 1e6, "server_cpu_s": cpu_s, "response": response,
                }))
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
