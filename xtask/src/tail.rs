//! `cargo xtask tail`: latencies at a fixed rate beside Cassandra's.
//!
//! The load generator is latte, outside a JVM and paced by the clock, so a pause of the server is in the
//! latencies of all requests that were due in it. For each function Cassandra is first driven as fast as it
//! goes, in each profile; then it, Peristyle and (for reads) a replaying proxy in front of Peristyle run at
//! seven tenths of the best of that. Seconds in which nothing was completed are counted.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::limits::Limit;
use crate::measure::{Bars, Cassandra, build_load, number};
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::{install_cassandra, output, script, succeed};
use crate::process::root;
use crate::report::{Failure, Tally, complain};

/// The share of Cassandra's best rate at which all run.
const RATE_SHARE: f64 = 0.7;
/// In flight at most while the clock paces: enough that the client never waits for the server.
const PACED_CONCURRENCY: &str = "4096";
/// In flight while it goes as fast as it can.
const FREE_CONCURRENCY: &str = "64";
/// Cassandra's p99.9 over ours.
const TAIL: Bars = Bars { floor: 0.2, aim: Some(5.0) };
/// The replayer's p99.9 over ours, the other way to meet the aim.
const REPLAY_TAIL_AIM: f64 = 0.5;
/// A run that reached less of its rate says little: somebody else had the cores, or the server fell behind.
const RATE_KEPT: f64 = 0.97;
const REST: Duration = Duration::from_secs(5);

/// Functions of `latte-kv.rn`, by the words that choose them.
const FUNCTIONS: &[(&str, &[&str])] = &[
    ("read", &["-f", "read"]),
    ("mixed", &["-f", "read:0.5", "-f", "write:0.5"]),
    ("write", &["-f", "write"]),
];

struct Plan {
    rows: u64,
    seconds: u64,
    best_seconds: u64,
    warmup: u64,
    functions: Vec<String>,
    profiles: Vec<String>,
    memory: String,
    heap: String,
    report: PathBuf,
}

/// What latte reported of one run.
struct Run {
    report: Value,
}

impl Run {
    fn result(&self) -> &Value {
        &self.report["result"]
    }

    fn per_second(&self) -> f64 {
        number(&self.result()["cycle_throughput"], "value")
    }

    /// From the moment at which a request was due.
    fn latency_ms(&self, percentile: f64) -> f64 {
        let percentiles = self.report["percentiles"].as_array();
        let index = percentiles.and_then(|all| all.iter().position(|one| one.as_f64() == Some(percentile)));
        let values = self.result()["cycle_latency"]["percentiles"].as_array();
        let value = index.and_then(|index| values?.get(index));
        value.map_or(f64::NAN, |value| number(value, "value"))
    }

    fn samples(&self) -> impl Iterator<Item = u64> {
        let samples = self.result()["log"].as_array().into_iter().flatten();
        samples.filter_map(|sample| sample["cycle_count"].as_u64())
    }

    /// Samples are a second long.
    fn silent_seconds(&self) -> usize {
        self.samples().filter(|count| *count == 0).count()
    }

    fn least_in_a_second(&self) -> u64 {
        // The last sample is shorter than a second.
        let samples: Vec<u64> = self.samples().collect();
        let whole = &samples[..samples.len().saturating_sub(1)];
        whole.iter().min().copied().unwrap_or_default()
    }

    fn errors(&self) -> u64 {
        self.result()["error_count"].as_u64().unwrap_or(0)
    }
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
        report: fresh_folder("tail")?.join("latte.json"),
    };
    for function in &plan.functions {
        function_words(function)?;
    }
    install_cassandra()?;
    succeed(script("latte").arg("install"))?;
    build_load()?;
    let mut tally = Tally::default();
    for best in &best_of_cassandra(&plan)? {
        tally += tail(&plan, best)?;
    }
    fresh_folder("tail")?;
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
        let mut found: Vec<(String, Run)> = Vec::new();
        for function in &plan.functions {
            found.push((function.clone(), free_run(plan, &node.address(), function)?));
        }
        drop(node);
        for (function, run) in found {
            let per_second = run.per_second();
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
        let proxy = Limit::start("replay", &[format!("upstream={}", node.port)])?;
        Some(paced_run(plan, &format!("127.0.0.1:{}", proxy.port), &best.function, rate)?)
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
        "system", "p50", "p95", "p99", "p99.9", "max", "a second", "silent s", "least in 1s", "errors"
    );
    let cassandra = format!("cassandra {}", best.profile);
    let all = [("peristyle", Some(&ours)), (&cassandra, Some(&theirs)), ("replayer", replayed.as_ref())];
    for (system, run) in all.iter().filter_map(|(system, run)| Some((system, (*run)?))) {
        let kept = if run.per_second() < rate * RATE_KEPT { "  (rate not kept)" } else { "" };
        println!("{}{kept}", line(system, run));
    }
    Ok(judge(&best.function, &ours, &theirs, replayed.as_ref()))
}

