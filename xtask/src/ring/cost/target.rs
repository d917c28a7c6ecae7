//! Nodes that are filled and driven together, and what was measured of them.

use std::path::Path;

use serde_json::Value;

use super::super::cassandra::CassandraRing;
use super::super::{HOSTS, Ports, Ring};
use super::{PORTS, Plan};
use crate::measure::{loaded, number};
use crate::node::{Node, NodeOptions};
use crate::report::Failure;

/// Connections to each node; the requests in flight are shared out among them.
const CONNECTIONS: u64 = 2;

/// What runs of ours, or of Cassandra's.
pub(super) trait Nodes {
    /// How a table calls it.
    fn name(&self) -> &'static str;
    /// The port of CQL on all of its nodes.
    fn port(&self) -> u16;
    /// One for each node.
    fn process_ids(&self) -> Result<Vec<u32>, Failure>;
    /// Whether a failed operation fails the run.
    fn is_ours(&self) -> bool {
        true
    }
}

impl Nodes for CassandraRing {
    fn name(&self) -> &'static str {
        "cassandra"
    }

    fn port(&self) -> u16 {
        CassandraRing::PORT
    }

    fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        self.process_ids()
    }

    fn is_ours(&self) -> bool {
        false
    }
}

/// A ring of ours.
pub(super) struct OurRing {
    name: &'static str,
    ring: Ring,
}

impl OurRing {
    /// Starts three nodes, each with one shard.
    pub(super) fn of_three(plan: &Plan, folder: &Path) -> Result<OurRing, Failure> {
        OurRing::start("ring of three", HOSTS.len(), plan, folder, PORTS)
    }

    /// Starts a ring of one node with one shard.
    pub(super) fn of_one(plan: &Plan, folder: &Path) -> Result<OurRing, Failure> {
        let ports =
            Ports { cql: PORTS.cql + 1, storage: PORTS.storage + 1, management: PORTS.management + 1 };
        OurRing::start("ring of one", 1, plan, folder, ports)
    }

    fn start(
        name: &'static str,
        node_count: usize,
        plan: &Plan,
        folder: &Path,
        ports: Ports,
    ) -> Result<OurRing, Failure> {
        let mebibytes = (crate::measure::size_bytes(&plan.memory)? >> 20) * node_count as u64;
        let mut words =
            vec!["--shards".to_owned(), "1".to_owned(), "--memory".to_owned(), format!("{mebibytes}MiB")];
        for (name, value) in plan.settings() {
            words.extend(["--set".to_owned(), format!("{name}={value}")]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Ok(OurRing { name, ring: Ring::of(node_count, &folder.join("cluster"), ports, &words)? })
    }
}

impl Nodes for OurRing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn port(&self) -> u16 {
        self.ring.ports.cql
    }

    fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        self.ring.process_ids()
    }
}

/// A node with one shard that is of no ring.
pub(super) struct LoneNode(Node);

impl LoneNode {
    pub(super) fn start(plan: &Plan, folder: &Path) -> Result<LoneNode, Failure> {
        let mut options = NodeOptions::new(folder.join("data"), &["--shards", "1", "--memory", &plan.memory]);
        for (name, value) in plan.settings() {
            options.words.extend([format!("--{name}"), value.to_owned()]);
        }
        Node::start(&options).map(LoneNode)
    }
}

impl Nodes for LoneNode {
    fn name(&self) -> &'static str {
        "lone node"
    }

    fn port(&self) -> u16 {
        self.0.port
    }

    fn process_ids(&self) -> Result<Vec<u32>, Failure> {
        Ok(vec![self.0.process_id()])
    }
}

/// What is asked of a keyspace.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) keyspace: &'a str,
    pub(super) statement: &'a str,
    pub(super) level: &'a str,
    /// How many it has.
    pub(super) rows: u64,
    /// So many clients ask one thing after the other, each of any node; without, each node has the plan's requests in
    /// flight, for rows that it has.
    pub(super) clients: Option<u64>,
}

/// One run of the client.
#[derive(Clone)]
pub(super) struct Measured {
    /// As the client printed it.
    pub(super) result: Value,
    is_ours: bool,
}

impl Measured {
    fn operation_count(&self) -> f64 {
        ["ops", "writes"]
            .map(|name| number(&self.result, name))
            .into_iter()
            .find(|count| *count > 0.0)
            .unwrap_or(0.0)
    }

