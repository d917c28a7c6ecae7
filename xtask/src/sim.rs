//! `cargo xtask sim`: the whole node under seeds, with power cuts, kills and changes of shards.
//!
//! Each seed runs twice and must repeat event by event; every answer is checked against a model. The
//! program is `simulate` of the `simulator` crate; a seed that fails leaves the line that repeats it.
//! With `--processes` it runs in two processes beside each other, each seed once in both, and what they say of each
//! must be the same, the hashes of its trace too.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::arguments::Arguments;
use crate::process::cargo;
use crate::report::{Failure, Tally};

/// Runs `--seeds N` seeds from `--from S` on, or the one of `--seed S`. It is built with the profile `sim`, which is
/// quick and has all checks of a debug build; `--release` leaves those out.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&[
        "only",
        "seeds",
        "from",
        "seed",
        "events",
        "once",
        "plant",
        "plants",
        "processes",
        "log",
        "release",
    ])?;
    let mut command = cargo();
    let profile = if arguments.flag("release") { "release" } else { "sim" };
    command.args(["run", "--quiet", "--profile", profile, "--package", "peristyle-simulator"]);
    command.args(["--bin", "simulate", "--"]);
    let (count, from): (u64, u64) = (arguments.value("seeds", 300)?, arguments.value("from", 1)?);
    match arguments.text("seed") {
        Some(_) => {
            let seed: u64 = arguments.value("seed", 0)?;
            command.args(["--seed".to_owned(), seed.to_string()]);
        }
        None => {
            command.args(["--seeds".to_owned(), count.to_string(), "--from".to_owned(), from.to_string()]);
        }
    }
    let event_count: u64 = arguments.value("events", 40)?;
    command.args(["--events".to_owned(), event_count.to_string()]);
    if let Some(kind) = arguments.text("only") {
        command.args(["--only", kind]);
    }
    if let Some(filter) = arguments.text("log") {
        command.args(["--log", filter]);
    }
    if let Some(plant) = arguments.text("plant") {
        command.args(["--plant", plant]);
    }
    if arguments.flag("plants") {
        command.arg("--plants");
    }
    if arguments.flag("once") || arguments.flag("processes") {
        command.arg("--once");
    }
    match arguments.flag("processes") {
        true => compared(&mut command),
        false => counted(&mut command),
    }
}

/// Runs the program in two processes, and counts the seeds of which both say the same.
fn compared(command: &mut Command) -> Result<Tally, Failure> {
    let start = |command: &mut Command| command.stdout(Stdio::piped()).spawn();
    // The second one finds the program built.
    let (child, beside) = (start(command)?, start(command)?);
    let beside = std::thread::spawn(move || beside.wait_with_output());
    let one = child.wait_with_output()?;
    let other = beside.join().map_err(|_| Failure::new("the second process was not read".to_owned()))??;
    let [one, other] = [one, other].map(|output| said_of_seeds(&String::from_utf8_lossy(&output.stdout)));
    if one.is_empty() {
        return Err(Failure::new("the simulation ended without a seed".to_owned()));
    }
    let mut tally = Tally { passed: 0, failed: 0 };
    for (seed, said) in &one {
        match other.get(seed) == Some(said) {
            true => tally.passed += 1,
            false => {
                tally.failed += 1;
                println!("{seed}: {said:?} in one process, and {:?} in the other", other.get(seed));
            }
        }
    }
    tally.failed += u64::try_from(other.keys().filter(|seed| !one.contains_key(*seed)).count()).unwrap_or(1);
    Ok(tally)
}

/// What the program has printed about each seed and kind of run, the hash of its trace at the end.
fn said_of_seeds(output: &str) -> BTreeMap<String, Vec<String>> {
    let mut said: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in output.lines().filter(|line| line.starts_with("seed ")) {
        match line.contains(": ") || line.contains(" fails") {
            true => said.entry(current.clone()).or_default().push(line.to_owned()),
            false => line.clone_into(&mut current),
        }
    }
    said
}

/// Runs the program, passing its output through, and reads its last line.
fn counted(command: &mut Command) -> Result<Tally, Failure> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut tally = None;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            let line = line?;
            tally = tally_of(&line);
            // The count is printed at the very end, with everything else.
            if tally.is_none() {
                println!("{line}");
            }
        }
    }
    let status = child.wait()?;
    match tally {
        Some(tally) if status.success() == (tally.failed == 0) => Ok(tally),
        _ => Err(Failure::new(format!("the simulation ended without counting: {status}"))),
    }
}

/// Reads `12 passed, 1 failed`.
fn tally_of(line: &str) -> Option<Tally> {
    let (passed, failed) = line.split_once(", ")?;
    let passed = passed.strip_suffix(" passed")?.parse().ok()?;
    let failed = failed.strip_suffix(" failed")?.parse().ok()?;
    Some(Tally { passed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_seed_is_told_apart_by_its_kind() {
        let output =
            "seed 1, raft\nseed 1: 7 events, digest 0a\nseed 1, ring\n  seed\nseed 1: 9 events, digest 0b\n";
        let said = said_of_seeds(output);
        assert_eq!(said["seed 1, raft"], ["seed 1: 7 events, digest 0a"]);
        assert_eq!(said["seed 1, ring"], ["seed 1: 9 events, digest 0b"]);
        assert_eq!(said.len(), 2);
    }

    #[test]
    fn the_last_line_is_counted() {
        assert_eq!(tally_of("12 passed, 1 failed"), Some(Tally { passed: 12, failed: 1 }));
        assert_eq!(tally_of("seed 3: 12 events, digest 00"), None);
    }
}
