//! `cargo xtask compare`: Peristyle and Cassandra under the same load, in one run.
//!
//! One server at a time, on loopback, with the same client: YCSB loads rows of 1 KB, then runs its
//! workloads. Both sides sync their commit log periodically. The client shares the cores with the
//! server, so the figure to compare is the server's CPU time for each operation; the ratio is
//! against the better of Cassandra's profiles. Any failed operation fails the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::node::{Node, NodeOptions, fresh_folder};
use crate::peers::{install_cassandra, output, script, succeed};
use crate::report::{Failure, Tally};

const CASSANDRA_PORT: u16 = 19162;
/// After a load, before the next workload: flushes and compactions come to rest.
const REST: Duration = Duration::from_secs(10);
/// What issue and design ask for: so many times less CPU than the better profile.
const RATIO_MIN: f64 = 4.0;

/// What is run, from the command line.
struct Plan {
    rows: u64,
    seconds: u64,
    warmup: u64,
    threads: u64,
    load_threads: u64,
    workloads: Vec<String>,
    memory: String,
    heap: String,
}

/// One workload on one server.
struct Run {
    workload: String,
    system: String,
    /// As YCSB's script printed it.
    result: Value,
}

impl Run {
    fn number(&self, name: &str) -> f64 {
        self.result.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// Microseconds of server CPU for one operation.
    fn cpu_us(&self) -> f64 {
        self.number("server_cpu_s") * 1e6 / self.number("ops")
    }

    fn operations(&self) -> impl Iterator<Item = &Value> {
        let names = ["READ", "UPDATE", "INSERT", "SCAN", "READ-MODIFY-WRITE"];
        names.into_iter().filter_map(|name| self.result.get(name))
    }

    fn p99_us(&self) -> f64 {
        let values = self.operations().filter_map(|operation| operation["p99_us"].as_f64());
        values.fold(0.0, f64::max)
    }

    fn failed(&self) -> u64 {
        let failed: u64 = self.operations().filter_map(|operation| operation["failed"].as_u64()).sum();
        failed + self.result["error_lines"].as_u64().unwrap_or(0)
    }
}

/// Runs all systems, prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "rows",
        "seconds",
        "warmup",
        "threads",
        "load-threads",
        "workloads",
        "profiles",
        "memory",
        "heap",
        "out",
    ])?;
    let text = |name: &str, default: &str| arguments.text(name).unwrap_or(default).to_owned();
    let words = |text: String| text.split(',').map(str::to_owned).collect::<Vec<_>>();
    let plan = Plan {
        rows: arguments.value("rows", 1_000_000)?,
        seconds: arguments.value("seconds", 60)?,
        warmup: arguments.value("warmup", 20)?,
        threads: arguments.value("threads", 64)?,
        load_threads: arguments.value("load-threads", 32)?,
        workloads: words(text("workloads", "load,c,a")),
        memory: text("memory", "2GiB"),
        heap: text("heap", "2G"),
    };
    install_cassandra()?;
    succeed(script("ycsb").arg("install"))?;
    let mut runs = peristyle(&plan)?;
    for profile in words(text("profiles", "default,latest")).into_iter().filter(|profile| profile != "none") {
        runs.extend(cassandra(&plan, &profile)?);
    }
    if let Some(path) = arguments.text("out") {
        keep(Path::new(path), &runs)?;
    }
    Ok(report(&plan, &runs))
}

fn peristyle(plan: &Plan) -> Result<Vec<Run>, Failure> {
    let words = ["--commitlog-sync", "periodic", "--memory", &plan.memory].map(str::to_owned).to_vec();
    let node =
        Node::start(&NodeOptions { data: fresh_folder("compare/peristyle")?.join("data"), port: 0, words })?;
    let runs = workloads(plan, "peristyle", node.port, node.process_id())?;
    node.stop()?;
    Ok(runs)
}

