//! Nodes that are filled and driven together, and what was measured of them.

use std::path::Path;

use super::super::cassandra::CassandraRing;
use super::super::{HOSTS, Ports, Ring};
use super::{PORTS, Plan};
use crate::lab::{self, Load, Mix, Pace};
use crate::node::{Node, NodeOptions};
use crate::report::Failure;

/// Connections to each node; the requests in flight are shared out among them.
const CONNECTIONS: u64 = 2;
/// Statements, each with its workload and what it is there.
const STATEMENTS: [(&str, &str, Mix); 7] = [
    ("insert", "rows", &[("inserts", 1)]),
    ("read", "rows", &[("reads", 1)]),
    ("update", "rows", &[("updates", 1)]),
    ("mixed", "rows", &[("reads", 1), ("updates", 1)]),
    ("small-insert", "small", &[("writes", 1)]),
    ("if", "small", &[("conditions", 1)]),
    ("count", "counts", &[]),
];

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
    /// So many clients ask one thing after the other, each of any node; without, there are the plan's requests in
    /// flight for each node.
    pub(super) clients: Option<u64>,
}

/// One run of the client.
#[derive(Clone)]
pub(super) struct Measured {
    pub(super) run: lab::Measured,
    is_ours: bool,
}

impl Measured {
    /// Ours may not have failed, nor have done nothing.
    pub(super) fn is_sound(&self) -> bool {
        !self.is_ours || (self.run.failed() == 0 && self.run.count() > 0.0)
    }
}

/// Makes the keyspace and its table, and writes every row once: YCSB's load.
pub(super) fn fill(
    nodes: &dyn Nodes,
    plan: &Plan,
    work: Work<'_>,
    replicas: usize,
) -> Result<Measured, Failure> {
    told("fill", nodes, work, load(nodes, plan, work)?.with("replication-factor", replicas).fill()?)
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
    let load = load(nodes, plan, work)?.has_rows().with("seconds", seconds).with("warmup", plan.warmup);
    told("drive", nodes, work, load.run()?)
}

fn load(nodes: &dyn Nodes, plan: &Plan, work: Work<'_>) -> Result<Load, Failure> {
    let found = STATEMENTS.iter().find(|(name, ..)| *name == work.statement);
    let (_, workload, mix) =
        *found.ok_or_else(|| Failure::new(format!("there is no statement '{}'", work.statement)))?;
    let process_ids = nodes.process_ids()?;
    let node_count = process_ids.len() as u64;
    let (in_flight, connections) = match work.clients {
        Some(clients) => (clients, clients),
        None => (plan.in_flight * node_count, CONNECTIONS * node_count),
    };
    let address = format!("{}:{}", HOSTS[0], nodes.port());
    let load = Load::new(workload, &address, Pace::InFlight(in_flight)).served_by(&process_ids);
    let load = load.with("keyspace", work.keyspace).with("consistency", work.level);
    let load = load.with("rows", work.rows).with("connections", connections);
    Ok(if mix.is_empty() { load } else { load.mix(mix) })
}

fn told(command: &str, nodes: &dyn Nodes, work: Work<'_>, run: lab::Measured) -> Result<Measured, Failure> {
    println!(
        "{:<14} {command} {} {} {}: {:.2} us, {:.0}/s, {} failed",
        nodes.name(),
        work.keyspace,
        work.statement,
        work.level,
        run.server_cpu_us(),
        run.rate(),
        run.failed(),
    );
    if run.failed() > 0 {
        println!("{}", run.faults());
    }
    Ok(Measured { run, is_ours: nodes.is_ours() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_of_ours_that_failed_is_seen_and_one_that_did_nothing() {
        let measured = |count: u64, errors: u64, is_ours| Measured {
            run: lab::Measured::of(json!({"count": count, "error_count": errors})),
            is_ours,
        };
        assert!(measured(1, 0, true).is_sound() && measured(1, 1, false).is_sound());
        assert!(!measured(1, 1, true).is_sound() && !measured(0, 0, true).is_sound());
    }
}
