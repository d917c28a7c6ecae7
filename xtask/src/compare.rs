//! `cargo xtask compare`: Peristyle and Cassandra under the same load, in one run.
//!
//! One server at a time, on loopback, with the same client: YCSB loads rows of 1 KB, then runs its
//! workloads in a fixed order (updates leave rows spread over several table files, so the reads after
//! them cost more), and a plain client sends text batches and lists of keys (`lab/peers/cqlbatch.rs`).
//! Both sides sync their commit log periodically. The client shares the cores with the server, so the
//! figure to compare is the server's CPU time for each operation; the ratio is against the better of
//! Cassandra's profiles, medians over the rounds. Any failed operation fails the run. Another binary of ours
//! (`--against`) takes its turn after the first, in every round: what it needed before a change.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::measure::{Bars, Cassandra, median};
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::peers::{install_cassandra, output, script, succeed};
use crate::process::root;
use crate::report::{Failure, Tally};

/// After a load, before the next workload: flushes and compactions come to rest.
const REST: Duration = Duration::from_secs(10);
/// So many times less CPU than the better profile, or the run fails.
const RATIO_MIN: f64 = 4.0;
/// The systems that are ours: the binary that was built, and the one it is held against.
const OURS: &str = "peristyle";
const BEFORE: &str = "before";
/// Rows of a text batch, keys of a list.
const PER_REQUEST: f64 = 100.0;
/// Workloads of the plain client, and how it calls them.
const BATCHES: &[(&str, &str)] = &[("batch", "unlogged"), ("in", "in")];
const WORKLOADS: &str = "load,c,a,f,u,b,e,batch,in";
const WORKLOADS_SHORT: &str = "load,c,a,batch,in";

/// How many times less CPU than Cassandra's better profile each workload ought to need: issue and design.
const AIMS: &[(&str, f64)] = &[
    ("load", 10.0),
    ("c", 12.0),
    ("a", 12.0),
    ("f", 12.0),
    ("u", 10.0),
    ("e", 15.0),
    ("batch", 15.0),
    ("in", 10.0),
];

/// What is run, from the command line.
struct Plan {
    rows: u64,
    /// Rows of the table that batches write and lists of keys read.
    batch_rows: u64,
    seconds: u64,
    warmup: u64,
    threads: u64,
    load_threads: u64,
    rounds: u64,
    workloads: Vec<String>,
    memory: String,
    heap: String,
    /// The plain client, built.
    cqlbatch: PathBuf,
    /// Another binary of ours.
    against: Option<PathBuf>,
}

/// One workload on one server in one round.
struct Run {
    workload: String,
    system: String,
    /// As the client printed it.
    result: Value,
}

