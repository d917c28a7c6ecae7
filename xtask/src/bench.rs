//! `cargo xtask bench`: `peristyle bench` as a user runs it, against a node: a run, its files, the same once more.
//!
//! What the figures are is not judged here, only that there are some: all answers were right, nothing failed, every
//! file is there and reads as what it is, and a second run takes the first one's manifest.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::node::{Node, NodeOptions, binary, fresh_folder};
use crate::peers::output;
use crate::report::{Failure, Tally, complain};

/// All kinds of operation that there are.
const WORKLOADS: &[&str] = &[
    "ycsb-a",
    "ycsb-d",
    "ycsb-e",
    "ycsb-f",
    "tlp-udt-timeseries",
    "tlp-locking",
    "tlp-maps",
    "stress-counter-write",
    "nb-tabular",
];
/// The one that is run twice.
const REPEATED: &str = "ycsb-a";
const FILES: &[&str] =
    &["report.html", "manifest.json", "results.json", "summary.json", "seconds.csv", "latencies.hlog"];

/// Runs it.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["seconds", "rows"])?;
    let (seconds, rows) = (arguments.value("seconds", 1u64)?, arguments.value("rows", 5_000u64)?);
    let folder = fresh_folder("bench")?;
    let node = Node::start(&NodeOptions::new(folder.join("data"), &["--shards", "1"]))?;
    let bench = |words: &[&str], out: &Path| {
        let mut command = Command::new(binary()?);
        command.arg("bench").args(words).args(["--target", &node.address()]).arg("--out").arg(out);
        command.args(["--server-pid", &node.process_id().to_string()]);
        output(&mut command)
    };
    let (seconds, rows) = (seconds.to_string(), rows.to_string());
    let pace =
        ["--rate", "500", "--warmup", "0.5", "--repetitions", "2", "--seconds", &seconds, "--rows", &rows];
    let mut tally = Tally::default();
    for workload in WORKLOADS {
        let out = folder.join(workload);
        let words: Vec<&str> = ["run", *workload].into_iter().chain(pace).collect();
        tally += judged(workload, bench(&words, &out).and_then(|_| check(&out)));
    }
    let again = folder.join("again");
    let manifest = folder.join(REPEATED).join("manifest.json").display().to_string();
    // Two runs of seconds need not agree, and then the program fails: it must have told, not more.
    let told =
        bench(&["repeat", &manifest, "--no-load"], &again).err().map_or_else(String::new, |e| e.to_string());
    tally += judged("repeat", check(&again).map_err(|error| Failure::new(format!("{error}; {told}"))));
    Ok(tally)
}

fn judged(name: &str, outcome: Result<(), Failure>) -> Tally {
    match outcome {
        Ok(()) => Tally::PASS,
        Err(failure) => {
            complain!("bench {name}: {failure}");
            Tally::FAIL
        }
    }
}

/// Are all files of a run there, and do they tell of operations that were right?
fn check(out: &Path) -> Result<(), Failure> {
    for file in FILES {
        let length = std::fs::metadata(out.join(file)).map(|found| found.len()).unwrap_or(0);
        if length == 0 {
            return Err(Failure::new(format!("{file} is missing or empty in {}", out.display())));
        }
    }
    let results: Value = serde_json::from_str(&std::fs::read_to_string(out.join("results.json"))?)
        .map_err(|error| Failure::new(format!("results.json: {error}")))?;
    let repetitions = results["repetitions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if repetitions.is_empty() {
        return Err(Failure::new("no repetition is there"));
    }
    for repetition in repetitions {
        let seconds = repetition["kinds"].as_array().into_iter().flatten();
        let second_count = seconds.map(|kind| kind["by_second"].as_array().map_or(0, Vec::len)).max();
        let is_clean = ["errors", "wrongs"]
            .iter()
            .all(|map| repetition[map].as_object().is_some_and(|map| map.is_empty()));
        let has_cpu = repetition["server_cpu_s"].as_f64().is_some_and(|cpu_s| cpu_s >= 0.0);
        if second_count < Some(1) || !is_clean || !has_cpu {
            return Err(Failure::new(format!("a repetition without seconds, or with faults: {repetition}")));
        }
    }
    Ok(())
}