fn cassandra(plan: &Plan, profile: &str) -> Result<Vec<Run>, Failure> {
    let folder = fresh_folder(&format!("compare/cassandra-{profile}"))?;
    let port = CASSANDRA_PORT.to_string();
    let ports = ["--port", &port, "--storage-port", "17020", "--jmx-port", "17219"];
    let mut start = script("cassandra");
    start.args(["start", "--heap", &plan.heap, "--fast", "--sync", "periodic", "--profile", profile]);
    succeed(start.args(ports).arg("--dir").arg(&folder))?;
    let pid: u32 = std::fs::read_to_string(folder.join("pid"))?.trim().parse()?;
    let runs = workloads(plan, &format!("cassandra {profile}"), CASSANDRA_PORT, pid);
    succeed(script("cassandra").args(["stop", "--dir"]).arg(&folder))?;
    runs
}

fn workloads(plan: &Plan, system: &str, port: u16, pid: u32) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for workload in &plan.workloads {
        let mut ycsb = script("ycsb");
        let mut threads = plan.threads;
        if workload == "load" {
            ycsb.arg("load");
            threads = plan.load_threads;
        } else {
            ycsb.args([
                "run",
                workload,
                "--seconds",
                &plan.seconds.to_string(),
                "--warmup",
                &plan.warmup.to_string(),
            ]);
        }
        for (name, value) in [
            ("--rows", plan.rows),
            ("--threads", threads),
            ("--port", port.into()),
            ("--server-pid", pid.into()),
        ] {
            ycsb.arg(name).arg(value.to_string());
        }
        println!("--- {system}: {workload}");
        let run = Run {
            workload: workload.clone(),
            system: system.to_owned(),
            result: serde_json::from_str(&output(&mut ycsb)?)?,
        };
        println!("{}", line(&run, None));
        runs.push(run);
        if workload == "load" {
            std::thread::sleep(REST);
        }
    }
    Ok(runs)
}

fn line(run: &Run, ratio: Option<f64>) -> String {
    format!(
        "{:<9} {:<18} {:>9.2} {:>10.0} {:>10.0} {:>8.0} {:>7} {:>8}",
        run.workload,
        run.system,
        run.cpu_us(),
        run.number("ops_per_s"),
        run.p99_us(),
        run.number("server_rss_mb"),
        run.failed(),
        ratio.map(|ratio| format!("{ratio:.2}x")).unwrap_or_default(),
    )
}

fn report(plan: &Plan, runs: &[Run]) -> Tally {
    println!(
        "\n{} rows of 1 KB, {} threads, {} s each, both sides periodic sync",
        plan.rows, plan.threads, plan.seconds
    );
    println!(
        "{:<9} {:<18} {:>9} {:>10} {:>10} {:>8} {:>7} {:>8}",
        "workload", "system", "CPU us/op", "ops/s", "p99 us", "RSS MB", "failed", "ratio"
    );
    let mut tally = Tally::default();
    for workload in &plan.workloads {
        let of_workload = || runs.iter().filter(|run| &run.workload == workload);
        let peers = of_workload().filter(|run| run.system != "peristyle").map(Run::cpu_us);
        let best = peers.fold(f64::INFINITY, f64::min);
        for run in of_workload() {
            let ratio = (run.system == "peristyle" && best.is_finite()).then(|| best / run.cpu_us());
            println!("{}", line(run, ratio));
            if run.system == "peristyle" {
                let good = run.failed() == 0 && ratio.is_none_or(|ratio| ratio >= RATIO_MIN);
                tally += if good { Tally::PASS } else { Tally::FAIL };
            }
        }
    }
    tally
}

fn keep(path: &Path, runs: &[Run]) -> Result<(), Failure> {
    let mut systems: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for run in runs {
        systems.entry(&run.system).or_default().push(json!({"workload": run.workload, "result": run.result}));
    }
    Ok(std::fs::write(path, serde_json::to_string_pretty(&systems)?)?)
}