impl Run {
    fn number(&self, name: &str) -> f64 {
        self.result.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    fn is_batch(&self) -> bool {
        BATCHES.iter().any(|(name, _)| *name == self.workload)
    }

    /// Operations; of batches and lists the rows.
    fn operation_count(&self) -> f64 {
        if self.is_batch() { self.number("requests") * PER_REQUEST } else { self.number("ops") }
    }

    /// Microseconds of server CPU for one operation, or one row of a batch.
    fn cpu_us(&self) -> f64 {
        self.number("server_cpu_s") * 1e6 / self.operation_count()
    }

    fn per_second(&self) -> f64 {
        self.number(if self.is_batch() { "rows_per_s" } else { "ops_per_s" })
    }

    fn operations(&self) -> impl Iterator<Item = &Value> {
        let names = ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"];
        names.into_iter().filter_map(|name| self.result.get(name))
    }

    fn p99_us(&self) -> f64 {
        if self.is_batch() {
            return self.number("p99_us");
        }
        let values = self.operations().filter_map(|operation| operation["p99_us"].as_f64());
        values.fold(0.0, f64::max)
    }

    fn failed(&self) -> u64 {
        let failed: u64 = self.operations().filter_map(|operation| operation["failed"].as_u64()).sum();
        let errors = ["error_lines", "errors"].map(|name| self.result[name].as_u64().unwrap_or(0));
        // Every key of a list was written before: a row that is missing is a failure.
        let asked = if self.workload == "in" { self.operation_count() as u64 } else { 0 };
        let returned = self.result["rows_returned"].as_u64().unwrap_or(0);
        failed + errors.iter().sum::<u64>() + asked.saturating_sub(returned)
    }
}

/// Runs all systems, prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "batch-rows",
        "seconds",
        "warmup",
        "threads",
        "load-threads",
        "rounds",
        "workloads",
        "profiles",
        "memory",
        "heap",
        "out",
        "short",
        "against",
    ])?;
    let short = arguments.flag("short");
    let pick = |long: u64, brief: u64| if short { brief } else { long };
    let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
    let words = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let plan = Plan {
        rows: arguments.value("rows", pick(1_000_000, 50_000))?,
        batch_rows: arguments.value("batch-rows", pick(1_000_000, 20_000))?,
        seconds: arguments.value("seconds", pick(60, 4))?,
        warmup: arguments.value("warmup", pick(20, 3))?,
        threads: arguments.value("threads", 64)?,
        load_threads: arguments.value("load-threads", 32)?,
        rounds: arguments.value("rounds", 1)?,
        workloads: words(text("workloads", if short { WORKLOADS_SHORT } else { WORKLOADS })),
        memory: text("memory", if short { "1GiB" } else { "3GiB" }),
        heap: text("heap", if short { "1G" } else { "2G" }),
        cqlbatch: build_cqlbatch()?,
        against: arguments.text("against").map(PathBuf::from),
    };
    let profiles = words(text("profiles", if short { "latest" } else { "default,latest" }));
    let profiles: Vec<String> = profiles.into_iter().filter(|profile| profile != "none").collect();
    if !profiles.is_empty() {
        install_cassandra()?;
    }
    succeed(script("ycsb").arg("install"))?;
    let mut runs = Vec::new();
    for round in 1..=plan.rounds {
        println!("=== round {round} of {}", plan.rounds);
        runs.extend(peristyle(&plan, OURS, &binary()?)?);
        if let Some(before) = &plan.against {
            runs.extend(peristyle(&plan, BEFORE, before)?);
        }
        for profile in &profiles {
            runs.extend(cassandra(&plan, profile)?);
        }
    }
    if let Some(path) = arguments.text("out") {
        keep(Path::new(path), &runs)?;
    }
    Ok(report(&plan, &runs))
}

/// The plain client is one file on std alone: no manifest, no dependencies.
fn build_cqlbatch() -> Result<PathBuf, Failure> {
    let program = fresh_folder("compare/cqlbatch")?.join("cqlbatch");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2021", "-O", "-o"]).arg(&program).arg(root().join("lab/peers/cqlbatch.rs"));
    succeed(&mut rustc)?;
    Ok(program)
}

fn peristyle(plan: &Plan, system: &str, binary: &Path) -> Result<Vec<Run>, Failure> {
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory, "--memory-pretouch", "true"];
    let options = NodeOptions::new(fresh_folder("compare/peristyle")?.join("data"), &words);
    let node = Node::start_as(Command::new(binary), &options)?;
    let runs = workloads(plan, system, node.port, node.process_id())?;
    node.stop()?;
    fresh_folder("compare/peristyle")?;
    Ok(runs)
}

fn cassandra(plan: &Plan, profile: &str) -> Result<Vec<Run>, Failure> {
    let folder = fresh_folder(&format!("compare/cassandra-{profile}"))?;
    let node = Cassandra::start(&folder, profile, &plan.heap)?;
    let runs = workloads(plan, &format!("cassandra {profile}"), node.port, node.process_id);
    drop(node);
    fresh_folder(&format!("compare/cassandra-{profile}"))?;
    runs
}

