//! Thousands of connections, each with up to a thousand requests outstanding, by the load program.

use std::process::Command;

use super::arena::Arena;
use crate::crash::Dice;
use crate::measure::{build_load, files_max, load, loaded};
use crate::report::Failure;

/// Words for `peristyle serve`: all of the crowd comes from one address.
pub(super) const WORDS: &[&str] = &["--connections-max", "11000", "--connections-max-per-address", "11000"];

const ROWS: u64 = 10_000;
const WINDOW: u64 = 1_000;
/// Files that are open beside the sockets of the crowd.
const FILES_SPARE: u64 = 200;

/// The most, and what a node with little memory is asked to hold, as far as this process may open files.
fn connections(arena: &Arena) -> u64 {
    let files = files_max().unwrap_or(1024).saturating_sub(FILES_SPARE);
    (arena.memory_bytes >> 20).saturating_mul(20).min(10_000).min(files)
}

fn words(arena: &Arena, command: &str) -> Vec<String> {
    vec![
        command.to_owned(),
        format!("port={}", arena.port),
        "statement=read".to_owned(),
        format!("rows={ROWS}"),
    ]
}

/// Writes the rows that the crowd reads.
pub(super) fn fill(arena: &Arena) -> Result<(), Failure> {
    build_load()?;
    let mut words = words(arena, "fill");
    words.push(format!("replicas={}", arena.replicas));
    loaded(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(|_| ())
}

/// Has the crowd ask until the attack is over.
pub(super) fn act(arena: &Arena, dice: &mut Dice) -> Result<u64, Failure> {
    let mut command: Command = load(&[]);
    command.args(words(arena, "drive"));
    command.arg(format!("server={}", arena.process_id));
    command.args([format!("connections={}", connections(arena)), format!("window={WINDOW}")]);
    command.args([
        "seconds=600",
        "warmup=0",
        if dice.between(0, 4) == 0 { "answers=left" } else { "answers=read" },
    ]);
    let mut crowd = command.stdout(std::process::Stdio::null()).spawn()?;
    while !arena.is_over() && crowd.try_wait()?.is_none() {
        arena.sleep(std::time::Duration::from_millis(100));
    }
    // It may have ended by itself.
    let _ = crowd.kill();
    crowd.wait()?;
    Ok(connections(arena))
}
