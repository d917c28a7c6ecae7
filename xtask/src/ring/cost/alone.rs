//! Ours alone: what replicas and levels cost on the same three nodes, and what a ring costs beside a lone node.
//!
//! Reads have rows of their own, which are written once: what is updated is spread over more table files the faster its
//! nodes are, and a read of it says more of that than of the ring.
//!
//! Each node has as many rows in each case: a keyspace with one replica on three nodes has three times as many. What a
//! read costs depends on how much of what it reads is in the processor's caches, and 33 MB on a node are read a third
//! cheaper than 100.

use super::super::HOSTS;
use super::Plan;
use super::table::{Line, Side, announce};
use super::target::{LoneNode, Measured, Nodes, OurRing, Work, drive, fill};
use crate::measure::Aim;
use crate::node::fresh_folder;
use crate::report::Failure;

/// Where something is asked.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Lone,
    One,
    Three,
}

/// What is asked in every round, in this order; a node is asked the same as a ring just before it.
struct Case {
    name: &'static str,
    place: Place,
    replicas: usize,
    statement: &'static str,
    level: &'static str,
    /// The case that it is held against, and at most how many times as much it ought to cost.
    against: Option<(&'static str, f64)>,
}

const LONE_READ: &str = "lone node, read";
const LONE_WRITE: &str = "lone node, write";
const RF1_READ: &str = "RF 1, read ONE";
const RF1_WRITE: &str = "RF 1, write ONE";
/// A ring of one ought to cost what a node does; two runs of the same differ by so much.
const THE_SAME: f64 = 1.05;

#[rustfmt::skip]
const CASES: [Case; 9] = [
    Case { name: LONE_READ, place: Place::Lone, replicas: 1, statement: "read", level: "ONE", against: None },
    Case { name: "ring of one, read", place: Place::One, replicas: 1, statement: "read", level: "ONE", against: Some((LONE_READ, THE_SAME)) },
    Case { name: RF1_READ, place: Place::Three, replicas: 1, statement: "read", level: "ONE", against: Some((LONE_READ, 1.1)) },
    Case { name: "RF 3, read ONE", place: Place::Three, replicas: 3, statement: "read", level: "ONE", against: Some((RF1_READ, 1.2)) },
    Case { name: "RF 3, read QUORUM", place: Place::Three, replicas: 3, statement: "read", level: "QUORUM", against: Some((RF1_READ, 1.8)) },
    Case { name: LONE_WRITE, place: Place::Lone, replicas: 1, statement: "update", level: "ONE", against: None },
    Case { name: "ring of one, write", place: Place::One, replicas: 1, statement: "update", level: "ONE", against: Some((LONE_WRITE, THE_SAME)) },
    Case { name: RF1_WRITE, place: Place::Three, replicas: 1, statement: "update", level: "ONE", against: Some((LONE_WRITE, 1.1)) },
    Case { name: "RF 3, write ALL", place: Place::Three, replicas: 3, statement: "update", level: "ALL", against: Some((RF1_WRITE, 3.2)) },
];

/// Measures all of it; a lone node and both rings run all the time.
pub(super) fn measure(plan: &Plan) -> Result<Vec<Line>, Failure> {
    let lone = LoneNode::start(plan, &fresh_folder("ring-cost/lone")?)?;
    let one = OurRing::of_one(plan, &fresh_folder("ring-cost/one")?)?;
    let three = OurRing::of_three(plan, &fresh_folder("ring-cost/three")?)?;
    let nodes = |place: Place| -> &dyn Nodes {
        match place {
            Place::Lone => &lone,
            Place::One => &one,
            Place::Three => &three,
        }
    };
    let everywhere = [(Place::Lone, 1), (Place::One, 1), (Place::Three, 1), (Place::Three, 3)];
    for (place, replicas) in everywhere {
        for statement in ["read", "update"] {
            let keyspace = keyspace(statement, replicas);
            let rows = rows(plan, place, replicas);
            let work = Work { keyspace: &keyspace, statement: "insert", level: "ALL", rows, clients: None };
            fill(nodes(place), plan, work, replicas)?;
        }
    }
    let mut found: Vec<Vec<Measured>> = vec![Vec::new(); CASES.len()];
    for round in 1..=plan.rounds {
        announce("alone", round, plan)?;
        for (case, found) in CASES.iter().zip(&mut found) {
            let keyspace = keyspace(case.statement, case.replicas);
            let rows = rows(plan, case.place, case.replicas);
            let work = Work {
                keyspace: &keyspace,
                statement: case.statement,
                level: case.level,
                rows,
                clients: None,
            };
            found.push(drive(nodes(case.place), plan, work)?);
        }
    }
    Ok(lines(&found))
}

/// So many that each node has as many as in every other case.
fn rows(plan: &Plan, place: Place, replicas: usize) -> u64 {
    let node_count = if place == Place::Three { HOSTS.len() } else { 1 };
    plan.rows * (node_count / replicas) as u64
}

fn keyspace(statement: &str, replicas: usize) -> String {
    format!("{statement}_rf{replicas}")
}

fn lines(found: &[Vec<Measured>]) -> Vec<Line> {
    let side = |name: &str| {
        let index = CASES.iter().position(|case| case.name == name);
        let runs = index.and_then(|index| found.get(index)).cloned().unwrap_or_default();
        Side { name: name.to_owned(), runs }
    };
    let line = |case: &Case| Line {
        table: "ours alone",
        name: case.name.to_owned(),
        ours: side(case.name),
        against: case.against.map(|(name, _)| side(name)),
        aim: case.against.map(|(_, most)| Aim::AtMost(most)),
    };
    CASES.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_case_is_held_against_is_measured_before_it_with_the_same_statement() {
        for (index, case) in CASES.iter().enumerate() {
            let Some((name, _)) = case.against else { continue };
            let before = CASES[..index].iter().find(|before| before.name == name);
            assert_eq!(before.map(|before| before.statement), Some(case.statement), "{}", case.name);
        }
    }
}