fn workloads(plan: &Plan, system: &str, port: u16, pid: u32) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    let mut has_batch_rows = false;
    for workload in &plan.workloads {
        println!("--- {system}: {workload}");
        let result = match BATCHES.iter().find(|(name, _)| name == workload) {
            None => output(&mut ycsb(plan, workload, port, pid))?,
            Some((_, mode)) => {
                if !has_batch_rows {
                    output(&mut cqlbatch(plan, "schema", port, pid))?;
                    output(&mut cqlbatch(plan, "fill", port, pid))?;
                    has_batch_rows = true;
                }
                output(&mut cqlbatch(plan, mode, port, pid))?
            }
        };
        let run = Run {
            workload: workload.clone(),
            system: system.to_owned(),
            result: serde_json::from_str(&result)?,
        };
        println!("{}", line(&Figures::of(&[&run]), ""));
        runs.push(run);
        if workload == "load" {
            std::thread::sleep(REST);
        }
    }
    Ok(runs)
}

fn ycsb(plan: &Plan, workload: &str, port: u16, pid: u32) -> Command {
    let mut ycsb = script("ycsb");
    let mut threads = plan.threads;
    if workload == "load" {
        ycsb.arg("load");
        threads = plan.load_threads;
    } else {
        let (seconds, warmup) = (plan.seconds.to_string(), plan.warmup.to_string());
        ycsb.args(["run", workload, "--seconds", &seconds, "--warmup", &warmup]);
    }
    for (name, value) in
        [("--rows", plan.rows), ("--threads", threads), ("--port", port.into()), ("--server-pid", pid.into())]
    {
        ycsb.arg(name).arg(value.to_string());
    }
    ycsb
}

fn cqlbatch(plan: &Plan, mode: &str, port: u16, pid: u32) -> Command {
    let mut command = Command::new(&plan.cqlbatch);
    command.arg(mode);
    for (name, value) in [
        ("rows", plan.batch_rows),
        ("per", PER_REQUEST as u64),
        ("threads", 16),
        ("seconds", plan.seconds),
        ("warmup", plan.warmup),
        ("port", port.into()),
        ("server", pid.into()),
    ] {
        command.arg(format!("{name}={value}"));
    }
    command
}

/// One workload on one system: medians over the rounds, all failures.
struct Figures<'a> {
    workload: &'a str,
    system: &'a str,
    cpu_us: f64,
    per_second: f64,
    p99_us: f64,
    rss_mb: f64,
    failed: u64,
}

