//! Ours and Cassandra's, three replicas at QUORUM, in turns.
//!
//! Each round has a keyspace of its own, so that the load of each writes rows that are not there; the workloads after
//! it are asked of these rows, updates last.

use super::super::cassandra::CassandraRing;
use super::Plan;
use super::table::{Line, Side, announce};
use super::target::{Measured, Nodes, OurRing, Work, drive, fill, warm};
use crate::measure::Aim;
use crate::node::fresh_folder;
use crate::report::Failure;

const REPLICAS: usize = 3;

/// What YCSB calls it, the client's statement, and how many times less CPU than Cassandra ours ought to need.
const WORKLOADS: [(&str, &str, f64); 4] = [
    ("load", "insert", 25.0),
    ("C (reads)", "read", 40.0),
    ("A (half updates)", "mixed", 40.0),
    ("U (updates)", "update", 25.0),
];

/// Ours, and Cassandra's if it is wanted.
pub(super) struct Rings {
    ours: OurRing,
    cassandra: Option<CassandraRing>,
}

impl Rings {
    pub(super) fn start(plan: &Plan) -> Result<Rings, Failure> {
        let cassandra = match plan.has_cassandra {
            true => {
                Some(CassandraRing::start(&plan.profile, &plan.heap, &fresh_folder("ring-cost/cassandra")?)?)
            }
            false => None,
        };
        let ours = OurRing::of_three(plan, &fresh_folder("ring-cost/ours")?)?;
        Ok(Rings { ours, cassandra })
    }

    /// Those that are measured, ours first.
    pub(super) fn all(&self) -> Vec<&dyn Nodes> {
        let mut all: Vec<&dyn Nodes> = vec![&self.ours];
        all.extend(self.cassandra.as_ref().map(|cassandra| cassandra as &dyn Nodes));
        all
    }
}

/// Measures both; without Cassandra ours alone.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Line>, Failure> {
    let rings = Rings::start(plan)?;
    let all = rings.all();
    let mut found: Vec<Vec<Vec<Measured>>> = vec![vec![Vec::new(); WORKLOADS.len()]; all.len()];
    all.iter().try_for_each(|nodes| warm(*nodes, plan, REPLICAS))?;
    for round in 1..=plan.rounds {
        announce("beside", round, plan)?;
        let keyspace = format!("round{round}");
        for (index, (name, statement, _)) in WORKLOADS.iter().enumerate() {
            for (nodes, found) in all.iter().zip(&mut found) {
                let work =
                    Work { keyspace: &keyspace, statement, level: "QUORUM", rows: plan.rows, clients: None };
                let measured = match *name {
                    "load" => fill(*nodes, plan, work, REPLICAS)?,
                    _ => drive(*nodes, plan, work)?,
                };
                found[index].push(measured);
            }
        }
    }
    Ok(lines(found))
}

fn lines(found: Vec<Vec<Vec<Measured>>>) -> Vec<Line> {
    let mut found = found.into_iter();
    let ours = found.next().unwrap_or_default();
    let mut theirs = found.next().map(Vec::into_iter);
    let line = |((name, _, aim), runs): ((&str, &str, f64), Vec<Measured>)| Line {
        table: "RF 3 at QUORUM",
        name: name.to_owned(),
        ours: Side { name: "ring of three".to_owned(), runs },
        against: theirs
            .as_mut()
            .map(|theirs| Side { name: "Cassandra's".to_owned(), runs: theirs.next().unwrap_or_default() }),
        aim: Some(Aim::AtLeast(aim)),
    };
    WORKLOADS.into_iter().zip(ours).map(line).collect()
}
