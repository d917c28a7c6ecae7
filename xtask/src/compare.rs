//! `cargo xtask compare`: Peristyle and Cassandra under the same load, in one run.
//!
//! One server at a time, on loopback, with the same client, `peristyle bench run` (see [`Load`]): it loads rows of 1
//! KB, then runs YCSB's workloads in a fixed order (updates leave rows spread over several table files, so the reads
//! after them cost more), then unlogged batches and lists of keys. The loop is closed: `--in-flight` operations of YCSB
//! are always under way, 16 batches or lists, and 256 rows of a load.
//!
//! Both sides sync their commit log periodically. The client shares the cores with the server, so the
//! figure to compare is the server's CPU time for each operation; the ratio is against the better of
//! Cassandra's profiles, medians over the rounds. Any operation that failed or was answered wrongly fails the run,
//! of either system: the CPU time that it took would be charged to those that went well. Another binary of ours
//! (`--against`) takes its turn after the first, in every round: what it needed before a change. The client is always
//! the first.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::lab::{Load, Measured, Mix, Pace};
use crate::measure::{Bars, Cassandra, mebibytes, median};
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::peers::install_cassandra;
use crate::report::{Failure, Tally, complain};

/// After a load, before the next workload: flushes and compactions come to rest.
const REST: Duration = Duration::from_secs(10);
/// So many times less CPU than the better profile, or the run fails.
const RATIO_MIN: f64 = 4.0;
/// The systems that are ours: the binary that was built, and the one it is held against.
const OURS: &str = "peristyle";
const BEFORE: &str = "before";
const KEYSPACE: &str = "compare";
const LOAD: &str = "load";
/// YCSB's workloads, each `bench`'s by this letter.
const YCSB: &[&str] = &["a", "b", "c", "d", "e", "f", "u"];
/// Whose rows the load writes: they are the same for all of them.
const LOADED: &str = "c";
/// Those of the text `batches`, and what each is of it.
const BATCHES: &[(&str, Mix)] = &[("batch", &[("writes", 1)]), ("in", &[("reads", 1)])];
/// Rows of a batch, keys of a list.
const PER_REQUEST: f64 = 100.0;
/// Batches and lists under way, each on a connection of its own.
const BATCH_CLIENTS: u64 = 16;
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
    /// Operations of YCSB under way.
    in_flight: u64,
    rounds: u64,
    workloads: Vec<String>,
    memory: String,
    heap: String,
    /// Another binary of ours.
    against: Option<PathBuf>,
}

/// One workload on one server in one round.
struct Run {
    workload: String,
    system: String,
    measured: Measured,
}

impl Run {
    /// What an operation counts for: of batches and lists each row.
    fn weight(&self) -> f64 {
        if batches(&self.workload).is_some() { PER_REQUEST } else { 1.0 }
    }

    /// Microseconds of server CPU for one operation, or one row of a batch.
    fn cpu_us(&self) -> f64 {
        self.measured.server_cpu_us() / self.weight()
    }

    fn per_second(&self) -> f64 {
        self.measured.rate() * self.weight()
    }

    fn p99_us(&self) -> f64 {
        self.measured.response_ms("p99_us") * 1e3
    }
}

/// What a workload is of the text `batches`, if it is of that.
fn batches(workload: &str) -> Option<Mix> {
    BATCHES.iter().find(|(name, _)| *name == workload).map(|(_, mix)| *mix)
}

/// Runs all systems, prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "batch-rows",
        "seconds",
        "warmup",
        "in-flight",
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
        in_flight: arguments.value("in-flight", 64)?,
        rounds: arguments.value("rounds", 1)?,
        workloads: words(text("workloads", if short { WORKLOADS_SHORT } else { WORKLOADS })),
        memory: text("memory", if short { "1GiB" } else { "3GiB" }),
        heap: text("heap", if short { "1G" } else { "2G" }),
        against: arguments.text("against").map(PathBuf::from),
    };
    let is_known = |name: &str| name == LOAD || YCSB.contains(&name) || batches(name).is_some();
    if let Some(name) = plan.workloads.iter().find(|name| !is_known(name)) {
        return Err(Failure::new(format!("there is no workload '{name}'")));
    }
    let profiles = words(text("profiles", if short { "latest" } else { "default,latest" }));
    let profiles: Vec<String> = profiles.into_iter().filter(|profile| profile != "none").collect();
    if !profiles.is_empty() {
        install_cassandra()?;
    }
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

fn peristyle(plan: &Plan, system: &str, binary: &Path) -> Result<Vec<Run>, Failure> {
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory, "--memory-pretouch", "true"];
    let options = NodeOptions::new(fresh_folder("compare/peristyle")?.join("data"), &words);
    let node = Node::start_as(Command::new(binary), &options)?;
    let runs = workloads(plan, system, &node.address(), node.process_id())?;
    node.stop()?;
    fresh_folder("compare/peristyle")?;
    Ok(runs)
}

fn cassandra(plan: &Plan, profile: &str) -> Result<Vec<Run>, Failure> {
    let folder = fresh_folder(&format!("compare/cassandra-{profile}"))?;
    let node = Cassandra::start(&folder, profile, &plan.heap)?;
    let runs = workloads(plan, &format!("cassandra {profile}"), &node.address(), node.process_id);
    drop(node);
    fresh_folder(&format!("compare/cassandra-{profile}"))?;
    runs
}

