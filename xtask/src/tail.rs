//! `cargo xtask tail`: latencies at a fixed rate beside Cassandra's.
//!
//! Requests are due by the clock, so a pause of the server is in the latencies of all that were due in it. For
//! each function Cassandra is first driven as fast as it goes, in each profile; then it, Peristyle and (for
//! reads) a replaying proxy in front of Peristyle run at seven tenths of the best of that. Seconds in which
//! nothing was completed are counted. Reads ask for rows without their keys, since the proxy answers all alike.

use std::time::Duration;

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Mix, Pace};
use crate::limits::Floor;
use crate::measure::{Bars, Cassandra};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

/// The share of Cassandra's best rate at which all run.
const RATE_SHARE: f64 = 0.7;
/// Each with 1,024 streams while the clock paces: enough that the client hardly ever waits for the server.
const CONNECTIONS: u64 = 4;
/// In flight while it goes as fast as it can.
const IN_FLIGHT: Pace = Pace::InFlight(64);
/// Cassandra's p99.9 over ours.
const TAIL: Bars = Bars { floor: 0.2, aim: Some(5.0) };
/// The replayer's p99.9 over ours, the other way to meet the aim.
const REPLAY_TAIL_AIM: f64 = 0.5;
/// A run that reached less of its rate says little: somebody else had the cores, or the server fell behind.
const RATE_KEPT: f64 = 0.97;
const REST: Duration = Duration::from_secs(5);

/// What is asked of the workload `rows`, by its settings.
const FUNCTIONS: &[(&str, Mix)] =
    &[("read", &[("blind", 1)]), ("mixed", &[("blind", 1), ("inserts", 1)]), ("write", &[("inserts", 1)])];

struct Plan {
    rows: u64,
    seconds: u64,
    best_seconds: u64,
    warmup: u64,
    functions: Vec<String>,
    profiles: Vec<String>,
    memory: String,
    heap: String,
}

/// Whole seconds in which nothing was completed.
fn silent_seconds(run: &Measured) -> usize {
    run.by_second().iter().filter(|second| second.count == 0).count()
}

fn least_in_a_second(run: &Measured) -> u64 {
    run.by_second().into_iter().map(|second| second.count).min().unwrap_or_default()
}

/// Runs the tails.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "seconds",
        "best-seconds",
        "warmup",
        "functions",
        "profiles",
        "memory",
        "heap",
        "short",
    ])?;
    let short = arguments.flag("short");
    let pick = |long: u64, brief: u64| if short { brief } else { long };
    let list = |name: &str, default: &str| {
        let named = arguments.list(name);
        if named.is_empty() { default.split(',').map(str::to_owned).collect() } else { named }
    };
    let plan = Plan {
        rows: arguments.value("rows", pick(1_000_000, 20_000))?,
        seconds: arguments.value("seconds", pick(300, 5))?,
        best_seconds: arguments.value("best-seconds", pick(40, 4))?,
        warmup: arguments.value("warmup", pick(10, 2))?,
        functions: list("functions", if short { "read" } else { "read,mixed,write" }),
        profiles: list("profiles", if short { "latest" } else { "default,latest" }),
        memory: arguments.text("memory").unwrap_or("2GiB").to_owned(),
        heap: arguments.text("heap").unwrap_or(if short { "1G" } else { "2G" }).to_owned(),
    };
    for function in &plan.functions {
        mix(function)?;
    }
    install_cassandra()?;
    Floor::build()?;
    let mut tally = Tally::default();
    for best in &best_of_cassandra(&plan)? {
        tally += tail(&plan, best)?;
    }
    Ok(tally)
}

/// The fastest profile of a function, and how fast.
struct Best {
    function: String,
    profile: String,
    per_second: f64,
}

/// Drives every profile as fast as it goes.
fn best_of_cassandra(plan: &Plan) -> Result<Vec<Best>, Failure> {
    let mut all: Vec<Best> = Vec::new();
    for profile in &plan.profiles {
        let node = Cassandra::start(&fresh_folder("tail-cassandra")?, profile, &plan.heap)?;
        fill(plan, &node.address())?;
        let mut found: Vec<(String, Measured)> = Vec::new();
        for function in &plan.functions {
            found.push((function.clone(), free_run(plan, &node.address(), function)?));
        }
        drop(node);
        for (function, run) in found {
            let per_second = run.rate();
            println!("cassandra {profile}, {function}: {per_second:.0} a second as fast as it goes");
            match all.iter_mut().find(|best| best.function == function) {
                Some(best) if best.per_second >= per_second => {}
                Some(best) => (best.profile, best.per_second) = (profile.clone(), per_second),
                None => all.push(Best { function, profile: profile.clone(), per_second }),
            }
        }
    }
    fresh_folder("tail-cassandra")?;
    Ok(all)
}

