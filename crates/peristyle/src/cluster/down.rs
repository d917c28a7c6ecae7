//! `down`: all nodes are stopped in order, and forgotten if that is wished.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::description::{Claim, Description};
use super::error::ClusterError;
use super::node::{self, Node};

const POLL: Duration = Duration::from_millis(20);
/// How long nodes may take to stop: a node gives itself 20 s, and then ends in any case.
const STOP_MAX: Duration = Duration::from_secs(25);

pub(super) fn down(directory: &Path, remove: bool, out: &mut impl Write) -> Result<(), ClusterError> {
    let (claim, mut cluster) = Claim::with_cluster(directory)?;
    let running_count = cluster.running().len();
    let numbers: Vec<usize> = (1..=cluster.nodes.len()).collect();
    stop(&claim, &mut cluster, &numbers)?;
    writeln!(out, "{running_count} of {} nodes ran; none runs now", numbers.len())?;
    if remove {
        numbers.iter().try_for_each(|number| remove_files(directory, *number))?;
        claim.forget()?;
        writeln!(out, "what they had written is deleted")?;
    }
    Ok(())
}

/// Stops these nodes in order, all at once.
///
/// # Errors
/// One of them does not end in time; of the others it is noted that they did.
pub(super) fn stop(claim: &Claim, cluster: &mut Description, numbers: &[usize]) -> Result<(), ClusterError> {
    for number in numbers {
        ask_to_end(*number, cluster.node(*number)?)?;
    }
    let asked = Instant::now();
    let mut outcome = Ok(());
    for number in numbers {
        let node = cluster.node_mut(*number)?;
        match has_ended(node, STOP_MAX.saturating_sub(asked.elapsed())) {
            true => (node.process, node.is_killed) = (None, false),
            false => outcome = Err(ClusterError::NotEnding { number: *number }),
        }
    }
    claim.save(cluster)?;
    outcome
}

/// A node that is paused learns of it when it goes on.
fn ask_to_end(number: usize, node: &Node) -> Result<(), ClusterError> {
    let Some(process) = &node.process else { return Ok(()) };
    let signals = [Signal::TERM, Signal::CONT];
    let outcome = signals.into_iter().try_for_each(|signal| process.signal(signal));
    outcome.map_err(|source| ClusterError::Signal { number, source })
}

/// Waits so long for a node to end; does it?
pub(super) fn has_ended(node: &Node, within: Duration) -> bool {
    let begun = Instant::now();
    while node.runs() {
        if begun.elapsed() >= within {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

fn remove_files(directory: &Path, number: usize) -> Result<(), ClusterError> {
    let (data, log) = node::files(directory, number);
    deleted(fs::remove_dir_all(&data), &data)?;
    deleted(fs::remove_file(&log), &log)
}

/// What is not there is deleted, too.
pub(super) fn deleted(outcome: io::Result<()>, path: &Path) -> Result<(), ClusterError> {
    match outcome {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(ClusterError::file("delete", path, source))
        }
        _ => Ok(()),
    }
}
