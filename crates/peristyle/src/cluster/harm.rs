//! What can be done to nodes, so that one sees what a ring bears: `kill`, `pause` and `resume`, `cut` and `heal`.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use super::description::{self, Claim, Description};
use super::down::has_ended;
use super::error::ClusterError;
use super::node::Node;
use super::process::{ProcessId, ProcessState};
use crate::nodetool::NodetoolError;

/// How long the kernel may take to end a process.
const KILL_MAX: Duration = Duration::from_secs(10);
/// Tells a node to hear and answer another one no more; `address` is that one's.
const CUT_PATH: &str = "/ring/cut";
/// Tells a node to hear all others again.
const HEAL_PATH: &str = "/ring/heal";

pub(super) fn kill(directory: &Path, number: usize, out: &mut impl Write) -> Result<(), ClusterError> {
    let (claim, mut cluster) = Claim::with_cluster(directory)?;
    hurt(&cluster, number, |process| process.signal(Signal::KILL))?;
    let node = cluster.node_mut(number)?;
    if !has_ended(node, KILL_MAX) {
        return Err(ClusterError::NotEnding { number });
    }
    (node.process, node.is_killed) = (None, true);
    claim.save(&cluster)?;
    Ok(writeln!(out, "node {number} is killed")?)
}

pub(super) fn pause(directory: &Path, number: usize, out: &mut impl Write) -> Result<(), ClusterError> {
    hurt(&description::look(directory)?, number, ProcessId::pause)?;
    Ok(writeln!(out, "node {number} is paused")?)
}

pub(super) fn resume(directory: &Path, number: usize, out: &mut impl Write) -> Result<(), ClusterError> {
    hurt(&description::look(directory)?, number, |process| process.signal(Signal::CONT))?;
    Ok(writeln!(out, "node {number} goes on")?)
}

/// Does that to a node that runs.
fn hurt(
    cluster: &Description,
    number: usize,
    how: impl FnOnce(&ProcessId) -> io::Result<()>,
) -> Result<(), ClusterError> {
    match &cluster.node(number)?.process {
        Some(process) if process.state() != ProcessState::Ended => {
            how(process).map_err(|source| ClusterError::Signal { number, source })
        }
        _ => Err(ClusterError::NotRunning(number)),
    }
}

/// Neither of the two hears the other from now on.
pub(super) fn cut(directory: &Path, pair: [usize; 2], out: &mut impl Write) -> Result<(), ClusterError> {
    let cluster = description::look(directory)?;
    let [one, other] = pair;
    if one == other {
        return Err(ClusterError::CutFromItself);
    }
    for number in pair {
        check_answering(number, cluster.node(number)?)?;
    }
    for (number, from) in [(one, other), (other, one)] {
        let address = cluster.node(from)?.address.to_string();
        order(&cluster, number, CUT_PATH, &[("address", &address)])?;
    }
    Ok(writeln!(out, "nodes {one} and {other} are cut off from each other")?)
}

/// All nodes that run hear each other again; one that was started since has no cuts.
pub(super) fn heal(directory: &Path, out: &mut impl Write) -> Result<(), ClusterError> {
    let cluster = description::look(directory)?;
    let running = cluster.running();
    for number in &running {
        check_answering(*number, cluster.node(*number)?)?;
    }
    running.iter().try_for_each(|number| order(&cluster, *number, HEAL_PATH, &[]))?;
    Ok(writeln!(out, "no node is cut off from another")?)
}

fn check_answering(number: usize, node: &Node) -> Result<(), ClusterError> {
    match node.state() {
        ProcessState::Running => Ok(()),
        ProcessState::Paused => Err(ClusterError::Paused(number)),
        ProcessState::Ended => Err(ClusterError::NotRunning(number)),
    }
}

fn order(
    cluster: &Description,
    number: usize,
    path: &str,
    query: &[(&str, &str)],
) -> Result<(), ClusterError> {
    cluster.node(number)?.management(cluster.ports).order(path, query).map_err(|error| match error {
        NodetoolError::Absent(_) => ClusterError::CanNotBeCut(number),
        source => ClusterError::Management { number, source },
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread::{JoinHandle, spawn};

    use super::*;
    use crate::cluster::layout::{Machine, Wanted};

    /// A cluster of two nodes that are said to run, with two listeners in the place of their management ports.
    fn cluster(directory: &Path) -> [TcpListener; 2] {
        let wanted = Wanted { nodes: Some(2), ..Wanted::default() };
        let mut cluster = wanted.lay_out(Machine { core_count: 2, memory_bytes: None }).unwrap();
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        cluster.ports.management = first.local_addr().unwrap().port();
        let second = TcpListener::bind(("127.0.0.2", cluster.ports.management)).unwrap();
        cluster.nodes.iter_mut().for_each(|node| node.process = ProcessId::of(std::process::id()));
        Claim::make(directory).unwrap().save(&cluster).unwrap();
        [first, second]
    }

    /// Answers one request; its first line is what comes out.
    fn answer_once(listener: TcpListener, status: &'static str) -> JoinHandle<String> {
        spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            write!(socket, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
            String::from_utf8(request).unwrap().lines().next().unwrap_or_default().to_owned()
        })
    }

    #[test]
    fn both_sides_of_a_cut_are_told_of_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let nodes = cluster(directory.path()).map(|listener| answer_once(listener, "200 OK"));
        cut(directory.path(), [1, 2], &mut Vec::new()).unwrap();
        let requests = nodes.map(|node| node.join().unwrap());
        let expected =
            ["127.0.0.2", "127.0.0.1"].map(|address| format!("POST /ring/cut?address={address} HTTP/1.1"));
        assert_eq!(requests, expected);
    }

    #[test]
    fn all_nodes_that_run_are_healed() {
        let directory = tempfile::tempdir().unwrap();
        let nodes = cluster(directory.path()).map(|listener| answer_once(listener, "200 OK"));
        heal(directory.path(), &mut Vec::new()).unwrap();
        let requests = nodes.map(|node| node.join().unwrap());
        assert_eq!(requests, ["POST /ring/heal HTTP/1.1"; 2]);
    }

    #[test]
    fn a_node_that_knows_no_cuts_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let [_first, second] = cluster(directory.path());
        let second = answer_once(second, "404 Not Found");
        let error = cut(directory.path(), [2, 1], &mut Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "node 2 can not be cut off: it knows no such request");
        second.join().unwrap();
        let error = cut(directory.path(), [2, 2], &mut Vec::new()).unwrap_err();
        assert!(matches!(error, ClusterError::CutFromItself));
    }
}