impl<'a> Figures<'a> {
    fn of(runs: &[&'a Run]) -> Figures<'a> {
        let middle = |figure: fn(&Run) -> f64| median(runs.iter().map(|run| figure(run)));
        Figures {
            workload: runs.first().map_or("", |run| &run.workload),
            system: runs.first().map_or("", |run| &run.system),
            cpu_us: middle(Run::cpu_us),
            per_second: middle(Run::per_second),
            p99_us: middle(Run::p99_us),
            rss_mb: middle(|run| run.number("server_rss_mb")),
            failed: runs.iter().map(|run| run.failed()).sum(),
        }
    }
}

fn line(figures: &Figures<'_>, verdict: &str) -> String {
    format!(
        "{:<9} {:<18} {:>9.2} {:>10.0} {:>10.0} {:>8.0} {:>7} {verdict}",
        figures.workload,
        figures.system,
        figures.cpu_us,
        figures.per_second,
        figures.p99_us,
        figures.rss_mb,
        figures.failed,
    )
}

fn report(plan: &Plan, runs: &[Run]) -> Tally {
    println!(
        "\n{} rows of 1 KB, {} threads, {} s each, both sides periodic sync, medians of {} (batch, in: per row)",
        plan.rows, plan.threads, plan.seconds, plan.rounds
    );
    println!(
        "{:<9} {:<18} {:>9} {:>10} {:>10} {:>8} {:>7} ratio",
        "workload", "system", "CPU us/op", "ops/s", "p99 us", "RSS MB", "failed"
    );
    let mut tally = Tally::default();
    for workload in &plan.workloads {
        let mut systems: Vec<&str> = Vec::new();
        for run in runs.iter().filter(|run| &run.workload == workload) {
            if !systems.contains(&run.system.as_str()) {
                systems.push(&run.system);
            }
        }
        let of_system = |system: &&str| {
            let found = runs.iter().filter(|run| &run.workload == workload && run.system == **system);
            Figures::of(&found.collect::<Vec<_>>())
        };
        let all: Vec<Figures<'_>> = systems.iter().map(of_system).collect();
        let peers = all.iter().filter(|figures| ![OURS, BEFORE].contains(&figures.system));
        let best = peers.map(|figures| figures.cpu_us).fold(f64::INFINITY, f64::min);
        let ours = all.iter().find(|figures| figures.system == OURS);
        for figures in &all {
            let (mut words, outcome) = verdict(workload, figures, best);
            if let (BEFORE, Some(ours)) = (figures.system, ours) {
                words = format!("{:+.1}% since", 100.0 * (ours.cpu_us / figures.cpu_us - 1.0));
            }
            println!("{}", line(figures, &words));
            tally += outcome;
        }
    }
    tally
}

/// What is said of a line, and what it counts: only ours is judged.
fn verdict(workload: &str, figures: &Figures<'_>, best_us: f64) -> (String, Tally) {
    if figures.system != OURS {
        return (String::new(), Tally::default());
    }
    let whole = if figures.failed == 0 { Tally::PASS } else { Tally::FAIL };
    if !best_us.is_finite() {
        return (String::new(), whole);
    }
    let aim = AIMS.iter().find(|(name, _)| *name == workload).map(|(_, aim)| *aim);
    let ratio = best_us / figures.cpu_us;
    let (words, judged) = Bars { floor: RATIO_MIN, aim }.judge(ratio, "x");
    (format!("{ratio:.2}x ({words})"), if whole.failed > 0 { whole } else { judged })
}

fn keep(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    let mut systems: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for run in runs {
        systems.entry(&run.system).or_default().push(json!({"workload": run.workload, "result": run.result}));
    }
    Ok(std::fs::write(path, serde_json::to_string_pretty(&systems)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: &str, system: &str, result: Value) -> Run {
        Run { workload: workload.to_owned(), system: system.to_owned(), result }
    }

    #[test]
    fn a_batch_is_counted_by_its_rows_and_everything_else_by_its_operations() {
        let batch = run("batch", "peristyle", json!({"server_cpu_s": 1.0, "requests": 1000, "errors": 0}));
        assert_eq!(batch.cpu_us(), 10.0);
        let read = run("c", "peristyle", json!({"server_cpu_s": 1.0, "ops": 1000, "READ": {"failed": 2}}));
        assert_eq!(read.cpu_us(), 1000.0);
        assert_eq!(read.failed(), 2);
    }

    #[test]
    fn a_list_of_keys_that_misses_rows_fails() {
        let missing = run("in", "peristyle", json!({"requests": 10, "rows_returned": 990}));
        assert_eq!(missing.failed(), 10);
    }

    #[test]
    fn the_ratio_is_of_medians_and_a_failed_operation_fails_whatever_the_ratio() {
        let runs: Vec<Run> = [1.0, 9.0, 2.0]
            .map(|cpu| run("c", "peristyle", json!({"server_cpu_s": cpu, "ops": 1_000_000})))
            .into();
        let figures = Figures::of(&runs.iter().collect::<Vec<_>>());
        assert_eq!(figures.cpu_us, 2.0);
        let (words, tally) = verdict("c", &figures, 26.0);
        assert_eq!((words.as_str(), tally), ("13.00x (aim 12x met)", Tally::PASS));
        let failed = Figures { failed: 1, ..figures };
        assert_eq!(verdict("c", &failed, 26.0).1, Tally::FAIL);
    }
}