fn workloads(plan: &Plan, system: &str, address: &str, process_id: u32) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    // Of the table of YCSB's workloads, and of that of batches: are its rows there?
    let mut has_rows = [false; 2];
    for workload in &plan.workloads {
        println!("--- {system}: {workload}");
        let load = load(plan, workload, address).served_by(&[process_id]);
        let has_rows = &mut has_rows[usize::from(batches(workload).is_some())];
        let measured = match workload.as_str() {
            LOAD => load.fill()?,
            _ if *has_rows => load.has_rows().run()?,
            _ => load.run()?,
        };
        *has_rows = true;
        if measured.failed() > 0 {
            complain!("{system}, {workload}: {}", measured.faults());
        }
        let run = Run { workload: workload.clone(), system: system.to_owned(), measured };
        println!("{}", line(&Figures::of(&[&run]), ""));
        runs.push(run);
        if workload == LOAD {
            std::thread::sleep(REST);
        }
    }
    Ok(runs)
}

/// As many under way as there were threads when the client was stock YCSB; all of it on one connection, as the Java
/// driver has it.
fn load(plan: &Plan, workload: &str, address: &str) -> Load {
    let load = match batches(workload) {
        Some(mix) => Load::new("batches", address, Pace::InFlight(BATCH_CLIENTS))
            .with("connections", BATCH_CLIENTS)
            .with("rows", plan.batch_rows)
            .mix(mix),
        None => {
            let letter = if workload == LOAD { LOADED } else { workload };
            Load::new(&format!("ycsb-{letter}"), address, Pace::InFlight(plan.in_flight))
                .with("connections", 1)
                .with("rows", plan.rows)
        }
    };
    load.with("keyspace", KEYSPACE).with("seconds", plan.seconds).with("warmup", plan.warmup)
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
            rss_mb: middle(|run| mebibytes(run.measured.server_resident_bytes())),
            failed: runs.iter().map(|run| run.measured.failed()).sum(),
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
        "\n{} rows of 1 KB, {} under way, {} s each, both sides periodic sync, medians of {} (batch, in: per row)",
        plan.rows, plan.in_flight, plan.seconds, plan.rounds
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

/// What is said of a line, and what it counts: only of ours the figures are judged.
fn verdict(workload: &str, figures: &Figures<'_>, best_us: f64) -> (String, Tally) {
    let is_sound = figures.failed == 0 && figures.cpu_us.is_finite();
    let whole = if is_sound { Tally::PASS } else { Tally::FAIL };
    if figures.system != OURS {
        return (String::new(), if is_sound { Tally::default() } else { whole });
    }
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
        systems
            .entry(&run.system)
            .or_default()
            .push(json!({"workload": run.workload, "result": run.measured.kept()}));
    }
    Ok(std::fs::write(path, serde_json::to_string_pretty(&systems)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(workload: &str, result: Value) -> Run {
        let measured = Measured::of(result);
        Run { workload: workload.to_owned(), system: OURS.to_owned(), measured }
    }

    #[test]
    fn a_batch_is_counted_by_its_rows_and_everything_else_by_its_operations() {
        let batch = run("batch", json!({"server_cpu_s": 1.0, "count": 1000, "rate": 50}));
        assert_eq!((batch.cpu_us(), batch.per_second()), (10.0, 5000.0));
        let read = run("c", json!({"server_cpu_s": 1.0, "count": 1000, "rate": 50}));
        assert_eq!((read.cpu_us(), read.per_second()), (1000.0, 50.0));
    }

    #[test]
    fn the_ratio_is_of_medians_and_a_failed_operation_fails_whatever_the_ratio() {
        let runs: Vec<Run> = [1.0, 9.0, 2.0]
            .map(|cpu| run("c", json!({"server_cpu_s": cpu, "count": 1_000_000, "wrong_count": 0})))
            .into();
        let figures = Figures::of(&runs.iter().collect::<Vec<_>>());
        assert_eq!(figures.cpu_us, 2.0);
        let (words, tally) = verdict("c", &figures, 26.0);
        assert_eq!((words.as_str(), tally), ("13.00x (aim 12x met)", Tally::PASS));
        let wrong = [run("c", json!({"server_cpu_s": 1.0, "count": 1_000_000, "wrong_count": 1}))];
        let wrong = Figures::of(&wrong.iter().collect::<Vec<_>>());
        assert_eq!(verdict("c", &wrong, 26.0).1, Tally::FAIL);
        let nothing = Figures { cpu_us: f64::NAN, ..figures };
        assert_eq!(verdict("c", &nothing, f64::INFINITY).1, Tally::FAIL);
    }

    #[test]
    fn a_failed_operation_of_others_fails_and_their_figures_do_not() {
        let theirs = |failed| Figures {
            workload: "c",
            system: "cassandra latest",
            cpu_us: 26.0,
            per_second: 1.0,
            p99_us: 1.0,
            rss_mb: 1.0,
            failed,
        };
        assert_eq!(verdict("c", &theirs(0), 26.0), (String::new(), Tally::default()));
        assert_eq!(verdict("c", &theirs(1), 26.0).1, Tally::FAIL);
    }
}