fn tail(plan: &Plan, best: &Best) -> Result<Tally, Failure> {
    let rate = best.per_second * RATE_SHARE;
    let node = Cassandra::start(&fresh_folder("tail-cassandra")?, &best.profile, &plan.heap)?;
    fill(plan, &node.address())?;
    let theirs = paced_run(plan, &node.address(), &best.function, rate);
    drop(node);
    fresh_folder("tail-cassandra")?;
    let theirs = theirs?;
    let node = start(plan)?;
    fill(plan, &node.address())?;
    let ours = paced_run(plan, &node.address(), &best.function, rate)?;
    let replayed = if best.function == "read" {
        let floor = Floor::start(node.port)?;
        Some(paced_run(plan, &floor.address(), &best.function, rate)?)
    } else {
        None
    };
    node.stop()?;
    println!(
        "\n{} at {rate:.0} a second, {} s, latencies in ms from when each was due",
        best.function, plan.seconds
    );
    println!(
        "{:<18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>11} {:>7}",
        "system", "p50", "p95", "p99", "p99.9", "max", "a second", "silent s", "least in 1s", "failed"
    );
    let cassandra = format!("cassandra {}", best.profile);
    let all = [("peristyle", Some(&ours)), (&cassandra, Some(&theirs)), ("replayer", replayed.as_ref())];
    for (system, run) in all.iter().filter_map(|(system, run)| Some((system, (*run)?))) {
        let kept = if run.rate() < rate * RATE_KEPT { "  (rate not kept)" } else { "" };
        println!("{}{kept}", line(system, run));
    }
    Ok(judge(&best.function, &ours, &theirs, replayed.as_ref()))
}

fn line(system: &str, run: &Measured) -> String {
    let [p50, p95, p99, p999, most] =
        ["p50_us", "p95_us", "p99_us", "p99_9_us", "max_us"].map(|name| run.response_ms(name));
    format!(
        "{system:<18} {p50:>8.2} {p95:>8.2} {p99:>8.2} {p999:>8.2} {most:>8.1} {:>9.0} {:>8} {:>11} {:>7}",
        run.rate(),
        silent_seconds(run),
        least_in_a_second(run),
        run.failed(),
    )
}

fn judge(function: &str, ours: &Measured, theirs: &Measured, replayed: Option<&Measured>) -> Tally {
    let p999 = |run: &Measured| run.response_ms("p99_9_us");
    let ratio = p999(theirs) / p999(ours);
    let of_replayer = replayed.map(|run| p999(run) / p999(ours));
    let (mut words, mut tally) = TAIL.judge(ratio, "x");
    let mut beside = String::new();
    if let Some(share) = of_replayer {
        beside = format!(", {:.2}x the replayer's", 1.0 / share);
        if share >= REPLAY_TAIL_AIM {
            words = format!("aim {:.0}x of the replayer's met", 1.0 / REPLAY_TAIL_AIM);
            tally = Tally::PASS;
        }
    }
    println!("{function}: Cassandra's p99.9 is {ratio:.1}x ours{beside} ({words})");
    if silent_seconds(ours) > 0 || ours.failed() > 0 {
        complain!("{} silent seconds, {} failed: {}", silent_seconds(ours), ours.failed(), ours.faults());
        tally += Tally::FAIL;
    }
    tally
}

fn start(plan: &Plan) -> Result<Node, Failure> {
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory];
    Node::start(&NodeOptions::new(fresh_folder("tail-peristyle")?.join("data"), &words))
}

fn load(plan: &Plan, address: &str) -> Load {
    let load = Load::new("rows", address, IN_FLIGHT).with("keyspace", "tail").with("rows", plan.rows);
    load.with("connections", CONNECTIONS).with("warmup", plan.warmup)
}

fn fill(plan: &Plan, address: &str) -> Result<(), Failure> {
    load(plan, address).fill()?;
    std::thread::sleep(REST);
    Ok(())
}

fn mix(function: &str) -> Result<Mix, Failure> {
    let found = FUNCTIONS.iter().find(|(name, _)| *name == function);
    found.map(|(_, mix)| *mix).ok_or_else(|| Failure::new(format!("there is no function '{function}'")))
}

fn free_run(plan: &Plan, address: &str, function: &str) -> Result<Measured, Failure> {
    load(plan, address).has_rows().mix(mix(function)?).with("seconds", plan.best_seconds).run()
}

fn paced_run(plan: &Plan, address: &str, function: &str, rate: f64) -> Result<Measured, Failure> {
    let load = load(plan, address).has_rows().mix(mix(function)?).at(Pace::Rate(rate.round()));
    load.with("seconds", plan.seconds).run()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(p999_us: f64, counts: &[u64]) -> Measured {
        let response = json!({"p99_9_us": p999_us});
        let seconds: Vec<_> = counts.iter().map(|count| json!({"count": count})).collect();
        Measured::of(json!({"response": response, "by_second": seconds, "seconds": 2.5, "error_count": 0}))
    }

    #[test]
    fn a_silent_second_fails() {
        let ours = run(2000.0, &[10, 20, 3]);
        assert_eq!(least_in_a_second(&ours), 10);
        let theirs = run(11_000.0, &[1, 1]);
        assert_eq!(judge("read", &ours, &theirs, None), Tally::PASS);
        assert_eq!(judge("read", &run(2000.0, &[10, 0, 3]), &theirs, None).failed, 1);
    }
}
