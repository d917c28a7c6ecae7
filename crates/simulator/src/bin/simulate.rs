//! Runs seeds of the simulation: `simulate [--seeds N] [--seed S] [--events N]`.
//!
//! Every seed runs twice, and the two runs must agree on every event. The seed is printed first and
//! last; a failed one leaves the line that repeats it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool for the terminal")]

use std::process::ExitCode;

use simulator::{Outcome, simulate};

/// What to run.
struct Options {
    first: u64,
    count: u64,
    event_count: usize,
    once: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { first: 1, count: 20, event_count: 40, once: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--once" {
            options.once = true;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number: u64 = value.parse().map_err(|_| format!("{word} does not take {value}"))?;
        match word.as_str() {
            "--seeds" => options.count = number,
            "--seed" => (options.first, options.count) = (number, 1),
            "--from" => options.first = number,
            "--events" => options.event_count = number as usize,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\nusage: simulate [--seeds N] [--from S] [--seed S] [--events N] [--once]");
            return ExitCode::from(2);
        }
    };
    let (mut passed, mut failed) = (0, 0);
    for seed in options.first..options.first.saturating_add(options.count) {
        println!("seed {seed}");
        let outcome = simulate(seed);
        let again = if options.once { outcome.clone() } else { simulate(seed) };
        if report(&outcome, &again, options.event_count) {
            passed += 1;
        } else {
            failed += 1;
            println!("to repeat: cargo xtask sim --seed {seed}");
        }
        println!("seed {seed}: {} events, digest {:016x}", outcome.events.count(), outcome.events.digest());
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Did both runs go well and alike? Prints what did not.
fn report(outcome: &Outcome, again: &Outcome, event_count: usize) -> bool {
    if let Some(violation) = &outcome.violation {
        for line in outcome.events.last(event_count) {
            println!("  {line}");
        }
        println!("seed {} fails: {violation}", outcome.seed);
        return false;
    }
    if outcome.events != again.events {
        let pairs = outcome.events.last(usize::MAX).iter().zip(again.events.last(usize::MAX));
        let differing = pairs.enumerate().find(|(_, (first, second))| first != second);
        println!("seed {} does not repeat: {differing:?}", outcome.seed);
        return false;
    }
    true
}
