//! A node is away while the others are written to; when it is back it is sent what it missed, from their logs.
//!
//! What is measured: how much it missed, how long it was away, and how long after its start it has all of it. Nothing
//! may be left to be compared: that would read all rows there are.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::super::{Host, Ring};
use super::work::{Orders, Work, select_all, table};
use super::{Plan, QUORUM, REPLICATION, Verdict, contents, such};
use crate::measure::statements;
use crate::report::Failure;

const ROWS: &str = "counted.rows";
const WRITERS: u64 = 12;
/// The node that is away, from 1; it is at the last address.
const NODE: usize = 3;
/// How often it is looked whether something is left.
const POLL: Duration = Duration::from_millis(50);

/// What the others have for the node that was away: in slots of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pending {
    to_send: u64,
    to_compare: u64,
}

pub(super) fn run(plan: &Plan, folder: &Path) -> Result<Verdict, Failure> {
    let cluster = folder.join("cluster");
    let ring = Ring::start(&cluster, super::PORTS, &["--shards", "1"])?;
    let hosts = ring.hosts();
    statements(&hosts[0].cql, &schema())?;
    let others = hosts[..NODE - 1].to_vec();
    let orders = Orders {
        hosts: others.clone(),
        table: ROWS.to_owned(),
        consistency: QUORUM,
        writers: 0..WRITERS,
        pause: Duration::ZERO,
    };
    let work = Work::begin(&[orders], plan.seed);
    std::thread::sleep(plan.rest);
    ring.order(&["kill", &NODE.to_string()])?;
    let gone = Instant::now();
    std::thread::sleep(plan.away());
    let done = work.end()?;
    let away = gone.elapsed();
    let mut verdict = Verdict::default();
    verdict.check(done.lost.is_empty(), || such("requests at QUORUM were lost", &done.lost));
    let missed = pending_of(&ring, &others)?;
    verdict.check(missed.to_send > 0, || "nothing is to be sent to the node that is away".to_owned());
    verdict.check(missed.to_compare == 0, || format!("{missed:?}: rows are to be compared"));

    let start = Instant::now();
    ring.order(&["start", &NODE.to_string()])?;
    let serves = start.elapsed();
    while pending_of(&ring, &others)? != Pending::default() {
        if start.elapsed() > super::SETTLE_MAX {
            return Err(Failure::new("what the node missed is never brought to it"));
        }
        std::thread::sleep(POLL);
    }
    let handed = start.elapsed();
    contents::until_equal(&ring, &select_all(ROWS), super::SETTLE_MAX, |_| false)?;
    let equal = start.elapsed();
    contents::check_each_alone(&ring, ROWS, &done.ledger, &mut verdict)?;
    let (mutation_count, mended_count) =
        (told(&cluster, "mutation_count=")?, told(&cluster, "mended_count=")?);
    verdict.check(mended_count == 0, || format!("{mended_count} partitions were compared and mended"));
    let (written_rate, sent_rate) =
        (mutation_count as f64 / away.as_secs_f64(), mutation_count as f64 / (handed - serves).as_secs_f64());
    verdict.summary = json!({
        "part": "away",
        "away_ms": away.as_millis() as u64,
        "answered": done.answered_count,
        "mutations_sent": mutation_count,
        "serves_after_ms": serves.as_millis() as u64,
        "handed_after_ms": handed.as_millis() as u64,
        "equal_after_ms": equal.as_millis() as u64,
        "sent_times_as_fast_as_written": (sent_rate / written_rate * 10.0).round() / 10.0,
    });
    Ok(verdict)
}

fn schema() -> Vec<String> {
    vec![format!("CREATE KEYSPACE counted WITH replication = {REPLICATION}"), table(ROWS)]
}

/// What nodes have for others that have missed something.
fn pending_of(ring: &Ring, nodes: &[Host]) -> Result<Pending, Failure> {
    let mut pending = Pending::default();
    for node in nodes {
        let host = format!("127.0.0.{}", node.number);
        let listed = ring.nodetool(&host, &["listpendinghints"])?;
        for line in listed.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
            // Host ID, Address, Rack, DC, Status, To send, To compare, …
            let (Some(to_send), Some(to_compare)) = (number(5), number(6)) else {
                return Err(Failure::new(format!("a line that is not understood: {line}")));
            };
            pending.to_send += to_send;
            pending.to_compare += to_compare;
        }
    }
    Ok(pending)
}

/// The sum of a figure in the logs of the nodes that were there. The one that was killed compares what it had in memory
/// with the others: it may have died before they had it.
fn told(cluster: &Path, figure: &str) -> Result<u64, Failure> {
    let mut sum = 0;
    for number in 1..NODE {
        let log = fs::read(cluster.join(format!("node-{number}.log")))?;
        let log = String::from_utf8_lossy(&log);
        let figures = log.split_whitespace().filter_map(|word| word.strip_prefix(figure));
        sum += figures.filter_map(|number| number.parse::<u64>().ok()).sum::<u64>();
    }
    Ok(sum)
}
