//! `up` and `start`: nodes are started, and waited for until they serve.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::DEFAULT_DIRECTORY;
use super::description::{Claim, Description};
use super::down;
use super::error::ClusterError;
use super::layout::{Machine, Wanted};
use super::node;

/// How often nodes are asked whether they serve.
const POLL: Duration = Duration::from_millis(100);
/// How long nodes may take; one that replays a long log takes minutes.
const SERVE_MAX: Duration = Duration::from_secs(600);
/// So much of its log is shown of a node that did not start.
const SHOWN_LINES: usize = 20;

/// Starts the nodes of a directory, of a cluster that is made if there is none.
pub(super) fn up(directory: &Path, wanted: &Wanted, out: &mut impl Write) -> Result<(), ClusterError> {
    let claim = Claim::make(directory)?;
    let machine = Machine::of_this_process();
    let mut cluster = match claim.description()? {
        Some(known) => known_cluster(directory, wanted, machine, known)?,
        None => new_cluster(directory, wanted, machine)?,
    };
    let numbers: Vec<usize> = (1..=cluster.nodes.len()).collect();
    bring_up(&claim, &mut cluster, &numbers, out)?;
    tell_how_to_go_on(directory, &cluster, out)
}

/// All that is in its nodes' directories will be theirs, to be deleted with them.
fn new_cluster(directory: &Path, wanted: &Wanted, machine: Machine) -> Result<Description, ClusterError> {
    let cluster = wanted.lay_out(machine)?;
    let files = (1..=cluster.nodes.len()).map(|number| node::files(directory, number));
    match files.flat_map(|(data, log)| [data, log]).find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(ClusterError::InTheWay(path)),
        None => Ok(cluster),
    }
}

/// A cluster that is down is started as it is.
fn known_cluster(
    directory: &Path,
    wanted: &Wanted,
    machine: Machine,
    known: Description,
) -> Result<Description, ClusterError> {
    let directory = directory.to_owned();
    let running_count = known.running().len();
    if running_count > 0 {
        return Err(ClusterError::IsUp { directory, running_count, count: known.nodes.len() });
    }
    match wanted.difference(&known, machine)? {
        Some((flag, given, known)) => Err(ClusterError::Differs { directory, flag, given, known }),
        None => Ok(known),
    }
}

/// Starts one node that is down, with another number of shards if one is given.
pub(super) fn start(
    directory: &Path,
    number: usize,
    shards: Option<u16>,
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    let (claim, mut cluster) = with_node_down(directory, number, shards)?;
    bring_up(&claim, &mut cluster, &[number], out)
}

/// A cluster of which that node is down, and is to have so many shards.
fn with_node_down(
    directory: &Path,
    number: usize,
    shards: Option<u16>,
) -> Result<(Claim, Description), ClusterError> {
    let (claim, mut cluster) = Claim::with_cluster(directory)?;
    let node = cluster.node_mut(number)?;
    if node.runs() {
        return Err(ClusterError::Running(number));
    }
    node.shards = shards.unwrap_or(node.shards);
    Ok((claim, cluster))
}

/// Starts one node that is down, without its disk, in its own place.
pub(super) fn replace(
    directory: &Path,
    number: usize,
    shards: Option<u16>,
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    let (claim, mut cluster) = with_node_down(directory, number, shards)?;
    cluster.node_mut(number)?.replaces_itself = true;
    // First: a node that finds its directory empty does not come in otherwise.
    claim.save(&cluster)?;
    let (data, _) = node::files(directory, number);
    down::deleted(fs::remove_dir_all(&data), &data)?;
    bring_up(&claim, &mut cluster, &[number], out)
}

/// Starts these nodes and waits until all of them serve; if one does not, none of them is left.
fn bring_up(
    claim: &Claim,
    cluster: &mut Description,
    numbers: &[usize],
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    for number in numbers {
        cluster.node(*number)?.check_ports(cluster.ports)?;
    }
    let outcome =
        start_all(claim, cluster, numbers).and_then(|()| wait_until_served(claim, cluster, numbers, out));
    if outcome.is_err() {
        // Why they did not start is what matters; a node that does not end either is seen in `status`.
        let _ = down::stop(claim, cluster, numbers);
    }
    outcome
}

fn start_all(claim: &Claim, cluster: &mut Description, numbers: &[usize]) -> Result<(), ClusterError> {
    for number in numbers {
        let process = node::start(claim.directory(), cluster, *number)?;
        let node = cluster.node_mut(*number)?;
        (node.process, node.is_killed) = (Some(process), false);
        // At once: who interrupts us finds all that runs.
        claim.save(cluster)?;
    }
    Ok(())
}

fn wait_until_served(
    claim: &Claim,
    cluster: &Description,
    numbers: &[usize],
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    let started = Instant::now();
    let mut waiting = numbers.to_vec();
    while let Some(first) = waiting.first() {
        if started.elapsed() > SERVE_MAX {
            let (_, log) = node::files(claim.directory(), *first);
            return Err(ClusterError::NotServing { number: *first, seconds: SERVE_MAX.as_secs(), log });
        }
        std::thread::sleep(POLL);
        for number in std::mem::take(&mut waiting) {
            let node = cluster.node(number)?;
            if !node.runs() {
                return Err(ended(claim.directory(), number));
            }
            match node.serves(cluster.ports) {
                true => tell_that_it_serves(cluster, number, out)?,
                false => waiting.push(number),
            }
        }
    }
    Ok(())
}

fn tell_that_it_serves(
    cluster: &Description,
    number: usize,
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    let address = cluster.node(number)?.cql_address(cluster.ports);
    // That nobody reads it (`| head`) is no reason to stop the nodes.
    let _ = writeln!(out, "node {number} of {} serves on {address}", cluster.nodes.len());
    let _ = out.flush();
    Ok(())
}

fn ended(directory: &Path, number: usize) -> ClusterError {
    let (_, log) = node::files(directory, number);
    let end = node::log_end(directory, number, SHOWN_LINES).unwrap_or_else(|error| error.to_string());
    ClusterError::Ended { number, log, end }
}

fn tell_how_to_go_on(
    directory: &Path,
    cluster: &Description,
    out: &mut impl Write,
) -> Result<(), ClusterError> {
    let program = std::env::args().next().unwrap_or_else(|| "peristyle".to_owned());
    let first = cluster.node(1)?.cql_address(cluster.ports);
    let (host, port) = (first.ip(), first.port());
    let is_default = std::path::absolute(DEFAULT_DIRECTORY).is_ok_and(|default| default == directory);
    let place = if is_default { String::new() } else { format!(" --data-dir {}", directory.display()) };
    writeln!(out, "\nThe nodes go on serving. To ask them:\n\n  {program} cqlsh {host} {port}")?;
    writeln!(out, "\nTo look at them, and to stop them:\n")?;
    writeln!(out, "  {program} cluster{place} status")?;
    writeln!(out, "  {program} cluster{place} down")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_cluster_is_not_taken_into_it() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine { core_count: 2, memory_bytes: None };
        let make = || new_cluster(directory.path(), &Wanted::default(), machine);
        assert_eq!(make().unwrap().nodes.len(), 3);
        std::fs::create_dir(directory.path().join("node-4")).unwrap();
        assert!(make().is_ok(), "of no node of it");
        let log = directory.path().join("node-3.log");
        std::fs::write(&log, "somebody's").unwrap();
        let expected = format!("{} is in the way: it is no file of a cluster", log.display());
        assert_eq!(make().unwrap_err().to_string(), expected);
    }
}