fn line(system: &str, run: &Run) -> String {
    let [p50, p95, p99, p999, most] =
        [50.0, 95.0, 99.0, 99.9, 100.0].map(|percentile| run.latency_ms(percentile));
    format!(
        "{system:<18} {p50:>8.2} {p95:>8.2} {p99:>8.2} {p999:>8.2} {most:>8.1} {:>9.0} {:>8} {:>11} {:>7}",
        run.per_second(),
        run.silent_seconds(),
        run.least_in_a_second(),
        run.errors(),
    )
}

fn judge(function: &str, ours: &Run, theirs: &Run, replayed: Option<&Run>) -> Tally {
    let ratio = theirs.latency_ms(99.9) / ours.latency_ms(99.9);
    let of_replayer = replayed.map(|run| run.latency_ms(99.9) / ours.latency_ms(99.9));
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
    if ours.silent_seconds() > 0 || ours.errors() > 0 {
        complain!("{} silent seconds, {} errors", ours.silent_seconds(), ours.errors());
        tally += Tally::FAIL;
    }
    tally
}

fn start(plan: &Plan) -> Result<Node, Failure> {
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory];
    Node::start(&NodeOptions::new(fresh_folder("tail-peristyle")?.join("data"), &words))
}

fn latte(plan: &Plan, command: &str) -> Command {
    let mut latte = script("latte");
    latte.args(["raw", "--log-dir"]).arg(plan.report.with_file_name("")).arg(command);
    latte.arg(root().join("lab/peers/latte-kv.rn")).args(["-P", &format!("rows={}", plan.rows)]);
    latte
}

fn fill(plan: &Plan, address: &str) -> Result<(), Failure> {
    output(latte(plan, "schema").arg(address))?;
    output(latte(plan, "load").args(["--concurrency", FREE_CONCURRENCY, "-q", address]))?;
    std::thread::sleep(REST);
    Ok(())
}

fn function_words(function: &str) -> Result<&'static [&'static str], Failure> {
    let found = FUNCTIONS.iter().find(|(name, _)| *name == function);
    found.map(|(_, words)| *words).ok_or_else(|| Failure::new(format!("there is no function '{function}'")))
}

fn free_run(plan: &Plan, address: &str, function: &str) -> Result<Run, Failure> {
    let words = ["-p", FREE_CONCURRENCY, "-c", "1"].map(str::to_owned);
    latte_run(plan, address, function, plan.best_seconds, &words)
}

fn paced_run(plan: &Plan, address: &str, function: &str, rate: f64) -> Result<Run, Failure> {
    let words = ["-p".to_owned(), PACED_CONCURRENCY.to_owned(), "-r".to_owned(), format!("{rate:.0}")];
    latte_run(plan, address, function, plan.seconds, &words)
}

fn latte_run(
    plan: &Plan,
    address: &str,
    function: &str,
    seconds: u64,
    words: &[String],
) -> Result<Run, Failure> {
    let mut run = latte(plan, "run");
    run.args(function_words(function)?).args(words);
    run.args(["-t", "1", "-s", "1s", "-q", "--consistency", "ONE"]);
    run.args(["-w", &format!("{}s", plan.warmup), "-d", &format!("{seconds}s")]);
    output(run.arg("-o").arg(&plan.report).arg(address))?;
    let report = serde_json::from_str(&std::fs::read_to_string(&plan.report)?)?;
    std::fs::remove_file(&plan.report)?;
    Ok(Run { report })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(p999: f64, counts: &[u64]) -> Run {
        let log: Vec<Value> = counts.iter().map(|count| json!({"cycle_count": count})).collect();
        let latency = json!({"percentiles": [{"value": 1.0}, {"value": p999}]});
        let result = json!({"cycle_latency": latency, "log": log, "error_count": 0});
        Run { report: json!({"percentiles": [50.0, 99.9], "result": result}) }
    }

    #[test]
    fn a_percentile_is_found_by_its_number_and_a_silent_second_fails() {
        let ours = run(2.0, &[10, 20, 3]);
        assert_eq!(ours.latency_ms(99.9), 2.0);
        assert_eq!(ours.least_in_a_second(), 10);
        let theirs = run(11.0, &[1]);
        assert_eq!(judge("read", &ours, &theirs, None), Tally::PASS);
        assert_eq!(judge("read", &run(2.0, &[10, 0, 3]), &theirs, None).failed, 1);
    }
}
