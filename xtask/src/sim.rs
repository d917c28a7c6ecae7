//! `cargo xtask sim`: the whole node under seeds, with power cuts, kills and changes of shards.
//!
//! Each seed runs twice and must repeat event by event; every answer is checked against a model. The
//! program is `simulate` of the `simulator` crate; a seed that fails leaves the line that repeats it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::arguments::Arguments;
use crate::process::cargo;
use crate::report::{Failure, Tally};

/// Runs `--seeds N` seeds from `--from S` on, or the one of `--seed S`. `--release` is several times faster, but leaves
/// out the checks that only debug builds have.
pub(crate) fn run(arguments: &Arguments) -> Result<Tally, Failure> {
    arguments.only(&["only", "seeds", "from", "seed", "events", "once", "plant", "plants", "release"])?;
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "peristyle-simulator", "--bin", "simulate"]);
    if arguments.flag("release") {
        command.arg("--release");
    }
    command.arg("--");
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
    if let Some(plant) = arguments.text("plant") {
        command.args(["--plant", plant]);
    }
    if arguments.flag("plants") {
        command.arg("--plants");
    }
    if arguments.flag("once") {
        command.arg("--once");
    }
    counted(&mut command)
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
    fn the_last_line_is_counted() {
        assert_eq!(tally_of("12 passed, 1 failed"), Some(Tally { passed: 12, failed: 1 }));
        assert_eq!(tally_of("seed 3: 12 events, digest 00"), None);
    }
}
