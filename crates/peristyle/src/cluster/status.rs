//! `status`: the nodes and how they are.

use std::io::Write;
use std::path::Path;

use super::description::{self, Ports};
use super::error::ClusterError;
use super::node::Node;
use super::process::ProcessState;

const HEADER: [&str; 6] = ["Node", "Address", "Process", "State", "Data centre", "Rack"];

pub(super) fn print(directory: &Path, out: &mut impl Write) -> Result<(), ClusterError> {
    let cluster = description::look(directory)?;
    let rows = (1..).zip(&cluster.nodes).map(|(number, node)| row(number, node, cluster.ports));
    let table: Vec<[String; 6]> = std::iter::once(HEADER.map(str::to_owned)).chain(rows).collect();
    for row in &table {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let width = table.iter().map(|row| row[column].len()).max().unwrap_or(0);
            format!("{cell:<width$}")
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

fn row(number: usize, node: &Node, ports: Ports) -> [String; 6] {
    let process = node.process.as_ref().filter(|process| process.state() != ProcessState::Ended);
    [
        number.to_string(),
        node.cql_address(ports).to_string(),
        process.map_or_else(|| "-".to_owned(), |process| process.number.to_string()),
        state(node, || node.serves(ports)).to_owned(),
        node.datacenter.clone(),
        node.rack.clone(),
    ]
}

/// A node that runs and is asked in vain is said to start.
fn state(node: &Node, serves: impl FnOnce() -> bool) -> &'static str {
    match node.state() {
        ProcessState::Paused => "paused",
        ProcessState::Running if serves() => "serving",
        ProcessState::Running => "starting",
        ProcessState::Ended if node.is_killed => "killed",
        ProcessState::Ended => "down",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::description::Claim;
    use crate::cluster::layout::{Machine, Wanted};
    use crate::cluster::process::ProcessId;

    #[test]
    fn nodes_that_do_not_run_are_down_or_killed() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine { core_count: 2, memory_bytes: None };
        let mut cluster = Wanted { racks: Some(3), ..Wanted::default() }.lay_out(machine).unwrap();
        cluster.nodes[1].is_killed = true;
        Claim::make(directory.path()).unwrap().save(&cluster).unwrap();
        let mut out = Vec::new();
        print(directory.path(), &mut out).unwrap();
        let expected = "\
Node  Address         Process  State   Data centre  Rack
1     127.0.0.1:9042  -        down    datacenter1  rack1
2     127.0.0.2:9042  -        killed  datacenter1  rack2
3     127.0.0.3:9042  -        down    datacenter1  rack3
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_process_that_does_not_answer_yet_is_starting() {
        let machine = Machine { core_count: 2, memory_bytes: None };
        let mut node = Wanted::default().lay_out(machine).unwrap().nodes.remove(0);
        node.process = ProcessId::of(std::process::id());
        assert_eq!((state(&node, || false), state(&node, || true)), ("starting", "serving"));
    }
}