    /// Microseconds of CPU of all nodes for an operation.
    pub(super) fn cpu_us(&self) -> f64 {
        number(&self.result, "server_cpu_s") * 1e6 / self.operation_count()
    }

    pub(super) fn per_second(&self) -> f64 {
        self.operation_count() / number(&self.result, "seconds")
    }

    pub(super) fn latency_ms(&self, name: &str) -> f64 {
        number(&self.result, name) / 1e3
    }

    /// Operations that failed, with connections that were closed.
    pub(super) fn failed(&self) -> u64 {
        let counts = ["errors", "overloaded", "closed"].map(|name| self.result[name].as_u64().unwrap_or(0));
        counts.iter().sum()
    }

    /// Ours may not have failed, nor have done nothing.
    pub(super) fn is_sound(&self) -> bool {
        !self.is_ours || (self.failed() == 0 && self.operation_count() > 0.0)
    }
}

/// Makes the keyspace and its table, and writes every row once: YCSB's load.
pub(super) fn fill(
    nodes: &dyn Nodes,
    plan: &Plan,
    work: Work<'_>,
    replicas: usize,
) -> Result<Measured, Failure> {
    client("fill", nodes, plan, work, &[format!("replicas={replicas}")])
}

/// Has the client ask as fast as answers come.
pub(super) fn drive(nodes: &dyn Nodes, plan: &Plan, work: Work<'_>) -> Result<Measured, Failure> {
    drive_for(plan.seconds, nodes, plan, work)
}

/// Fills a keyspace and has the client read and write there, before anything counts.
pub(super) fn warm(nodes: &dyn Nodes, plan: &Plan, replicas: usize) -> Result<(), Failure> {
    let work =
        |statement| Work { keyspace: "warm", statement, level: "QUORUM", rows: plan.rows, clients: None };
    fill(nodes, plan, work("insert"), replicas)?;
    let seconds = if nodes.is_ours() { plan.seconds } else { plan.jvm_seconds };
    drive_for(seconds, nodes, plan, work("mixed")).map(|_| ())
}

fn drive_for(seconds: u64, nodes: &dyn Nodes, plan: &Plan, work: Work<'_>) -> Result<Measured, Failure> {
    let times = [format!("seconds={seconds}"), format!("warmup={}", plan.warmup)];
    client("drive", nodes, plan, work, &times)
}

fn client(
    command: &str,
    nodes: &dyn Nodes,
    plan: &Plan,
    work: Work<'_>,
    further: &[String],
) -> Result<Measured, Failure> {
    let process_ids: Vec<String> = nodes.process_ids()?.iter().map(u32::to_string).collect();
    let hosts = HOSTS.get(..process_ids.len()).unwrap_or(&HOSTS);
    let words = [
        format!("hosts={}", hosts.join(",")),
        format!("port={}", nodes.port()),
        format!("server={}", process_ids.join(",")),
        format!("keyspace={}", work.keyspace),
        format!("statement={}", work.statement),
        format!("consistency={}", work.level),
        format!("rows={}", work.rows),
    ];
    let in_flight = match work.clients {
        Some(clients) => {
            vec![format!("connections={clients}"), "window=1".to_owned(), "route=any".to_owned()]
        }
        None => vec![
            format!("connections={}", CONNECTIONS * hosts.len() as u64),
            format!("window={}", plan.in_flight.div_ceil(CONNECTIONS)),
        ],
    };
    let words = words.iter().chain(&in_flight).chain(further).map(String::as_str);
    let words = std::iter::once(command).chain(words);
    let result = loaded(&words.collect::<Vec<_>>())?;
    let measured = Measured { result, is_ours: nodes.is_ours() };
    println!(
        "{:<14} {command} {} {} {}: {:.2} us, {:.0}/s, {} failed",
        nodes.name(),
        work.keyspace,
        work.statement,
        work.level,
        measured.cpu_us(),
        measured.per_second(),
        measured.failed(),
    );
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_of_a_load_are_its_writes_and_one_of_ours_that_failed_is_seen() {
        let measured = |errors: u64, is_ours| Measured {
            result: json!({"writes": 1000, "seconds": 2.0, "server_cpu_s": 0.01, "errors": errors}),
            is_ours,
        };
        assert_eq!((measured(0, true).cpu_us(), measured(0, true).per_second()), (10.0, 500.0));
        assert!(
            measured(0, true).is_sound() && measured(1, false).is_sound() && !measured(1, true).is_sound()
        );
        assert!(!Measured { result: json!({"ops": 0}), is_ours: true }.is_sound());
    }
}
